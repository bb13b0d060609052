import FleetProtocol
import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportLogin
package import SallyportSystem

// What root's verbs on a host that may enroll ask about one person, and change of him.
extension FleetStore {
  /// Without secrets: they leave the fleet with a `fetch` alone.
  func told(of name: UserName) throws(StoreTrouble) -> PersonFacts {
    let row = try row(of: name.bytes, reload: true)
    let document = row?.document ?? FleetDocument(.notEnrolled)
    let place: PersonFacts.EnrollmentPlace
    switch document.place {
    case .notEnrolled, .removed: place = .notEnrolled
    case .taken(_, _, let host): place = .taken(by: host)
    case .enrolled(let enrollment):
      guard let shown = enrollment.withoutSecrets, var state = row?.state else {
        throw .outOfMemory
      }
      state.reconcile(with: enrollment)
      place = .enrolled(MoveRequest.Moving(shown, state.withoutPlaces))
    }
    return PersonFacts(place, document.note, logins: document.logins, block: document.block)
  }

  /// In one document with the state: every verifier takes a position that was lowered for a loss.
  package func exchange<Verdict>(
    _ record: Record, _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    let enrollment = record.enrollment
    return try rewrite(record, enrollment) { (state) throws(StoreTrouble) in
      try body(enrollment, state)
    }
  }

  /// What is left is a tombstone: that he was enrolled once cannot be undone by somebody who
  /// deletes a row.
  package func end(_ account: Account, id: UInt64) throws(StoreTrouble) -> Bool {
    var isDone = false
    try change(account.name) { (old, _) throws(StoreTrouble) in
      // What a turn before this one would have saved, it has not.
      isDone = false
      // Asked again, as where the answer was lost: then the primary alone may have it.
      if case .removed(id) = old.place {
        isDone = true
        return (old, nil)
      }
      guard old.enrollment?.id == id else { return nil }
      isDone = true
      var new = old
      new.place = .removed(id)
      return (new, nil)
    }
    return isDone
  }

  /// It is kept while he is enrolled, and holds when he is no more.
  package func setLevel(_ level: UserNote.Level?, of account: Account) throws(StoreTrouble) {
    try change(account.name) { (old, state) throws(StoreTrouble) in
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

extension Database {
  /// Whether somebody is enrolled under that name. Throws also where the rows cannot be believed.
  package func isEnrolled(_ name: [UInt8]) throws(DatabaseFault) -> Bool {
    guard let user = UserName(name) else { return false }
    let event = Event(of: "sallyport-verifier", on: [], name: name)
    do throws(StoreTrouble) {
      return try FleetStore(self, event, uid: nil).row(of: user.bytes)?.document.enrollment != nil
    } catch {
      throw .unusable("whether she is enrolled cannot be read")
    }
  }
}
