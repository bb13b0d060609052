import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 to $9 the event, then what `charged` has: for what is no save.
  fileprivate static let spend = """
    WITH saved AS (SELECT 1), \(event(1)), \(charged(10)) SELECT n FROM charged
    """
}

// What a host may do a number of times a day is counted with the save itself.
extension FleetStore {
  /// Whether the host has done this as often as it may: nothing was done.
  var isUsedUp: Bool { loaded.isUsedUp.withLock { $0 } }

  /// What is thrown then.
  func usedUp() -> StoreTrouble {
    loaded.isUsedUp.withLock { $0 = true }
    return .service(path: "fleet", .notServed)
  }

  /// What is saved.
  enum Save {
    case state, decoy, both, new

    var statement: String {
      switch self {
      case .state: Statement.save
      case .decoy: Statement.saveDecoy
      case .both: Statement.saveBoth
      case .new: Statement.insert
      }
    }

    /// nil for a login's.
    var spending: String? {
      switch self {
      case .state: Statement.spendingSave
      case .decoy: nil
      case .both: Statement.spendingSaveBoth
      case .new: Statement.spendingInsert
      }
    }
  }

  /// nil: the host has done this as often as it may, and nothing was saved.
  func saved(
    _ kind: Save, at now: UnixTime, _ body: (String, [Value]) throws(DatabaseFault) -> Rows
  ) throws(DatabaseFault) -> Rows? {
    guard let spending, let statement = kind.spending else { return try body(kind.statement, []) }
    return try database.spending(spending, at: now) { (account) throws(DatabaseFault) in
      let rows = try body(statement, account.values)
      return (rows, used: rows.number(0, 3))
    }
  }

  /// Counts what is no save, with its event. Throws where nothing is left.
  func spend() throws(StoreTrouble) {
    guard let spending else { throw .service(path: "fleet", .notServed) }
    let now = try now()
    let isDone = try ask { () throws(DatabaseFault) in
      try database.spending(spending, at: now) { (account) throws(DatabaseFault) in
        let (rows, _) = try database.ask(
          Statement.spend, event.values(nil, nil, nil) + account.values)
        guard let used = rows.number(0, 0) else { throw .unusable("nothing was counted") }
        return (true, used: used)
      }
    }
    if isDone != true { throw usedUp() }
  }
}
