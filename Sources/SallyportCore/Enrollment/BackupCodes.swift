package import OneTimePassword

/// A set of backup codes as it is kept: hashed under a salt of its own.
///
/// A slow hash would guard nothing, since the authenticator's secret stands beside it, and would
/// give strangers a way to occupy the machine; 80 random bits need none.
package struct BackupCodeSet: Equatable, Sendable {
  /// Used codes are bits of one 64-bit number: backup codes and scratch codes have half each.
  package static let maximumCodes = 32
  package static let usualCodes = 10
  package static let saltLength = 16

  /// Random, never 0.
  package let id: UInt64
  package let salt: [UInt8]
  /// HMAC-SHA-256 of each code under `salt`.
  package let digests: [[UInt8]]
  /// The same of each scratch code that was imported: the eight digits that google-authenticator
  /// makes. Their 26 bits can be guessed, so they are judged, counted and throttled like codes.
  package let scratchDigests: [[UInt8]]

  package init(id: UInt64, salt: [UInt8], digests: [[UInt8]], scratchDigests: [[UInt8]] = []) {
    self.id = id
    self.salt = salt
    self.digests = digests
    self.scratchDigests = scratchDigests
  }

  /// Backup codes and scratch codes, used or not.
  package var count: Int { digests.count + scratchDigests.count }

  /// The codes with this digest, as bits of the used ones.
  func backupCodes(_ digest: [UInt8]) -> UInt64 { BackupCodeSet.find(digest, among: digests) }

  /// The same for the scratch code of that value, which has eight digits.
  func scratchCodes(_ value: UInt32) throws(CryptoError) -> UInt64 {
    guard let code = Secret(count: Int(Digits.eight.rawValue)) else { throw .outOfMemory }
    var rest = value
    for position in 0..<code.count {
      // SAFETY: the position is below the length.
      unsafe code.withMutableBytes {
        unsafe $0[code.count - 1 - position] = UInt8(ascii: "0") + UInt8(rest % 10)
      }
      rest /= 10
    }
    let digest = try BackupCode.digest(code, salt: salt)
    return BackupCodeSet.find(digest, among: scratchDigests) << UInt64(digests.count)
  }

  /// Compares with all, without an early exit.
  private static func find(_ digest: [UInt8], among digests: [[UInt8]]) -> UInt64 {
    var found: UInt64 = 0
    for index in digests.indices {
      found |= constantTimeEquals(digests[index], digest) ? 1 << UInt64(index) : 0
    }
    return found
  }
}

/// The single-use fallback: 16 characters of Crockford base32, 80 random bits.
package enum BackupCode {
  package static let length = 16
  package static let randomBytes = 10

  private static let alphabet: StaticString = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

  /// The code that 10 random bytes spell, without hyphens; nil where it would be all digits (one
  /// in 10⁸), which could be taken for a one-time code, or for another number of bytes.
  package static func make(from random: Secret) -> Secret? {
    guard random.count == randomBytes, let code = Secret(count: length) else { return nil }
    // SAFETY: index < 32 = the length of the alphabet; the position is below the code's 16.
    unsafe code.withMutableBytes { text in
      for position in 0..<length {
        let bit = position * 5
        let pair = UInt16(random[bit / 8]) << 8 | UInt16(random[bit / 8 + 1])
        let index = Int(pair >> UInt16(11 - bit % 8)) & 31
        unsafe text[position] = alphabet.utf8Start[index]
      }
    }
    return isAllDigits(code) ? nil : code
  }

  /// The code in four groups of four, as people see it.
  package static func grouped(_ code: Secret) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(length + 3)
    for position in 0..<code.count {
      if position > 0, position % 4 == 0 { text.append(UInt8(ascii: "-")) }
      text.append(code[position])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// What is kept of a code.
  package static func digest(_ code: Secret, salt: [UInt8]) throws(CryptoError) -> [UInt8] {
    try hmacSHA256(key: salt, message: code)
  }

  /// What a typed character stands for: case, O/0 and I/L/1 forgiven; nil for any other.
  static func normalized(_ character: UInt8) -> UInt8? {
    let upper = (0x61...0x7a).contains(character) ? character - 0x20 : character
    switch upper {
    case UInt8(ascii: "O"): return UInt8(ascii: "0")
    case UInt8(ascii: "I"), UInt8(ascii: "L"): return UInt8(ascii: "1")
    case UInt8(ascii: "U"): return nil
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"): return upper
    case _: return nil
    }
  }

  private static func isAllDigits(_ code: Secret) -> Bool {
    (0..<code.count).allSatisfy { isDigit(code[$0]) }
  }
}

func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
