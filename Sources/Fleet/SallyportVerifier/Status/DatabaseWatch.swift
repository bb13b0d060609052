import CService
import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
package import SallyportSupport
import SallyportSystem

extension Database {
  /// Looks at the database as a verifier does that begins. Throws where it cannot be used.
  package func begin() throws(DatabaseFault) {
    let connection = try DatabaseConnection(words, worker: 0)
    _ = try fleetThere(by: connection)
    try check(connection)
    // Another verifier may have found a loss meanwhile.
    _ = try fleet(by: connection)
    let left = connection.certificatesEnd.map { $0 - clock() / 1000 }
    if let text = FleetStatus.ending(of: left) { alert(text) }
    var clocks = ClockWatch()
    try lookFirst(&clocks, by: connection)
    open(connection.server)
  }

  /// The same for a command, which is no verifier: nobody waits for it.
  package func beginCommand() throws(DatabaseFault) {
    let connection = try DatabaseConnection(words, worker: 0)
    _ = try fleet(by: connection)
    open(connection.server)
  }

  /// Starts the thread that tells the others of this verifier, and looks, while the database is
  /// away, whether it is back.
  package func watch() throws(ServiceError) {
    try startThread { [self] in DatabaseWatch(self).keep() }
  }

  fileprivate func open(_ server: [UInt8]) {
    books.withLock { books in
      books.server = server
      (books.isAway, books.wasSilent) = (false, false)
    }
  }

  // MARK: another server

  /// For how long a verifier that is silent counts as one that lives, in milliseconds.
  static let lifetime: Int64 = 10_000
  /// How long a verifier that runs waits for the others, in milliseconds; and where the former
  /// server was silent: another one may still wait for its answer, and then for its connection.
  private static var patienceWithOthers: (usual: UInt64, silent: UInt64) { (3000, 10_000) }

  /// Compares what was acknowledged with what this server has, and waits until the others have done
  /// so. Where something is lost, or may be, it is written down that no code up to now counts.
  ///
  /// A verifier that was restarted without its file remembers nothing, and cannot say that nothing
  /// is lost; except where it had looked at this very server before.
  fileprivate func check(_ connection: DatabaseConnection) throws(DatabaseFault) {
    let own = try OwnRows(connection.ask(Statement.own, [.text(verifier)]))
    let (isRestarted, least, lost) = books.withLock {
      ($0.server == nil, $0.acknowledged.values.map(\.n).max() ?? 0, $0.lost(in: own.numbers))
    }
    if isRestarted, try remembers(own, by: connection), own.posted == connection.server {
      return believe(own)
    }
    if !isRestarted, let lost { try answerLoss(under: lost, by: connection) }
    believe(own)
    try post(connection, least: least)
    let (known, wasSilent) = books.withLock { ($0.highest, $0.wasSilent) }
    let running = Self.patienceWithOthers
    // Nobody waits yet for one that starts.
    let patience = isRestarted ? patienceAtStart : wasSilent ? running.silent : running.usual
    let end = sys_monotonic() + patience * 1_000_000
    func isMissing() throws(DatabaseFault) -> Bool {
      // One that starts does not know whether another one was started since it had stopped.
      let others = try others(by: connection).filter { isRestarted || $0.clock != nil }
      return !others.missing(connection.server, besides: own).isEmpty
    }
    while try isMissing(), sys_monotonic() < end { _ = poll(nil, 0, 50) }
    guard try isMissing() else { return }
    try distrust(by: connection, unlessAbove: known)
    try post(connection, least: 0)
  }

  private func believe(_ own: OwnRows) { books.withLock { $0.believe(own.numbers) } }

  private func post(_ connection: DatabaseConnection, least: UInt64) throws(DatabaseFault) {
    _ = try beat(connection, posting: true, least: least)
    _ = try noteOthers(by: connection)
  }

  /// What the others say now, which is kept for the next start.
  fileprivate func noteOthers(by connection: DatabaseConnection) throws(DatabaseFault) -> [Other] {
    defer {
      let record = books.withLock { books in
        Memory.Record(
          mark: books.acknowledged[Books.witness]?.n ?? 0, distrust: books.highest,
          others: books.others)
      }
      memory?.keep(record, of: self)
    }
    let others = try others(by: connection)
    books.withLock { books in
      books.others = Dictionary(others.map { ($0.name, $0.n) }, uniquingKeysWith: { $1 })
    }
    return others
  }

  /// The last that it does: tells the others that this verifier has stopped, with nothing asked
  /// any more. So they know that nothing was acknowledged to it that another server may lack.
  package func leave() {
    books.withLock { $0.leaving = .asked }
    service_count_up(losses, 1)
    let end = sys_monotonic() + UInt64(Self.patience) * 1_000_000
    while books.withLock({ $0.leaving != .done }), sys_monotonic() < end { _ = poll(nil, 0, 5) }
  }

