import OneTimePassword
import SallyportCore

/// How modules become characters.
enum QRStyle: Equatable {
  /// One character for two modules, one above the other, in UTF-8.
  case halfBlocks
  /// Two characters for one module: `##` where it is light, and two spaces.
  case ascii
}

extension QRMatrix {
  /// The columns and lines that the text takes.
  func extent(style: QRStyle, quietZone: Int) -> (columns: Int, lines: Int) {
    let side = size + 2 * max(quietZone, 0)
    switch style {
    case .halfBlocks: return (side, (side + 1) / 2)
    case .ascii: return (2 * side, side)
    }
  }

  /// The code as lines of text that end in a newline; nil when out of memory.
  func text(style: QRStyle, quietZone: Int) -> Secret? {
    switch style {
    case .halfBlocks: halfBlocks(quietZone: quietZone)
    case .ascii: ascii(quietZone: max(quietZone, 0))
    }
  }

  private func ascii(quietZone zone: Int) -> Secret? {
    let side = size + 2 * zone
    var text = SecretText(capacity: side * (2 * side + 1))
    for row in -zone..<(size + zone) {
      for column in -zone..<(size + zone) { text.add(self[row, column] ? "  " : "##") }
      text.put(UInt8(ascii: "\n"))
    }
    return text.finish()
  }
}
