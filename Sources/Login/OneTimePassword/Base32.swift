/// Base32 (RFC 4648 §6), as secrets are written for people and in otpauth URIs.
package enum Base32 {
  /// Where a text stopped being Base32, without any of its bytes: they may be a secret's.
  package struct Error: Swift.Error, Equatable {
    /// What is wrong there.
    package enum Kind: Sendable, Equatable {
      /// A byte that is no letter of the alphabet, whitespace, hyphen or '='.
      case character
      /// '=' before a letter, or neither none nor as many as RFC 4648 wants.
      case padding
      /// 1, 3 or 6 letters over a multiple of 8: no bytes encode to that, so something is missing.
      case length
      /// The last letter carries bits that belong to no byte: mistyped, or something is missing.
      case trailingBits
      /// No room for the bytes; the text may be right.
      case outOfMemory
    }
    /// What is wrong.
    package let kind: Kind
    /// Where: the bytes of the text before the place, from 0 to its length.
    package let offset: Int

    /// For this reader, and for those who compare with it.
    package init(_ kind: Kind, at offset: Int) {
      self.kind = kind
      self.offset = offset
    }
  }

  /// Reads what people type and programs write: lower case, whitespace (space, tab) and hyphens
  /// anywhere, padding there or left out. Nothing else is forgiven.
  package static func decode(_ text: Secret) throws(Error) -> Secret {
    let shape = try Shape(of: text)
    guard let bytes = Secret(count: shape.letters / 8 * 5 + shape.letters % 8 * 5 / 8) else {
      throw Error(.outOfMemory, at: 0)
    }
    guard fill(bytes, from: text) else { throw Error(.trailingBits, at: shape.lastLetter) }
    return bytes
  }

  /// Upper case, no padding; nil when out of memory.
  package static func encode(_ bytes: Secret) -> Secret? {
    let count = bytes.count / 5 * 8 + (bytes.count % 5 * 8 + 4) / 5
    guard let text = Secret(count: count) else { return nil }
    for index in 0..<text.count {
      // Five bits from bit 5 * index on; past the end the secret reads as zeros.
      let (byte, bit) = (index / 8 * 5 + index % 8 * 5 / 8, index % 8 * 5 % 8)
      let pair = UInt16(bytes[byte]) << 8 | UInt16(bytes[byte + 1])
      text.set(index, to: letter(UInt8(truncatingIfNeeded: pair >> (11 - bit)) & 31))
    }
    return text
  }

  /// False if bits other than zero are left over after the last byte.
  private static func fill(_ bytes: Secret, from text: Secret) -> Bool {
    var (pending, bits, index) = (UInt32(0), UInt32(0), 0)
    for offset in 0..<text.count {
      guard let value = value(of: text[offset]) else { continue }
      (pending, bits) = ((pending << 5 | UInt32(value)) & 0xfff, bits + 5)
      if bits >= 8 {
        bits -= 8
        bytes.set(index, to: UInt8(truncatingIfNeeded: pending >> bits))
        index += 1
      }
    }
    return pending & ((1 << bits) - 1) == 0
  }

  private static func value(of byte: UInt8) -> UInt8? {
    let byte = lowercased(byte)
    if byte >= UInt8(ascii: "a"), byte <= UInt8(ascii: "z") { return byte - UInt8(ascii: "a") }
    if byte >= UInt8(ascii: "2"), byte <= UInt8(ascii: "7") { return byte - UInt8(ascii: "2") + 26 }
    return nil
  }

  private static func letter(_ value: UInt8) -> UInt8 {
    value < 26 ? UInt8(ascii: "A") + value : UInt8(ascii: "2") + (value - 26)
  }

  /// What a text consists of, once it is known to be well formed.
  private struct Shape {
    private(set) var letters = 0
    private(set) var lastLetter = 0
    private var padding = 0

    init(of text: Secret) throws(Error) {
      for offset in 0..<text.count { try add(text[offset], at: offset) }
      let rest = letters % 8
      guard rest != 1, rest != 3, rest != 6 else { throw Error(.length, at: text.count) }
      let wanted = (8 - rest) % 8
      guard padding == 0 || padding == wanted else { throw Error(.padding, at: text.count) }
    }

    private mutating func add(_ byte: UInt8, at offset: Int) throws(Error) {
      if byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "-") {
        return
      }
      if byte == UInt8(ascii: "=") {
        padding += 1
        return
      }
      guard Base32.value(of: byte) != nil else { throw Error(.character, at: offset) }
      guard padding == 0 else { throw Error(.padding, at: offset) }
      (letters, lastLetter) = (letters + 1, offset)
    }
  }
}
