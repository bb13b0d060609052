import OneTimePassword

/// What is known of the clock of a device that nobody can set (RFC 6238 §6).
package struct TokenClock: Equatable, Sendable {
  /// By how many seconds it is ahead of ours, behind if negative.
  package var offset: Int32
  /// Since when it may have gained or lost: a second in twelve hours.
  package var since: UnixTime

  package init(offset: Int32, since: UnixTime) { (self.offset, self.since) = (offset, since) }

  /// nil: not a token's.
  init?(startOf authenticator: Authenticator) {
    guard let offset = authenticator.clockOffset else { return nil }
    self.init(offset: offset, since: authenticator.created)
  }

  /// In which a fair clock gains or loses one.
  package static let secondsOfASecond: UInt64 = 43_200
  /// In a state record, where the number of passes stands if there is no token.
  static let mark = 255

  /// How many seconds it may have gained or lost; at most as many as a clock may be off.
  func allowance(at now: UnixTime) -> Int64 {
    let most = UInt64(Authenticator.mostClockOffset(CodeParameters.periods.upperBound))
    return Int64(min(now.elapsed(since: since) / TokenClock.secondsOfASecond, most))
  }

  /// As what has shown the code of `step` at `now`, whatever was known of it.
  package mutating func set(to step: UInt64, of period: UInt32, at now: UnixTime) {
    since = now
    move(to: step, of: period, at: now, atMost: 2 * Int64(Authenticator.mostClockOffset(period)))
  }

  /// A state may have been saved beside another period: no clock is off by more steps than any.
  mutating func bound(by type: AuthenticatorType) {
    guard case .totp(let period) = type else { return }
    let limit = Int32(Authenticator.mostClockOffset(period))
    offset = max(0 - limit, min(offset, limit))
  }

  /// Moves it towards what has shown the code of `step` at `now`, by at most `most` seconds.
  private mutating func move(
    to step: UInt64, of period: UInt32, at now: UnixTime, atMost most: Int64
  ) {
    let start = Int64(bitPattern: step) &* Int64(period)
    let own = now.seconds &+ Int64(offset)
    let (ahead, behind) = (start &- own, own &- start &- Int64(period) &+ 1)
    let wanted = ahead > 0 ? ahead : behind > 0 ? 0 - behind : 0
    let limit = Int64(Authenticator.mostClockOffset(period))
    let moved = Int64(offset) + max(0 - most, min(wanted, most))
    offset = Int32(truncatingIfNeeded: max(0 - limit, min(moved, limit)))
  }

  /// After a code was accepted: by what a fair clock may have drifted since the one before. What
  /// that does not take is gone, but for the part of a second. A time to come has earned nothing.
  mutating func learn(_ step: UInt64, of period: UInt32, at now: UnixTime) {
    let most = allowance(at: now)
    let rest = now.elapsed(since: since) % TokenClock.secondsOfASecond
    since = UnixTime(now.seconds &- Int64(rest))
    move(to: step, of: period, at: now, atMost: most)
  }
}

// Whatever is asked of an authenticator's time is asked of these.
extension AuthenticatorState {
  /// What its own clock says at `now`.
  package func time(at now: UnixTime) -> UnixTime { now.moved(by: Int64(clock?.offset ?? 0)) }

  /// When its own clock says `time`, by ours.
  package func ours(_ time: UnixTime) -> UnixTime { time.moved(by: 0 - Int64(clock?.offset ?? 0)) }

  /// The latest step that a login may have accepted up to `now`, under any policy, where what was
  /// learnt of the clock may be lost.
  package func latestStep(at now: UnixTime, of period: UInt32) -> UInt64 {
    let learnt = Int64(clock?.offset ?? 0) + (clock?.allowance(at: now) ?? 0)
    let latest = now.moved(by: min(learnt, Int64(Authenticator.mostClockOffset(period))))
    return timeStep(at: latest.seconds, period: period) + UInt64(Policy.mostAdjacentIntervals)
  }
}

extension LoginState {
  /// What is known of clocks is known of now.
  package mutating func restartClocks(at now: UnixTime) {
    for index in authenticators.indices { authenticators[index].clock?.since = now }
  }
}

extension UnixTime {
  /// The end of time stays where it is.
  fileprivate func moved(by offset: Int64) -> UnixTime {
    let (sum, overflow) = seconds.addingReportingOverflow(offset)
    return overflow || seconds == Int64.max ? self : UnixTime(sum)
  }
}
