import SallyportCore
import SallyportSystem

/// The user that a verb is about, in a store.
struct Subject {
  /// As it was typed, or as sudo named it.
  let user: String
  let users: UserOptions
  let store: Store
  /// Where the store is, for messages.
  let path: String
  let output: Output
  let context: Context

  func account() throws(CommandError) -> Account { try context.account(user) }

  /// The enrollment, which there must be.
  func record() throws(CommandError) -> Record { try context.record(user, users, in: store) }

  /// The policy that holds for the user's login on this machine itself.
  func policy(_ options: PolicyOptions) throws(CommandError) -> Policy {
    context.policy(options, for: try account(), in: store)
  }

  /// Asks for a code of the user's, and uses it up. Throws `code` for a wrong one.
  func prove(_ prompt: String, under policy: Policy) throws(CommandError) {
    try check(under: policy).ask(prompt, for: user, users, output)
  }

  func check(under policy: Policy) -> CodeCheck {
    CodeCheck(store: store, context: context, policy: policy)
  }

  /// Changes the enrollment as it is now, then the state as logins have left it, in one step for
  /// logins, and returns the new enrollment. `id`: only while it is that enrollment, and not one
  /// that has taken its place.
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

  /// Changes the login state, as a login would.
  func transact<Value>(
    _ change: (Enrollment, LoginState) throws(StoreTrouble) -> (Value, LoginState)
  ) throws(CommandError) -> Value {
    try context.settled(at: path) { () throws(CommandError) in
      let record = try record()
      return try storing { () throws(StoreTrouble) in try store.transact(record, change) }
    }
  }
}

extension Enrollment {
  /// Where the authenticator of that name is.
  func index(of name: Label) -> Int? { authenticators.firstIndex { $0.name == name } }
}
