package import OneTimePassword
package import SallyportCore

/// What codes tell of a token that is being enrolled, by its `clockOffset` of 0.
package enum TokenStart: Equatable, Sendable {
  /// The values to store, in which the codes count as used, with the clock that has shown them:
  /// `confirmed` of the authenticator makes it what is stored.
  case right(AuthenticatorState)
  /// A code that its clock, as it may be off, shows now: the next one tells whether it does.
  case wantsNext
  /// `clockOff`: by more than 200 time steps.
  case refused(FirstCode)
}

extension Authenticator {
  /// Verifies the first code of a token as a login would; and with `second`, the code after it, as
  /// `resync` would. Nothing is stored, and nothing but the arguments is read. For an HOTP the
  /// first one is enough.
  package func start(
    by first: Secret, then second: Secret? = nil, for user: UserName, at now: UnixTime,
    under policy: Policy
  ) throws(CryptoError) -> TokenStart {
    guard let second, case .totp(let period) = parameters.type else {
      return try start(by: first, for: user, at: now, under: policy)
    }
    let enrollment = Enrollment(
      id: id, user: user, uid: nil, created: created, authenticators: [self], backupCodes: nil)
    let later = try Response.classify(second, for: enrollment)
    guard case .code = later else { return .refused(later.isBackupCode ? .backupCode : .malformed) }
    let step = timeStep(at: now.seconds, period: period)
    guard let codes = CodePair(try Response.classify(first, for: enrollment), later),
      let found = try find(codes, around: step, nearest: step)
    else { return .refused(.wrong) }
    return .right(started(at: found, of: period, at: now))
  }

  private func start(by first: Secret, for user: UserName, at now: UnixTime, under policy: Policy)
    throws(CryptoError) -> TokenStart
  {
    let told = try verify(firstCode: first, of: self, for: user, at: now, under: policy)
    guard case .totp(let period) = parameters.type else {
      if case .right(let state) = told { return .right(state) }
      return .refused(told)
    }
    switch told {
    case .right(let state): return .right(started(at: state.lastAccepted ?? 0, of: period, at: now))
    case .clockOff(let off) where off.magnitude <= UInt64(Authenticator.mostClockOffset(period)):
      return .wantsNext
    case .wrong, .clockOff, .malformed, .backupCode: return .refused(told)
    }
  }

  private func started(at step: UInt64, of period: UInt32, at now: UnixTime) -> AuthenticatorState {
    var clock = TokenClock(offset: 0, since: now)
    clock.set(to: step, of: period, at: now)
    return AuthenticatorState(id: id, lastAccepted: step, clock: clock)
  }
}

extension Response {
  fileprivate var isBackupCode: Bool {
    switch self {
    case .backupCode, .pass: true
    case .code, .malformed: false
    }
  }
}