  /// Tells the others of this verifier, and what the database's clock said, in milliseconds.
  fileprivate func beat(
    _ connection: DatabaseConnection, posting: Bool = false, least: UInt64 = 0,
    isLast: Bool = false
  ) throws(DatabaseFault) -> Int64 {
    let mine: Value = isLast ? .null : .number(UInt64(clamping: clock()))
    let posted: Value = posting ? .text(connection.server) : .null
    // Saves do not raise it, so that few of its numbers are not written down.
    let (before, mark) = books.withLock {
      ($0.highest, posting ? $0.acknowledged[Books.witness]?.n ?? 0 : 0)
    }
    let rows = try connection.ask(
      Statement.beat,
      values(of: connection) + [
        mine, posted, .number(least), .number(Schema.number), .number(mark), .text(policy.told),
      ])
    guard let time = rows.number(0, 0), let n = rows.number(0, 1), let seen = rows.number(0, 2)
    else { throw .broken("an unrecognized answer") }
    _ = fleet(rows, 0, from: 3, since: before)
    noteStranger(by: n)
    guard isKnown(rows.bytes(0, 8)) else {
      lose("the database is another one")
      throw .away
    }
    let isWhole = books.withLock { books in
      // Both, and not the second one only if the first is whole.
      let has = [books.acknowledge(n, to: 0), books.acknowledge(seen, to: Books.witness)]
      return has == [true, true]
    }
    guard isWhole else {
      lose("rows of the database went back")
      throw .away
    }
    return Int64(clamping: time)
  }

  /// Two that have one name take each other's rows for their own, so that neither sees what was
  /// lost. Once alone it may have been an answer that did not come.
  private func noteStranger(by n: UInt64) {
    let times = books.withLock { books in
      let isOwn = books.acknowledged[0].map { n <= $0.n + 1 } ?? true
      books.strangers = isOwn ? 0 : books.strangers + 1
      return books.strangers
    }
    guard times % 30 == 3 else { return }
    alert(
      "another verifier has the name \(String(decoding: verifier, as: UTF8.self)): names must "
        + "differ (run --name)")
  }

  /// Compares the clocks; where this one is off, logins are refused from now on.
  func look(_ clocks: inout ClockWatch, by connection: DatabaseConnection)
    throws(DatabaseFault)
  {
    let before = ClockWatch.Reading(clock)
    let time = try beat(connection)
    let took = Int64(clamping: (sys_monotonic() - before.running) / 1_000_000)
    let mine = ClockWatch.offset(before.time, tookUntil: before.time + took, from: time)
    let others = try noteOthers(by: connection).filter(\.isAlive)
    let offsets = others.compactMap { other in other.clock.map { $0 - other.time } }
    clocks.look(self, mine, offsets, at: before)
    try lookForPolicy(by: connection)
  }

  /// The first beat after a check. It compares the others' rows with what the check has found: else
  /// nobody would see what went back between the two, of those who have stopped.
  fileprivate func lookFirst(_ clocks: inout ClockWatch, by connection: DatabaseConnection)
    throws(DatabaseFault)
  {
    let before = books.withLock { $0.seen }
    try look(&clocks, by: connection)
    let wentBack = books.withLock { books in
      books.seen.values.contains { other in before[other.name].map(other.isBehind) ?? false }
    }
    guard wentBack else { return }
    alert("rows of the database went back while it was checked")
    try distrust(by: connection)
  }

  func others(by connection: DatabaseConnection) throws(DatabaseFault) -> [Other] {
    let rows = try connection.ask(Statement.others, [.text(verifier)])
    // Nobody else's name is one of a verifier.
    let others = (0..<rows.count).map { Other(rows, $0) }.filter { Label($0.name) != nil }
    books.withLock { books in
      books.seen = Dictionary(others.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
    }
    return others
  }
}

/// What the database has of what was acknowledged to this verifier.
struct OwnRows {
  var numbers: [Int: UInt64] = [:]
  /// The server that it had checked; nil: there is no row.
  var posted: [UInt8]?
  var time: Int64 = 0

