package import OneTimePassword
package import SallyportCore

/// How far to search. A random pair matches less than once in 10⁷ tries, so the budget for wrong
/// codes is not charged: only root does this, who could write the state anyway.
private enum Reach {
  /// Seconds on either side of now.
  static let time: UInt64 = 86_400
  /// The number of counters after the next one.
  static let counters: UInt64 = 1_000
}

/// Resynchronizes an authenticator by two consecutive codes; `name` limits the search to that one.
/// Reads nothing but its arguments; the state in the result must be written before the result is
/// shown. Not for logins: the search ends early, so that its time depends on the codes.
package func resync(
  by codes: CodePair, named name: Label?, enrollment: Enrollment, state: LoginState,
  at now: UnixTime, under policy: Policy
) throws(CryptoError) -> (Resync, LoginState) {
  var state = state
  state.reconcile(with: enrollment)
  state.slip = nil
  let throttle = Throttle(for: enrollment.authenticators, under: policy)
  // `reconcile` has put both lists in the same order.
  for (index, authenticator) in enrollment.authenticators.enumerated() {
    guard authenticator.parameters.digits == codes.digits, index < state.authenticators.count,
      name == nil || name == authenticator.name
    else { continue }
    let result = try authenticator.resync(
      by: codes, &state.authenticators[index], throttle, at: now)
    if result != .refused(.notFound) { return (result, state) }
  }
  return (.refused(.notFound), state)
}

extension Authenticator {
  fileprivate func resync(
    by codes: CodePair, _ state: inout AuthenticatorState, _ throttle: Throttle, at now: UnixTime
  ) throws(CryptoError) -> Resync {
    switch parameters.type {
    case .totp(let period):
      if state.clock != nil { return try resync(tokenBy: codes, &state, period, at: now) }
      let step = timeStep(at: now.seconds, period: period)
      guard let second = try find(codes, around: step, reach: Reach.time / UInt64(max(period, 1)))
      else { return .refused(.notFound) }
      return fix(&state, second, at: step, period, adjacent: throttle.adjacentIntervals)
    case .hotp:
      guard let second = try find(codes, after: state.lastAccepted) else {
        return .refused(.notFound)
      }
      (state.lastAccepted, state.drift) = (second, 0)
      return .done(name: name, drift: 0, reopened: nil)
    }
  }

  /// Applies the step of the second code.
  ///
  /// If the clock is off by more than logins accept, only the drift is stored: with the step as the
  /// last accepted one, an app whose clock is ahead would be refused for that long once its clock
  /// is correct.
  ///
  /// The last accepted step is lowered in one case: if it lies beyond every step that a correct
  /// clock accepts, because the machine's clock had run ahead. It is then set no lower than the
  /// second code and no lower than now, so that neither these codes nor any accepted one up to now
  /// works again. Codes that were accepted while the clock was ahead lie between now and the old
  /// value, and it is unknown which they are: they work once more in their own time, for anyone who
  /// saw them. That is the price, which `reopened` reports; the alternative is a new secret.
  private func fix(
    _ state: inout AuthenticatorState, _ second: UInt64, at step: UInt64, _ period: UInt32,
    adjacent: UInt8
  ) -> Resync {
    let drift = Int32(truncatingIfNeeded: Int64(bitPattern: second &- step))
    let tolerance = UInt64(adjacent)
    guard drift.magnitude <= UInt32(adjacent) else {
      state.drift = drift
      return .refused(
        .clockOff(name: name, drift: drift, period: period, accepted: adjacent))
    }
    guard let last = state.lastAccepted, last >= second else {
      (state.lastAccepted, state.drift) = (second, drift)
      return .done(name: name, drift: drift, reopened: nil)
    }
    guard last > step + tolerance else { return .refused(.replayed(name: name)) }
    (state.lastAccepted, state.drift) = (max(second, step), drift)
    return .done(name: name, drift: drift, reopened: endOfCodes(upTo: last, period, adjacent))
  }

