import OneTimePassword
import SallyportCore

/// `--qr`: how the QR code is to be drawn.
enum QRChoice: String, CaseIterable {
  case auto, utf8, inverted, ascii, none
}

/// What there is to show for a QR code.
enum QRDrawing: Equatable {
  case code([UInt8])
  /// None was wanted, or nobody looks.
  case nothing
  /// The screen would have to have so many columns and lines.
  case tooSmall(columns: Int, lines: Int)

  /// Chooses from what was asked for and what the screen can show. A line of it stays free for the
  /// prompt. What is asked for by name is drawn whether it fits or not, and without colours.
  init(_ choice: QRChoice, on screen: Screen?, hasColours: Bool, matrix: () -> QRMatrix) {
    switch choice {
    case .none: self = .nothing
    case .utf8: self = .code(drawn(matrix(), .halfBlocks, QRMatrix.usualQuietZone))
    case .inverted: self = .code(drawn(matrix(), .inverted, QRMatrix.usualQuietZone))
    case .ascii: self = .code(drawn(matrix(), .ascii, QRMatrix.usualQuietZone))
    case .auto:
      guard let screen else {
        self = .nothing
        return
      }
      self = QRDrawing(fitting: matrix(), on: screen, hasColours: hasColours)
    }
  }

  private init(fitting matrix: QRMatrix, on screen: Screen, hasColours: Bool) {
    var styles: [QRStyle] = [hasColours ? .colouredSpaces : .ascii]
    if screen.isUTF8 { styles.insert(hasColours ? .colouredHalfBlocks : .halfBlocks, at: 0) }
    for style in styles {
      for zone in [QRMatrix.fullQuietZone, QRMatrix.usualQuietZone] {
        let (columns, lines) = matrix.extent(style: style, quietZone: zone)
        if columns <= screen.columns, lines < screen.lines {
          self = .code(drawn(matrix, style, zone))
          return
        }
      }
    }
    let (columns, lines) = matrix.extent(style: styles[0], quietZone: QRMatrix.usualQuietZone)
    self = .tooSmall(columns: columns, lines: lines + 1)
  }
}

extension QRMatrix {
  /// What ISO/IEC 18004 wants.
  fileprivate static let fullQuietZone = 4
}

private func drawn(_ matrix: QRMatrix, _ style: QRStyle, _ zone: Int) -> [UInt8] {
  let text = inMemory(matrix.text(style: style, quietZone: zone))
  return text.bytes(in: 0..<text.count)
}
