// What a login with a pass has replaced: bring it back, and let go of it.

import OneTimePassword
package import SallyportCore
package import SallyportSystem

extension Store {
  /// What would be enrolled after `restore`; nil: the enrollment is not that of this id, or names
  /// no such suspension.
  package func former(
    _ suspension: Suspension, of account: Account, id: UInt64, at now: UnixTime
  ) throws(StoreTrouble) -> Enrollment? {
    guard let record = try load(account), record.enrollment.id == id,
      record.enrollment.suspended.contains(suspension)
    else { return nil }
    let name = try fileName(of: account.name)
    let path = users / name / suspension.file()
    guard let directory = try userFolder().folder(name),
      let text = try directory.text(of: suspension.file()),
      let bytes = try directory.text(of: suspension.file(".state"))
    else { throw .incomplete(path: path.text) }
    let former: Enrollment
    do throws(SettingsError) {
      former = try format.read(text)
    } catch {
      throw .malformed(path: path.text, error)
    }
    let current: StateRecord.Current
    do throws(StateRecord.Problem) {
      current = try StateRecord.read(bytes.bytes(in: 0..<bytes.count))
    } catch {
      throw .state(path: path.text, error)
    }
    guard former.id == id, current.state.enrollmentID == id else {
      throw .foreignState(path: path.text)
    }
    return try record.enrollment.restored(
      from: former, current.state, mayLackTheLatest: current.mayLackTheLatest, at: now)
  }

  /// Puts what was suspended in the place of what is enrolled, which ends with all that was made
  /// since: later suspensions, passes, places that are known. What is thrown had changed nothing
  /// but that. nil as above.
  package func restore(
    _ suspension: Suspension, of account: Account, id: UInt64, at now: UnixTime
  ) throws(StoreTrouble) -> Void? {
    let done: Bool? = try settled(account, id) { (record) throws(StoreTrouble) in
      guard let next = try former(suspension, of: account, id: id, at: now) else {
        return .committed(false)
      }
      // First: a crash between the two files leaves no place remembered.
      let forgotten = try transact(record, asKnown: true) {
        (_, state) throws(StoreTrouble) -> (Void, LoginState) in ((), state.withoutOrigins)
      }
      guard case .committed = forgotten else { return .changed }
      let done = try rewrite(record, next) { state in
        var state = state.withoutOrigins
        state.reconcile(with: next)
        state.restartClocks(at: now)
        state.notices.restored = now
        return state
      }
      if case .changed = done { return .changed }
      return .committed(true)
    }
    guard done == true else { return nil }
    removeEnded(of: account, at: now)
    return ()
  }

  /// Drops the suspensions that have ended, and wipes the files that no enrollment names. Best
  /// effort: the next verb of root does it then.
  package func removeEnded(of account: Account, at now: UnixTime) {
    do throws(StoreTrouble) {
      guard var record = try load(account) else { return }
      var kept = record.enrollment
      kept.suspended.removeAll { $0.until <= now }
      if kept.suspended.count < record.enrollment.suspended.count {
        guard case .committed = try rewrite(record, kept, { $0 }),
          let now = try load(account)
        else { return }
        record = now
      }
      try wipeUnnamed(by: record, in: fileName(of: account.name))
    } catch {}
  }

  /// With the lock of the user: a login that is about to name a file has it as well.
  private func wipeUnnamed(by record: Record, in name: Path) throws(StoreTrouble) {
    let users = try userFolder()
    guard let directory = try users.folder(name) else { return }
    let named = record.enrollment.suspended.flatMap { [$0.file().bytes, $0.file(".state").bytes] }
    let unnamed = try directory.names().filter {
      rest(of: $0.bytes, after: Suspension.prefix) != nil && !named.contains($0.bytes)
    }
    if unnamed.isEmpty { return }
    try CriticalSection.during { () throws(StoreTrouble) in
      _ = try users.holding(record) { () throws(StoreTrouble) in
        for file in unnamed { directory.erase(file) }
      }
    }
  }
}

extension LoginState {
  fileprivate var withoutOrigins: LoginState {
    var state = self
    state.forgetOrigins()
    return state
  }
}

extension Enrollment {
  /// With the authenticators and backup codes of before, but for codes up to now and those that
  /// were used. All have other ids, so that nothing joins them with values that a state still has.
  package func restored(
    from former: Enrollment, _ state: LoginState, mayLackTheLatest: Bool, at now: UnixTime
  ) throws(StoreTrouble) -> Enrollment {
    var state = state
    state.reconcile(with: former)
    if mayLackTheLatest {
      state.distrustLoss(of: former, at: now)
      state.backupCodes?.used = UInt64.max
    }
    var restored = self
    (restored.authenticators, restored.passes) = ([], [])
    for (one, values) in zip(former.authenticators, state.authenticators) {
      restored.authenticators.append(
        Authenticator(
          id: try Random.identifier(), name: one.name, parameters: one.parameters,
          secret: one.secret, initialLastAccepted: one.used(values, at: now), created: one.created,
          clockOffset: values.clock?.offset))
    }
    let used = state.backupCodes?.used ?? 0
    restored.backupCodes = try former.backupCodes?.unused(used, as: Random.identifier())
    restored.suspended = former.suspended.filter { now < $0.until }
    return restored
  }
}

extension Authenticator {
  /// The last accepted step or counter where all steps up to now count as accepted. A counter does
  /// not know of now.
  fileprivate func used(_ state: AuthenticatorState, at now: UnixTime) -> UInt64? {
    guard case .totp(let period) = parameters.type else { return state.lastAccepted }
    return max(
      state.lastAccepted ?? 0, timeStep(at: state.time(at: now).seconds, period: period))
  }
}

extension BackupCodeSet {
  /// Without the codes of these bits; nil where none is left.
  fileprivate func unused(_ used: UInt64, as id: UInt64) -> BackupCodeSet? {
    func left(_ digests: [[UInt8]], from first: Int) -> [[UInt8]] {
      digests.enumerated().filter { used >> UInt64(first + $0.offset) & 1 == 0 }.map(\.element)
    }
    let set = BackupCodeSet(
      id: id, salt: salt, digests: left(digests, from: 0),
      scratchDigests: left(scratchDigests, from: digests.count))
    return set.count == 0 ? nil : set
  }
}
