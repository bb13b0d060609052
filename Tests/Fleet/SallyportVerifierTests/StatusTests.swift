import FleetProtocol
import Foundation
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite struct `What status tells` {
  private func facts(
    losses: UInt64 = 0, synchronous: String = "ANY 1 (a, b)", standbys: UInt64? = 2,
    waiting: UInt64 = 0, schema: UInt64 = Schema.number, certificate: Int64? = nil,
    eventDays: UInt64? = 30, isBound: Bool = false
  ) -> FleetStatus.Facts {
    FleetStatus.Facts(
      schema: schema, losses: losses, lost: "2026-01-02 03:04 UTC", timeline: "00000001",
      synchronous: synchronous, standbys: standbys, waiting: waiting, users: 7,
      certificate: certificate, eventDays: eventDays, isBound: isBound)
  }

  private func verifier(
    _ name: String, silent: UInt64 = 1, offset: Int64? = 0, hasLooked: Bool = true
  ) -> FleetStatus.Verifier {
    FleetStatus.Verifier(
      name: name, saves: 5, connections: 2, heard: "2026-02-03 04:05 UTC", silent: silent,
      offset: offset, hasLooked: hasLooked)
  }

  private func status(
    _ facts: FleetStatus.Facts? = nil, _ verifiers: [FleetStatus.Verifier]? = nil,
    unseen: UInt64? = 60, kind: PresenceRow.Kind = .usual, isClosed: Bool = false,
    leftOut: [FleetStatus.Part] = [], hasCopy: Bool = true, policyFlaw: String? = nil
  ) -> FleetStatus {
    var host = HostTable.Row(
      name: "web \"1\"", rights: HostRights([.enrolls]), joined: "2026-03-01 02:03 UTC",
      seen: unseen.map { _ in "2026-03-04 05:06 UTC" }, unseen: unseen, kind: kind)
    host.isClosed = isClosed
    return FleetStatus(
      facts: facts ?? self.facts(), verifiers: verifiers ?? [verifier("one"), verifier("two")],
      hosts: [host], outcomes: [("accepted", 3), ("wrong-code", 1)], leftOut: leftOut,
      hasCopy: hasCopy,
      policyFlaw: policyFlaw)
  }

  @Test func `has no warning where all is well`() {
    #expect(status().warnings == [])
    #expect(status(unseen: nil).warnings == [])
  }

  @Test func `warns of each thing that is wrong, and says what it means`() throws {
    let one = verifier("one")
    let cases: [(FleetStatus, [String])] = [
      (status(facts(synchronous: "")), ["no-synchronous-standby"]),
      (status(facts(standbys: 0)), ["standbys-away"]),
      (status(facts(standbys: 1)), ["one-standby"]),
      (status(facts(standbys: nil)), []),
      (status(facts(synchronous: "FIRST 2 (a, b, c)")), ["one-standby"]),
      (status(facts(synchronous: "2 (a, b, c)", standbys: 3)), []),
      (status(facts(synchronous: "a, b", standbys: 1)), ["one-standby"]),
      (status(facts(schema: 1)), ["schema-old"]), (status(hasCopy: false), ["no-safe-copy"]),
      (status(policyFlaw: "policy: broken"), ["policy-broken"]),
      (status(facts(certificate: 30 * 86_400)), []),
      (status(facts(certificate: 30 * 86_400 - 1)), ["certificate-ends"]),
      (status(facts(certificate: -1)), ["certificate-ends"]),
      (status(facts(waiting: 3)), ["saves-wait"]),
      (status(facts(losses: 1)), ["distrusted"]),
      (status(facts(eventDays: 7)), []), (status(facts(eventDays: 6)), ["event-days-end"]),
      (status(facts(eventDays: nil)), ["event-days-end"]),
      (status(facts(isBound: true)), ["events-bounded"]),
      (status(leftOut: [.users, .outcomes]), ["left-out"]),
      (status(nil, []), ["no-verifier"]),
      (status(nil, [one]), ["one-verifier"]),
      (status(nil, [verifier("one", silent: 11)]), ["no-verifier", "verifier-silent"]),
      (status(nil, [one, verifier("two"), verifier("three", silent: 600)]), ["verifier-silent"]),
      (status(nil, [one, verifier("two", hasLooked: false)]), ["server-not-looked-at"]),
      (status(nil, [one, verifier("two", offset: -2001)]), ["verifier-clock"]),
      (
        status(nil, [verifier("one", offset: 33_000), verifier("two", offset: 33_100)]),
        ["database-clock"]
      ),
      (
        status(
          nil,
          [verifier("one", offset: 33_000), verifier("two", offset: 33_100), verifier("three")]),
        ["clocks-differ"]
      ),
      (
        status(nil, [verifier("one", offset: 3_600_000)]), ["one-verifier", "verifier-clock"]
      ),
      (status(nil, [one, verifier("two", offset: nil)]), []),
      (status(unseen: 31 * 86_400), ["host-unseen"]),
      (status(kind: .putBack), ["host-rests"]), (status(kind: .copied), ["host-rests"]),
      (status(kind: .ephemeral), []), (status(isClosed: true), ["host-closed"]),
    ]
    for (status, words) in cases {
      #expect(status.warnings.map(\.what) == words)
      let told = status.lines.filter { $0.hasPrefix("warning: ") }
      #expect(told == status.warnings.map { "warning: \($0.text)" })
    }
    let silent = status(nil, [one, verifier("two"), verifier("three", silent: 600)]).lines
    #expect(
      silent.last
        == "warning: verifier three is silent since 2026-02-03 04:05 UTC; the others answer"
    )
    #expect(silent.contains { $0.hasPrefix("verifier: three: SILENT, 5 saves by 2 connections") })
    let off = status(nil, [one, verifier("two", offset: -3_600_000)]).warnings.first?.text ?? ""
    #expect(off.hasPrefix("verifier two refuses all logins: its clock is 3600 s behind the"))
  }

  @Test func `is one object for programs`() throws {
    let status = status(facts(standbys: nil), [verifier("one", offset: -1500)])
    let object = try #require(
      try JSONSerialization.jsonObject(with: Data(status.json.utf8)) as? [String: Any])
    let verifiers = try #require(object["verifiers"] as? [[String: Any]])
    #expect(verifiers[0]["clockOffsetSeconds"] as? Double == -1.5)
    #expect(verifiers[0]["isThere"] as? Bool == true)
    let hosts = try #require(object["hosts"] as? [[String: Any]])
    #expect(hosts[0]["name"] as? String == "web \"1\"" && hosts[0]["unseenSeconds"] as? Int == 60)
    let database = try #require(object["database"] as? [String: Any])
    #expect(database["standbys"] is NSNull && database["lost"] is NSNull)
    #expect((object["outcomes"] as? [String: Int]) == ["accepted": 3, "wrong-code": 1])
    let warnings = try #require(object["warnings"] as? [[String: String]])
    #expect(warnings.map { $0["what"] } == ["one-verifier"])
  }

  @Test func `is in the text form of Prometheus`() {
    let text = FleetMetrics(status(nil, [verifier("one", offset: 1500)])).text
    let lines = text.split(separator: "\n")
    for line in [
      "sallyport_fleet_up 1", "sallyport_fleet_users 7", "sallyport_fleet_synchronous_standbys 2",
      "sallyport_fleet_verifier_silent_seconds{verifier=\"one\"} 1",
      "sallyport_fleet_verifier_clock_offset_seconds{verifier=\"one\"} 1.5",
      "sallyport_fleet_host_unseen_seconds{host=\"web \\\"1\\\"\"} 60",
      "sallyport_fleet_host_closed{host=\"web \\\"1\\\"\"} 0",
      "sallyport_fleet_outcomes_of_a_day{outcome=\"wrong-code\"} 1",
      "sallyport_fleet_warnings{what=\"one-verifier\"} 1",
    ] { #expect(lines.contains(Substring(line)), "\(line)") }
    // Each has its help and its type, once, before its values.
    let names = lines.filter { !$0.hasPrefix("#") }.map { $0.prefix { $0 != "{" && $0 != " " } }
    for name in Set(names) {
      let first = lines.firstIndex { $0.hasPrefix(name) } ?? 0
      #expect(first > 1 && lines[first - 1] == "# TYPE \(name) gauge")
      #expect(lines[max(0, first - 2)].hasPrefix("# HELP \(name) "))
      #expect(lines.count { $0 == "# TYPE \(name) gauge" } == 1)
    }
    #expect(text.hasSuffix("\n"))
  }

  @Test func `says that the database cannot be asked, in the place of what was there`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/fleet.prom"
    #expect(FleetMetrics(status()).write(to: path) == 0)
    #expect(FleetMetrics(nil).write(to: path) == 0)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(text.hasSuffix("\nsallyport_fleet_up 0\n") && !text.contains("users"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["fleet.prom"])
    #expect(FleetMetrics(nil).write(to: directory.path + "/none/fleet.prom") == ENOENT)
    // What a crash left goes, and what cannot be put in its place leaves nothing.
    try Data("half".utf8).write(to: URL(fileURLWithPath: path + ".new"))
    #expect(FleetMetrics(nil).write(to: path) == 0)
    let folder = directory.path + "/folder"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    #expect(FleetMetrics(nil).write(to: folder) == EISDIR)
    #expect(!FileManager.default.fileExists(atPath: folder + ".new"))
  }

  @Test func `counts what one verifier has answered`() throws {
    let meters = VerifierMetrics()
    meters.note("accepted", after: 900_000)
    meters.note("accepted", after: 4_000_000)
    meters.note("wrong-code", after: 6_000_000_000)
    meters.noteUnknown()
    meters.note(offset: -1500)
    let lines = meters.text(isVerifying: true).split(separator: "\n")
    let name = "sallyport_verifier_"
    for line in [
      "verifying 1", "outcomes_total{outcome=\"accepted\"} 2",
      "outcomes_total{outcome=\"wrong-code\"} 1", "answer_seconds_bucket{le=\"0.001\"} 1",
      "answer_seconds_bucket{le=\"0.005\"} 2", "answer_seconds_bucket{le=\"5.0\"} 2",
      "answer_seconds_bucket{le=\"+Inf\"} 3", "answer_seconds_count 3", "answer_seconds_sum 6.0049",
      "unknown_total 1", "floors_broken_total 0", "hidden_total 0", "clock_offset_seconds -1.5",
    ] { #expect(lines.contains(Substring(name + line)), "\(line)") }
    #expect(lines.contains("# TYPE sallyport_verifier_answer_seconds histogram"))
  }
}
