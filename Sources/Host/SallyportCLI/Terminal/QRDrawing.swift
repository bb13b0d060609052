import OneTimePassword
import SallyportCore

/// `--qr`: how to draw the QR code.
enum QRChoice: String, CaseIterable {
  case auto, utf8, inverted, ascii, none

  /// Where nothing is known of the screen.
  var style: QRStyle {
    switch self {
    case .ascii: .ascii
    case .inverted: .inverted
    case .auto, .utf8, .none: .halfBlocks
    }
  }
}

/// A QR code as text, or why there is none.
enum QRDrawing: Equatable {
  case code([UInt8])
  /// `--qr none`
  case nothing
  case noTerminal
  /// The terminal is smaller than these columns and lines.
  case tooSmall(columns: Int, lines: Int)

  /// With `auto`, takes the first style that fits on the screen, with one line left for the prompt.
  /// Any other choice is drawn whether it fits or not, and without colours.
  init(_ choice: QRChoice, on screen: Screen?, hasColours: Bool, matrix: () -> QRMatrix) {
    switch choice {
    case .none: self = .nothing
    case .utf8, .inverted, .ascii:
      self = .code(drawn(matrix(), choice.style, QRMatrix.usualQuietZone))
    case .auto:
      guard let screen else {
        self = .noTerminal
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
  /// The width that ISO/IEC 18004 requires.
  fileprivate static let fullQuietZone = 4
}

private func drawn(_ matrix: QRMatrix, _ style: QRStyle, _ zone: Int) -> [UInt8] {
  let text = inMemory(matrix.text(style: style, quietZone: zone))
  return text.bytes(in: 0..<text.count)
}

/// How modules are drawn as characters.
enum QRStyle: Equatable {
  /// One UTF-8 character for two modules, one above the other.
  case halfBlocks
  /// The same with dark modules as ink, for terminals with dark text on a light background.
  case inverted
  /// The same in black on bright white, whatever the terminal's colours are (ECMA-48, SGR).
  case colouredHalfBlocks
  /// Two characters for each module: `##` if it is light, else two spaces.
  case ascii
  /// The same with dark modules as ink.
  case invertedASCII
  /// Two spaces for each module, on black or on bright white.
  case colouredSpaces
}

extension QRMatrix {
  /// The size of the text, in columns and lines.
  func extent(style: QRStyle, quietZone: Int) -> (columns: Int, lines: Int) {
    let side = size + 2 * max(quietZone, 0)
    switch style {
    case .halfBlocks, .inverted, .colouredHalfBlocks: return (side, (side + 1) / 2)
    case .ascii, .invertedASCII, .colouredSpaces: return (2 * side, side)
    }
  }

  /// The code as lines of text, each ending in a newline; nil if out of memory.
  func text(style: QRStyle, quietZone: Int) -> Secret? {
    switch style {
    case .halfBlocks: halfBlocks(quietZone: quietZone)
    case .inverted: halfBlocks(quietZone: quietZone, darkInk: true)
    case .colouredHalfBlocks:
      halfBlocks(quietZone: quietZone, darkInk: true).flatMap(painted)
    case .ascii: ascii(quietZone: quietZone)
    case .invertedASCII: ascii(quietZone: quietZone, darkInk: true)
    case .colouredSpaces: colouredSpaces(quietZone: max(quietZone, 0))
    }
  }

  /// Sets the colours on each line alone, so that the text around the code keeps its own.
  private func painted(_ text: Secret) -> Secret? {
    var lines = 0
    for index in 0..<text.count where text[index] == UInt8(ascii: "\n") { lines += 1 }
    var result = SecretText(capacity: text.count + lines * 16)
    var isStart = true
    for index in 0..<text.count {
      if isStart { result.add("\u{1b}[0;30;107m") }
      isStart = text[index] == UInt8(ascii: "\n")
      if isStart { result.add("\u{1b}[0m") }
      result.put(text[index])
    }
    return result.finish()
  }

  private func colouredSpaces(quietZone zone: Int) -> Secret? {
    let side = size + 2 * zone
    var text = SecretText(capacity: side * (side * 8 + 6))
    for row in -zone..<(size + zone) {
      var last: Bool?
      for column in -zone..<(size + zone) {
        let isDark = self[row, column]
        if isDark != last { text.add(isDark ? "\u{1b}[40m" : "\u{1b}[107m") }
        text.add("  ")
        last = isDark
      }
      text.add("\u{1b}[0m\n")
    }
    return text.finish()
  }
}
