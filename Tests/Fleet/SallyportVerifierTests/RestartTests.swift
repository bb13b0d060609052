import Foundation
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

/// A process that ends is a connection that nobody asks any more: here it is one that has not been
/// watched since it began.
@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A verifier that is started again` {
  private let own: OwnDatabase
  private let directory: TemporaryDirectory

  init() throws {
    own = try OwnDatabase()
    directory = try TemporaryDirectory()
  }

  private func start(_ name: String) throws -> Verifier {
    try Verifier(name, in: own, memory: directory.path + "/" + name)
  }

  private func record(of name: String) throws -> String {
    try String(contentsOfFile: directory.path + "/" + name, encoding: .utf8)
  }

  private func write(_ text: String, of name: String) throws {
    try text.write(toFile: directory.path + "/" + name, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o600], ofItemAtPath: directory.path + "/" + name)
  }

  /// As if the others had lived longer, or less long.
  private func age(_ name: String, by seconds: Int, _ one: Verifier) throws {
    _ = try one.ask(
      "UPDATE worker SET now = now + make_interval(secs => $1::int) WHERE verifier = $2",
      [.text(Array(String(seconds).utf8)), .text(Array(name.utf8))])
  }

  // shows: db-restore
  @Test(arguments: [Verifier.copied, ["state"], ["enrollment", "state"]])
  func `finds that rows went back meanwhile, and no code of before counts`(_ tables: [String])
    throws
  {
    let one = try start("one")
    let name = try one.enroll(.hotp)
    #expect(try one.type(code(0), as: name).isIn)
    try one.copyTables()
    // It goes on for a while, and is stopped.
    let later = try start("one")
    #expect(try later.type(code(1), as: name).isIn)
    try one.putBack(tables)
    let again = try start("one")
    #expect(again.complaints.contains { $0.contains("went back while this verifier was stopped") })
    for counter in 1...9 {
      #expect((try? again.type(code(UInt64(counter)), as: name).isIn) != true)
    }
    #expect(again.database.holdsBackupCodes)
    #expect(try start("one").distrust() == 1)
  }

  @Test func `leaves it at a distrust that root gave after the restore`() throws {
    let one = try start("one")
    try one.copyTables()
    _ = try start("one")
    try one.putBack(Verifier.copied)
    try Verifier("command", in: own).database.distrust()
    #expect(try start("one").distrust() == 1)
  }

  /// The number was raised for the restore before, which this one has not seen: so it says nothing
  /// of what another one let in since.
  @Test func `finds a second restore also where the first one was found meanwhile`() throws {
    let one = try start("one")
    let two = try start("two")
    let name = try one.enroll(.hotp)
    try one.beat()
    try one.copyTables()
    try two.beat()
    _ = try start("one")
    try one.putBack(Verifier.copied)
    let found = try start("one")
    #expect(try one.distrust() == 1)
    try age("two", by: -60, one)
    for _ in 0..<6 { try found.beat() }
    #expect(try found.type(code(10), as: name).isIn)
    try one.copyTables()
    #expect(try found.type(code(11), as: name).isIn)
    try one.putBack(Verifier.copied)
    let again = try start("two")
    #expect(try one.distrust() == 2)
    #expect(try !again.type(code(11), as: name).isIn)
    // The same of one that was cut off meanwhile.
    try one.putBack(Verifier.copied)
    try two.database.watch()
    #expect(soon { !two.complaints.isEmpty && !two.database.isAway })
    #expect(try one.distrust() == 2)
  }

  @Test func `distrusts nothing, in any order`() throws {
    let one = try start("one")
    let two = try start("two")
    try one.beat()
    #expect(try start("two").distrust() == 0)
    #expect(try start("one").distrust() == 0)
    #expect(two.complaints.isEmpty)
  }

  /// As after a restart of PostgreSQL: what was acknowledged is there.
  @Test func `takes a server that has all it has seen for whole`() throws {
    let one = try start("one")
    let two = try start("two")
    _ = try one.ask("UPDATE worker SET posted = 'before' WHERE verifier = 'one'")
    try two.database.watch()
    #expect(try start("one").distrust() == 0)
    #expect(try one.distrust() == 0)
  }

  // shows: db-restore
  @Test func `waits for the one that was there longer`() throws {
    let one = try start("one")
    let two = try start("two")
    try one.beat()
    for _ in 0..<3 { try two.beat() }
    // Whatever the database's clock says.
    try age("two", by: -60, one)
    // Nobody comes: what two has let in nobody can say.
    #expect(try start("one").distrust() == 1)
    for _ in 0..<3 { try two.beat() }
    try two.database.watch()
    #expect(try start("one").distrust() == 1)
  }

  /// The stop of the other one is one more, and says that nothing came after it.
  @Test(arguments: [3, 4] as [UInt64])
  func `begins at once where the other one was stopped in order meanwhile`(_ more: UInt64) throws {
    let one = try start("one")
    let two = try start("two")
    try one.beat()
    _ = try one.ask(
      "UPDATE worker SET n = n + $1::bigint, clock = NULL WHERE verifier = 'two'", [.number(more)])
    let again = try start("one")
    #expect(again.notices.contains { $0.contains("waiting for a verifier") } == (more > 3))
    #expect(try one.distrust() == (more > 3 ? 1 : 0))
    #expect(two.complaints.isEmpty)
  }

  /// Its first beat may have raised what was put back, before it has found that.
  @Test(arguments: [[1, 0], [1, 1]] as [[UInt64]])
  func `takes one beat of another for no word`(_ marks: [UInt64]) throws {
    let one = try start("one")
    let two = try start("two")
    try one.beat()
    for _ in 0..<3 { try two.beat() }
    let (own, path) = (own, directory.path + "/one")
    let found = Found()
    Thread.detachNewThread {
      let again = try? Verifier("one", in: own, memory: path)
      found.number.withLock { $0 = (try? again?.distrust()) ?? 99 }
    }
    // Again and again, since it is not known when it begins to look.
    for mark in marks + marks + marks {
      for statement in [
        "UPDATE worker SET n = n + 1, now = clock_timestamp() WHERE verifier = 'two'",
        "UPDATE state SET version = version + \(mark) WHERE name = '/verifier/two'",
      ] { _ = try one.ask(statement) }
      usleep(500_000)
    }
    #expect(soon { found.number.withLock { $0 != nil } })
    #expect(found.number.withLock { $0 } == (marks == [1, 1] ? 0 : 1))
  }

  private final class Found: Sendable {
    let number = Locked<UInt64?>(nil)
  }

  @Test func `finds what goes back between its check and its first beat`() throws {
    let one = try start("one")
    let two = try start("two")
    try one.beat()
    _ = try one.ask("UPDATE state SET version = version + 2 WHERE name = '/verifier/two'")
    try one.database.watch()
    one.database.lose("a test")
    #expect(soon { !one.database.isAway })
    #expect(try one.distrust() == 0)
    one.database.books.withLock { books in
      let name = Array("two".utf8)
      // As it is where the row was read before it went back.
      let mark = books.seen[name]?.mark ?? 0
      books.seen[name]?.mark = mark + 1
      books.isAway = true
    }
    #expect(soon { !one.database.isAway })
    #expect(try one.distrust() == 1)
    #expect(two.complaints.isEmpty)
  }

  @Test func `believes who is there of another server, too`() throws {
    let one = try start("one")
    let two = try start("two")
    _ = try one.ask("UPDATE worker SET posted = 'before' WHERE verifier = 'one'")
    try FileManager.default.removeItem(atPath: directory.path + "/one")
    try two.database.watch()
    #expect(try start("one").distrust() == 0)
  }

  /// As where a machine with PostgreSQL and a verifier is started again.
  @Test(arguments: [false, true])
  func `says before that it stops, and nobody waits for it over another server`(_ says: Bool)
    throws
  {
    let one = try start("one")
    let two = try start("two")
    try one.database.watch()
    if says {
      try two.database.watch()
      two.database.leave()
    }
    _ = try one.ask(
      "UPDATE worker SET posted = 'before', now = clock_timestamp() WHERE verifier = 'two'")
    one.meetAnotherServer()
    #expect(soon { !one.database.isAway })
    #expect(try one.distrust() == (says ? 0 : 1))
    #expect(try start("two").distrust() == (says ? 0 : 1))
    let silent = "SELECT count(*) FROM worker WHERE worker = 0 AND clock IS NULL"
    #expect(try one.ask(silent).number(0, 0) == 0)
  }

  @Test func `has few marks that are not written down, however many saves there were`() throws {
    let one = try start("one")
    _ = try one.enroll()
    _ = try one.ask("UPDATE worker SET n = 1000 WHERE worker > 0")
    one.database.books.withLock { $0.acknowledged[1] = Acknowledged(n: 1000, distrust: 0) }
    try one.database.watch()
    one.meetAnotherServer()
    #expect(soon { !one.database.isAway })
    let mark = try one.ask("SELECT version FROM state WHERE name = '/verifier/one'").number(0, 0)
    #expect(mark ?? .max < 100)
    #expect(try one.distrust() == 0)
  }

  /// It says nothing of the others: they are compared by the database's clock.
  @Test func `reads its record of a former version`() throws {
    let one = try start("one")
    let two = try start("two")
    for (older, distrust) in [("two", 0), ("one", 1)] as [(String, UInt64)] {
      for _ in 0..<3 { try two.beat() }
      try age(older, by: -60, one)
      let lines = try record(of: "one").split(separator: "\n").prefix { !$0.hasPrefix("other") }
      try write(lines.joined(separator: "\n") + "\n", of: "one")
      #expect(try start("one").distrust() == distrust)
    }
  }

  // shows: db-restore
  @Test(arguments: [false, true])
  func `says nothing where its own machine was put back, and asks who is there`(_ isThere: Bool)
    throws
  {
    let two = try start("two")
    let one = try start("one")
    let old = try record(of: "one")
    for _ in 0..<5 { _ = try start("one") }
    try write(old, of: "one")
    if isThere { try two.database.watch() }
    #expect(try start("one").distrust() == (isThere ? 0 : 1))
    #expect(try one.distrust() == (isThere ? 0 : 1))
  }

  @Test(arguments: ["", "mark = 1\n", "# Kept by sallyport-verifier(8)\nmark = 1\ndistrust = 0\n"])
  func `takes a damaged record for none`(_ text: String) throws {
    _ = try start("one")
    try write(text, of: "one")
    #expect(try start("one").distrust() == 1)
    #expect(try start("one").distrust() == 1)
  }

  @Test func `needs no record where it is new, or was of the former version until now`() throws {
    let one = try start("one")
    _ = try one.ask("DELETE FROM state WHERE name = '/verifier/one'")
    try FileManager.default.removeItem(atPath: directory.path + "/one")
    #expect(try start("one").distrust() == 0)
    #expect(try start("two").distrust() == 0)
  }
}
