package import OneTimePassword
package import SallyportCore
package import SallyportLogin
package import SallyportSystem

extension Draft {
  /// What to tell about a first code that is wrong here and would be right with what is usual: some
  /// apps read the QR code and compute SHA-1, 30 s and six digits whatever it says. Nobody logs in
  /// by such a code. nil for any other code.
  package func ignoredByApp(_ typed: Secret, at now: UnixTime, under policy: Policy)
    throws(StoreTrouble) -> StaticString?
  {
    let usual = CodeParameters.standard
    guard case .totp = authenticator.parameters.type, authenticator.parameters != usual else {
      return nil
    }
    let other = Authenticator(
      id: authenticator.id, name: authenticator.name, parameters: usual,
      secret: authenticator.secret, initialLastAccepted: nil, created: authenticator.created)
    do throws(CryptoError) {
      let first = try SallyportCore.verify(
        firstCode: typed, of: other, for: user, at: now, under: policy)
      guard case .right = first else { return nil }
    } catch {
      throw .crypto(error)
    }
    return """
      This app ignores what the code says, and computes SHA-1 with 30 s and 6 digits. Stop with
      Control-C, and leave out --algorithm, --digits and --period.
      """
  }
}
