import CService
import FleetTransport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What came of codes` {
  private let own: OwnDatabase
  private let one: Verifier

  init() throws {
    own = try OwnDatabase()
    one = try Verifier("one", in: own)
  }

  /// Types a code as a host sends it. `uid`: nil for a name without an account there.
  private func type(
    _ code: String, as name: String, uid: UInt32?, on verifier: Verifier, times: Int = 1
  ) throws {
    let directory = try TemporaryDirectory()
    let handler = LoginHandler(verifier.database, FleetPolicy(in: directory.path))
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    var policy = Policy()
    policy.isFleet = true
    let question = LoginQuestion(
      name: Array(name.utf8), service: Array("sshd".utf8), origin: .unknown, policy: policy,
      millisecondsLeft: 5000,
      verb: .attempt(try secret(code), knownAs: nil, as: .last(givingBack: nil)))
    for _ in 0..<times {
      _ = handler.answer(
        try hostFrame(question, isOwn: false, uid: uid),
        from: HostIdentity(pin, host: Array("web1".utf8)), arrived: sys_monotonic())
    }
  }

  private func turn(_ verifier: Verifier) {
    CountKeeper(verifier.database, HostLimits(verifier.database, wrongCodes: 100)).turn()
  }

  private func status() throws -> FleetStatus {
    let key = try fleetKey()
    return try FleetStatus(
      own.words + " user=sallyport_verifier", key: key, RevocationFile("/var/empty/none", key: key),
      hasCopy: true, policyFlaw: nil)
  }

  private func events(_ outcome: String) throws -> UInt64? {
    try one.ask("SELECT count(*) FROM event WHERE outcome = $1", [.text(Array(outcome.utf8))])
      .number(0, 0)
  }

  @Test func `is counted by each verifier, and told of all of them without events`() throws {
    let (name, two) = (try one.enroll(), try Verifier("two", in: own))
    try type("000000", as: name, uid: 1000, on: one, times: 3)
    try type("000000", as: name, uid: 1000, on: two, times: 2)
    turn(one)
    turn(two)
    #expect(try one.ask("SELECT FROM outcome").count == 2)
    _ = try one.ask("TRUNCATE event")
    #expect(try status().outcomes.map(\.word) == ["wrong-code"])
    #expect(try status().outcomes.map(\.count) == [5])
    // Nothing is counted twice, and what is old goes.
    turn(one)
    #expect(try status().outcomes.map(\.count) == [5])
    _ = try one.ask("UPDATE outcome SET hour = hour - 24")
    #expect(try status().outcomes.isEmpty)
    _ = try one.ask("UPDATE outcome SET hour = hour - 24")
    turn(one)
    #expect(try one.ask("SELECT FROM outcome").count == 0)
  }

  @Test func `is written also where a verifier stops, or the server has lost it`() throws {
    let name = try one.enroll()
    try type("000000", as: name, uid: 1000, on: one)
    one.database.writeCounts()
    #expect(try status().outcomes.map(\.count) == [1])
    // As after a failover: the next line writes who was let in again.
    one.database.counts.noteLetIn([1], on: Array("web1".utf8))
    turn(one)
    _ = try one.ask("DELETE FROM visitor")
    turn(one)
    one.database.counts.noteLetIn([1], on: Array("web1".utf8))
    turn(one)
    #expect(try one.ask("SELECT FROM visitor").count == 1)
  }

  @Test func `is said to be left out where there are too many kinds of it`() throws {
    for number in 0..<20_003 {
      one.database.counts.note(Array("kind-\(number)".utf8), on: Array("web1".utf8))
    }
    turn(one)
    #expect(one.warnings.contains { $0.hasPrefix("3 logins were not counted") })
    turn(one)
    #expect(one.warnings.count { $0.contains("not counted") } == 1)
  }

  @Test func `of before goes a part at a time`() throws {
    _ = try one.ask(
      "INSERT INTO outcome (hour, host, verifier, kind, n)"
        + " SELECT 1, 'web1', 'one', n::text, 1 FROM generate_series(1, 5001) AS n")
    turn(one)
    #expect(try one.ask("SELECT FROM outcome").count == 1)
    turn(one)
    #expect(try one.ask("SELECT FROM outcome").count == 0)
  }

  // decisive
  // shows: free-refusals
  @Test func `is no event beyond ten a minute where it costs the host nothing`() throws {
    let name = try one.enroll()
    try type("000000", as: "nobody", uid: nil, on: one, times: 25)
    try type("typed", as: name, uid: 1000, on: one, times: 5)
    #expect(try events("unknown-user") == 10)
    #expect(try events("malformed") == 0)
    let alerts = one.complaints.filter { $0.contains("cost it nothing") }
    #expect(alerts.count == 1 && alerts[0].contains("host web1:"), "\(alerts)")
    // Nor a line of the log beyond 60, with those that were malformed.
    try type("000000", as: "nobody", uid: nil, on: one, times: 45)
    #expect(one.notices.count { $0.contains("unknown-user") } == 55)
    #expect(one.warnings.count { $0.contains("more of them are not logged host=web1") } == 1)
    // What uses up somebody's budget is written, each.
    try type("000000", as: name, uid: 1000, on: one, times: 12)
    #expect(try events("wrong-code") == 12)
    turn(one)
    let counted = try status().outcomes
    #expect(counted.map(\.word) == ["malformed", "unknown-user", "wrong-code"])
    #expect(counted.map(\.count) == [5, 70, 12])
  }

  // shows: free-refusals
  @Test func `is written again a minute later, and there is one alert an hour`() {
    let (counts, host, minute) = (HostCounts(), Array("web1".utf8), UInt64(60_000_000_000))
    func take(at now: UInt64) -> (written: Int, news: Int) {
      let all = (0..<15).map { _ in counts.takeFree(on: host, at: now) }
      return (all.count { $0.isWritten }, all.count { $0.isNews })
    }
    #expect(take(at: 1) == (10, 1))
    #expect(take(at: minute) == (0, 0))
    #expect(take(at: minute + 1) == (10, 0))
    #expect(take(at: 61 * minute) == (10, 1))
    #expect(counts.takeFree(on: Array("web2".utf8), at: 1) == (true, false))
  }

  @Test(arguments: [("outcome", FleetStatus.Part.outcomes), ("enrollment", .users)])
  func `is left out of status where the database does not say it in time`(
    _ table: String, _ part: FleetStatus.Part
  ) throws {
    _ = try one.ask("BEGIN")
    _ = try one.ask("LOCK TABLE \(table)")
    let status = try status()
    #expect(status.leftOut == [part])
    #expect(status.warnings.map(\.what).contains("left-out"))
    #expect(FleetMetrics(status).text.contains("\nsallyport_fleet_up 1\n"))
    #expect(status.json.contains(part == .users ? "\"users\": null" : "\"outcomes\": null"))
    _ = try one.ask("ROLLBACK")
    #expect(try self.status().leftOut.isEmpty)
  }
}
