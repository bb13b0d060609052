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

/// How a QR code is drawn for somebody who may ask for another drawing.
package struct QRLook: Equatable, Sendable {
  /// For screens without UTF-8.
  package private(set) var isASCII = false
  /// For screens on which what is drawn is dark.
  package private(set) var hasDarkInk = false

  package init() {}

  /// `i`: it does not scan, and its colours are to be swapped; `a`: there are no block characters.
  /// False for anything else.
  package mutating func change(by typed: Secret) -> Bool {
    guard typed.count == 1 else { return false }
    switch typed[0] | 0x20 {
    case UInt8(ascii: "i"): hasDarkInk = true
    case UInt8(ascii: "a"): isASCII = true
    case _: return false
    }
    return true
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

  /// The code in ASCII: two characters for each module, `##` for a light one, with `darkInk` for a
  /// dark one. Half as wide, or with other characters for halves of a line, no reader tested reads
  /// it from a screen; so the smallest code of a secret has 33 lines.
  package func ascii(quietZone: Int, darkInk: Bool = false) -> Secret? {
    let zone = max(quietZone, 0)
    let side = size + 2 * zone
    var text = SecretText(capacity: side * (2 * side + 1))
    for row in -zone..<(size + zone) {
      for column in -zone..<(size + zone) { text.add(self[row, column] == darkInk ? "##" : "  ") }
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
