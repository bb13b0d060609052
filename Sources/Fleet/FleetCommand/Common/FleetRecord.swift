import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

// What root's verbs learn and change of somebody of the fleet beside his factors. A verifier does
// it for a host that may enroll people of the fleet.
extension FleetPerson {
  package func record() throws(CommandError) -> PersonRecord {
    guard case .told(let facts) = try ask(.tell, or: .away(account.name.typedOrShown))
    else {
      throw .move(.notServed, nil)
    }
    if case .enrolled(let moving) = facts.place, moving.enrollment.user != account.name {
      throw .move(.notServed, nil)
    }
    let blocked = facts.block.map { Store.Blocked(inFleet: $0.block(of: account.name)) }
    return PersonRecord(
      enrolled(by: facts), facts.note, logins: facts.logins, blocked: blocked)
  }

  private func enrolled(by facts: PersonFacts)
    -> Result<(enrollment: Enrollment, state: LoginState), CommandError>
  {
    switch facts.place {
    case .enrolled(let moving):
      .success((moving.enrollment.with(uid: account.uid), moving.state))
    case .notEnrolled: .failure(.notEnrolled)
    case .taken(let host): .failure(.taken(account.name.typedOrShown, by: host.text))
    }
  }

  package func unlock(_ id: UInt64) throws(CommandError) { try change(.unlock(id: id)) }

  package func end(_ id: UInt64) throws(CommandError) { try change(.end(id: id)) }

  package func forget(_ id: UInt64) throws(CommandError) -> [RememberedOrigin]? {
    try change(.forget(id: id))
    return nil
  }

  package func level() throws(CommandError) -> UserNote.Level? { try record().note.level }

  package func enrolledRecord() throws(CommandError) -> (
    enrollment: Enrollment, state: LoginState
  ) { try record().enrolled.get() }

  package func set(_ level: UserNote.Level?, of owner: Account) throws(CommandError) {
    try change(.level(level))
  }

  /// On all hosts, by what verifies his codes: whom the files of one host verify, they alone block.
  package func block(until: UnixTime?) throws(CommandError) -> Bool {
    if case .failure(let error) = try record().enrolled {
      guard case .notEnrolled = error.cause else { throw error }
    }
    try change(.block(until: until))
    return true
  }

  package func unblock() throws(CommandError) -> Bool {
    switch try ask(.unblock, or: .unsettled(account.name.typedOrShown)) {
    case .other(.done): return true
    case .changed: return false
    case .told, .resynchronized, .other: throw .unsettled(account.name.typedOrShown)
    }
  }

  /// Without secrets, and without backup codes that a host may have used while it was cut off.
  package func former(_ suspension: Suspension, _ id: UInt64) throws(CommandError) -> Enrollment {
    let verb = PersonRequest.Verb.former(suspension: suspension.id, id: id)
    switch try ask(verb, or: .away(account.name.typedOrShown)) {
    case .told(let facts):
      guard case .enrolled(let moving) = facts.place else { throw .move(.notServed, nil) }
      return moving.enrollment
    case .changed: throw .changed
    case .resynchronized, .other: throw .move(.notServed, nil)
    }
  }

  package func restore(_ suspension: Suspension, _ id: UInt64) throws(CommandError) {
    try change(.restore(suspension: suspension.id, id: id))
  }

  private func change(_ verb: PersonRequest.Verb) throws(CommandError) {
    switch try ask(verb, or: .unsettled(account.name.typedOrShown)) {
    case .other(.done): return
    case .changed: throw .changed
    case .told, .resynchronized, .other: throw .unsettled(account.name.typedOrShown)
    }
  }

  package func resynchronize(by codes: CodePair, named name: Label?, _ id: UInt64)
    throws(CommandError) -> Resync
  {
    let verb = PersonRequest.Verb.resynchronize(
      codes, named: name, under: login.policy, id: id)
    switch try ask(verb, or: .unsettled(account.name.typedOrShown)) {
    case .resynchronized(let result): return result
    case .changed: throw .changed
    case .told, .other: throw .unsettled(account.name.typedOrShown)
    }
  }

  /// `unknown`: what it means that no answer came.
  private func ask(_ verb: PersonRequest.Verb, or unknown: CommandError) throws(CommandError)
    -> PersonAnswer
  {
    let (file, identity) = try place.host()
    let name = account.name.typedOrShown
    guard place.mayHave(.changes, file) else {
      throw .mayNotChange(name, place.missing(.changes, file, for: account.name))
    }
    let verifiers = place.verifiers(file, identity)
    let answer: PersonAnswer?
    do throws(MoveFault) {
      let body = PersonRequest(verb, of: account.name).encoded()
      answer = PersonAnswer.decode(try verifiers.manage(body))
    } catch {
      switch error.cause {
      case .unknown: throw unknown
      case .away: throw .away(name)
      case .wanted, .other: throw .move(error, nil)
      }
    }
    switch answer {
    case .other(.notAllowed):
      throw .mayNotChange(name, place.missing(.changes, file, for: account.name))
    case .other(.trouble) where verb == .tell: throw .unreadable(name)
    case .other(.trouble), nil: throw unknown
    case .some(let answer): return answer
    }
  }
}
