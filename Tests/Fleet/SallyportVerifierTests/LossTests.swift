import FleetProtocol
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

/// Until it holds, for at most 30 seconds, or as many twentieths of one.
func soon(within most: Int = 600, _ holds: () throws -> Bool) rethrows -> Bool {
  for _ in 0..<most {
    if try holds() { return true }
    usleep(50_000)
  }
  return try holds()
}

extension Verifier {
  /// How often codes were ended.
  func distrust() throws -> UInt64? {
    try ask("SELECT distrust FROM fleet").number(0, 0).map { $0 & DistrustNumber.count }
  }

  /// As if it had connected to another server.
  func meetAnotherServer() {
    database.books.withLock { $0.server = Array("another".utf8) }
    database.lose("a test")
  }

  func row(of name: String) throws -> (body: [UInt8], version: UInt64) {
    let rows = try ask(
      "SELECT body, version FROM state WHERE name = $1", [.bytes(Array(name.utf8))])
    return (try #require(rows.bytes(0, 0)), try #require(rows.number(0, 1)))
  }

  func putBack(_ row: (body: [UInt8], version: UInt64), of name: String) throws {
    _ = try ask(
      "UPDATE state SET body = $2, version = $3 WHERE name = $1",
      [.bytes(Array(name.utf8)), .bytes(row.body), .number(row.version)])
  }
}

extension Outcome {
  var isIn: Bool { if case .accepted = self { true } else { false } }
}

/// The codes of the counters 0 to 10 (RFC 4226, appendix D; the last by the same rule).
private let counters = [
  "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871",
  "520489", "403154",
]

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What a database has lost` {
  private let own: OwnDatabase

  init() throws { own = try OwnDatabase() }

  // MARK: another server

  @Test func `is not presumed by a verifier that is started again over the same server`() throws {
    let one = try Verifier("one", in: own)
    #expect(try Verifier("one", in: own).distrust() == 0)
    #expect(try one.distrust() == 0)
  }

  @Test func `is presumed by a verifier that is started again and finds another server`() throws {
    let one = try Verifier("one", in: own)
    _ = try one.ask("UPDATE worker SET posted = 'another'")
    #expect(try Verifier("one", in: own).distrust() == 1)
    #expect(try Verifier("one", in: own).distrust() == 1)
  }

  /// After a power cut a machine may begin with any clock: by that nobody would be let in for as
  /// long as it is ahead.
  @Test(arguments: [-86_400, 7200, 86_400] as [Int64])
  func `is dated by the clocks that verified codes, not by one that nobody has compared`(
    _ ahead: Int64
  ) throws {
    let now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
    let one = try Verifier("one", in: own)
    _ = try Verifier("two", in: own)
    _ = try one.ask("UPDATE worker SET posted = 'another' WHERE verifier = 'one'")
    let off = try Verifier("one", in: own) { (now() + ahead) * 1000 }
    #expect(try one.distrust() ?? 0 >= 1)
    let dated = try #require(try one.ask("SELECT distrusted FROM fleet").number(0, 0))
    #expect(abs(Int64(dated) - now()) <= 60)
    // Somebody who types it has to have a right clock.
    #expect(throws: DatabaseFault.self) { try off.database.distrust() }
    try one.database.distrust()
    // Whatever somebody has written there, who also has two agree.
    let inTenYears = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 315360000000"
    for clock in ["9223372036854775807", inTenYears] {
      _ = try one.ask(
        "UPDATE worker SET clock = \(clock), now = clock_timestamp() WHERE worker = 0")
      try one.database.distrust()
      _ = try one.ask("UPDATE worker SET posted = 'another' WHERE verifier = 'one'")
      _ = try Verifier("one", in: own)
      let dated = try #require(try one.ask("SELECT distrusted FROM fleet").number(0, 0))
      #expect(abs(Int64(dated) - now()) <= 60)
    }
  }

  @Test(arguments: [-7200, 86_400] as [Int64])
  func `is not dated where two clocks differ and nobody tells which is right`(_ ahead: Int64)
    throws
  {
    let now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
    let one = try Verifier("one", in: own)
    _ = try one.ask("UPDATE worker SET posted = 'another'")
    let fault = #expect(throws: DatabaseFault.self) {
      try Verifier("one", in: own) { (now() + ahead) * 1000 }
    }
    #expect(fault?.text.contains("s off the database's, and no verifier tells") == true)
    #expect(try one.distrust() == 0)
    #expect(try Verifier("one", in: own).distrust() == 1)
  }

  @Test func `is nothing where another server has all that was acknowledged`() throws {
    let one = try Verifier("one", in: own)
    try one.database.watch()
    let name = try one.enroll()
    one.meetAnotherServer()
    #expect(soon { !one.database.isAway })
    #expect(try one.distrust() == 0)
    #expect(try one.type("287082", as: name).isIn)
  }

  @Test func `is found by what was acknowledged, and no code of before counts`() throws {
    let one = try Verifier("one", in: own)
    try one.database.watch()
    let name = try one.enroll(.hotp)
    #expect(try one.type(counters[0], as: name).isIn)
    let old = try one.row(of: name)
    #expect(try one.type(counters[1], as: name).isIn)
    // Who was not there has no floor.
    let two = try Verifier("two", in: own)
    try one.putBack(old, of: name)
    _ = try one.ask("UPDATE worker SET n = 1 WHERE verifier = 'one' AND worker > 0")
    one.meetAnotherServer()
    #expect(soon { !one.database.isAway })
    #expect(try one.distrust() ?? 0 >= 1)
    #expect(try two.type(counters[1], as: name).isIn == false)
    for code in counters[2...9] { #expect(try two.type(code, as: name).isIn == false, "\(code)") }
    #expect(two.database.holdsBackupCodes)
  }

  @Test func `is presumed where a verifier does not look that was there until then`() throws {
    let one = try Verifier("one", in: own)
    _ = try Verifier("two", in: own)
    try one.database.watch()
    let three = try Verifier("three", in: own)
    try three.database.watch()
    _ = try one.ask("UPDATE worker SET posted = 'before', now = clock_timestamp()")
    for verifier in [one, three] { verifier.meetAnotherServer() }
    #expect(soon { [one, three].allSatisfy { !$0.database.isAway } })
    #expect(try one.distrust() == 1, "once, by both")
  }

  /// Its line may still hang at the one that is silent.
  @Test func `is not presumed where a verifier looks late, since the server was silent`() throws {
    let one = try Verifier("one", in: own)
    _ = try Verifier("two", in: own)
    try one.database.watch()
    _ = try one.ask("UPDATE worker SET posted = 'before', now = clock_timestamp()")
    one.database.books.withLock { $0.wasSilent = true }
    one.meetAnotherServer()
    sleep(5)
    #expect(one.database.isAway)
    _ = try one.ask(
      "UPDATE worker SET posted = (SELECT posted FROM worker WHERE verifier = 'one' AND worker = 0)"
        + " WHERE verifier = 'two'")
    #expect(soon { !one.database.isAway })
    #expect(try one.distrust() == 0)
    #expect(one.database.books.withLock { !$0.wasSilent })
  }

  @Test func `is not presumed where a verifier does not look that was switched off long ago`()
    throws
  {
    let one = try Verifier("one", in: own)
    _ = try Verifier("two", in: own)
    try one.database.watch()
    _ = try one.ask("UPDATE worker SET posted = 'before', now = clock_timestamp()")
    _ = try one.ask("UPDATE worker SET now = now - interval '1 hour' WHERE verifier = 'two'")
    one.meetAnotherServer()
    #expect(soon { !one.database.isAway })
    #expect(try one.distrust() == 0)
  }

  // MARK: one user's rows

  @Test func `is seen in the counter, however high the version has grown since`() throws {
    let (one, two) = (try Verifier("one", in: own), try Verifier("two", in: own))
    let name = try one.enroll(.hotp)
    let old = try one.row(of: name)
    #expect(try one.type(counters[0], as: name).isIn)
    #expect(try one.type(counters[1], as: name).isIn)
    try one.putBack(old, of: name)
    for _ in 0..<3 { #expect(try two.type("000000", as: name).isIn == false) }
    #expect(try one.type(counters[1], as: name).isIn == false)
    #expect(one.complaints.contains { $0.contains("older than one that was saved") })
  }

  @Test func `is seen in another state under the same version`() throws {
    let (one, two) = (try Verifier("one", in: own), try Verifier("two", in: own))
    let name = try one.enroll(.hotp)
    let old = try one.row(of: name)
    #expect(try one.type(counters[0], as: name).isIn)
    try one.putBack(old, of: name)
    #expect(try two.type("000000", as: name).isIn == false)
    #expect(throws: StoreTrouble.self) { try one.type(counters[0], as: name) }
    #expect(one.complaints.contains { $0.contains("was replaced by another one") })
  }

  @Test func `is seen in the row of the fleet, where that is an older one`() throws {
    let one = try Verifier("one", in: own)
    let name = try one.enroll()
    _ = try one.ask("CREATE TABLE before AS SELECT * FROM fleet")
    try one.database.distrust()
    #expect(try one.type("000000", as: name).isIn == false)
    _ = try one.ask(
      "UPDATE fleet f SET distrust = b.distrust, distrusted = b.distrusted, seal = b.seal"
        + " FROM before b"
    )
    let fresh = try Verifier("two", in: own)
    for verifier in [one, fresh] {
      #expect(throws: StoreTrouble.self) { try verifier.type("287082", as: name) }
    }
    #expect(fresh.complaints.contains { $0.contains("it was rolled back") })
  }

  /// It counts nothing as used that was used between the copy and the loss.
  @Test func `is given to no host's files by a copy of before`() throws {
    let one = try Verifier("one", in: own)
    let name = try one.enroll(.hotp)
    let (user, host) = (try #require(UserName(Array(name.utf8))), Array("web1".utf8))
    let store = one.store(for: name)
    func copy() throws -> MoveRequest.Tombstone? {
      guard case .copy(let moving, let version) = try store.fetch(user) else { return nil }
      return MoveRequest.Tombstone(id: moving.enrollment.id, version: version, token: 5)
    }
    let before = try #require(try copy())
    try one.database.distrust()
    #expect(try store.bury(user, before, by: host)?.person == .enrolled(before.id))
    #expect(one.database.holdsBackupCodes)
    let after = try #require(try copy())
    #expect(after.version != before.version)
    #expect(try store.bury(user, before, by: host)?.person == .enrolled(before.id))
    #expect(try store.bury(user, after, by: host) == nil)
  }

