import OneTimePassword
import TestSupport
import Testing

private func uri(
  _ issuer: String, _ account: String, _ parameters: CodeParameters = .standard,
  counter: UInt64 = 0
) throws -> OtpauthURI {
  OtpauthURI(
    issuer: Array(issuer.utf8), account: Array(account.utf8), secret: try secret("foobar"),
    parameters: parameters, counter: counter)
}

private func parameters(
  _ type: AuthenticatorType, _ algorithm: HashAlgorithm = .sha1, _ digits: Digits = .six
) throws -> CodeParameters {
  try #require(CodeParameters(type: type, algorithm: algorithm, digits: digits))
}

@Suite struct `A written otpauth URI` {
  @Test(arguments: [
    ("ACME Co", "alice@example.com", "ACME%20Co:alice@example.com", "&issuer=ACME%20Co"),
    ("", "alice", "alice", ""), ("ACME", "", "ACME:", "&issuer=ACME"), ("", "", "", ""),
    ("a:b", "c:d", "a%3Ab:c%3Ad", "&issuer=a%3Ab"), ("", "c:d", ":c%3Ad", ""),
    ("1+1=2&3", "?#/%", "1%2B1%3D2%263:%3F%23%2F%25", "&issuer=1%2B1%3D2%263"),
    ("é", "a-._~Z9", "%C3%A9:a-._~Z9", "&issuer=%C3%A9"), ("", "  alice b", "alice%20b", ""),
  ]) func `names issuer and account as the format asks`(
    issuer: String, account: String, label: String, issuerParameter: String
  ) throws {
    let written = text(try #require(uri(issuer, account).text()))
    let tail = "\(issuerParameter)&algorithm=SHA1&digits=6&period=30"
    #expect(written == "otpauth://totp/\(label)?secret=MZXW6YTBOI" + tail)
  }

  @Test(
    arguments: [
      (.totp(period: 30), .sha1, .six, "algorithm=SHA1&digits=6&period=30", ""),
      (.totp(period: 60), .sha1, .six, "algorithm=SHA1&digits=6&period=60", "&period=60"),
      (
        .totp(period: 30), .sha256, .six, "algorithm=SHA256&digits=6&period=30", "&algorithm=SHA256"
      ),
      (.totp(period: 30), .sha1, .eight, "algorithm=SHA1&digits=8&period=30", "&digits=8"),
      (
        .totp(period: 300), .sha512, .seven, "algorithm=SHA512&digits=7&period=300",
        "&algorithm=SHA512&digits=7&period=300"
      ),
      (
        .hotp, .sha1, .six, "algorithm=SHA1&digits=6&counter=18446744073709551615",
        "&counter=18446744073709551615"
      ),
    ] as [(AuthenticatorType, HashAlgorithm, Digits, String, String)])
  func `carries all parameters, or those that readers would not assume`(
    type: AuthenticatorType, algorithm: HashAlgorithm, digits: Digits, full: String, short: String
  ) throws {
    let uri = try uri("", "a", parameters(type, algorithm, digits), counter: .max)
    let start = "otpauth://\(type == .hotp ? "hotp" : "totp")/a?secret=MZXW6YTBOI"
    #expect(text(try #require(uri.text())) == "\(start)&\(full)")
    #expect(text(try #require(uri.text(omittingDefaults: true))) == start + short)
  }
}
