import Glibc
import SallyportLogin

extension Statement {
  /// What is written here may be lost with a server, and never waits for a standby.
  fileprivate static let unhurried = "SELECT set_config('synchronous_commit', 'off', false)"
}

/// The thread that writes and reads what is counted of hosts.
final class CountKeeper {
  /// In milliseconds.
  private static let pause: Int32 = 10_000

  private let database: Database
  private let limits: HostLimits
  private var line: DatabaseConnection?

  init(_ database: Database, _ limits: HostLimits) {
    (self.database, self.limits) = (database, limits)
  }

  /// A function and no closure: the optimizer makes one that never returns into another.
  @inline(never) func keep() {
    var isOver = false
    while !isOver {
      turn()
      _ = poll(nil, 0, Self.pause)
      isOver = database.losses < 0
    }
  }

  /// Nothing depends on it but how much a host may do, which is less where nothing can be read: so
  /// no login is refused because this is slow.
  func turn() {
    if database.isAway {
      line = nil
      return
    }
    do throws(DatabaseFault) {
      let line = try ownLine()
      try database.counts.exchange(by: line, as: database.verifier)
      try limits.look(by: line)
      let leftOut = database.counts.takeLeftOut()
      if leftOut > 0 {
        database.note(
          .warning, "\(leftOut) logins were not counted: there are too many hosts and outcomes")
      }
    } catch {
      line = nil
      if !database.isAway { database.note(.error, "database error: counts: \(error.text)") }
    }
  }

  private func ownLine() throws(DatabaseFault) -> DatabaseConnection {
    if let line { return line }
    let new = try database.lineForCounts()
    database.counts.forgetWritten()
    line = new
    return new
  }
}

extension Database {
  fileprivate func lineForCounts() throws(DatabaseFault) -> DatabaseConnection {
    let new = try DatabaseConnection(words, worker: 0)
    _ = try new.ask(Statement.unhurried)
    return new
  }

  /// What was counted since it was written last, when nothing is asked any more.
  package func writeCounts() {
    if isAway { return }
    do throws(DatabaseFault) {
      try counts.write(by: try lineForCounts(), as: verifier)
    } catch {
      note(.error, "database error: counts: \(error.text)")
    }
  }
}
