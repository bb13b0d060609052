package import OneTimePassword

/// What the first code of a new authenticator shows of the app's secret and clock.
package enum FirstCode: Equatable, Sendable {
  /// What is stored: the code counts as used.
  case right(AuthenticatorState)
  case wrong
  /// No code of this authenticator's length.
  case malformed
  case backupCode
}

/// Judges a first code as a login would for a user who has nothing else, with a state that is as
/// new each time: nothing is throttled, nothing kept.
package func judge(
  firstCode typed: Secret, of authenticator: Authenticator, for user: UserName, at now: UnixTime,
  under policy: Policy
) throws(CryptoError) -> FirstCode {
  let enrollment = Enrollment(
    id: authenticator.id, user: user, uid: nil, created: authenticator.created,
    authenticators: [authenticator], backupCodes: nil)
  let response = try Response.classify(typed, for: enrollment)
  let decision = try decide(
    on: response, enrollment: enrollment, state: LoginState(initialFor: enrollment),
    from: .local(own: true), through: nil, at: now, under: policy)
  switch decision.verdict {
  case .accept: return decision.state.authenticators.first.map { .right($0) } ?? .wrong
  case .refuse(.malformed): return .malformed
  case .refuse(.wrongCode), .refuse(.replayed), .refuse(.throttled), .refuse(.clock):
    if case .backupCode = response { return .backupCode }
    return .wrong
  }
}
