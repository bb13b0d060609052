/// The hash under the HMAC (RFC 6238 §1.2). The raw value is what CLibcrypto's shims take.
package enum HashAlgorithm: UInt8, Sendable, CaseIterable {
  case sha1 = 1
  case sha256 = 2
  case sha512 = 3

  /// As otpauth URIs spell it: "SHA1", "SHA256", "SHA512".
  package var name: StaticString {
    switch self {
    case .sha1: "SHA1"
    case .sha256: "SHA256"
    case .sha512: "SHA512"
    }
  }

  /// Reads a name in any case, with or without its hyphen ("sha256", "SHA-256").
  package init?(name: some Collection<UInt8>) {
    let letters = name.map(lowercased)
    self.init(lowercase: letters)
  }

  /// As above, for names in lower case.
  private init?(lowercase name: [UInt8]) {
    if same("sha1", name) || same("sha-1", name) {
      self = .sha1
    } else if same("sha256", name) || same("sha-256", name) {
      self = .sha256
    } else if same("sha512", name) || same("sha-512", name) {
      self = .sha512
    } else {
      return nil
    }
  }

  /// Bytes of a fresh secret, and of the code before truncation: the output of the hash
  /// (RFC 4226 §4 R6, RFC 6238 §5.1).
  package var secretLength: Int {
    switch self {
    case .sha1: 20
    case .sha256: 32
    case .sha512: 64
    }
  }
}

/// How many decimal digits a code has (RFC 4226 §5.3, Digit).
package enum Digits: UInt8, Sendable, CaseIterable {
  case six = 6
  case seven = 7
  case eight = 8

  /// 10 to the power of the number of digits: codes are below it.
  package var modulus: UInt32 {
    switch self {
    case .six: 1_000_000
    case .seven: 10_000_000
    case .eight: 100_000_000
    }
  }
}

/// What moves a code on: time (RFC 6238) or use (RFC 4226).
package enum AuthenticatorType: Equatable, Sendable {
  /// Time steps of `period` seconds, 15 to 300.
  case totp(period: UInt32)
  /// A counter that each accepted code moves on.
  case hotp
}

/// Everything but the secret that an authenticator and its checker must agree on.
package struct CodeParameters: Equatable, Sendable {
  /// With its period checked.
  package let type: AuthenticatorType
  /// SHA1 is what authenticator apps understand without exception.
  package let algorithm: HashAlgorithm
  /// Six is what authenticator apps understand without exception.
  package let digits: Digits

  /// The periods in seconds that are accepted; RFC 6238 §5.2 recommends 30.
  package static let periods: ClosedRange<UInt32> = 15...300

  /// What every authenticator app can do, and otpauth URIs mean when they are silent.
  package static let standard = CodeParameters(
    checked: .totp(period: 30), algorithm: .sha1, digits: .six)

  /// nil if the period of a TOTP is not one of `periods`.
  package init?(type: AuthenticatorType, algorithm: HashAlgorithm, digits: Digits) {
    if case .totp(let period) = type, !Self.periods.contains(period) { return nil }
    self.init(checked: type, algorithm: algorithm, digits: digits)
  }

  private init(checked type: AuthenticatorType, algorithm: HashAlgorithm, digits: Digits) {
    self.type = type
    self.algorithm = algorithm
    self.digits = digits
  }
}

/// The time step of a moment in seconds since 1970 (RFC 6238 §4.2, T0 = 0). A time before 1970 and
/// a period of 0 give step 0. Never traps.
package func timeStep(at seconds: Int64, period: UInt32) -> UInt64 {
  guard seconds > 0, period > 0 else { return 0 }
  return UInt64(bitPattern: seconds) / UInt64(period)
}

/// ASCII letters in lower case, every other byte as it is.
package func lowercased(_ byte: UInt8) -> UInt8 {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
