/// The name of a host of a fleet, as the administrators gave it: 1 to 253 bytes of A–Z a–z 0–9 `.`
/// `-` `_`, the first of them a letter or a digit.
package struct FleetHostName: Equatable, Sendable {
  package let bytes: [UInt8]

  /// nil for what is no such name.
  package init?(_ bytes: [UInt8]) {
    guard let first = bytes.first, bytes.count <= 253, FleetHostName.isAlphanumeric(first) else {
      return nil
    }
    for byte in bytes where !FleetHostName.isAlphanumeric(byte) {
      if byte != 0x2d && byte != 0x2e && byte != 0x5f { return nil }
    }
    self.bytes = bytes
  }

  /// All of it can be shown.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    let letter = byte | 0x20
    return (0x30...0x39).contains(byte) || (0x61...0x7a).contains(letter)
  }
}
