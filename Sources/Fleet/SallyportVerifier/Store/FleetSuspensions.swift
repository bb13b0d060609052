import FleetProtocol
import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportLogin
package import SallyportSystem

// What a login with a pass has replaced, in the document of what took its place: both are saved in
// one step, so nobody is without an enrollment at any moment.
extension FleetStore {
  /// Of what others saved meanwhile the claim is looked for again: a newer one takes its place.
  package func suspend(
    _ record: Record, for enrollment: Enrollment, claim: UInt64, at now: UnixTime
  ) throws(StoreTrouble) -> Transaction<Void> {
    guard database.writesNew, let suspension = enrollment.suspended.last else { return .changed }
    let key = try key(of: record)
    let done = try eachTurn(key, record) { (row) throws(StoreTrouble) -> (Bool?) in
      guard record.enrollment.isClaimed(by: claim, row.state, at: now),
        var document = try self.row(of: key)?.document,
        try !isHeld(document.block, of: enrollment.user)
      else { return false }
      var (former, next) = (row.state, row.state)
      former.reconcile(with: record.enrollment)
      document.suspended.append(
        SuspendedEnrollment(suspension.id, record.enrollment, former.withoutPlaces))
      document.place = .enrolled(enrollment)
      next.forgetOrigins()
      next.reconcile(with: enrollment)
      return try saveBoth(document, next, of: key, over: row.mark) ? true : nil
    }
    switch done {
    case .committed(true): return .committed(())
    case .committed(false), .changed: return .changed
    }
  }

  /// What would be enrolled after `restore`, without secrets; nil: the enrollment is not that of
  /// this id, or nothing of it is suspended under the other one.
  func former(_ suspension: UInt64, of name: UserName, id: UInt64) throws(StoreTrouble)
    -> Enrollment?
  {
    guard let row = try row(of: name.bytes, reload: true) else { return nil }
    return try restored(suspension, row.document, id: id)?.withoutSecrets
  }

  /// Puts what was suspended in the place of what is enrolled, which ends with all that was made
  /// since. False as above.
  func restore(_ suspension: UInt64, of account: Account, id: UInt64) throws(StoreTrouble) -> Bool {
    var isDone = false
    try change(account.name) { (old, state) throws(StoreTrouble) in
      isDone = false
      guard let next = try restored(suspension, old, id: id), var state else { return nil }
      var new = old
      new.place = .enrolled(next)
      state.forgetOrigins()
      state.reconcile(with: next)
      state.restartClocks(at: try now())
      state.notices.restored = try now()
      isDone = true
      return (new, state)
    }
    return isDone
  }

  private func restored(_ suspension: UInt64, _ document: FleetDocument, id: UInt64)
    throws(StoreTrouble) -> Enrollment?
  {
    let now = try now()
    guard let present = document.enrollment, present.id == id,
      present.suspended.contains(where: { $0.id == suspension && now < $0.until }),
      let former = document.suspended.first(where: { $0.id == suspension })
    else { return nil }
    // A host that was cut off may have used any backup code; it never has a scratch code.
    var state = former.state
    if let codes = former.enrollment.backupCodes {
      state.backupCodes?.used |= codes.bitsOfCodes
    }
    return try present.restored(from: former.enrollment, state, mayLackTheLatest: false, at: now)
  }

  /// Whether he must not be taken into the files of a host now.
  func stays(_ account: Account) throws(StoreTrouble) -> Bool {
    if try isBlocked(account, at: now) { return true }
    guard let enrollment = try load(account)?.enrollment else { return false }
    let now = try now()
    return !enrollment.suspended.isEmpty
      || enrollment.passes.contains { $0.enrolls && now < $0.expires }
  }

  /// Without what can be restored no more, so that others find room.
  func withoutEnded(_ enrollment: Enrollment) throws(StoreTrouble) -> Enrollment {
    if enrollment.suspended.isEmpty { return enrollment }
    let now = try now()
    var enrollment = enrollment
    enrollment.suspended.removeAll { $0.until <= now }
    return enrollment
  }
}

extension BackupCodeSet {
  /// Of the backup codes alone; scratch codes lie behind them.
  var bitsOfCodes: UInt64 {
    digests.count < 64 ? 1 << UInt64(digests.count) - 1 : UInt64.max
  }
}
