package import OneTimePassword

/// A set of backup codes as it is stored: hashed, with a salt of its own.
///
/// A slow hash would protect nothing, since the authenticator's secret is in the same file, and
/// would let strangers keep the machine busy; 80 random bits need none.
package struct BackupCodeSet: Equatable, Sendable {
  /// Used codes are bits of one 64-bit number, of which backup codes and scratch codes have half
  /// each.
  package static let maximumCodes = 32
  package static let usualCodes = 10
  package static let saltLength = 16

  /// Random, never 0.
  package let id: UInt64
  package let salt: [UInt8]
  /// The HMAC-SHA-256 of each code, with `salt` as the key.
  package let digests: [[UInt8]]
  /// The same for each imported scratch code, which has the eight digits that google-authenticator
  /// makes. Their 26 bits can be guessed, so they are verified, counted and throttled like codes.
  package let scratchDigests: [[UInt8]]

  package init(id: UInt64, salt: [UInt8], digests: [[UInt8]], scratchDigests: [[UInt8]] = []) {
    self.id = id
    self.salt = salt
    self.digests = digests
    self.scratchDigests = scratchDigests
  }

  /// Backup codes and scratch codes, used or not.
  package var count: Int { digests.count + scratchDigests.count }

  /// As it is stored in the place of `present`. Of a set of the largest number as many codes are
  /// kept as there were, or the usual number: who sends one does not know it. One of fewer codes is
  /// kept as it is.
  package func replacing(_ present: BackupCodeSet?) -> BackupCodeSet {
    guard digests.count == BackupCodeSet.maximumCodes else { return self }
    let before = present?.digests.count ?? 0
    let count = before > 0 ? before : BackupCodeSet.usualCodes
    var kept: [[UInt8]] = []
    for digest in digests where kept.count < count { kept.append(digest) }
    return BackupCodeSet(id: id, salt: salt, digests: kept)
  }

  /// The codes with this digest, as bits in the same order as the used ones.
  package func backupCodes(_ digest: [UInt8]) -> UInt64 {
    BackupCodeSet.find(digest, among: digests)
  }

  /// The same for a scratch code of eight digits with this value.
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

  /// Compares with all of them, without an early exit.
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

  /// The code for 10 random bytes, without hyphens. nil if it has only digits (one in 10⁸), as it
  /// could be taken for a one-time code, or for another number of bytes.
  package static func make(from random: Secret) -> Secret? {
    encode(random).flatMap { isAllDigits($0) ? nil : $0 }
  }

  /// 10 random bytes in Crockford base32; nil for another number of bytes.
  static func encode(_ random: Secret) -> Secret? {
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
    return code
  }

  /// The code in groups of four, to show.
  package static func grouped(_ code: Secret) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(length + 3)
    for position in 0..<code.count {
      if position > 0, position % 4 == 0 { text.append(UInt8(ascii: "-")) }
      text.append(code[position])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The digest of a code that is stored.
  package static func digest(_ code: Secret, salt: [UInt8]) throws(CryptoError) -> [UInt8] {
    try hmacSHA256(key: salt, message: code)
  }

  /// The value of a typed character, ignoring case and taking O for 0 and I or L for 1; nil for any
  /// other.
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
