import OneTimePassword
import SallyportCore
import SallyportLogin
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
    // The first one has what was in the rest, today and tomorrow.
    #expect(parts.count == 31 && parts.first?.rows == 1 && parts.last?.name == "event_rest")
    #expect(try !warnings().contains("event-days-end"))
    #expect(try !one.type("000000", as: name, at: 60).isAccepted)
    #expect(try self.parts().map(\.rows) == [2] + [UInt64](repeating: 0, count: 30))
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
    #expect(parts.map(\.rows) == [5003] + [UInt64](repeating: 0, count: 30))
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
    #expect(try parts().count == 31)
    #expect(try Database.prune(owner, days: 1) == 0)
  }

  @Test func `forget a person's name`() throws {
    #expect(try one.type("287082", as: name).isAccepted)
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
    #expect(try one.ask("SELECT FROM event WHERE name = 'other'").count == 1)
    #expect(throws: DatabaseFault.self) {
      _ = try Database.forgetPerson(own.words + " user=sallyport_verifier", [1])
    }
  }
}
