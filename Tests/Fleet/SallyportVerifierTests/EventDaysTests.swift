import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `The days of events` {
  private let own: OwnDatabase
  private let one: Verifier
  private let name: String
  private var owner: String { own.words + " user=postgres" }

  init() throws {
    own = try OwnDatabase()
    one = try Verifier("one", in: own)
    name = try one.enroll()
  }

  /// Of each part, in the order of their names, how many rows it has.
  private func parts() throws -> [(name: String, rows: UInt64)] {
    let rows = try one.ask(
      """
      SELECT inhrelid::regclass::text, (xpath('/row/c/text()', query_to_xml(
        'SELECT count(*) AS c FROM ' || inhrelid::regclass, false, true, '')))[1]::text::bigint
      FROM pg_inherits WHERE inhparent = 'event'::regclass ORDER BY 1
      """)
    return (0..<rows.count).map { (rows.text($0, 0) ?? "", rows.number($0, 1) ?? 0) }
  }

  private func dropParts() throws {
    for part in try parts() where part.name != "event_rest" {
      _ = try one.ask("DROP TABLE \(part.name)")
    }
  }

  private func warnings() throws -> [String] {
    let key = try fleetKey()
    return try FleetStatus(
      own.words + " user=sallyport_verifier", key: key, RevocationFile("/var/empty/none", key: key),
      hasCopy: true, policyFlaw: nil
    ).warnings.map(\.what)
  }

  @Test func `are there for thirty days to come, and one for the rest`() throws {
    #expect(try one.type("287082", as: name).isAccepted)
    let parts = try parts()
    #expect(parts.count == 32 && parts.last?.name == "event_rest")
    #expect(parts.map(\.rows) == [1] + [UInt64](repeating: 0, count: 31))
    #expect(try !warnings().contains("event-days-end"))
    // Again: nothing is left to do.
    #expect(try Database.migrate(owner) == .wasDone)
    #expect(try self.parts().map(\.name) == parts.map(\.name))
  }

  // decisive
  @Test func `refuse nobody where they have ended, and go on where they are added`() throws {
    try dropParts()
    #expect(try one.type("287082", as: name).isAccepted)
    #expect(try parts().map(\.rows) == [1])
    #expect(try warnings().contains("event-days-end"))
    #expect(try Database.migrate(owner) == .wasDone)
    let parts = try parts()
    // One has what was in the rest, and the days to come.
    #expect(parts.map(\.rows) == [1, 0] && parts.last?.name == "event_rest")
    #expect(try !warnings().contains("event-days-end"))
    #expect(try !one.type("000000", as: name, at: 60).isAccepted)
    #expect(try self.parts().map(\.rows) == [2, 0])
  }

  /// Where a migrate was killed, a table refuses what is later than its bound.
  private func bound(_ table: String, until: String) throws {
    _ = try one.ask(
      "ALTER TABLE \(table) ADD CONSTRAINT event_bound CHECK (at < \(until)) NOT VALID")
  }

  /// That an event of this many days ahead is saved.
  private func tell(_ days: Int, at place: String = "ahead") throws {
    _ = try one.ask(
      "INSERT INTO event (at, host, name, service, address, outcome)"
        + " VALUES (now() + interval '\(days) days', '\(place)', 'n', 's', 'a', 'accepted')")
  }

  // decisive
  @Test func `refuse no event after a migrate that was killed, and status says so until the next`()
    throws
  {
    #expect(try !warnings().contains("events-bounded"))
    try bound("event_rest", until: "'2020-01-01'")
    #expect(try warnings().contains("events-bounded"))
    #expect(throws: DatabaseFault.self) { try tell(99) }
    // The rest is empty, and no part is missing.
    #expect(try Database.migrate(owner) == .wasDone)
    #expect(try !warnings().contains("events-bounded"))
    try tell(99)
  }

  // decisive
  @Test func `refuse no event after a migrate that failed`() throws {
    try dropParts()
    try tell(99)
    #expect(try one.type("287082", as: name).isAccepted)
    // As pg_dump has it: the last step gets no lock, those before it do.
    let dump = try DatabaseConnection(own.words + " user=postgres", worker: 0)
    for statement in ["BEGIN", "LOCK TABLE ONLY event IN ACCESS SHARE MODE"] {
      _ = try dump.ask(statement)
    }
    var days = try EventDays(try DatabaseConnection(owner, worker: 1))
    days.attempts = 1
    #expect(throws: DatabaseFault.self) { try days.keep() }
    try tell(3)
    try tell(99)
    #expect(try !warnings().contains("events-bounded"))
    #expect(try one.ask("SELECT FROM event WHERE host = 'ahead'").count == 3)
    _ = try dump.ask("ROLLBACK")
    try days.keep()
    #expect(try parts().map(\.rows) == [2, 2])
  }

  // decisive
  @Test func `are no reason to take a right for used up, nor a login for refused`() throws {
    try dropParts()
    try bound("event_rest", until: "'2020-01-01'")
    let store = one.store(for: name)
    let user = try #require(UserName(Array(name.utf8)))
    let record = try #require(try store.load(Account(name: user, uid: 1000)))
    #expect(throws: StoreTrouble.self) {
      _ = try store.transact(record, asKnown: false) { _, state in
        (Outcome.accepted(.backupCode(left: 1)), state)
      }
    }
    #expect(store.wasAway, "hosts go by their reserves")
    let pin = try #require(Pin([UInt8](repeating: 6, count: 32)))
    let host = HostIdentity(pin, host: Array("web1".utf8), rights: HostRights([.takes]))
    let now = try SallyportSystem.Clock.now()
    let counted = FleetStore(
      one.database, Event(of: "take", on: host.host, name: user.bytes, act: .block), uid: nil,
      spending: host.spending(.takes, for: user.bytes))
    #expect(throws: StoreTrouble.self) { try counted.spend() }
    #expect(!counted.isUsedUp)
    #expect(one.database.mayUse(host.spending(.takes, for: user.bytes), at: now))
  }

  @Test func `are kept by one of two at once`() throws {
    let other = try EventDays(try DatabaseConnection(owner, worker: 1))
    let sentence = "another migrate or init is at work: again when it has ended"
    #expect(throws: DatabaseFault.unusable(sentence)) {
      _ = try Database.migrate(owner)
    }
    try other.keep()
  }

  // decisive
  @Test func `are added and removed whatever time an event has`() throws {
    try dropParts()
    // Of a clock that was wrong: before the parts, within days to come, and far ahead.
    for (days, place) in [(-400, "old"), (-4, "late"), (12, "soon"), (99, "far")] {
      try tell(days, at: place)
    }
    func part(of place: String) throws -> String? {
      try one.ask(
        "SELECT tableoid::regclass::text FROM event WHERE host = $1", [.text(Array(place.utf8))]
      ).text(0, 0)
    }
    #expect(try Database.migrate(owner) == .wasDone)
    #expect(try part(of: "far") == "event_rest" && part(of: "soon") != "event_rest")
    try dropParts()
    let rows = try one.ask(
      "SELECT to_char(now() AT TIME ZONE 'UTC' - interval '3 days', 'YYYYMMDD')")
    let day = rows.text(0, 0) ?? ""
    for (days, place) in [(-400, "old"), (-4, "late"), (12, "soon")] { try tell(days, at: place) }
    _ = try one.ask(
      "CREATE TABLE event_\(day) PARTITION OF event FOR VALUES FROM ('\(day) 00:00:00+00')"
        + " TO ('\(day) 24:00:00+00')")
    // The part before it is gone, so what is older is nobody's.
    #expect(try Database.prune(owner, days: 90) == 0)
    #expect(try part(of: "old") == nil && part(of: "late") == "event_rest")
    #expect(try part(of: "soon") != "event_rest" && part(of: "far") == "event_rest")
    #expect(try one.ask("SELECT FROM pg_class WHERE relname = 'event_aside'").count == 0)
  }

  @Test func `take what the rest has of a day that is added`() throws {
    let last = try parts().dropLast().last?.name ?? ""
    _ = try one.ask("DROP TABLE \(last)")
    try tell(30)
    #expect(try Database.migrate(owner) == .wasDone)
    #expect(try parts().first { $0.name == last }?.rows == 1)
  }

  // decisive
  @Test func `are not removed by a clock that is ahead`() throws {
    let day: Int64 = 86_400_000
    #expect(throws: DatabaseFault.self) {
      _ = try Database.prune(owner, days: 90, clock: one.database.clock() - 365 * day)
    }
    #expect(try Database.prune(owner, days: 90, clock: one.database.clock()) == 0)
  }

  // decisive
  @Test func `take over a table of before, with what it has, while people log in`() throws {
    #expect(try one.type("287082", as: name).isAccepted)
    for statement in [
      "CREATE TABLE before (LIKE event)", "INSERT INTO before SELECT * FROM event",
      "DROP TABLE event", "ALTER TABLE before RENAME TO event",
      "CREATE INDEX event_at ON event (at)",
      "CREATE INDEX event_wrong ON event (host, at) WHERE outcome = 'wrong-code'",
      "GRANT SELECT, INSERT ON event TO sallyport_verifier",
      "INSERT INTO event SELECT at - interval '40 days', host, 'old', service, address, caller,"
        + " outcome FROM event, generate_series(1, 5000)",
    ] { _ = try one.ask(statement) }
    #expect(try !one.type("000000", as: name, at: 60).isAccepted)
    #expect(try warnings().contains("event-days-end"))
    // As an upgrade that was interrupted has left it.
    _ = try one.ask("CREATE INDEX event_name_before ON event (name)")
    _ = try one.ask("ALTER TABLE event ADD CONSTRAINT event_bound CHECK (at < 'infinity')")
    #expect(try Database.migrate(owner) == .wasDone)
    #expect(try !one.type("111111", as: name, at: 90).isAccepted)
    let parts = try parts()
    // It has the days to come, too: until then its bound refuses nobody.
    #expect(parts.map(\.rows) == [5003, 0])
    let invalid = "SELECT FROM pg_index WHERE NOT indisvalid"
    #expect(try one.ask(invalid).count == 0)
    let indexes = "SELECT FROM pg_indexes WHERE tablename = $1"
    #expect(try one.ask(indexes, [.text(Array(parts[0].name.utf8))]).count == 3)
    #expect(one.complaints.isEmpty)
  }

  @Test func `are removed whole, and no day that has younger events`() throws {
    #expect(try one.type("287082", as: name).isAccepted)
    try dropParts()
    _ = try one.ask(
      """
      CREATE TABLE event_20200101 PARTITION OF event
      FOR VALUES FROM (MINVALUE) TO ('2020-01-02 00:00:00+00')
      """)
    _ = try one.ask(
      """
      INSERT INTO event (at, host, name, service, address, outcome)
      VALUES ('2019-05-05 00:00:00+00', 'h', 'n', 's', 'a', 'accepted'),
        (now() - interval '30 days', 'h', 'n', 's', 'a', 'accepted')
      """)
    #expect(try Database.prune(owner, days: 3650) == 0)
    #expect(try Database.prune(owner, days: 90) == 1)
    #expect(try one.ask("SELECT FROM event").count == 1)
    #expect(try parts().count == 2)
    #expect(try Database.prune(owner, days: 1) == 0)
  }

  @Test func `forget a person's name, and what is hers`() throws {
    #expect(try one.type("287082", as: name).isAccepted)
    #expect(try one.database.isEnrolled(Array(name.utf8)))
    #expect(try !one.database.isEnrolled(Array("nobody-here".utf8)))
    _ = try one.ask("UPDATE event SET caller = 7")
    _ = try one.ask(
      """
      INSERT INTO event (at, host, name, service, address, outcome)
      SELECT now() + n % 3 * interval '1 day', 'h', $1, 's', 'a', 'accepted'
      FROM generate_series(1, 4500) AS n
      """, [.bytes(Array(name.utf8))])
    _ = try one.ask(
      "INSERT INTO event (at, host, name, service, address, outcome)"
        + " VALUES (now(), 'h', 'other', 's', 'a', 'accepted')")
    #expect(try Database.forgetPerson(owner, Array(name.utf8)) == 4501)
    #expect(try Database.forgetPerson(owner, Array(name.utf8)) == 0)
    #expect(try one.ask("SELECT FROM event WHERE name = ''").count == 4501)
    let hers = "SELECT FROM event WHERE name = '' AND num_nonnulls(authenticator, caller) > 0"
    #expect(try one.ask(hers).count == 0)
    #expect(try one.ask("SELECT FROM event WHERE name = 'other'").count == 1)
    #expect(throws: DatabaseFault.self) {
      _ = try Database.forgetPerson(own.words + " user=sallyport_verifier", [1])
    }
  }
}
