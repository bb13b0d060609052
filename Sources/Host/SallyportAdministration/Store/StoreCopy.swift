// A store that was copied to this machine: what was used where it comes from counts as used here.

import OneTimePassword
package import SallyportCore
package import SallyportSystem

extension Store {
  /// Takes as used what may have been used on the machine that the store comes from: codes up to
  /// now and all backup codes. Counters wait for a `resync`. It is one write. nil: it is gone.
  package func distrustCopy(
    stored name: StoredName, at now: () throws(StoreTrouble) -> UnixTime
  ) throws(StoreTrouble) -> Enrollment? {
    var path = ""
    for _ in 0..<3 {
      guard let record = try load(stored: name) else { return nil }
      let done = try transact(record, asKnown: true) {
        (enrollment, state) throws(StoreTrouble) -> (Void, LoginState) in
        var state = state
        state.distrustCopy(of: enrollment, at: try now())
        return ((), state)
      }
      if case .committed = done { return record.enrollment }
      path = record.path
    }
    throw .unsettled(path: path)
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
