package import OneTimePassword

/// What the first code of a new authenticator tells about the app's secret and clock.
package enum FirstCode: Equatable, Sendable {
  /// The values to store, in which the code counts as used.
  case right(AuthenticatorState)
  case wrong
  /// The code of a time step within a day that logins do not accept: the app's clock is ahead by
  /// this many seconds, behind if negative.
  case clockOff(Int64)
  /// Not a code of this authenticator's length.
  case malformed
  case backupCode
}

/// Verifies a first code as a login would for a user who has only this authenticator and a new
/// state: nothing is throttled, and nothing is stored.
package func verify(
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
  case .refuse(.wrongCode), .refuse(.replayed), .refuse(.throttled), .refuse(.clock),
    .refuse(.mustEnroll):
    guard case .code(let code, _) = response else { return .backupCode }
    return try authenticator.clockOffset(of: code, at: now).map { .clockOff($0) } ?? .wrong
  }
}

extension Authenticator {
  /// The offset of an app's clock that shows `code`, in seconds, negative if it is behind: that of
  /// the nearest other time step within a day. nil if there is none, and for HOTP. One in 170 wrong
  /// codes of six digits belongs to such a step by chance. Not for logins: its time depends on the
  /// code.
  package func clockOffset(of code: UInt32, at now: UnixTime) throws(CryptoError) -> Int64? {
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
