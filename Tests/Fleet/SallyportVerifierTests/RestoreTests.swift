import CService
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

/// The code at a counter or a time step, with the secret of the RFCs' examples.
func code(_ position: UInt64) throws -> String {
  let generator = try CodeGenerator(secret: try example(), algorithm: .sha1, digits: .six)
  let code = String(try generator.code(at: position))
  return String(repeating: "0", count: 6 - code.count) + code
}

// Tables as they were, to be put back in the same server.
extension Verifier {
  static let copied = ["enrollment", "state", "worker", "fleet"]

  func copyTables() throws {
    for table in Self.copied {
      _ = try ask("DROP TABLE IF EXISTS was_\(table)")
      _ = try ask("CREATE TABLE was_\(table) AS SELECT * FROM \(table)")
    }
  }

  /// Says once that it is there, as a verifier does every two seconds.
  func beat() throws {
    var clocks = ClockWatch()
    try database.look(&clocks, by: DatabaseConnection(database.words, worker: 0))
  }

  func putBack(_ tables: [String]) throws {
    let there = Self.copied.filter(tables.contains)
    let gone = there.reversed().map { "DELETE FROM \($0)" }
    let back = there.map { "INSERT INTO \($0) SELECT * FROM was_\($0)" }
    // Those that refer to a table which is put back alone are looked at no more.
    for statement in ["BEGIN", "SET LOCAL session_replication_role = replica"] + gone + back
      + ["COMMIT"]
    {
      _ = try ask(statement)
    }
  }
}

/// Two verifiers that run, and what was used after a copy of the tables was made.
private final class PutBack {
  static let copied = Verifier.copied
  let one: Verifier
  let two: Verifier
  let now = Int64(Date().timeIntervalSince1970)
  let counter: String
  let clock: String
  var step: UInt64 { UInt64(now / 30) }

  let own: OwnDatabase

  init() throws {
    own = try OwnDatabase()
    (one, two) = (try Verifier("one", in: own), try Verifier("two", in: own))
    (counter, clock) = (try one.enroll(.hotp), try one.enroll())
    for verifier in [one, two] { try verifier.database.watch() }
  }

  func copy() throws { try one.copyTables() }

  /// By the first one. Afterwards both have said once more that they are there.
  func use() throws {
    #expect(try one.type(try code(1), as: counter).isIn)
    #expect(try one.type(try code(step), as: clock, at: now).isIn)
    try beat()
  }

  /// Has both say now that they are there, which they do every two seconds.
  func beat() throws {
    func numbers() throws -> [UInt64] {
      let rows = try one.ask("SELECT n FROM worker WHERE worker = 0 ORDER BY verifier")
      return (0..<rows.count).compactMap { rows.number($0, 0) }
    }
    let before = try numbers()
    for verifier in [one, two] { service_count_up(verifier.database.losses, 1) }
    #expect(try soon { try zip(numbers(), before).allSatisfy { $0 != $1 } })
  }

  func putBack(_ tables: [String]) throws { try one.putBack(tables) }

  /// Whether a verifier lets in by a code that was used.
  func takesUsed(_ verifier: Verifier) -> Bool {
    let counted = try? verifier.type(code(1), as: counter).isIn
    let timed = try? verifier.type(code(step), as: clock, at: now).isIn
    return counted == true || timed == true
  }

