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
}
