package import OneTimePassword

/// The outcome of one login attempt, with the state that must be saved before it is told.
package enum Decision {
  case accept(Proof, LoginState)
  case refuse(Refusal, LoginState)
}

/// What a login was accepted for.
package enum Proof: Equatable, Sendable {
  /// A code of this authenticator; `drift` as in `AuthenticatorState`.
  case authenticator(name: Label, drift: Int32)
  /// A backup code; so many are left.
  case backupCode(left: Int)
}

/// Why a login was refused: for the log, never for the person who typed.
package enum Refusal: Equatable, Sendable {
  case malformed(Malformation)
  case wrongCode
  /// A right code, or a backup code, that has been accepted before.
  case replayed
  /// The budget for wrong codes from this kind of origin is used up; the response was not judged.
  case throttled
  /// A code for now, but the last accepted one is of a time to come: the clock ran ahead once.
  /// Codes of an authenticator whose clock is right are refused until then; backup codes and
  /// `sallyport resync` work.
  case clock(until: UnixTime)
}

/// Decides one login attempt. Reads nothing but its arguments.
///
/// In this order: form; a backup code against all of the set, also when throttled; the throttle;
/// every authenticator with every accepted time step or counter, without an early exit. The state
/// in the result is what must be written before the answer is given; if it cannot be written, the
/// answer is no.
package func decide(
  on response: Response, enrollment: Enrollment, state: LoginState, from origin: Origin,
  through service: Label?, at now: UnixTime, under policy: Policy
) throws(CryptoError) -> Decision {
  var state = state
  state.reconcile(with: enrollment)
  state.distrustFuture(now)
  let use = Use(time: now, origin: origin, service: service)
  switch response {
  case .malformed(let malformation):
    return .refuse(.malformed(malformation), state)
  case .backupCode(let digest):
    return judge(backupCode: digest, of: enrollment.backupCodes, state, use)
  case .code(let code, let digits):
    let throttle = Throttle(for: enrollment.authenticators, under: policy)
    let matches = try findMatches(code, digits, enrollment.authenticators, state, throttle, now)
    return judge(matches, digits, enrollment.authenticators, state, throttle, use)
  }
}

private func judge(
  backupCode digest: [UInt8], of set: BackupCodeSet?, _ state: LoginState, _ use: Use
) -> Decision {
  var state = state
  var found: UInt64 = 0
  for (index, kept) in (set?.digests ?? []).enumerated() {
    found |= constantTimeEquals(kept, digest) ? 1 << UInt64(index) : 0
  }
  guard let set, var codes = state.backupCodes, found != 0 else {
    return .refuse(.wrongCode, state)
  }
  guard found & codes.used == 0 else { return .refuse(.replayed, state) }
  codes.used |= found
  codes.lastUse = use
  state.backupCodes = codes
  state.remember(use)
  return .accept(.backupCode(left: set.left(codes)), state)
}

private func judge(
  _ matches: [Match], _ digits: Digits, _ authenticators: [Authenticator], _ state: LoginState,
  _ throttle: Throttle, _ use: Use
) -> Decision {
  var state = state
  let isKnown = state.isKnown(use.origin)
  if throttle.isThrottled(state[known: isKnown], digits: digits, at: use.time) {
    return .refuse(.throttled, state)
  }
  var proof: Proof?
  for match in matches {
    guard let position = match.accepted else { continue }
    state.authenticators[match.index].lastAccepted = position
    state.authenticators[match.index].drift = match.drift
    state.authenticators[match.index].lastUse = use
    proof = proof ?? .authenticator(name: authenticators[match.index].name, drift: match.drift)
  }
  if let proof {
    state.remember(use)
    return .accept(proof, state)
  }
  if let replay = matches.first(where: { $0.isReplay }) {
    return .refuse(replay.aheadOfClock.map { .clock(until: $0) } ?? .replayed, state)
  }
  state[known: isKnown] = throttle.charge(state[known: isKnown], digits: digits, at: use.time)
  return .refuse(.wrongCode, state)
}
