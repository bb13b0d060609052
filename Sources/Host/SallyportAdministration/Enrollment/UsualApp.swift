package import OneTimePassword
package import SallyportCore
package import SallyportLogin
package import SallyportSystem

extension Authenticator {
  /// Whether a code that is wrong here would be right now if it were made by `other`. Nobody logs
  /// in by such a code: it tells why it is wrong.
  package func fits(
    _ typed: Secret, by other: CodeParameters, for user: UserName, at now: UnixTime,
    under policy: Policy
  ) throws(CryptoError) -> Bool {
    guard other != parameters else { return false }
    let made = Authenticator(
      id: id, name: name, parameters: other, secret: secret, initialLastAccepted: nil,
      created: created, clockOffset: clockOffset)
    let first = try SallyportCore.verify(
      firstCode: typed, of: made, for: user, at: now, under: policy)
    guard case .right = first else { return false }
    return true
  }

  /// What else a token may have been made for, of the kinds that lists leave out, if a code that is
  /// wrong here is right for it. TOTP only.
  package func otherKind(
    fitting typed: Secret, for user: UserName, at now: UnixTime, under policy: Policy
  ) throws(CryptoError) -> CodeParameters? {
    guard case .totp = parameters.type else { return nil }
    for digits in Digits.allCases {
      for algorithm in [HashAlgorithm.sha1, .sha256] {
        for period in [UInt32(30), 60] {
          let other = CodeParameters(
            type: .totp(period: period), algorithm: algorithm, digits: digits)
          if let other, try fits(typed, by: other, for: user, at: now, under: policy) {
            return other
          }
        }
      }
    }
    return nil
  }

  /// Whether the code is wrong here and would be right with what is usual: some apps read the QR
  /// code and compute SHA-1, 30 s and six digits whatever it says. Not of a token: it reads none.
  package func isIgnored(
    byAppOf typed: Secret, of user: UserName, at now: UnixTime, under policy: Policy
  ) throws(CryptoError) -> Bool {
    guard case .totp = parameters.type, clockOffset == nil else { return false }
    return try fits(typed, by: .standard, for: user, at: now, under: policy)
  }
}

extension Draft {
  /// What to tell about a first code of an app that ignores the QR code. nil for any other code.
  package func ignoredByApp(_ typed: Secret, at now: UnixTime, under policy: Policy)
    throws(StoreTrouble) -> StaticString?
  {
    do throws(CryptoError) {
      guard try authenticator.isIgnored(byAppOf: typed, of: user, at: now, under: policy) else {
        return nil
      }
    } catch {
      throw .crypto(error)
    }
    return """
      This app ignores what the code says, and computes SHA-1 with 30 s and 6 digits. Stop with
      Control-C, and leave out --algorithm, --digits and --period.
      """
  }
}
