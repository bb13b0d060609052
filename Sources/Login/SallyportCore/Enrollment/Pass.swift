package import OneTimePassword

/// A code that root gives somebody who has no factor at hand. It proves logins for a while, and
/// nothing else; or, where it `enrolls`, one login that must end in a new enrollment.
package struct Pass: Equatable, Sendable {
  /// The most that a person can have open.
  package static let maximumOpen = 3
  /// How often one that enrolls can be claimed: a login may end before it has enrolled.
  package static let claims: UInt8 = 3
  /// For how many logins one may be good, and for how many seconds.
  package static let usesRange: ClosedRange<UInt64> = 1...5
  package static let lifetimes: ClosedRange<UInt64> = 600...7 * 86_400
  /// In seconds: how far the clock may be behind the one by which the pass was made.
  static let clockSkew: Int64 = 300

  /// Random, never 0; joins the pass with its values in the login state.
  package let id: UInt64
  /// Of the code, with the id of the enrollment as the salt.
  package let digest: [UInt8]
  package let created: UnixTime
  package let expires: UnixTime
  /// For how many logins, or claims where it enrolls.
  package let uses: UInt8
  /// Whether a login with it must end in a new enrollment, which takes the place of this one.
  package let enrolls: Bool

  package init(
    id: UInt64, digest: [UInt8], created: UnixTime, expires: UnixTime, uses: UInt8,
    enrolls: Bool = false
  ) {
    (self.id, self.digest) = (id, digest)
    (self.created, self.expires, self.uses) = (created, expires, uses)
    self.enrolls = enrolls
  }

  /// The code for ten random bytes, without hyphens: the letter P, which tells it from a backup
  /// code and is no secret, and 80 random bits in Crockford base32. nil when out of memory, or for
  /// another number of bytes.
  package static func code(from random: Secret) -> Secret? {
    guard let rest = BackupCode.encode(random) else { return nil }
    var text = SecretText(capacity: PassCode.length)
    text.put(PassCode.first)
    text.add(rest)
    return text.finish()
  }

  /// What is stored of a code. `enrollmentID`: whose pass it is.
  package static func digest(_ code: Secret, of enrollmentID: UInt64) throws(CryptoError)
    -> [UInt8]
  {
    try BackupCode.digest(code, salt: hexadecimal(enrollmentID))
  }
}

/// The form of a pass.
enum PassCode {
  static let length = BackupCode.length + 1
  static let first = UInt8(ascii: "P")
}
