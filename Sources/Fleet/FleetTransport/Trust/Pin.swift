/// Whose key it is: SHA-256 of the SubjectPublicKeyInfo (RFC 5280, 4.1.2.7).
package struct Pin: Hashable, Sendable {
  package static let length = 32

  /// `length` bytes.
  package let bytes: [UInt8]

  /// nil for another number of bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Pin.length else { return nil }
    self.bytes = bytes
  }

  /// From 64 digits, small or capital.
  package init?(hex: String) {
    let digits = Array(hex.utf8)
    guard digits.count == 2 * Pin.length else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Pin.value(digits[index]), let low = Pin.value(digits[index + 1]) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    self.bytes = bytes
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    case _: nil
    }
  }

  /// 64 small digits.
  package var hex: String {
    let digits = Array("0123456789abcdef".utf8)
    let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }
}