  init(_ rows: Rows) {
    for row in 0..<rows.count {
      guard let worker = rows.int(row, 0), let n = rows.number(row, 1) else { continue }
      numbers[worker] = n
      guard worker == 0 else { continue }
      posted = rows.bytes(row, 2)
      time = Int64(clamping: rows.number(row, 3) ?? 0)
    }
  }
}

extension [Other] {
  /// Who has not looked at this server yet, and was there until the former one was lost.
  fileprivate func missing(_ server: [UInt8], besides own: OwnRows) -> [Other] {
    let late = filter { $0.posted != server }
    let newest = late.reduce(own.time) { Swift.max($0, $1.time) }
    return late.filter { $0.time >= newest - Database.lifetime }
  }
}

/// The thread that keeps an eye on the database: one connection, worker 0.
private final class DatabaseWatch {
  private let database: Database
  private var connection: DatabaseConnection?
  /// One whose save is not acknowledged, but may be. It waits at the server: each that were given
  /// up would leave one more there.
  private var waiting: DatabaseConnection?
  private var turns = 0
  private var clocks = ClockWatch()

  init(_ database: Database) { self.database = database }

  /// A function and no closure: the optimizer makes one that never returns into another.
  @inline(never) func keep() {
    var isOver = false
    while !isOver {
      if database.books.withLock({ $0.leaving == .asked }) { leave() } else { turn() }
      isOver = database.books.withLock { $0.leaving == .done }
    }
  }

  private func turn() {
    if database.books.withLock({ $0.isAway }) {
      if !restore() { _ = poll(nil, 0, 200) }
      return
    }
    var loss = pollfd(fd: database.losses, events: Int16(POLLIN), revents: 0)
    // SAFETY: filled within the call.
    if unsafe poll(&loss, 1, Database.patience) > 0 { service_count_down(database.losses) }
    if database.books.withLock({ !$0.isAway }) { beat() }
    if database.books.withLock({ !$0.isAway }), let found = database.takeSuspicion() {
      compare(besides: found)
    }
  }

  private func leave() {
    if database.books.withLock({ !$0.isAway }) {
      asking { (connection) throws(DatabaseFault) in
        _ = try database.beat(connection, isLast: true)
        _ = try database.noteOthers(by: connection)
      }
    }
    database.books.withLock { $0.leaving = .done }
  }

  /// Beats meanwhile, so that the others do not take this verifier for silent.
  private func compare(besides found: Set<NameMark>) {
    var last = sys_monotonic()
    asking { (connection) throws(DatabaseFault) in
      try database.compareFloors(by: connection, besides: found) { () throws(DatabaseFault) in
        if database.isAway { throw .away }
        guard sys_monotonic() - last > 2_000_000_000 else { return }
        last = sys_monotonic()
        try database.look(&clocks, by: connection)
      }
    }
  }

  private func beat() {
    asking { (connection) throws(DatabaseFault) in try database.look(&clocks, by: connection) }
  }

  private func asking(_ body: (DatabaseConnection) throws(DatabaseFault) -> Void) {
    do throws(DatabaseFault) {
      let connection = try ownConnection()
      guard database.books.withLock({ $0.server == connection.server }) else {
        return database.lose("the database server changed or restarted")
      }
      try body(connection)
    } catch {
      if error == .silent {
        waiting = connection
        database.books.withLock { $0.wasSilent = true }
      }
      connection = nil
      if case .refused = error { return database.alert("the database: \(error.text)") }
      if case .broken = error { return }
      database.lose("the database cannot be asked: \(error.text)")
    }
  }

  private func ownConnection() throws(DatabaseFault) -> DatabaseConnection {
    if let connection { return connection }
    let new = try DatabaseConnection(database.words, worker: 0)
    connection = new
    return new
  }

  /// Whether a save is acknowledged: behind a standby that is gone, reading works and says nothing.
  private func restore() -> Bool {
    turns += 1
    connection = nil
    do throws(DatabaseFault) {
      guard let connection = try candidate() else { return false }
      self.connection = connection
      _ = try database.fleetThere(by: connection)
      if database.books.withLock({ $0.server != connection.server || $0.lost != nil }) {
        try database.check(connection)
        _ = try database.fleet(by: connection)
      }
      // Its beat is a save that has to be acknowledged.
      try database.lookFirst(&clocks, by: connection)
      database.open(connection.server)
      database.note(.notice, LogLine("the database answers again"))
      return true
    } catch {
      if error == .silent { waiting = connection }
      connection = nil
      return false
    }
  }

  /// A connection on which something can be asked; nil: the one that waits goes on.
  private func candidate() throws(DatabaseFault) -> DatabaseConnection? {
    guard let old = waiting else { return try DatabaseConnection(database.words, worker: 0) }
    do throws(DatabaseFault) {
      _ = try old.wait(300)
      waiting = nil
      return old
    } catch {
      guard error == .silent else {
        waiting = nil
        return try DatabaseConnection(database.words, worker: 0)
      }
    }
    // Now and then: there may be another server by now, while this one is cut off.
    guard turns % 4 == 0 else { return nil }
    let other = try DatabaseConnection(database.words, worker: 0)
    guard other.server != old.server else { return nil }
    waiting = nil
    return other
  }
}
