import SallyportCore
import SallyportSystem

/// A change to a user's enrollment and login state, in one step for logins.
struct Amendment {
  let user: String
  let users: UserOptions
  let store: Store
  /// Where the store is, for messages.
  let path: String

  /// Changes the enrollment as it is now, then the state as logins have left it, and returns the
  /// new enrollment. `id`: only while it is that enrollment, and not one that has taken its place.
  func run(
    in context: Context, of id: UInt64? = nil,
    _ change: (inout Enrollment) throws(CommandError) -> Void,
    then adjust: (inout LoginState) -> Void = { _ in }
  ) throws(CommandError) -> Enrollment {
    try context.settled(at: path) { () throws(CommandError) in
      let record = try context.record(user, users, in: store)
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
}

extension Enrollment {
  /// Where the authenticator of that name is.
  func index(of name: Label) -> Int? { authenticators.firstIndex { $0.name == name } }
}
