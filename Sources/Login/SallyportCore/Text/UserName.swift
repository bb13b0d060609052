/// A login name as the account database spells it (`pw_name`): the key of an enrollment.
///
/// 1 to 255 bytes, without `/`, NUL and control characters, not starting with `.` or `-`, and
/// without a space at either end. So it cannot leave a directory, be hidden in it, be taken for an
/// option, or be read as another name in the enrollment file.
package struct UserName: Equatable, Sendable {
  package let bytes: [UInt8]

  /// Returns nil if the bytes break one of the rules above.
  package init?(_ bytes: some Collection<UInt8>) { self.init(checking: [UInt8](bytes)) }

  private init?(checking bytes: [UInt8]) {
    guard (1...255).contains(bytes.count) else { return nil }
    guard bytes.first != UInt8(ascii: "."), bytes.first != UInt8(ascii: "-") else { return nil }
    guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "/") }) else {
      return nil
    }
    if hasOuterSpace(bytes) { return nil }
    self.bytes = bytes
  }

  /// The name in printable ASCII, to show and to log.
  package var text: String { printable(bytes, limit: 255) }

  /// The name as a file name: bytes outside A–Z a–z 0–9 `_ . @ -` become %XX.
  ///
  /// nil if that is longer than 200 bytes; the store then uses a hash (see `hashedFileName`).
  package var fileName: [UInt8]? {
    var name: [UInt8] = []
    name.reserveCapacity(bytes.count)
    for byte in bytes {
      if UserName.isPlain(byte) { name.append(byte) } else { name += percentEncoded(byte) }
    }
    return name.count <= 200 ? name : nil
  }

  /// The file name of a long user name: `%%` and the SHA-256 of the name in hexadecimal.
  package static func hashedFileName(sha256: [UInt8]) -> [UInt8] {
    [UInt8(ascii: "%"), UInt8(ascii: "%")] + hexadecimal(sha256)
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."),
      UInt8(ascii: "@"), UInt8(ascii: "-"):
      return true
    case _:
      return false
    }
  }
}
