// A store that was copied to this machine: what was used where it comes from counts as used here.

import OneTimePassword
package import SallyportCore
package import SallyportSystem

extension Store {
  /// Takes as used what may have been used on the machine that the store comes from: codes up to
  /// now and all backup codes. Counters wait for a `resync`. It is one write. `until`: when
  /// the codes of all TOTP authenticators are accepted again. nil: it is gone.
  package func distrustCopy(
    stored name: StoredName, at now: () throws(StoreTrouble) -> UnixTime
  ) throws(StoreTrouble) -> (enrollment: Enrollment, until: UnixTime?)? {
    var path = ""
    for _ in 0..<3 {
      guard let record = try load(stored: name) else { return nil }
      guard try endSuspensions(of: record) else { continue }
      let done = try transact(record, asKnown: true) {
        (enrollment, state) throws(StoreTrouble) -> (UnixTime?, LoginState) in
        var state = state
        state.distrustCopy(of: enrollment, at: try now())
        let waits = zip(enrollment.authenticators, state.authenticators).compactMap {
          $0.end(of: $1.lastAccepted ?? 0, by: $1)
        }
        return (waits.max(), state)
      }
      if case .committed(let until) = done { return (record.enrollment, until) }
      path = record.path
    }
    throw .unsettled(path: path)
  }
}

extension Store {
  /// What was suspended can be brought back on the other machine as well: here nothing is. False:
  /// the record is another one by now.
  private func endSuspensions(of record: Record) throws(StoreTrouble) -> Bool {
    if record.enrollment.suspended.isEmpty { return true }
    var kept = record.enrollment
    kept.suspended = []
    if case .committed = try rewrite(record, kept, { $0 }) {
      removeEnded(of: Account(name: kept.user, uid: kept.uid), at: try Clock.now())
    }
    return false
  }
}

extension Authenticator {
  /// Whether codes of `now` wait until `time` at most as long as `distrustCopy` has them wait, or a
  /// damaged state. A clock that was ahead by as much leaves the same.
  package func isPause(
    until time: UnixTime, _ state: AuthenticatorState, at now: UnixTime
  ) -> Bool {
    guard case .totp(let period) = parameters.type else { return false }
    return end(of: state.latestStep(at: now, of: period), by: state).map { time <= $0 } ?? false
  }

  /// The end of a time step of the authenticator, by our clock; nil for an HOTP.
  fileprivate func end(of step: UInt64, by state: AuthenticatorState) -> UnixTime? {
    guard case .totp(let period) = parameters.type else { return nil }
    let (time, overflow) = UInt64(period).multipliedReportingOverflow(by: step &+ 1)
    return state.ours(UnixTime(overflow ? Int64.max : Int64(clamping: time)))
  }
}

extension LoginState {
  /// Every code counts as used that may have been accepted up to now on another machine with the
  /// same secrets, whose policy is not known. All backup codes do, and the next code of a counter
  /// is no more known.
  package mutating func distrustCopy(of enrollment: Enrollment, at now: UnixTime) {
    reconcile(with: enrollment)
    let before = authenticators
    distrustLoss(of: enrollment, at: now)
    backupCodes?.used = UInt64.max
    for (index, authenticator) in enrollment.authenticators.enumerated()
    where authenticator.parameters.type == .hotp {
      authenticators[index].lastAccepted = HeldCounter.hold(before[index].lastAccepted)
    }
  }
}
