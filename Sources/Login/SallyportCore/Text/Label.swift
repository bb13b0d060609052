/// A name that users give and read: of an authenticator, an issuer, an account or a service.
///
/// 1 to 64 bytes of well-formed UTF-8 without control, format, bidirectional or line-separating
/// characters, and without a space at either end, so that it can be shown on a terminal and in a
/// log unchanged. Compared as bytes, since `String` takes canonically equivalent spellings for
/// equal.
package struct Label: Equatable, Sendable {
  package static let maximumLength = 64

  package let bytes: [UInt8]

  /// Returns nil if the bytes break one of the rules above.
  package init?(_ bytes: some Collection<UInt8>) { self.init(checking: [UInt8](bytes)) }

  /// A name in the source code, which must keep the rules.
  package init(_ literal: StaticString) {
    // SAFETY: the buffer is that of the static string.
    bytes = literal.withUTF8Buffer { unsafe [UInt8]($0) }
  }

  private init?(checking bytes: [UInt8]) {
    guard (1...Label.maximumLength).contains(bytes.count) else { return nil }
    guard Label.isPresentable(bytes) else { return nil }
    if hasOuterSpace(bytes) { return nil }
    self.bytes = bytes
  }

  /// The name as text, to show.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Whether the bytes are well-formed UTF-8 without deceptive characters.
  package static func isPresentable(_ bytes: some Collection<UInt8>) -> Bool {
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar):
        if isDeceptive(scalar.value) { return false }
      case .emptyInput: return true
      case .error: return false
      }
    }
  }

  /// The Unicode general categories Cc, Cf, Zl, Zp and the noncharacters, as ranges: the standard
  /// library's Unicode tables would make the module many times larger.
  private static func isDeceptive(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0...0x1f, 0x7f...0x9f, 0xad, 0x600...0x605, 0x61c, 0x6dd, 0x70f, 0x890...0x891, 0x8e2,
      0x180e, 0x200b...0x200f, 0x2028...0x202e, 0x2060...0x206f, 0xfeff, 0xfff0...0xfffb,
      0xfdd0...0xfdef, 0x110bd, 0x110cd, 0x13430...0x1343f, 0x1bca0...0x1bca3, 0x1d173...0x1d17a,
      0xe0000...0xe0fff:
      return true
    case _:
      return scalar & 0xfffe == 0xfffe
    }
  }
}
