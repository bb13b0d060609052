import CService
import Glibc
import OneTimePassword
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 the last name of the page before, $2 how many.
  fileprivate static let versions = """
    SELECT name, version FROM state WHERE name > $1 ORDER BY name LIMIT $2::int
    """
}

// The row of one person went back, or was changed: is it hers alone? Then it concerns her alone, by
// what this verifier has seen of her. Where another one's is behind as well, rows were put back, as
// in a restore of some of them, and other people's may be, whom this verifier has not seen.
extension Database {
  /// Has the watch look at others. `user`: whose row went back, under which number of distrust;
  /// nil: it was changed otherwise.
  func suspect(_ user: (NameMark, distrust: UInt64)?) {
    books.withLock { books in
      books.isSuspicious = true
      if let user { books.wentBack[user.0] = user.distrust }
    }
    service_count_up(losses, 1)
  }

  /// How often it looks at most, in nanoseconds: it reads a whole table.
  private static let interval: UInt64 = 10_000_000_000
  /// Rows of a page.
  private static let page: UInt64 = 5000
  /// Of how many people the rows must be behind. One is what somebody who writes to the database
  /// may want to refuse; from a restore more than one come back.
  private static let least = 2

  /// Whose rows went back since the last distrust, where it is time to look; nil: it is not.
  func takeSuspicion() -> Set<NameMark>? {
    let now = sys_monotonic()
    return books.withLock { books in
      guard books.isSuspicious, now >= books.nextLook else { return nil }
      defer { (books.isSuspicious, books.wentBack) = (false, [:]) }
      books.nextLook = now + Self.interval
      return Set(books.wentBack.filter { $0.value >= books.highest }.keys)
    }
  }

  /// Compares what was seen since the last distrust with what the database has. `found`: whose rows
  /// went back, which may be newer again by now. `pause` is called now and then.
  func compareFloors(
    by line: DatabaseConnection, besides found: Set<NameMark>,
    _ pause: () throws(DatabaseFault) -> Void
  ) throws(DatabaseFault) {
    let distrust = books.withLock { $0.highest }
    // Before the first page: what is saved meanwhile is above it.
    var floors = rollbackGuard.versions(since: distrust)
    var (behind, last) = (found, [UInt8]())
    var isOver = false
    while !isOver, behind.count < Self.least {
      let rows = try line.ask(Statement.versions, [.bytes(last), .number(Self.page)])
      for row in 0..<rows.count {
        guard let name = rows.bytes(row, 0), let version = rows.number(row, 1) else { continue }
        last = name
        guard let mark = try? rollbackGuard.mark(of: name) else { continue }
        if let floor = floors.removeValue(forKey: mark), version < floor { behind.insert(mark) }
      }
      isOver = rows.count < Int(Self.page)
      try pause()
    }
    // The rows of the others are gone.
    if isOver { behind.formUnion(floors.keys) }
    guard behind.count >= Self.least else { return }
    lose("rows of several people went back", lost: distrust)
  }
}
