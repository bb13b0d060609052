import OneTimePassword
import SallyportCore

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
    guard let bytes = Secret(digits)?.octets(Pin.length, spelledIn: digits.indices) else {
      return nil
    }
    self.bytes = bytes
  }

  /// 64 small digits.
  package var hex: String { String(decoding: hexadecimal(bytes), as: UTF8.self) }
}
