package import OneTimePassword

/// How a secret is spelled that somebody else has made.
package enum SecretForm: String, CaseIterable, Sendable {
  case base32
  case hexadecimal = "hex"
}

extension Base32 {
  /// As `decode`, and as authenticator apps read what a service shows: bits of the last letter
  /// that belong to no byte are dropped, whatever they are. Of texts that lack a letter some apps
  /// make a key, others do not: these are refused.
  package static func decodeAsApps(_ text: Secret) throws(Error) -> Secret {
    do throws(Error) {
      return try decode(text)
    } catch {
      guard error.kind == .trailingBits, let cut = Secret(count: text.count) else { throw error }
      var letters = 0
      for index in 0..<text.count {
        cut.set(index, to: text[index])
        if index <= error.offset, value(text[index]) != nil { letters += 1 }
      }
      let bits = UInt8(letters * 5 % 8)
      let rest = (value(text[error.offset]) ?? 0) & (0xff << bits)
      cut.set(
        error.offset, to: rest < 26 ? UInt8(ascii: "A") + rest : UInt8(ascii: "2") + rest - 26)
      return try decode(cut)
    }
  }

  /// Of a letter; nil for anything else.
  private static func value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "2")...UInt8(ascii: "7"): byte - UInt8(ascii: "2") + 26
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a")
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
    case _: nil
    }
  }
}

/// Hexadecimal text of people and of vendors.
package enum Hexadecimal {
  /// Where it stopped being that, without any of its bytes.
  package enum Error: Swift.Error, Equatable {
    /// The bytes before the one that is no digit, blank or hyphen.
    case character(at: Int)
    /// A byte has two digits.
    case oddCount
    case outOfMemory
  }

  /// Reads what people type and programs write: either case, with spaces, tabs and hyphens
  /// anywhere.
  package static func decode(_ text: Secret) throws(Error) -> Secret {
    var count = 0
    for index in 0..<text.count where !isBetween(text[index]) {
      if value(text[index]) == nil { throw .character(at: index) }
      count += 1
    }
    guard count.isMultiple(of: 2) else { throw .oddCount }
    guard let bytes = Secret(count: count / 2) else { throw .outOfMemory }
    var place = 0
    for index in 0..<text.count {
      guard let digit = value(text[index]) else { continue }
      bytes.set(place / 2, to: bytes[place / 2] << 4 | digit)
      place += 1
    }
    return bytes
  }

  private static func isBetween(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "-")
  }

  private static func value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    case _: nil
    }
  }
}