  // MARK: clocks

  @Test func `stops a verifier whose clock is off, and no other`() throws {
    let now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970 * 1000) }
    let right = try Verifier("right", in: own)
    // From its first answer on.
    let off = try Verifier("off", in: own) { now() + 60_000 }
    #expect(off.database.isAway)
    #expect(off.complaints.contains { $0.contains("logins are refused here") })
    try right.database.watch()
    try off.database.watch()
    #expect(soon { off.complaints.count > 1 })
    #expect(off.database.isAway && !right.database.isAway)
  }

  @Test func `stops nobody where the database's clock is off`() throws {
    let now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970 * 1000) - 60_000 }
    let both = [try Verifier("a", in: own, clock: now), try Verifier("b", in: own, clock: now)]
    for one in both { try one.database.watch() }
    for one in both {
      #expect(soon { one.complaints.contains { $0.contains("verifiers use their own") } })
      #expect(soon { !one.database.isAway })
    }
  }

  // shows: fleet-clock
  @Test(arguments: [3_600_000, -3_600_000] as [Int64])
  func `stops a verifier that is alone, until both are the same again`(ahead: Int64) throws {
    let clock = PlantedClock(ahead: ahead)
    let alone = try Verifier("alone", in: own, clock: clock.read)
    #expect(alone.database.isAway)
    let way = ahead > 0 ? "ahead of" : "behind"
    #expect(alone.complaints.contains { $0.contains("3600 s \(way) the database's, and no") })
    try alone.database.watch()
    clock.set(ahead: 0)
    #expect(soon { !alone.database.isAway })
  }

  @Test func `stops all where none agrees with another`() throws {
    let all = try ([-60_000, 60_000] as [Int64]).map { ahead in
      try Verifier("of \(ahead)", in: own, clock: PlantedClock(ahead: ahead).read)
    }
    for one in all { try one.database.watch() }
    #expect(!soon(within: 40) { all.contains { !$0.database.isAway } })
  }

  // decisive
  // shows: fleet-clock
  @Test func `stops a verifier whose clock was set, before anything is decided by it`() throws {
    let clock = PlantedClock(ahead: 0)
    let one = try Verifier("one", in: own, clock: clock.read)
    let name = try one.enroll(.hotp)
    clock.set(ahead: 3_600_000)
    // Nobody has compared it yet.
    #expect(throws: (any Error).self) { try one.type("755224", as: name) }
    #expect(try one.events(of: name).isEmpty)
    clock.set(ahead: 0)
    try one.database.watch()
    #expect(soon { (try? one.type("755224", as: name).isAccepted) == true })
  }

  @Test func `lets a verifier go on that was set right`() throws {
    let clock = PlantedClock(ahead: 20_000)
    let one = try Verifier("one", in: own, clock: clock.read)
    #expect(!one.database.isAway)
    try one.database.watch()
    clock.set(ahead: -20_000)
    #expect(soon { one.complaints.contains { $0.contains("was set 40 s back") } })
    #expect(soon { !one.database.isAway })
  }
}

