import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// A person: each change by root leaves lines in the system's log and in the file of acts.
struct RecordedPerson: Person {
  let person: any Person
  let recorder: Recorder

  // MARK: as it is

  var account: Account { person.account }
  var login: LoginContext { person.login }
  var context: Context { person.context }
  var isInFleet: Bool { person.isInFleet }
  var absence: CommandError { person.absence }
  var changedMeanwhile: CommandError { person.changedMeanwhile }
  func authority() throws(CommandError) -> any CodeAuthority { try person.authority() }
  func error(for trouble: StoreTrouble) -> CommandError { person.error(for: trouble) }
  func found() throws(CommandError) -> PendingLogin? { try person.found() }
  func failed(_ error: CommandError) -> CommandError { person.failed(error) }
  func clockOffset(of typed: Secret) throws(CommandError) -> (seconds: Int64, isToken: Bool)? {
    try person.clockOffset(of: typed)
  }
  func existing(force: Bool) throws(CommandError) -> ExistingEnrollment {
    try person.existing(force: force)
  }
  func rehearse() throws(CommandError) { try person.rehearse() }
  func record() throws(CommandError) -> PersonRecord { try person.record() }
  func enrolledRecord() throws(CommandError) -> (enrollment: Enrollment, state: LoginState) {
    try person.enrolledRecord()
  }
  func level() throws(CommandError) -> UserNote.Level? { try person.level() }
  func former(_ suspension: Suspension, _ id: UInt64) throws(CommandError) -> Enrollment {
    try person.former(suspension, id)
  }

  // MARK: changes

  func enroll(_ enrollment: Enrollment, replacing: Bool, isCodeShown: Bool) throws(CommandError) {
    try recorded(.enroll, Act.named(enrollment.authenticators.map(\.name))) {
      () throws(CommandError) in
      try person.enroll(enrollment, replacing: replacing, isCodeShown: isCodeShown)
    }
  }

  func amendOnce(_ change: EnrollmentChange, of pending: PendingLogin?)
    throws(CommandError) -> Amendment
  {
    let (verb, facts) = Act.told(change)
    let isDone = { (made: Amendment) in if case .done = made { true } else { false } }
    return try recorded(verb, facts, isDone: isDone) { () throws(CommandError) in
      try person.amendOnce(change, of: pending)
    }
  }

  func unlock(_ id: UInt64) throws(CommandError) {
    try recorded(.unlock) { () throws(CommandError) in try person.unlock(id) }
  }

  func end(_ id: UInt64) throws(CommandError) {
    try recorded(.unenroll) { () throws(CommandError) in try person.end(id) }
  }

  func forget(_ id: UInt64) throws(CommandError) -> [RememberedOrigin]? {
    try recorded(.forget) { () throws(CommandError) in try person.forget(id) }
  }

  func set(_ level: UserNote.Level?, of owner: Account) throws(CommandError) {
    let (verb, facts): (Act.Verb, [Act.Fact]) =
      switch level {
      case .required(let from):
        (.require, from.flatMap { fact($0) }.map { [Act.Fact("from", $0.utf8)] } ?? [])
      case .exempt(let until):
        (.exempt, until.flatMap { fact($0) }.map { [Act.Fact("until", $0.utf8)] } ?? [])
      case nil: (.level, [Act.Fact("level", "policy".utf8)])
      }
    try recorded(verb, facts) { () throws(CommandError) in try person.set(level, of: owner) }
  }

  func block(until: UnixTime?) throws(CommandError) -> Bool {
    let facts = until.flatMap { fact($0) }.map { [Act.Fact("until", $0.utf8)] } ?? []
    return try recorded(.block, facts) { () throws(CommandError) in
      try person.block(until: until)
    }
  }

  func unblock() throws(CommandError) -> Bool {
    let isDone = { (lifted: Bool) in lifted }
    return try recorded(.unblock, isDone: isDone) { () throws(CommandError) in
      try person.unblock()
    }
  }

  func resynchronize(by codes: CodePair, named name: Label?, _ id: UInt64)
    throws(CommandError) -> Resync
  {
    let isDone = { (made: Resync) in if case .done = made { true } else { false } }
    let facts = Act.named(name.map { [$0] } ?? [])
    return try recorded(.resync, facts, isDone: isDone) { () throws(CommandError) in
      try person.resynchronize(by: codes, named: name, id)
    }
  }

  func restore(_ suspension: Suspension, _ id: UInt64) throws(CommandError) {
    let facts = suspension.since.internetText.map { [Act.Fact("since", $0.utf8)] } ?? []
    try recorded(.restore, facts) { () throws(CommandError) in try person.restore(suspension, id) }
  }

  private func recorded<Value>(
    _ verb: Act.Verb, _ facts: [Act.Fact] = [], isDone: (Value) -> Bool = { _ in true },
    _ body: () throws(CommandError) -> Value
  ) throws(CommandError) -> Value {
    let facts = facts + (isInFleet ? [Act.Fact("place", "fleet".utf8)] : [])
    return try recorder.record(verb, for: account.name, facts, isDone: isDone, body)
  }
}