  /// Until both answer again, after a loss: its count, and whether each has found it.
  func settle() throws -> UInt64? {
    try beat()
    #expect(try soon { try one.distrust() ?? 0 > 0 })
    #expect(soon { [one, two].allSatisfy { !$0.complaints.isEmpty && !$0.database.isAway } })
    try beat()
    #expect(!one.database.isAway && !two.database.isAway)
    return try one.distrust()
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `Rows that are put back under verifiers that run` {
  /// The second one has seen none of these people, and so has nothing to know them by.
  // shows: db-restore
  @Test(arguments: [
    PutBack.copied, ["enrollment", "state"], ["state"], ["worker"], ["worker", "state", "fleet"],
  ])
  func `are found, make no used code good, and end codes once`(_ tables: [String]) throws {
    let fleet = try PutBack()
    let (one, two) = (fleet.one, fleet.two)
    try fleet.copy()
    try fleet.use()
    try fleet.putBack(tables)
    #expect(!fleet.takesUsed(two))
    #expect(try fleet.settle() == 1)
    #expect(!fleet.takesUsed(two) && !fleet.takesUsed(one))
    #expect(one.database.holdsBackupCodes && two.database.holdsBackupCodes)
    // Nobody is locked out: HOTP goes on after ten counters, an app after five minutes.
    #expect(try (11...14).contains { try two.type(code($0), as: fleet.counter).isIn })
    for (verifier, later) in [(two, 400), (one, 460)] as [(Verifier, Int64)] {
      let time = fleet.now + later
      #expect(try verifier.type(code(UInt64(time / 30)), as: fleet.clock, at: time).isIn)
    }
    // What they had seen of them before says nothing of others any more.
    #expect(soon { [one, two].allSatisfy { $0.database.books.withLock { !$0.isSuspicious } } })
    #expect(try one.distrust() == 1)
  }

  /// Her device went on for one of them: so it was ten further at the next.
  @Test func `end ten codes of a counter for each of two losses`() throws {
    let fleet = try PutBack()
    try fleet.copy()
    try fleet.use()
    try fleet.putBack(PutBack.copied)
    #expect(try fleet.settle() == 1)
    #expect(try fleet.one.type(code(11), as: fleet.counter).isIn)
    try fleet.beat()
    try fleet.putBack(PutBack.copied)
    #expect(try soon { try fleet.one.distrust() == 2 })
    #expect(soon { [fleet.one, fleet.two].allSatisfy { !$0.database.isAway } })
    // One that has seen nothing of her.
    let third = try Verifier("three", in: fleet.own)
    for counter in [11, 12, 19] as [UInt64] {
      #expect(try !third.type(code(counter), as: fleet.counter).isIn)
    }
    #expect(try (20...23).contains { try third.type(code($0), as: fleet.counter).isIn })
    #expect(DistrustNumber.losses(from: 7 << 20 | 3, to: 9 << 20 | 5) == 2)
    #expect(DistrustNumber.losses(from: 7 << 20 | 3, to: 7 << 20 | 3) == 0)
    // Whatever somebody has written there.
    #expect(DistrustNumber.losses(from: 7 << 20 | 3, to: 9 << 20 | 1) == 1)
  }

  /// What a verifier has seen before the loss ends nothing a second time, however late she comes.
  @Test func `end her codes once, also where both have seen her`() throws {
    let fleet = try PutBack()
    let both = [fleet.one, fleet.two]
    let stranger = "user-\(UUID().uuidString)"
    func count(_ verifier: Verifier) throws {
      let name = try #require(UserName(Array(stranger.utf8)))
      _ = try verifier.store(for: stranger).countLogin(of: Account(name: name, uid: 1000))
    }
    #expect(try fleet.one.type(code(0), as: fleet.counter).isIn)
    try count(fleet.one)
    try fleet.copy()
    try fleet.use()
    for (verifier, times) in [(fleet.one, 1), (fleet.two, 3)] {
      for _ in 0..<times { try count(verifier) }
    }
    #expect(try fleet.two.type(code(2), as: fleet.counter).isIn)
    #expect(try fleet.two.type(code(fleet.step + 1), as: fleet.clock, at: fleet.now + 30).isIn)
    try fleet.beat()
    try fleet.putBack(PutBack.copied)
    #expect(try fleet.settle() == 1)
    for (verifier, later) in zip(both, [10_800, 10_860] as [Int64]) {
      let time = fleet.now + later
      #expect(try verifier.type(code(UInt64(time / 30)), as: fleet.clock, at: time).isIn)
    }
    #expect(try fleet.one.type(code(11), as: fleet.counter).isIn)
    #expect(try fleet.two.type(code(12), as: fleet.counter).isIn)
    for _ in 0..<2 { for verifier in both { try count(verifier) } }
    #expect(!both.contains { $0.complaints.contains { $0.contains("older than one that was") } })
    #expect(try fleet.one.distrust() == 1)
  }

  @Test func `concern her alone where the loss was found since they were seen`() throws {
    let one = try Verifier("one", in: try OwnDatabase())
    func mark(_ name: String) throws -> NameMark {
      try one.database.rollbackGuard.mark(of: Array(name.utf8))
    }
    let number = one.database.books.withLock { $0.highest }
    one.database.suspect((try mark("alice"), number))
    try one.database.distrust()
    _ = try one.database.beginCommand()
    one.database.suspect((try mark("bob"), one.database.books.withLock { $0.highest }))
    #expect(try one.database.takeSuspicion() == [mark("bob")])
  }

  /// Of two questions the one that was asked first may be read last.
  @Test func `are those of the latest row of the fleet that was seen`() throws {
    let one = try Verifier("one", in: try OwnDatabase())
    let before = one.database.books.withLock { $0.highest }
    let (rows, _) = try one.database.ask(
      Statement.load, [.bytes(Array("alice".utf8)), .bytes(Array("bob".utf8))])
    #expect(one.database.fleet(rows, 0, from: 4, since: before)?.distrust == before)
    try one.database.distrust()
    let now = one.database.books.withLock { $0.highest }
    #expect(now > before)
    #expect(one.database.fleet(rows, 0, from: 4, since: before)?.distrust == now)
    #expect(one.database.fleet(rows, 0, from: 4, since: now) == nil)
  }

  // shows: db-restore
  @Test func `concern one person where no other row went back, and all where another did`() throws {
    let fleet = try PutBack()
    let (one, two) = (fleet.one, fleet.two)
    try fleet.copy()
    try fleet.use()
    func putBack(_ name: String) throws {
      _ = try one.ask(
        "UPDATE state s SET body = w.body, version = w.version FROM was_state w"
          + " WHERE s.name = w.name AND s.name = $1", [.bytes(Array(name.utf8))])
    }
    try putBack(fleet.counter)
    #expect(try !one.type(code(1), as: fleet.counter).isIn)
    #expect(soon { one.database.books.withLock { !$0.isSuspicious && $0.nextLook > 0 } })
    usleep(200_000)
    #expect(try one.distrust() == 0 && !one.database.isAway)
    #expect(one.complaints.contains { $0.contains("older than one that was saved") })
    let third = try one.enroll(.hotp)
    let old = try one.row(of: third)
    #expect(try one.type(code(1), as: third).isIn)
    try putBack(fleet.clock)
    try one.putBack(old, of: third)
    one.database.books.withLock { $0.nextLook = 0 }
    // It is let in by none, and may be answered after the loss was found.
    #expect((try? one.type(code(1), as: third).isIn) != true)
    #expect(try soon { try one.distrust() == 1 })
    #expect(soon { !one.database.isAway && !two.database.isAway })
    #expect(try !two.type(code(fleet.step), as: fleet.clock, at: fleet.now).isIn)
  }

  /// A number that was given before would trust what was saved under it then.
  @Test func `are above every number of before, with the row of the fleet among them`() throws {
    let fleet = try PutBack()
    let number = "SELECT distrust FROM fleet"
    try fleet.copy()
    try fleet.one.database.distrust()
    let first = try #require(try fleet.one.ask(number).number(0, 0))
    try fleet.beat()
    #expect(soon { fleet.two.database.books.withLock { $0.highest } == first })
    try fleet.putBack(["fleet"])
    #expect(try fleet.settle() == 2)
    #expect(try fleet.one.ask(number).number(0, 0) ?? 0 > first)
  }

  /// By a clock that was ahead. Else each login of who was saved under it would end codes again.
  @Test func `are above the number of a state that was saved under a later one`() throws {
    let fleet = try PutBack()
    let later = DistrustNumber.next(after: 0, at: fleet.now + 86_400)
    fleet.one.database.lose("a test", lost: later)
    #expect(soon { !fleet.one.database.isAway })
    #expect(try fleet.one.ask("SELECT distrust FROM fleet").number(0, 0) ?? 0 > later)
  }

  @Test func `get numbers that grow with the time and with each other`() {
    #expect(DistrustNumber.next(after: 0, at: 1) == 1 << 20 | 1)
    #expect(DistrustNumber.next(after: 1 << 20 | 1, at: 1) == 1 << 20 | 2)
    #expect(DistrustNumber.next(after: 1 << 20 | 7, at: 0) == 1 << 20 | 8)
    #expect(DistrustNumber.next(after: 1 << 20 | 7, at: 2) == 2 << 20 | 8)
    #expect(DistrustNumber.next(after: UInt64(Int64.max), at: 1) == UInt64(Int64.max))
    #expect(DistrustNumber.next(after: 1 << 20 - 1, at: -1) == 1 << 20)
  }

  /// As an administrator makes it who has only the key, or somebody without it.
  // shows: db-restore
  @Test(arguments: ["NULL", "sha256(incarnation)"])
  func `are no other database, which waits for who adopts it`(_ spoiled: String) throws {
    let (own, other) = (try OwnDatabase(), try OwnDatabase())
    let path = FileManager.default.temporaryDirectory.path + "/incarnation-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let file = IncarnationFile(at: path)
    let one = try Verifier("one", in: own, incarnation: file)
    _ = try Verifier("one", in: own, incarnation: file)
    let found = #expect(throws: DatabaseFault.self) {
      try Verifier("one", in: other, incarnation: file)
    }
    #expect(found?.text.contains("adopt-database") == true)
    // While it runs, and back again.
    try one.database.watch()
    _ = try one.ask("CREATE TABLE was_fleet AS SELECT * FROM fleet")
    for other in ["NULL", "substr(incarnation, 2)", "sha256(incarnation)"] {
      _ = try one.ask("UPDATE fleet SET incarnation = \(other)")
      service_count_up(one.database.losses, 1)
      #expect(soon { one.database.isAway })
      #expect(soon { one.complaints.last?.contains("is not this fleet's") == true })
      _ = try one.ask("UPDATE fleet SET incarnation = (SELECT incarnation FROM was_fleet)")
      #expect(soon { !one.database.isAway })
    }
    #expect(try one.distrust() == 0)
    _ = try one.ask("UPDATE fleet SET incarnation = \(spoiled)")
    service_count_up(one.database.losses, 1)
    #expect(soon { one.database.isAway })
    let command = try Database(
      own.words + " user=sallyport_verifier", key: try fleetKey(), verifier: Array("adopt".utf8),
      incarnation: file
    ) { _, _ in }
    try command.beginCommand()
    try command.adopt()
    #expect(soon { !one.database.isAway })
    #expect(try one.distrust() == 1)
  }
}
