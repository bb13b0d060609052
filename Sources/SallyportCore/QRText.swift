package import OneTimePassword

/// A QR code as a square of dark and light modules. Whoever sees it has the secret.
package struct QRMatrix: Sendable {
  /// Modules on a side, at least 1.
  package let size: Int
  private let cells: Secret

  /// `cells` has one byte per module, row by row, odd where it is dark; nil where it has fewer than
  /// `size` squared, or `size` is below 1.
  package init?(size: Int, cells: Secret) {
    guard (1...177).contains(size), cells.count >= size * size else { return nil }
    self.size = size
    self.cells = cells
  }

  /// Whether the module is dark; false outside the square, which is the quiet zone.
  package subscript(_ row: Int, _ column: Int) -> Bool {
    guard (0..<size).contains(row), (0..<size).contains(column) else { return false }
    return cells[row * size + column] & 1 == 1
  }
}

/// How modules become characters.
package enum QRStyle: Equatable, Sendable {
  /// One character for two modules, one above the other: `▀`, `▄`, `█` and blank in UTF-8.
  case halfBlocks
  /// Two characters for one module: `##` and two blanks.
  case ascii
}

extension QRMatrix {
  /// Modules that ISO/IEC 18004 wants to stay light around the code are 4; every reader tried
  /// takes 2, and they leave room for a prompt on 24 lines.
  package static let usualQuietZone = 2

  /// The columns and lines that the text takes.
  package func extent(style: QRStyle, quietZone: Int) -> (columns: Int, lines: Int) {
    let side = size + 2 * max(quietZone, 0)
    switch style {
    case .halfBlocks: return (side, (side + 1) / 2)
    case .ascii: return (2 * side, side)
    }
  }

  /// The code as lines of text that end in a newline, without escape sequences.
  ///
  /// Light modules are the inked ones, because most terminals write light on dark; on the others
  /// the code is inverted, which readers take too. An odd last line is filled up with light.
  /// nil where memory is short.
  package func text(style: QRStyle, quietZone: Int) -> Secret? {
    let zone = max(quietZone, 0)
    let (columns, lines) = extent(style: style, quietZone: zone)
    var text = SecretText(capacity: lines * (columns * 3 + 1))
    for line in 0..<lines {
      for column in -zone..<(size + zone) {
        switch style {
        case .halfBlocks:
          let row = 2 * line - zone
          text.add(halfBlock(upper: !self[row, column], lower: !self[row + 1, column]))
        case .ascii:
          text.add(self[line - zone, column] ? "  " : "##")
        }
      }
      text.put(UInt8(ascii: "\n"))
    }
    return text.finish()
  }

  private func halfBlock(upper: Bool, lower: Bool) -> StaticString {
    switch (upper, lower) {
    case (true, true): "\u{2588}"
    case (true, false): "\u{2580}"
    case (false, true): "\u{2584}"
    case (false, false): " "
    }
  }
}
