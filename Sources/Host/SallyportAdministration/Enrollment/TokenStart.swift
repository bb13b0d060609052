package import OneTimePassword
package import SallyportCore

/// What codes tell of a token that is enrolled, or gets its next user, by what is known of its
/// clock and of what was used of it.
package enum TokenStart: Equatable, Sendable {
  /// The values to store, in which the codes count as used, with the clock that has shown them:
  /// `confirmed` of the authenticator makes it what is stored.
  case right(AuthenticatorState)
  /// The code after it tells whether the token shows it now.
  case wantsNext
  /// `clockOff`: by more than 200 time steps.
  case refused(FirstCode)
}

extension Authenticator {
  /// Verifies the first code of a token as a login would; and with `second`, the code after it, as
  /// `resync` would. Nothing is stored, and nothing but the arguments is read.
  package func start(
    by first: Secret, then second: Secret? = nil, for user: UserName, at now: UnixTime,
    under policy: Policy
  ) throws(CryptoError) -> TokenStart {
    guard let second else { return try start(by: first, for: user, at: now, under: policy) }
    let alone = Enrollment(
      id: id, user: user, uid: nil, created: created, authenticators: [self], backupCodes: nil)
    let later = try Response.classify(second, for: alone)
    guard case .code = later else { return .refused(later.isBackupCode ? .backupCode : .malformed) }
    guard let codes = CodePair(try Response.classify(first, for: alone), later) else {
      return .refused(.wrong)
    }
    let (result, state) = try resync(
      by: codes, named: nil, enrollment: alone, state: LoginState(initialFor: alone), at: now,
      under: policy)
    guard case .done = result, let values = state.authenticators.first else {
      return .refused(.wrong)
    }
    return .right(values)
  }

  private func start(by first: Secret, for user: UserName, at now: UnixTime, under policy: Policy)
    throws(CryptoError) -> TokenStart
  {
    let told = try verify(firstCode: first, of: self, for: user, at: now, under: policy)
    switch told {
    case .right(var values):
      if case .totp(let period) = parameters.type, let step = values.lastAccepted {
        values.clock?.set(to: step, of: period, at: now)
      }
      return .right(values)
    case .clockOff(let off) where off.magnitude <= mostOff: return .wantsNext
    // Of one that was used, its clock may be right again, and its counter anywhere.
    case .wrong where isUsed: return .wantsNext
    case .wrong, .clockOff, .malformed, .backupCode: return .refused(told)
    }
  }

  private var isUsed: Bool {
    parameters.type == .hotp || initialLastAccepted != nil || clockOffset != 0
  }

  private var mostOff: UInt64 {
    guard case .totp(let period) = parameters.type else { return 0 }
    return UInt64(Authenticator.mostClockOffset(period))
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
