package import OneTimePassword

/// What the first code of a new authenticator shows of the app's secret and clock.
package enum FirstCode: Equatable, Sendable {
  /// What is stored: the code counts as used.
  case right(AuthenticatorState)
  case wrong
  /// A code of a time step within a day, which logins do not accept: by how many seconds the app's
  /// clock is ahead, below 0 behind.
  case clockOff(Int64)
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
    guard case .code(let code, _) = response else { return .backupCode }
    return try authenticator.clockOffset(of: code, at: now).map { .clockOff($0) } ?? .wrong
  }
}

extension Authenticator {
  /// By how many seconds the clock of the app is ahead that shows `code`, below 0 behind: that of
  /// the nearest other time step within a day; nil where there is none, and for an HOTP. One in 170
  /// codes of six digits that are plainly wrong is of some such step.
  fileprivate func clockOffset(of code: UInt32, at now: UnixTime) throws(CryptoError) -> Int64? {
    guard case .totp(let period) = parameters.type else { return nil }
    let step = timeStep(at: now.seconds, period: period)
    let generator = try CodeGenerator(
      secret: secret, algorithm: parameters.algorithm, digits: parameters.digits)
    for distance in 1...(86_400 / UInt64(max(period, 1))) {
      let seconds = Int64(distance) * Int64(period)
      if try generator.code(at: step + distance) == code { return seconds }
      if distance <= step, try generator.code(at: step - distance) == code { return -seconds }
    }
    return nil
  }
}
