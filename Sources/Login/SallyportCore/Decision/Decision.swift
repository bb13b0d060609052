package import OneTimePassword

/// The outcome of one login attempt, with the state that must be saved before it is told.
package struct Decision {
  /// The answer to one response.
  package enum Verdict: Equatable, Sendable {
    case accept(Proof)
    case refuse(Refusal)
  }

  package let verdict: Verdict
  package let state: LoginState
}

/// What a login was accepted for.
package enum Proof: Equatable, Sendable {
  /// A code of this authenticator; `drift` as in `AuthenticatorState`.
  case authenticator(name: Label, drift: Int32)
  /// A backup code, and the number that are left.
  case backupCode(left: Int)
  /// A pass, and for how many more logins it is good.
  case pass(left: Int)
  /// A pass that this login has claimed, so that it must end in a new enrollment; and how often it
  /// can be claimed again.
  case claim(left: Int)
}

extension Proof {
  package var isPass: Bool {
    switch self {
    case .pass, .claim: true
    case .authenticator, .backupCode: false
    }
  }

  /// Which one's code it was; nil: none's.
  package var authenticator: Label? {
    if case .authenticator(let name, _) = self { name } else { nil }
  }
}

/// Why a login was refused: for the log, never for the person who typed.
package enum Refusal: Equatable, Sendable {
  case malformed(Malformation)
  /// With what it was charged; nil for a wrong backup code or pass, which costs nothing.
  case wrongCode(Charge?)
  /// A right code, or a backup code, that has been accepted before. `until`: when the app, whose
  /// clock may be off, shows a code that was not; of another factor, 1970.
  case replayed(until: UnixTime)
  /// The budget for wrong codes from this kind of origin is used up; the response was not verified.
  case throttled
  /// A code for now, but the last accepted one is of a time to come: the clock ran ahead once.
  /// Codes of an authenticator whose clock is right are refused until then; backup codes and
  /// `sallyport resync` work.
  case clock(until: UnixTime)
  /// A right pass of a login that must end in a new enrollment, which this one has not claimed.
  case mustEnroll
}

/// Which response of its login it is.
package enum ResponseRole: Equatable, Sendable {
  /// A field that an earlier module asked for, before a prompt of ours. It is no slip: the prompt
  /// gives back what it is charged.
  case firstPass
  /// After it, no other. With what the first pass was charged, which is given back if this one is
  /// accepted.
  case last(givingBack: Charge?)
  /// The same response once more, for a login that can end in enrolling: it claims the pass with
  /// this random, never 0.
  case claim(UInt64)
}

/// Decides one login attempt. Reads nothing but its arguments.
///
/// In this order: form; a backup code or a pass against all, also when throttled; the throttle;
/// every authenticator with every accepted time step or counter, without an early exit. The state
/// in the result is what must be written before the answer is given; if it cannot be written, the
/// answer is no.
@inline(never)
package func decide(
  on response: Response, enrollment: Enrollment, state: LoginState, from origin: Origin,
  through service: Label?, at now: UnixTime, under policy: Policy,
  as role: ResponseRole = .last(givingBack: nil)
) throws(CryptoError) -> Decision {
  var state = state
  state.reconcile(with: enrollment)
  state.distrustFuture(now)
  for index in state.passes.indices {
    state.passes[index].seen = max(state.passes[index].seen, now)
  }
  let use = Use(time: now, origin: origin, service: service)
  let verdict: Decision.Verdict
  switch response {
  case .malformed(let malformation): verdict = .refuse(.malformed(malformation))
  case .backupCode(let digest):
    verdict = verify(
      backupCode: digest, of: enrollment.backupCodes, in: &state, use, under: policy, as: role)
  case .pass(let digest):
    verdict = verify(pass: digest, of: enrollment, in: &state, at: now, under: policy, as: role)
  case .code(let code, let digits):
    let throttle = Throttle(for: enrollment, state, under: policy)
    verdict = try verify(
      code, digits, of: enrollment, in: &state, within: throttle, use, under: policy, as: role)
  }
  state.takeDown(verdict, use)
  return Decision(verdict: verdict, state: state)
}

@inline(never) private func verify(
  backupCode digest: [UInt8], of set: BackupCodeSet?, in state: inout LoginState, _ use: Use,
  under policy: Policy, as role: ResponseRole
) -> Decision.Verdict {
  guard let set, var codes = state.backupCodes else { return .refuse(.wrongCode(nil)) }
  let found = set.backupCodes(digest)
  if found == 0 || policy.backupCode == .off { return .refuse(.wrongCode(nil)) }
  guard codes.use(found, use) else { return .refuse(.replayed(until: UnixTime(0))) }
  state.backupCodes = codes
  state.settle(role, nil, at: use.time)
  state.remember(use)
  return .accept(.backupCode(left: set.left(codes)))
}

