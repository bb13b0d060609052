import FleetProtocol
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

// What root's verbs on a host that may enroll ask about one person, and change of him.
extension FleetStore {
  /// Without secrets: they leave the fleet with a `fetch` alone.
  func told(of name: UserName) throws(StoreTrouble) -> PersonFacts {
    let row = try row(of: name.bytes, reload: true)
    let document = row?.document ?? FleetDocument(.notEnrolled)
    let standing: PersonFacts.EnrollmentPlace
    switch document.standing {
    case .notEnrolled, .removed: standing = .notEnrolled
    case .taken(_, _, let host): standing = .taken(by: host)
    case .enrolled(let enrollment):
      guard let shown = enrollment.withoutSecrets, var state = row?.state else {
        throw .outOfMemory
      }
      state.reconcile(with: enrollment)
      standing = .enrolled(MoveRequest.Moving(shown, state.withoutPlaces))
    }
    return PersonFacts(standing, document.note, logins: document.logins)
  }

  /// false: he is not enrolled by the enrollment of this id, and nothing was changed.
  func unlock(_ name: UserName, id: UInt64) throws(StoreTrouble) -> Bool {
    guard let record = try record(of: name, id: id) else { return false }
    let done = try transact(record, asKnown: true) {
      (_, state) throws(StoreTrouble) -> (Bool, LoginState) in (true, state.unlocked)
    }
    if case .committed = done { return true }
    return false
  }

  /// nil: he is not enrolled by the enrollment of this id, and nothing was changed.
  func resynchronize(
    _ name: UserName, id: UInt64, by codes: CodePair, named label: Label?, under policy: Policy
  ) throws(StoreTrouble) -> Resync? {
    guard let record = try record(of: name, id: id) else { return nil }
    let enrollment = record.enrollment
    // It may lower what was last accepted, which every verifier takes for a loss in one document.
    let done = try rewrite(record, enrollment) {
      (state) throws(StoreTrouble) -> (Resync, LoginState) in
      let time = try now()
      do throws(CryptoError) {
        var (result, next) = try resync(
          by: codes, named: label, enrollment: enrollment, state: state, at: time, under: policy)
        if case .done = result { next.forgetRemembered() }
        return (result, next)
      } catch {
        throw .crypto(error)
      }
    }
    if case .committed(let result) = done { return result }
    return nil
  }

  private func record(of name: UserName, id: UInt64) throws(StoreTrouble) -> Record? {
    let record = try load(Account(name: name, uid: nil))
    return record?.enrollment.id == id ? record : nil
  }

  /// false: as of `unlock`. What is left is a tombstone: that he was enrolled once cannot be undone
  /// by somebody who deletes a row.
  func end(_ name: UserName, id: UInt64) throws(StoreTrouble) -> Bool {
    var isDone = false
    try change(name) { (old, _) throws(StoreTrouble) in
      // What a turn before this one would have saved, it has not.
      isDone = false
      // Asked again, as where the answer was lost: then the primary alone may have it.
      if case .removed(id) = old.standing {
        isDone = true
        return (old, nil)
      }
      guard old.enrollment?.id == id else { return nil }
      isDone = true
      var new = old
      new.standing = .removed(id)
      return (new, nil)
    }
    return isDone
  }

  /// It is kept while he is enrolled, and holds when he is no more.
  func setLevel(_ level: UserNote.Level?, of name: UserName) throws(StoreTrouble) {
    try change(name) { (old, state) throws(StoreTrouble) in
      // Where there is a row it is saved again: the primary alone may have it.
      if old.note.level == level, old.serial == 0 { return nil }
      var new = old
      new.note.level = level
      return (new, state)
    }
  }
}

extension LoginState {
  /// Places on the fleet's hosts mean nothing to its reader, and no host's files know them.
  var withoutPlaces: LoginState {
    var state = self
    (state.origins, state.remembered) = ([], [])
    for (index, one) in authenticators.enumerated() {
      state.authenticators[index].lastUse = one.lastUse?.withoutPlace
    }
    state.backupCodes?.lastUse = backupCodes?.lastUse?.withoutPlace
    return state
  }
}

extension Use {
  fileprivate var withoutPlace: Use { Use(time: time, origin: .unknown, service: service) }
}
