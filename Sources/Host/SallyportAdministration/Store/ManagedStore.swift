import OneTimePassword
package import SallyportCore
package import SallyportLogin
package import SallyportSystem

/// A store whose people root manages: the files of a machine, or the database of a fleet. It says
/// how a record is read and exchanged; what each verb of root does to one stands here, once.
package protocol ManagedStore: EnrollmentStore {
  /// As `transact`, where less may count as used afterwards.
  func exchange<Verdict>(
    _ record: Record, _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict>
  /// Ends the enrollment of this id; false where the account is not enrolled by it.
  func end(_ account: Account, id: UInt64) throws(StoreTrouble) -> Bool
  /// nil: the policy's level applies.
  func setLevel(_ level: UserNote.Level?, of account: Account) throws(StoreTrouble)
}

// Each changes the enrollment of this id alone. nil and false: the account is not enrolled by it,
// and nothing was changed.
extension ManagedStore {
  /// Forgets wrong codes, so that the next code is checked at once.
  package func unlock(_ account: Account, id: UInt64) throws(StoreTrouble) -> Bool {
    try settled(account, id) { (record) throws(StoreTrouble) in
      try transact(record, asKnown: true) { (_, state) throws(StoreTrouble) in ((), state.unlocked)
      }
    } != nil
  }

  /// Forgets from where the user is not asked for a code.
  package func forget(_ account: Account, id: UInt64) throws(StoreTrouble) -> [RememberedOrigin]? {
    try settled(account, id) { (record) throws(StoreTrouble) in
      try transact(record, asKnown: true) { (_, state) throws(StoreTrouble) in
        var next = state
        next.forgetRemembered()
        return (state.remembered, next)
      }
    }
  }

  /// Synchronizes an authenticator by two codes, the one of this name or the one that they match.
  /// Where that is done, the user is asked for a code again everywhere.
  package func resynchronize(
    _ account: Account, id: UInt64, by codes: CodePair, named name: Label?, under policy: Policy,
    at now: () throws(StoreTrouble) -> UnixTime
  ) throws(StoreTrouble) -> Resync? {
    try settled(account, id) { (record) throws(StoreTrouble) in
      try exchange(record) { (enrollment, state) throws(StoreTrouble) in
        let time = try now()
        do throws(CryptoError) {
          var (result, next) = try resync(
            by: codes, named: name, enrollment: enrollment, state: state, at: time, under: policy)
          if case .done = result { next.forgetRemembered() }
          return (result, next)
        } catch {
          throw .crypto(error)
        }
      }
    }
  }

  /// Repeats `body`, up to three times, while others change the same enrollment.
  package func settled<Value>(
    _ account: Account, _ id: UInt64,
    _ body: (Record) throws(StoreTrouble) -> Transaction<Value>
  ) throws(StoreTrouble) -> Value? {
    var path = ""
    for _ in 0..<3 {
      guard let record = try load(account), record.enrollment.id == id else { return nil }
      if case .committed(let value) = try body(record) { return value }
      path = record.path
    }
    throw .unsettled(path: path)
  }
}

extension Store: ManagedStore {
  package func exchange<Verdict>(
    _ record: Record, _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    try transact(record, asKnown: true, body)
  }

  package func end(_ account: Account, id: UInt64) throws(StoreTrouble) -> Bool {
    try settled(account, id) { (record) throws(StoreTrouble) in try remove(record) } != nil
  }

  package func setLevel(_ level: UserNote.Level?, of account: Account) throws(StoreTrouble) {
    try setLevel(level, of: account, Accounts.find)
  }
}
