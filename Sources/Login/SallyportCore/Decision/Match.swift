import OneTimePassword

/// The result of comparing a typed code with one authenticator.
struct Match {
  /// The greatest matching time step or counter above the last accepted one.
  var accepted: UInt64?
  /// The greatest time step or counter above the last accepted one whose code the typed one is a
  /// slip of.
  var nearlyAccepted: UInt64?
  /// The typed code is one at or below the last accepted one.
  var isReplay = false
  /// See `AuthenticatorState.drift`; for `accepted`.
  var drift: Int32 = 0
  /// When the authenticator shows the code after the last accepted one, with its clock as it was
  /// then; in 1970 where there is none, and for an HOTP.
  var usedUntil = UnixTime(0)
  /// Where every code of now counts as used because the last accepted step is ahead of the clock:
  /// when that ends.
  var aheadOfClock: UnixTime?
}

extension Authenticator {
  /// Where the last accepted step of `state` is beyond every step that is accepted at `now`: when
  /// its codes are accepted again. nil where it is not, and for an HOTP.
  package func aheadOfClock(_ state: AuthenticatorState, _ throttle: Throttle, at now: UnixTime)
    -> UnixTime?
  {
    guard case .totp(let period) = parameters.type else { return nil }
    return StepClock(
      now: state.time(at: now), period: period, adjacent: throttle.adjacentIntervals
    ).end(ofWaitingFor: state.lastAccepted).map { state.ours($0) }
  }

  /// Compares a code with every accepted time step or counter, without an early exit.
  func match(
    _ code: UInt32, after state: AuthenticatorState, _ throttle: Throttle, at now: UnixTime
  ) throws(CryptoError) -> Match {
    let last = state.lastAccepted
    switch parameters.type {
    case .totp(let period):
      let clock = StepClock(
        now: state.time(at: now), period: period, adjacent: throttle.adjacentIntervals)
      var match = try compare(code, clock.window, last)
      match.drift = clock.drift(of: match.accepted)
      match.aheadOfClock = clock.end(ofWaitingFor: last).map { state.ours($0) }
      if let last { match.usedUntil = state.ours(clock.end(of: last, drift: state.drift)) }
      return match
    case .hotp:
      return try compare(code, counters(after: last, lookAhead: throttle.lookAhead), last)
    }
  }

  @inline(never)
  private func compare(_ code: UInt32, _ window: ClosedRange<UInt64>, _ last: UInt64?)
    throws(CryptoError) -> Match
  {
    let generator = try CodeGenerator(
      secret: secret, algorithm: parameters.algorithm, digits: parameters.digits)
    let digits = PackedDigits(code)
    var match = Match()
    for position in window {
      let right = try generator.code(at: position)
      let equal = constantTimeEquals(right, code)
      let near = digits.isSlip(of: PackedDigits(right))
      let isNew = last.map { position > $0 } ?? true
      match.accepted = equal && isNew ? position : match.accepted
      match.nearlyAccepted = near && isNew ? position : match.nearlyAccepted
      match.isReplay = match.isReplay || (equal && !isNew)
    }
    return match
  }
}

/// The last accepted counter, so that its code is recognised as used, and those that count:
/// counter … counter + look-ahead (RFC 4226 §7.4).
private func counters(after last: UInt64?, lookAhead: UInt8) -> ClosedRange<UInt64> {
  guard let last else { return 0...UInt64(lookAhead) }
  let (end, overflow) = last.addingReportingOverflow(UInt64(lookAhead) + 1)
  return last...(overflow ? UInt64.max : end)
}

/// The accepted time steps of one authenticator at one moment (RFC 6238 §5.2).
private struct StepClock {
  let step: UInt64
  let period: UInt32
  let adjacent: UInt64

  init(now: UnixTime, period: UInt32, adjacent: UInt8) {
    step = timeStep(at: now.seconds, period: period)
    self.period = period
    self.adjacent = UInt64(adjacent)
  }

  /// Steps are at most 2⁶³/15: no overflow.
  var window: ClosedRange<UInt64> { (step > adjacent ? step - adjacent : 0)...(step + adjacent) }

  func drift(of accepted: UInt64?) -> Int32 {
    guard let accepted else { return 0 }
    return Int32(truncatingIfNeeded: Int64(bitPattern: accepted &- step))
  }

  /// Where `last` lies beyond every accepted step, which no clock that only goes forward brings
  /// about: the moment from which the code of then is accepted again.
  func end(ofWaitingFor last: UInt64?) -> UnixTime? {
    guard let last, last > step + adjacent else { return nil }
    return end(of: last)
  }

  /// `drift`: by how many steps the authenticator's clock is ahead.
  func end(of step: UInt64, drift: Int32 = 0) -> UnixTime {
    let early = step.subtractingReportingOverflow(UInt64(max(drift, 0)))
    let late = UInt64(max(0 - Int64(drift), 0)) + 1
    let (next, overflow) = (early.overflow ? 0 : early.partialValue)
      .addingReportingOverflow(late)
    let (time, tooLate) = next.multipliedReportingOverflow(by: UInt64(period))
    return UnixTime(overflow || tooLate || time > Int64.max ? Int64.max : Int64(time))
  }
}