/// A clock that can be set.
private final class PlantedClock: Sendable {
  private let ahead: Locked<Int64>

  /// Milliseconds, of the system's.
  init(ahead: Int64) { self.ahead = Locked(ahead) }

  func set(ahead new: Int64) { ahead.withLock { $0 = new } }

  @Sendable func read() -> Int64 {
    Int64(Date().timeIntervalSince1970 * 1000) + ahead.withLock { $0 }
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `Two verifiers of one name` {
  @Test func `tell that there is another one`() throws {
    let own = try OwnDatabase()
    let both = [try Verifier("one", in: own), try Verifier("one", in: own)]
    let other = try Verifier("two", in: own)
    for one in both + [other] { try one.database.watch() }
    for one in both {
      #expect(soon { one.complaints.contains { $0.contains("another verifier has the name one") } })
    }
    #expect(other.complaints.isEmpty)
  }
}

@Suite struct `What a verifier makes of clocks` {
  @Test(
    arguments: [
      (0, [0], .fine), (2000, [], .fine), (-2001, [0], .off),
      (30_000, [0], .off), (30_001, [0], .aside), (-60_000, [0, 10], .aside),
      (60_000, [], .aside), (60_000, [59_000], .databaseIsOff),
      (60_000, [0, 59_000], .databaseIsOff), (Int64.min, [Int64.max], .aside),
    ] as [(Int64, [Int64], ClockWatch.Verdict)])
  func `is what they agree on`(mine: Int64, others: [Int64], verdict: ClockWatch.Verdict) {
    #expect(ClockWatch.verdict(mine, others) == verdict)
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What a host is charged` {
  // decisive
  @Test func `is given back once, to that host, in that login, and no more`() throws {
    let limits = HostLimits(try Verifier().database, wrongCodes: 3)
    let (web1, web2, alice) = (Array("web1".utf8), Array("web2".utf8), Array("alice".utf8))
    let charge = Charge(enrollmentID: 1, isKnown: true, amount: GuessProbability(units: 5))
    let more = Charge(enrollmentID: 1, isKnown: true, amount: GuessProbability(units: 6))
    let wrong = Outcome.refused(
      .response(.wrongCode(charge), left: BudgetLeft(known: 1, other: 1)))
    let (asked, none) = (ResponseRole.last(givingBack: charge), ResponseRole.last(givingBack: nil))
    #expect(limits.believed(asked, web1, alice) == none)
    limits.note(wrong, as: .last(givingBack: nil), of: alice, on: web1, by: nil)
    #expect(limits.believed(asked, web1, alice) == none)
    limits.note(wrong, as: .firstPass, of: alice, on: web1, by: nil)
    #expect(limits.believed(asked, web2, alice) == none)
    #expect(limits.believed(asked, web1, web1) == none)
    #expect(limits.believed(asked, web1, alice) == asked)
    #expect(limits.believed(asked, web1, alice) == none)
    limits.note(wrong, as: .firstPass, of: alice, on: web1, by: nil)
    #expect(limits.believed(.last(givingBack: more), web1, alice) == none)
    #expect(limits.believed(.firstPass, web1, alice) == .firstPass)
  }
}