/// It makes no place known, and gives back nothing: it proves this login alone.
@inline(never) private func verify(
  pass digest: [UInt8], of enrollment: Enrollment, in state: inout LoginState, at now: UnixTime,
  under policy: Policy, as role: ResponseRole
) -> Decision.Verdict {
  var found: Int?
  // Each is compared. `reconcile` has made the two lists run side by side.
  for (index, pass) in enrollment.passes.enumerated()
  where index < state.passes.count && constantTimeEquals(pass.digest, digest) {
    found = index
  }
  guard let found, policy.acceptsPasses, !policy.demandsKind else {
    return .refuse(.wrongCode(nil))
  }
  let left = enrollment.passes[found].usesLeft(state.passes[found], at: now)
  guard left > 0 else { return .refuse(.replayed(until: UnixTime(0))) }
  if enrollment.passes[found].enrolls {
    guard case .claim(let claim) = role else { return .refuse(.mustEnroll) }
    // It takes the place of an earlier one, whose login may have ended.
    state.passes[found].claim = claim
  }
  state.passes[found].used += 1
  return .accept(
    enrollment.passes[found].enrolls ? .claim(left: left - 1) : .pass(left: left - 1))
}

/// Digits are enforced: authenticators with another number of them are not compared. Imported
/// scratch codes have eight, and are verified like the codes of one more authenticator.
@inline(never) private func verify(
  _ code: UInt32, _ digits: Digits, of enrollment: Enrollment, in state: inout LoginState,
  within throttle: Throttle, _ use: Use, under policy: Policy, as role: ResponseRole
) throws(CryptoError) -> Decision.Verdict {
  let isKnown = state.isKnown(use.origin)
  let isThrottled = throttle.isThrottled(state[known: isKnown], digits: digits, at: use.time)
  // The same work, but nothing that hangs on the code: no code is as great as this number.
  let code = isThrottled ? UInt32.max : code
  let charge = Charge(
    enrollmentID: enrollment.id, isKnown: isKnown, amount: throttle.cost(of: digits))
  var found = Comparison(next: state, slip: state.slip)
  // `reconcile` has made the two lists run side by side.
  for (index, authenticator) in enrollment.authenticators.enumerated() {
    guard authenticator.parameters.digits == digits, index < state.authenticators.count else {
      continue
    }
    let match = try authenticator.match(
      code, after: state.authenticators[index], throttle, at: use.time)
    // One that is switched off has had its work, and says nothing.
    guard policy.accepts(authenticator.parameters.type) else { continue }
    if let position = match.nearlyAccepted, isKnown, case .last = role {
      found.slip = Slip(
        authenticator: authenticator.id, position: position, time: use.time,
        amount: charge.amount)
    }
    found.take(match, of: authenticator, index, use, correcting: isKnown ? state.slip : nil)
  }
  if digits == .eight, let set = enrollment.scratchCodes {
    try found.take(scratchCode: code, of: set, use, isOn: policy.backupCode != .off)
  }
  if isThrottled { return .refuse(.throttled) }
  if let proof = found.proof {
    state = found.next
    state.settle(role, found.corrected, at: use.time)
    state.remember(use)
    return .accept(proof)
  }
  if let replay = found.replay { return .refuse(replay) }
  state[known: isKnown] = throttle.charge(state[known: isKnown], digits: digits, at: use.time)
  state.slip = found.slip
  return .refuse(.wrongCode(charge))
}

/// What comparing a code with all that an enrollment accepts has found.
private struct Comparison {
  /// The state with what was accepted used up.
  var next: LoginState
  var proof: Proof?
  var replay: Refusal?
  /// The typing error that the code is, or the one before it.
  var slip: Slip?
  /// The slip of before that the code puts right.
  var corrected: Slip?

  init(next: LoginState, slip: Slip?) { (self.next, self.slip) = (next, slip) }

  mutating func take(
    _ match: Match, of authenticator: Authenticator, _ index: Int, _ use: Use,
    correcting slip: Slip?
  ) {
    if let position = match.accepted {
      if let slip, slip.isCorrected(by: authenticator.id, at: position, use.time) {
        corrected = slip
      }
      next.authenticators[index].accept(
        position, drift: match.drift, authenticator.parameters.type, use)
      proof = proof ?? .authenticator(name: authenticator.name, drift: match.drift)
    } else if match.isReplay {
      replay =
        replay ?? match.aheadOfClock.map { .clock(until: $0) } ?? .replayed(until: match.usedUntil)
    }
  }

  mutating func take(scratchCode code: UInt32, of set: BackupCodeSet, _ use: Use, isOn: Bool)
    throws(CryptoError)
  {
    guard var codes = next.backupCodes else { return }
    let found = try set.scratchCodes(code)
    guard found != 0, isOn else { return }
    guard codes.use(found, use) else {
      replay = replay ?? .replayed(until: UnixTime(0))
      return
    }
    next.backupCodes = codes
    proof = proof ?? .backupCode(left: set.left(codes))
  }
}

extension LoginState {
  /// What an accepted response gives back: the first pass of the same login where that was charged,
  /// or else a slip that it puts right. No slip counts after it.
  mutating func settle(_ role: ResponseRole, _ corrected: Slip?, at now: UnixTime) {
    slip = nil
    if case .last(let firstPass?) = role {
      guard firstPass.enrollmentID == enrollmentID else { return }
      self[known: firstPass.isKnown].giveBack(firstPass.amount)
    } else if let corrected, refunds.add(at: now) {
      known.giveBack(corrected.amount)
    }
  }
}
