/// An authenticator as a URI, the content of its QR code: the Key URI format that authenticator
/// apps agree on, `otpauth://totp/Issuer:account?secret=…&issuer=Issuer&…`.
///
/// Whatever is written here is read back as it was, for every byte of the names.
package struct OtpauthURI {
  /// Who runs the machine; empty if unsaid. Any bytes.
  package let issuer: [UInt8]
  /// Whose account; any bytes, but not beginning with a space, which the format skips.
  package let account: [UInt8]
  /// As bytes, not Base32; 1 to 1024 of them if it was read.
  package let secret: Secret
  /// Type, algorithm, digits and period.
  package let parameters: CodeParameters
  /// The next counter of an HOTP; 0 for a TOTP.
  package let counter: UInt64

  /// Spaces at the head of `account` are dropped, and so is the counter of a TOTP.
  package init(
    issuer: [UInt8], account: [UInt8], secret: Secret, parameters: CodeParameters,
    counter: UInt64 = 0
  ) {
    self.issuer = issuer
    self.account = Array(account.drop { $0 == UInt8(ascii: " ") })
    self.secret = secret
    self.parameters = parameters
    self.counter = parameters.type == .hotp ? counter : 0
  }

  /// The query's parts that mean something here; all others are skipped on reading.
  package enum Parameter: Int, Sendable, CaseIterable {
    case secret, issuer, algorithm, digits, period, counter

    /// As written in the URI.
    package var name: StaticString {
      switch self {
      case .secret: "secret"
      case .issuer: "issuer"
      case .algorithm: "algorithm"
      case .digits: "digits"
      case .period: "period"
      case .counter: "counter"
      }
    }
  }

  /// Why a text is no URI of ours. Never holds a byte of the secret.
  package enum Error: Swift.Error, Equatable {
    /// Does not begin with `otpauth://`.
    case scheme
    /// Neither `totp` nor `hotp`.
    case type
    /// A `%` without two hexadecimal digits, this many bytes into the text.
    case percentEncoding(offset: Int)
    /// Given twice: which one was meant?
    case duplicate(Parameter)
    /// `secret`, or `counter` of an HOTP.
    case missing(Parameter)
    /// Not a decimal number below 2^64.
    case number(Parameter)
    /// Digits other than 6, 7, 8, or a period outside 15…300 s.
    case range(Parameter, found: UInt64)
    /// Not SHA1, SHA256 or SHA512.
    case algorithm
    /// The offset counts in the value of `secret`, after percent-decoding.
    case secret(Base32.Error)
    /// The secret has not 1 to 1024 bytes.
    case secretLength(Int)
    /// No room for a copy; the text may be right.
    case outOfMemory
  }
}
