import SallyportAdministration
package import SallyportCore
import SallyportSystem

/// The user that a verb is about, and the store.
struct Subject {
  /// As typed, or the user who called sudo or doas; the account's own name where another spelling
  /// of it was typed, of which nothing is stored.
  var user: String
  let users: UserOptions
  let store: Store
  /// The path of the store, for messages.
  let path: String
  /// By `--store`.
  let isStoreNamed: Bool
  let output: Output
  let context: Context

  /// The name as typed, where it is another spelling of the account's own and something is stored
  /// under it: that is meant then.
  var entry: UserName?

  /// The account, under the name of what is stored.
  func account() throws(CommandError) -> Account {
    let account = try context.account(user)
    guard let entry else { return account }
    return Account(name: entry, uid: account.uid, group: account.group)
  }

  /// The user's enrollment. Throws `notEnrolled`, or `noSuchUser`, if there is none.
  func record() throws(CommandError) -> Record { try context.record(account(), users, in: store) }

  /// Whether there is an enrollment or a note under exactly this name, whatever is in it.
  func hasEntry(of name: UserName) throws(CommandError) -> Bool {
    do throws(StoreTrouble) {
      if try store.enrolledNames().contains(where: { $0.user == name }) { return true }
      return try store.note(of: name) != UserNote()
    } catch {
      if case .noStore = error { return false }
      if error.isBrokenEnrollment { return true }
      throw .store(error)
    }
  }

  /// The policy for a local login of this user.
  func policy(_ options: PolicyOptions) throws(CommandError) -> Policy {
    context.policy(options, for: try account(), in: store)
  }

  /// Asks for one of the user's codes, and uses it up. Throws `code` if it is refused. Returns what
  /// is left of that where nothing else is changed.
  @discardableResult
  func prove(_ prompt: String, under policy: Policy) throws(CommandError) -> Consequence {
    try check(under: policy).ask(prompt, for: account(), users, output)
  }

  func check(under policy: Policy) -> CodeCheck {
    CodeCheck(store: store, context: context, policy: policy)
  }

  /// Changes the current enrollment and then the current state, on which `adjust` is called last; a
  /// login sees both changes or neither. Returns the new enrollment. With `id`, throws if another
  /// enrollment has replaced the one with that id.
  func amend(
    _ change: EnrollmentChange, of id: UInt64? = nil,
    then adjust: (inout LoginState) -> Void = { _ in }
  ) throws(CommandError) -> Enrollment {
    try context.settled(at: path) { () throws(CommandError) in
      let record = try record()
      if let id, record.enrollment.id != id { throw .store(.unsettled(path: record.path)) }
      let changed = try self.changed(record.enrollment, by: change)
      let result = try storing { () throws(StoreTrouble) in
        try store.rewrite(record, changed) { state in
          var state = change.applied(to: state, of: changed)
          adjust(&state)
          return state
        }
      }
      switch result {
      case .committed: return .committed(changed)
      case .changed: return .changed
      }
    }
  }

  /// What `change` makes of the enrollment, or why it cannot be.
  func changed(_ enrollment: Enrollment, by change: EnrollmentChange) throws(CommandError)
    -> Enrollment
  {
    do throws(EnrollmentChange.Flaw) {
      return try change.applied(to: enrollment)
    } catch {
      throw CommandError(error, authenticators: enrollment.authenticators.count)
    }
  }

  /// Changes the login state in a transaction, as a login does.
  func transact<Value>(
    _ change: (Enrollment, LoginState) throws(StoreTrouble) -> (Value, LoginState)
  ) throws(CommandError) -> Value {
    try context.settled(at: path) { () throws(CommandError) in
      let record = try record()
      return try storing { () throws(StoreTrouble) in try store.transact(record, change) }
    }
  }
}

extension CommandError {
  /// Why a change is refused, for a user with this number of authenticators.
  package init(_ flaw: EnrollmentChange.Flaw, authenticators count: Int) {
    switch flaw {
    case .enrolled: self = .enrolledAlready(authenticators: count)
    case .noSuchAuthenticator(let name): self = .noSuchAuthenticator(name.text)
    case .lastAuthenticator: self = .lastAuthenticator
    case .nameTaken(let name): self = .nameTaken(name.text)
    case .tooManyAuthenticators: self = .tooManyAuthenticators
    }
  }
}
