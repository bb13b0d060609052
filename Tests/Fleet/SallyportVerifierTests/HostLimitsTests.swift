import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportLogin
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `How many wrong codes a host may bring` {
  private let own: OwnDatabase
  private let one: Verifier
  private let web1: HostIdentity
  private let key: FleetKey

  init() throws {
    own = try OwnDatabase()
    one = try Verifier("one", in: own)
    key = try fleetKey()
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    web1 = HostIdentity(pin, host: Array("web1".utf8))
    let row = HostRow(name: web1.host, key: pin.bytes, joined: 1)
    _ = try one.ask(
      "INSERT INTO host (name, key, enrolls, joined, seal) VALUES ($1, $2, false, 1, $3)",
      [.text(web1.host), .bytes(pin.bytes), .bytes(try row.seal(under: key))])
  }

  /// Seconds ahead of `now`, as by a clock of the database that was wrong.
  private func shift(_ seconds: Int) throws {
    _ = try one.ask("UPDATE event SET at = at + interval '\(seconds) seconds'")
  }

  private func alerts(_ verifier: Verifier) -> Int {
    verifier.complaints.count { $0.contains("wrong codes in a day: from now on it gets codes") }
  }

  /// As people who mistype.
  private func bringWrong(_ count: UInt64, caller: UInt64? = nil) throws {
    _ = try one.ask(
      """
      INSERT INTO event (at, host, name, service, address, caller, outcome)
      SELECT now(), 'web1', 'x', 'sshd', 'unknown', $2::bigint, 'wrong-code'
      FROM generate_series(1, $1::bigint)
      """, [.number(count), caller.map { .number($0) } ?? .null])
  }

  private func limits(_ verifier: Verifier? = nil, wrongCodes: UInt64 = 100) -> HostLimits {
    HostLimits((verifier ?? one).database, wrongCodes: wrongCodes)
  }

  /// What a verifier does each ten seconds.
  private func turn(_ verifier: Verifier, _ limits: HostLimits) {
    CountKeeper(verifier.database, limits).turn()
  }

  private func status() throws -> FleetStatus {
    try FleetStatus(
      own.words + " user=sallyport_verifier", key: key, RevocationFile("/var/empty/none", key: key),
      hasCopy: true, policyFlaw: nil)
  }

  private func read(_ text: String) throws -> Int64 {
    let rows = try one.ask("\(Statement.hosts) WHERE name = 'web1'")
    return Reopening.read(
      rows.bytes(0, 6), under: key, of: try #require(HostRow(rows, 0)))
  }

  @Test func `grows with the people who were let in there within a week, on any verifier`()
    throws
  {
    for number in 0..<26 {
      one.database.counts.noteLetIn(Array("user\(number)".utf8), on: web1.host)
    }
    try bringWrong(104)
    #expect(limits().isClosed(web1, nil))
    turn(one, limits())
    #expect(one.complaints.count == 1, "\(one.complaints)")
    #expect(!limits().isClosed(web1, nil))
    let other = try Verifier("two", in: own)
    #expect(limits(other).isClosed(web1, nil), "it has not looked yet")
    other.database.counts.noteLetIn(Array("user3".utf8), on: web1.host)
    other.database.counts.noteLetIn(Array("else".utf8), on: web1.host)
    turn(other, limits(other))
    let people = other.database.counts.people(of: web1.host)
    // Two of them may have one bit.
    #expect((24...27).contains(people), "\(people)")
    #expect(!limits(other).isClosed(web1, nil))
    try bringWrong(100 + 10 * people - 104)
    #expect(limits(other).isClosed(web1, nil))
    // Over a week later.
    _ = try one.ask("UPDATE visitor SET day = day - 7")
    turn(one, limits())
    #expect(one.database.counts.people(of: web1.host) == 0)
    #expect(try one.ask("SELECT FROM visitor").count == 0)
  }

  @Test func `is at most 2,000, or what root has said`() throws {
    for number in 0..<1000 {
      one.database.counts.noteLetIn(Array("user\(number)".utf8), on: web1.host)
    }
    turn(one, limits())
    #expect(limits().bound(of: web1.host) == 2000)
    #expect(limits(wrongCodes: 5000).bound(of: web1.host) == 5000)
    #expect(limits(wrongCodes: .max).bound(of: web1.host) == .max)
    #expect(limits().bound(of: Array("web2".utf8)) == 100)
  }

  @Test func `is small for one user of it, who closes nobody else`() throws {
    try bringWrong(20, caller: 3999)
    let limits = limits()
    #expect(limits.isClosed(web1, 3999))
    #expect(!limits.isClosed(web1, 4000) && !limits.isClosed(web1, nil))
    // A host has one count for all callers.
    let charge = Charge(enrollmentID: 1, isKnown: false, amount: GuessProbability(units: 1))
    let wrong = Outcome.refused(
      .response(.wrongCode(charge), left: BudgetLeft(known: 1, other: 1)))
    for caller: UInt32 in 5000..<5080 {
      limits.note(wrong, as: .last(givingBack: nil), of: [1], on: web1.host, by: caller)
    }
    #expect(limits.isClosed(web1, 4000) && limits.isClosed(web1, nil))
  }

  // decisive; shows: relayed-caller
  @Test func `is not used up by backup codes that are made up`() throws {
    let name = try one.enroll()
    let limits = limits()
    #expect(!limits.isClosed(web1, 4000))
    let wrong = try one.type("AAAA-BBBB-CCCC-DDDD", as: name)
    #expect(wrong.verdict == .refuse(.wrongCode(nil)))
    #expect(try one.events(of: name) == ["wrong-backup-code"])
    for _ in 0..<200 {
      limits.note(wrong, as: .last(givingBack: nil), of: [1], on: web1.host, by: 4000)
    }
    #expect(!limits.isClosed(web1, 4000) && !limits.isClosed(web1, nil))
    _ = try one.ask("INSERT INTO event SELECT e.* FROM event e, generate_series(1, 200)")
    #expect(!self.limits().isClosed(web1, nil))
  }

  // decisive
  @Test func `is opened by reopen alone where the clocks are one`() throws {
    try bringWrong(100)
    let (table, host) = (
      try HostTable(own.words + " user=sallyport_verifier", key: key),
      try #require(FleetHostName(web1.host))
    )
    for off: Int64 in [-3_600_000, 3_600_000] {
      #expect(throws: DatabaseFault.self) {
        _ = try table.reopen(host, clock: one.database.clock() + off)
      }
    }
    #expect(limits().isClosed(web1, nil))
    // Those of an hour ahead, which no mark of now has.
    try shift(3600)
    #expect(!limits().isClosed(web1, nil))
  }

  @Test func `is an alert once, of a login or between them`() throws {
    try bringWrong(100)
    _ = try one.ask(
      "INSERT INTO outcome SELECT extract(epoch FROM now())::bigint / 3600, 'web1', 'one',"
        + " 'wrong-code', 100")
    let limits = limits()
    turn(one, limits)
    #expect(alerts(one) == 1)
    #expect(limits.isClosed(web1, nil))
    turn(one, limits)
    #expect(alerts(one) == 1)
    let two = try Verifier("two", in: own)
    #expect(self.limits(two).isClosed(web1, nil))
    turn(two, self.limits(two))
    #expect(alerts(two) == 1)
  }

  @Test func `is said by status, and undone by reopen`() throws {
    try bringWrong(100)
    let limits = limits()
    #expect(limits.isClosed(web1, nil))
    turn(one, limits)
    #expect(one.database.counts.isClosed(web1.host))
    #expect(try status().warnings.map(\.what).contains("host-closed"))
    #expect(try status().lines.contains { $0.hasPrefix("host: web1") && $0.hasSuffix("CLOSED") })
    let table = try HostTable(own.words + " user=sallyport_verifier", key: key)
    #expect(try table.reopen(try #require(FleetHostName(Array("none".utf8)))) == .noHost)
    _ = try one.ask("UPDATE host SET joined = 2")
    #expect(try table.reopen(try #require(FleetHostName(web1.host))) == .forged)
    _ = try one.ask("UPDATE host SET joined = 1")
    #expect(try table.reopen(try #require(FleetHostName(web1.host))) == .done)
    var reopened = web1
    guard case .host(let found) = Hosts(one.database).lookup(web1.pin) else {
      throw Missing()
    }
    reopened = found
    #expect(reopened.reopened > 1_700_000_000)
    #expect(!limits.isClosed(reopened, nil))
    turn(one, limits)
    #expect(!one.database.counts.isClosed(web1.host))
    // Also where it was not this verifier that found it.
    let other = try Verifier("two", in: own)
    _ = try one.ask(
      "INSERT INTO outcome SELECT extract(epoch FROM now())::bigint / 3600, 'web1', 'one',"
        + " 'wrong-code', 100")
    turn(other, self.limits(other))
    #expect(!other.database.counts.isClosed(web1.host))
    _ = try one.ask("UPDATE host SET reopened = NULL")
    turn(other, self.limits(other))
    #expect(other.database.counts.isClosed(web1.host))
    // Those that come later count again.
    try shift(-3600)
    let mark = try one.ask("SELECT extract(epoch FROM now())::bigint - 60").number(0, 0) ?? 0
    let row = HostRow(name: web1.host, key: web1.pin.bytes, joined: 1)
    _ = try one.ask(
      "UPDATE host SET reopened = $1",
      [.bytes(try Reopening.mark(Int64(mark), under: key, of: row))])
    guard case .host(let later) = Hosts(one.database).lookup(web1.pin) else { throw Missing() }
    #expect(!self.limits().isClosed(later, nil))
    try bringWrong(100)
    #expect(self.limits().isClosed(later, nil))
  }

  // decisive
  @Test func `is not undone by who writes to the database`() throws {
    let table = try HostTable(own.words + " user=sallyport_verifier", key: key)
    #expect(try table.reopen(try #require(FleetHostName(web1.host))) == .done)
    let mark = try one.ask("SELECT reopened FROM host").bytes(0, 0) ?? []
    #expect(try read("web1") > 0)
    let changed: [UInt8] = [mark[0] ^ 1] + Array(mark.dropFirst())
    for forged: [UInt8] in [Array(mark.dropLast()), mark + [0], changed, [], [1, 2, 3]] {
      _ = try one.ask("UPDATE host SET reopened = $1", [.bytes(forged)])
      #expect(try read("web1") == 0)
    }
    _ = try one.ask("UPDATE host SET reopened = $1", [.bytes(mark)])
    #expect(try read("web1") > 0)
    // Of another one, or of the same name with another key or later.
    let other = HostRow(name: Array("web2".utf8), key: web1.pin.bytes, joined: 1)
    #expect(Reopening.read(mark, under: key, of: other) == 0)
    let later = HostRow(name: web1.host, key: web1.pin.bytes, joined: 2)
    #expect(Reopening.read(mark, under: key, of: later) == 0)
    let anotherKey = HostRow(name: web1.host, key: [UInt8](repeating: 4, count: 32), joined: 1)
    #expect(Reopening.read(mark, under: key, of: anotherKey) == 0)
  }

  @Test func `is as small as without people where they cannot be read`() throws {
    _ = try one.ask("DROP TABLE visitor")
    one.database.counts.noteLetIn([1], on: web1.host)
    turn(one, limits())
    #expect(!one.database.isAway)
    #expect(limits().bound(of: web1.host) == 100)
    #expect(one.complaints.count { $0.contains("counts:") } == 1)
  }

  private struct Missing: Error {}
}
