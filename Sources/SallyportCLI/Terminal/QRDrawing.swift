import OneTimePassword
import SallyportCore

/// `--qr`: how the QR code is to be drawn.
enum QRChoice: String, CaseIterable {
  case auto, utf8, ascii, none
}

/// What there is to show for a QR code.
enum QRDrawing: Equatable {
  case code([UInt8])
  /// None was wanted, or nobody looks.
  case nothing
  /// The screen would have to have so many columns and lines.
  case tooSmall(columns: Int, lines: Int)

  /// Chooses from what was asked for and what the screen can show. A line of it stays free for the
  /// prompt. What is asked for by name is drawn whether it fits or not.
  init(_ choice: QRChoice, on screen: Screen?, matrix: () -> QRMatrix) {
    if choice == .none || (choice == .auto && screen == nil) {
      self = .nothing
      return
    }
    let matrix = matrix()
    switch choice {
    case .none: self = .nothing
    case .utf8: self = .code(drawn(matrix, .halfBlocks))
    case .ascii: self = .code(drawn(matrix, .ascii))
    case .auto: self = QRDrawing(fitting: matrix, on: screen)
    }
  }

  private init(fitting matrix: QRMatrix, on screen: Screen?) {
    guard let screen else {
      self = .nothing
      return
    }
    let styles: [QRStyle] = screen.isUTF8 ? [.halfBlocks, .ascii] : [.ascii]
    for style in styles {
      let (columns, lines) = matrix.extent(style: style, quietZone: zone)
      if columns <= screen.columns, lines < screen.lines {
        self = .code(drawn(matrix, style))
        return
      }
    }
    let (columns, lines) = matrix.extent(
      style: screen.isUTF8 ? .halfBlocks : .ascii, quietZone: zone)
    self = .tooSmall(columns: columns, lines: lines + 1)
  }
}

private let zone = QRMatrix.usualQuietZone

private func drawn(_ matrix: QRMatrix, _ style: QRStyle) -> [UInt8] {
  let text = inMemory(matrix.text(style: style, quietZone: zone))
  return text.bytes(in: 0..<text.count)
}