  /// The same of a token: its clock is what the codes say, which may be off by 200 steps.
  ///
  /// Its last accepted step is of its own time, which no clock of ours moves. So it is lowered only
  /// from beyond all that a token may have shown by now, and not below what it showed as it was
  /// known: two codes that somebody saw an hour ago give back none that was used since.
  private func resync(
    tokenBy codes: CodePair, _ state: inout AuthenticatorState, _ period: UInt32, at now: UnixTime
  ) throws(CryptoError) -> Resync {
    let step = timeStep(at: now.seconds, period: period)
    let own = timeStep(at: state.time(at: now).seconds, period: period)
    guard let second = try find(codes, around: step, nearest: own) else {
      return .refused(.notFound)
    }
    var accepted = second
    var reopened: UInt64?
    if let last = state.lastAccepted, last >= second {
      let most = UInt64(Authenticator.mostClockSteps) + UInt64(Policy.mostAdjacentIntervals)
      guard last > step + most else {
        return .refused(used(last, of: period, shown: max(second, own), at: now))
      }
      (accepted, reopened) = (max(second, own), last)
    }
    state.clock?.set(to: second, of: period, at: now)
    (state.lastAccepted, state.drift) = (accepted, 0)
    let adjacent = Policy.mostAdjacentIntervals
    return .done(
      name: name, drift: Int32(truncatingIfNeeded: Int64(bitPattern: second &- step)),
      reopened: reopened.map { state.ours(endOfCodes(upTo: $0, period, adjacent)) })
  }

  /// Of codes of a token at or below its last accepted step: a used one, or one of a time to come,
  /// which a machine's clock that ran ahead counts as used. `shown`: what the token shows by now.
  private func used(_ last: UInt64, of period: UInt32, shown: UInt64, at now: UnixTime)
    -> ResyncRefusal
  {
    guard last > shown + UInt64(Policy.mostAdjacentIntervals) else { return .replayed(name: name) }
    let wait = Int64(truncatingIfNeeded: last - shown + 1) &* Int64(period)
    let (until, overflow) = now.seconds.addingReportingOverflow(wait)
    return .waits(name: name, until: overflow ? UnixTime(Int64.max) : UnixTime(until))
  }

  /// The step of the second code nearest to `own`, of those that a token may show at `step`.
  func find(_ codes: CodePair, around step: UInt64, nearest own: UInt64)
    throws(CryptoError) -> UInt64?
  {
    let reach = UInt64(Authenticator.mostClockSteps)
    return try find(codes, in: (step > reach ? step - reach : 0)...(step + reach), nearest: own)
  }

  /// The time from which the code of step `last` is not accepted any more; the end of time on
  /// overflow.
  private func endOfCodes(upTo last: UInt64, _ period: UInt32, _ adjacent: UInt8) -> UnixTime {
    let (end, overflow) = last.addingReportingOverflow(UInt64(adjacent) + 1)
    let (time, tooLate) = end.multipliedReportingOverflow(by: UInt64(period))
    return UnixTime(overflow || tooLate || time > Int64.max ? Int64.max : Int64(time))
  }

  /// The step of the second code nearest to `step`. Cannot overflow, as steps are at most 2⁶³/15.
  private func find(_ codes: CodePair, around step: UInt64, reach: UInt64)
    throws(CryptoError) -> UInt64?
  {
    let positions = (step > reach ? step - reach : 0)...(step + reach)
    return try find(codes, in: positions, nearest: step)
  }

  /// The first counter of a second code such that the first code has not been used.
  private func find(_ codes: CodePair, after last: UInt64?) throws(CryptoError) -> UInt64? {
    guard let next = HeldCounter.next(after: last) else { return nil }
    let (end, overflow) = next.addingReportingOverflow(Reach.counters + 1)
    return try find(codes, in: next...(overflow ? UInt64.max : end), nearest: next)
  }

  private func find(
    _ codes: CodePair, in positions: ClosedRange<UInt64>, nearest wanted: UInt64
  ) throws(CryptoError) -> UInt64? {
    let generator = try CodeGenerator(
      secret: secret, algorithm: parameters.algorithm, digits: parameters.digits)
    var found: UInt64?
    var isSecond = false
    for position in positions {
      let code = try generator.code(at: position)
      if isSecond, code == codes.second {
        if let found, distance(found, wanted) < distance(position, wanted) { return found }
        found = position
      }
      isSecond = code == codes.first
    }
    return found
  }
}

private func distance(_ a: UInt64, _ b: UInt64) -> UInt64 { a > b ? a - b : b - a }
