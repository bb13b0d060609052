import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// A person whose record is in the files of this machine, or in those that `--store` names.
struct LocalPerson: Person {
  let account: Account
  let login: LoginContext
  let context: Context
  let store: Store
  /// Whether the account need not be there.
  let allowMissing: Bool

  var isInFleet: Bool { false }
  var changedMeanwhile: CommandError { .store(.unsettled(path: store.users.text)) }

  var absence: CommandError {
    account.uid == nil && !allowMissing ? .noSuchUser : .notEnrolled
  }

  func failed(_ error: CommandError) -> CommandError { error }

  func authority() -> any CodeAuthority {
    RecordAuthority(store: store, now: context.now, isRoots: true)
  }
  func error(for trouble: StoreTrouble) -> CommandError { .store(trouble) }

  func found() throws(CommandError) -> PendingLogin? {
    try ask { (authority) throws(StoreTrouble) in try authority.enrolled(account, in: login) }
  }

  func clockOffset(of typed: Secret) throws(CommandError) -> (seconds: Int64, isToken: Bool)? {
    let now = try context.time()
    guard let enrollment = try load()?.enrollment else { return nil }
    return try computing { () throws(CryptoError) in
      guard case .code(let code, let digits) = try Response.classify(typed, for: enrollment) else {
        return nil
      }
      for authenticator in enrollment.authenticators
      where authenticator.parameters.digits == digits {
        if let offset = try authenticator.clockOffset(of: code, at: now) {
          return (offset, authenticator.clockOffset != nil)
        }
      }
      return nil
    }
  }

  private func load() throws(CommandError) -> Record? {
    try storing { () throws(StoreTrouble) in try store.load(account) }
  }

  // MARK: root's changes

  func existing(force: Bool) throws(CommandError) -> ExistingEnrollment {
    try ExistingEnrollment(of: account, in: store, force: force)
  }

  /// Where there is no store yet, it is made with the enrollment. No login has begun.
  func rehearse() throws(CommandError) {
    do throws(StoreTrouble) {
      try store.rehearse()
    } catch {
      guard case .noStore = error else { throw .store(error) }
    }
    store.removeEnded(of: account, at: try context.time())
  }

  func enroll(_ enrollment: Enrollment, replacing: Bool, isCodeShown: Bool) throws(CommandError) {
    try rethrow(
      { () throws(EnrollmentChange.Flaw) in try enrollment.checkSecrets() },
      as: { CommandError($0, authenticators: enrollment.authenticators.count) })
    try storing { () throws(StoreTrouble) in try context.prepare(store) }
    if replacing {
      try storing { () throws(StoreTrouble) in
        try store.replace(enrollment, LoginState(initialFor: enrollment))
      }
      return store.removeEnded(of: account, at: try context.time())
    }
    // Not as a login does, which enrolls nobody who is blocked: root may, and the block stays.
    do throws(StoreTrouble) {
      try store.create(enrollment, LoginState(initialFor: enrollment))
    } catch {
      guard case .exists = error else { throw .store(error) }
      throw .enrolledMeanwhile(isCodeShown: isCodeShown)
    }
  }

  func block(until: UnixTime?) throws(CommandError) -> Bool {
    try storing { () throws(StoreTrouble) in
      try context.prepare(store)
      return try store.block(account, until: until, at: context.now()) == .done
    }
  }

  func unblock() throws(CommandError) -> Bool {
    try storing { () throws(StoreTrouble) in
      try store.unblock(account, at: context.now(), Accounts.find) == .done
    }
  }

  func set(_ level: UserNote.Level?, of owner: Account) throws(CommandError) {
    try noting { () throws(StoreTrouble) in
      try context.prepare(store)
      try store.setLevel(level, of: owner)
    }
  }

  func enrolledRecord() throws(CommandError) -> (enrollment: Enrollment, state: LoginState) {
    guard let record = try load() else { throw absence }
    return (record.enrollment, record.state)
  }

  func record() throws(CommandError) -> PersonRecord {
    let note = UserNote(level: try level())
    do throws(CommandError) {
      return PersonRecord(.success(try enrolledRecord()), note, logins: 0)
    } catch {
      guard case .notEnrolled = error.cause else {
        return PersonRecord(.failure(error), note, logins: 0)
      }
      let (kept, logins, begun) = try noting { () throws(StoreTrouble) in
        (
          try store.note(of: account.name), try store.loginsCounted(of: account),
          try store.enrollingBegun(by: account)
        )
      }
      return PersonRecord(.failure(error), note, kept: kept, logins: logins, begun: begun)
    }
  }

  func level() throws(CommandError) -> UserNote.Level? {
    try context.level(of: account, in: store)
  }

  func unlock(_ id: UInt64) throws(CommandError) {
    try change { () throws(StoreTrouble) in try store.unlock(account, id: id) ? () : nil }
  }

  func end(_ id: UInt64) throws(CommandError) {
    try change { () throws(StoreTrouble) in try store.end(account, id: id) ? () : nil }
  }

  func forget(_ id: UInt64) throws(CommandError) -> [RememberedOrigin]? {
    try change { () throws(StoreTrouble) in try store.forget(account, id: id) }
  }

  func resynchronize(by codes: CodePair, named name: Label?, _ id: UInt64)
    throws(CommandError) -> Resync
  {
    try change { () throws(StoreTrouble) in
      try store.resynchronize(
        account, id: id, by: codes, named: name, under: policy, at: context.now)
    }
  }

  func former(_ suspension: Suspension, _ id: UInt64) throws(CommandError) -> Enrollment {
    let now = try context.time()
    return try change { () throws(StoreTrouble) in
      try store.former(suspension, of: account, id: id, at: now)
    }
  }

  func restore(_ suspension: Suspension, _ id: UInt64) throws(CommandError) {
    let now = try context.time()
    try change { () throws(StoreTrouble) in
      try store.restore(suspension, of: account, id: id, at: now)
    }
  }

  /// nil: the enrollment is another one by now, or gone.
  func change<Value>(_ body: () throws(StoreTrouble) -> Value?) throws(CommandError) -> Value {
    guard let value = try storing(body) else {
      _ = try enrolled()
      throw changedMeanwhile
    }
    return value
  }
}

/// Runs `step`, whose errors are about a user's note.
func noting<Value>(_ step: () throws(StoreTrouble) -> Value) throws(CommandError) -> Value {
  try rethrow(step) { CommandError(note: $0) }
}
