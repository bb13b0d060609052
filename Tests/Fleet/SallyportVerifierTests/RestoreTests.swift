import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

/// The code at a counter or a time step, with the secret of the RFCs' examples.
private func code(_ position: UInt64) throws -> String {
  let generator = try CodeGenerator(secret: try example(), algorithm: .sha1, digits: .six)
  let code = String(try generator.code(at: position))
  return String(repeating: "0", count: 6 - code.count) + code
}

/// Two verifiers that run, and what was used after a copy of the tables was made.
private final class PutBack {
  static let copied = ["enrollment", "state", "worker", "fleet"]
  let one: Verifier
  let two: Verifier
  let now = Int64(Date().timeIntervalSince1970)
  let counter: String
  let clock: String
  var step: UInt64 { UInt64(now / 30) }

  init() throws {
    let own = try OwnDatabase()
    (one, two) = (try Verifier("one", in: own), try Verifier("two", in: own))
    (counter, clock) = (try one.enroll(.hotp), try one.enroll())
    for verifier in [one, two] { try verifier.database.watch() }
  }

  func copy() throws {
    for table in Self.copied {
      _ = try one.ask("CREATE TABLE was_\(table) AS SELECT * FROM \(table)")
    }
  }

  /// By the first one. Afterwards both have said once more that they are there.
  func use() throws {
    #expect(try one.type(try code(1), as: counter).isIn)
    #expect(try one.type(try code(step), as: clock, at: now).isIn)
    #expect(
      try soon {
        let late = "SELECT count(*) FROM worker w JOIN was_worker b USING (verifier, worker, n)"
        return try one.ask(late + " WHERE worker = 0").number(0, 0) == 0
      })
  }

  func putBack(_ tables: [String]) throws {
    let there = Self.copied.filter(tables.contains)
    let gone = there.reversed().map { "DELETE FROM \($0)" }
    let back = there.map { "INSERT INTO \($0) SELECT * FROM was_\($0)" }
    // Those that refer to a table which is put back alone are looked at no more.
    for statement in ["BEGIN", "SET LOCAL session_replication_role = replica"] + gone + back
      + ["COMMIT"]
    {
      _ = try one.ask(statement)
    }
  }

  /// Whether a verifier lets in by a code that was used.
  func takesUsed(_ verifier: Verifier) -> Bool {
    let counted = try? verifier.type(code(1), as: counter).isIn
    let timed = try? verifier.type(code(step), as: clock, at: now).isIn
    return counted == true || timed == true
  }

  /// Until both answer again, after a loss: its count, and whether each has found it.
  func settle() throws -> UInt64? {
    #expect(try soon { try one.distrust() ?? 0 > 0 })
    #expect(soon { [one, two].allSatisfy { !$0.complaints.isEmpty && !$0.database.isAway } })
    // Each has said since then that it is there.
    usleep(2_500_000)
    #expect(!one.database.isAway && !two.database.isAway)
    return try one.distrust()
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `Rows that are put back under verifiers that run` {
  /// The second one has seen none of these people, and so has nothing to know them by.
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
    #expect(try one.distrust() == 1)
  }

  /// A number that was given before would trust what was saved under it then.
  @Test func `are above every number of before, with the row of the fleet among them`() throws {
    let fleet = try PutBack()
    let number = "SELECT distrust FROM fleet"
    try fleet.copy()
    try fleet.one.database.distrust()
    let first = try #require(try fleet.one.ask(number).number(0, 0))
    #expect(soon { fleet.two.database.books.withLock { $0.highest } == first })
    try fleet.putBack(["fleet"])
    #expect(try soon { try fleet.one.ask(number).number(0, 0) ?? 0 > first })
    usleep(2_500_000)
    #expect(try fleet.one.distrust() == 2)
  }

  @Test func `get numbers that grow with the time and with each other`() {
    #expect(DistrustNumber.next(after: 0, at: 1) == 1 << 20 | 1)
    #expect(DistrustNumber.next(after: 1 << 20 | 1, at: 1) == 1 << 20 | 2)
    #expect(DistrustNumber.next(after: 1 << 20 | 7, at: 0) == 1 << 20 | 8)
    #expect(DistrustNumber.next(after: 1 << 20 | 7, at: 2) == 2 << 20 | 8)
    #expect(DistrustNumber.next(after: UInt64(Int64.max), at: 1) == UInt64(Int64.max))
    #expect(DistrustNumber.next(after: 1 << 20 - 1, at: -1) == 1 << 20)
  }
}
