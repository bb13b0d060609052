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
  @inline(never) package subscript(_ row: Int, _ column: Int) -> Bool {
    guard (0..<size).contains(row), (0..<size).contains(column) else { return false }
    return cells[row * size + column] & 1 == 1
  }
}

extension QRMatrix {
  /// Modules that ISO/IEC 18004 wants to stay light around the code are 4; every reader tried
  /// takes 2, and they leave room for a prompt on 24 lines.
  package static let usualQuietZone = 2

  /// The code as lines of text that end in a newline, without escape sequences: one character for
  /// two modules, one above the other, `▀`, `▄`, `█` and blank in UTF-8.
  ///
  /// Light modules are the inked ones, because most terminals write light on dark; on the others
  /// many readers want the dark ones inked (`darkInk`). An odd last line is filled up with light.
  /// nil when out of memory.
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
