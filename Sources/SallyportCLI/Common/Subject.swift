import SallyportCore
import SallyportSystem

/// The user that a verb is about, and the store.
struct Subject {
  /// As typed, or the user who called sudo or doas.
  let user: String
  let users: UserOptions
  let store: Store
  /// The path of the store, for messages.
  let path: String
  let output: Output
  let context: Context

  func account() throws(CommandError) -> Account { try context.account(user) }

  /// The user's enrollment. Throws `notEnrolled`, or `noSuchUser`, if there is none.
  func record() throws(CommandError) -> Record { try context.record(user, users, in: store) }

  /// The policy for a local login of this user.
  func policy(_ options: PolicyOptions) throws(CommandError) -> Policy {
    context.policy(options, for: try account(), in: store)
  }

  /// Asks for one of the user's codes, and uses it up. Throws `code` if it is refused.
  func prove(_ prompt: String, under policy: Policy) throws(CommandError) {
    try check(under: policy).ask(prompt, for: user, users, output)
  }

  func check(under policy: Policy) -> CodeCheck {
    CodeCheck(store: store, context: context, policy: policy)
  }

  /// Changes the current enrollment and then the current state; a login sees both changes or
  /// neither. Returns the new enrollment. With `id`, throws if another enrollment has replaced the
  /// one with that id.
  func amend(
    of id: UInt64? = nil,
    _ change: (inout Enrollment) throws(CommandError) -> Void,
    then adjust: (inout LoginState) -> Void = { _ in }
  ) throws(CommandError) -> Enrollment {
    try context.settled(at: path) { () throws(CommandError) in
      let record = try record()
      if let id, record.enrollment.id != id { throw .store(.unsettled(path: record.path)) }
      var enrollment = record.enrollment
      try change(&enrollment)
      let changed = enrollment
      let result = try storing { () throws(StoreTrouble) in
        try store.rewrite(record, changed) { state in
          var state = state
          state.reconcile(with: changed)
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
