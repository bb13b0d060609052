package import OneTimePassword

/// A QR code as a square of dark and light modules. It contains the secret.
package struct QRMatrix: Sendable {
  /// Modules on a side, at least 1.
  package let size: Int
  private let cells: Secret

  /// `cells` has one byte per module, row by row, odd for a dark one. Returns nil if it has fewer
  /// than `size` squared, or if `size` is not within 1 to 177.
  package init?(size: Int, cells: Secret) {
    guard (1...177).contains(size), cells.count >= size * size else { return nil }
    self.size = size
    self.cells = cells
  }

  /// Whether the module is dark; false outside the square, which is the quiet zone.
  @inline(never) package subscript(_ row: Int, _ column: Int) -> Bool {
    guard (0..<size).contains(row), (0..<size).contains(column) else { return false }
    return cells[row * size + column] & 1 == 1
  }
}

extension QRMatrix {
  /// ISO/IEC 18004 requires 4 light modules around the code; every reader tested accepts 2, which
  /// leave room for a prompt on 24 lines.
  package static let usualQuietZone = 2

  /// The code as lines of text that end in a newline, without escape sequences. Each character
  /// stands for two modules, one above the other: `▀`, `▄`, `█` and a space, in UTF-8.
  ///
  /// Light modules are drawn, because most terminals write light on dark; on the others many
  /// readers need the dark ones drawn (`darkInk`). An odd last line is completed with light
  /// modules. nil if memory is short.
  package func halfBlocks(quietZone: Int, darkInk: Bool = false) -> Secret? {
    let zone = max(quietZone, 0)
    let side = size + 2 * zone
    let lines = (side + 1) / 2
    var text = SecretText(capacity: lines * (side * 3 + 1))
    for line in 0..<lines {
      for column in -zone..<(size + zone) {
        let row = 2 * line - zone
        text.add(
          halfBlock(
            upper: self[row, column] == darkInk, lower: self[row + 1, column] == darkInk))
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
