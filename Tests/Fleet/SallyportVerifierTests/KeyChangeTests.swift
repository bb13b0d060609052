import CService
import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A change of the fleet's key` {
  private let fleet: ChangingFleet
  private var own: OwnDatabase { fleet.own }
  private var one: Verifier { fleet.one }
  private var two: Verifier { fleet.two }

  init() throws { fleet = try ChangingFleet() }

  // shows: key-change
  @Test func `seals nothing before each verifier that is alive has the next key`() throws {
    #expect(try one.database.beginKey(patience: 0) == .lacking(["one", "two"]))
    #expect(try one.database.keyStanding().isAnnounced)
    fleet.keepers[0].turn()
    #expect(try two.database.beginKey(patience: 0) == .lacking(["two"]))
    #expect(try fleet.ids("fleet") == ["01000000"] && !one.database.keyStanding().isChanging)
    fleet.keepers[1].turn()
    #expect(try two.database.beginKey(patience: 0) == .done)
    let standing = try one.database.keyStanding()
    #expect(standing.isChanging && standing.oldest == 1 && standing.present == two.database.key.id)
    #expect(one.database.key.id == two.database.key.id)
    #expect(try one.database.beginKey(patience: 0) == .isChanging)
  }

  @Test func `waits until no verifier of a former version may be there`() throws {
    let row = FleetRow(needs: Schema.former, writes: Schema.former)
    _ = try one.ask(
      "UPDATE fleet SET needs = $1::bigint, writes = $1::bigint, seal = $2",
      [.number(row.needs), .bytes(try row.seal(under: fleetKey()))])
    #expect(try one.database.beginKey(patience: 0) == .unfinished)
  }

  @Test func `is a save of each row: nothing is lost, and nothing good again`() throws {
    let (used, other) = (try one.enroll(), try two.enroll())
    #expect(try one.type("287082", as: used).isAccepted)
    let before = try one.ask("SELECT version FROM state WHERE name = $1", [.text(Array(used.utf8))])
    let pin = try #require(Pin([UInt8](repeating: 9, count: 32)))
    try fleet.addRows(pin)
    try fleet.change()
    #expect(try !two.type("287082", as: used).isAccepted)
    fleet.turn()
    for (table, column, place) in [
      ("enrollment", "body", 2), ("state", "body", 2), ("host", "seal", 1), ("invite", "seal", 1),
      ("revoked", "seal", 1), ("presence", "seal", 1), ("host", "rights", 58),
      ("invite", "rights", 58), ("fleet", "incarnation", 17),
    ] {
      let found = try fleet.ids(table, column, place)
      let id = FleetKey.bytes(of: one.database.key.id)
      let new = String(decoding: hexadecimal(id), as: UTF8.self)
      #expect(found == [new], "\(table).\(column)")
    }
    let after = try one.ask("SELECT version FROM state WHERE name = $1", [.text(Array(used.utf8))])
    let versions = [before, after].map { $0.number(0, 0) ?? 0 }
    #expect(versions[0] < versions[1])
    for verifier in [one, two] {
      #expect(try !verifier.type("287082", as: used).isAccepted)
      #expect(try !verifier.type("000000", as: "nobody").isAccepted)
    }
    #expect(try two.type("287082", as: other).isAccepted)
    #expect(Hosts(one.database).lookup(pin) != .stranger)
    #expect(one.complaints.isEmpty && two.complaints.isEmpty)
  }

  @Test func `is no change of the enrollment for a login on its way`() throws {
    let name = try one.enroll()
    try fleet.change()
    let store = two.store(for: name)
    let user = try #require(UserName(Array(name.utf8)))
    let record = try #require(try store.load(Account(name: user, uid: 1000)))
    fleet.keepers[0].turn()
    let done = try store.transact(record, asKnown: true) { _, state in ((), state) }
    guard case .committed = done else {
      Issue.record("\(done)")
      return
    }
    #expect(try one.type("287082", as: name).isAccepted)
  }

  @Test func `ends when nothing is left, and each verifier removes the former key`() throws {
    let name = try one.enroll()
    try fleet.change()
    let left = try one.database.keyLeft()
    #expect(left.names.contains(Array(name.utf8)) && left.count > 64)
    fleet.keepers[1].turn()
    #expect(try one.database.keyLeft() == KeyLeft())
    #expect(try one.database.endKey(one.database.keyStanding()))
    fleet.turn()
    fleet.turn()
    for verifier in [one, two] {
      #expect(verifier.database.key.ids == [one.database.key.id] && verifier.complaints.isEmpty)
    }
    let held = try one.database.keyHolders().map(\.ids)
    #expect(held == [[one.database.key.id], [one.database.key.id]])
    #expect(try one.type("287082", as: name).isAccepted)
    #expect(try !two.type("287082", as: name).isAccepted)
    #expect(try one.ask("SELECT next FROM fleet").bytes(0, 0) == nil)
  }

  @Test func `comes to a verifier that starts meanwhile, and not to one without the former key`()
    throws
  {
    let name = try one.enroll()
    try fleet.change()
    let three = try Verifier("three", in: own)
    #expect(try three.type("287082", as: name).isAccepted)
    #expect(three.database.key.ids == one.database.key.ids)
    fleet.turn()
    #expect(try !one.database.endKey(one.database.keyStanding()), "it has not said so")
    KeyKeeper(three.database, nil).turn()
    #expect(try one.database.endKey(one.database.keyStanding()))
    #expect(throws: DatabaseFault.self) { try Verifier("four", in: own) }
  }

  // decisive
  // shows: key-change
  @Test func `loses no backup code that a host has used, and waits for hosts`() throws {
    let directory = try TemporaryDirectory()
    let logins = RecentLogins()
    let handler = ReserveHandler(one.database, logins, FleetPolicy(in: directory.path))
    let pin = try #require(Pin([UInt8](repeating: 9, count: 32)))
    try fleet.addRows(pin)
    _ = try one.ask("DELETE FROM presence")
    func ask(_ question: ReserveQuestion) throws -> ReserveAnswer {
      let holder = HostIdentity(pin, host: Array("web1".utf8))
      let answer = handler.answer(
        try #require(question.encoded()), from: holder, arrived: sys_monotonic())
      return try #require(ReserveAnswer.decode(answer.body, to: question))
    }
    let enrollment = try fleetEnrollment(
      [try authenticator(parameters())], "away",
      codes: backupCodes(["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"], id: 0xb0b0))
    try one.store(for: "away").create(enrollment, LoginState(initialFor: enrollment))
    logins.note(enrollment.user.bytes, on: pin)
    guard case .section(let former) = try ask(.fetch(enrollment.user, receipt: nil)) else {
      Issue.record("none")
      return
    }
    func entry(_ receipt: [UInt8], _ used: UInt64) -> ReserveQuestion.Entry {
      ReserveQuestion.Entry(
        name: enrollment.user, enrollmentID: former.enrollmentID, receipt: receipt,
        setID: former.set.id, used: used)
    }
    /// What it says at the end of a confirmation of all that it holds.
    func pass() throws {
      var start = HostStart(random: [UInt8](repeating: 1, count: 16), number: 1)
      start.confirmed = 0
      #expect(try ask(.start(start)) == .start(.fine))
    }
    /// Whether it is waited for, minutes later.
    func isBehind() throws -> Bool {
      _ = try one.ask(
        "UPDATE host SET formerly = formerly - interval '2 min', asked = asked - interval '2 min'")
      return try one.database.hostsBehind().map(\.name) == ["web1"]
    }
    try pass()
    #expect(try one.ask("SELECT asked FROM host").bytes(0, 0) == nil, "no change is under way")
    try fleet.change()
    _ = try one.ask("UPDATE host SET seen = now()")
    #expect(try isBehind())
    // Whether a verifier is there says nothing of what it holds.
    for _ in 0..<2 { #expect(try ask(.confirm([])) == .confirmed([])) }
    #expect(try isBehind())
    #expect(try ask(.confirm([entry(former.receipt, 1)])) == .confirmed([.keep(used: 1)]))
    try pass()
    #expect(try one.database.hostsBehind().count == 1, "it held one by the former key")
    #expect(try ask(.confirm([entry(former.receipt, 1)])) == .confirmed([.replace]))
    guard
      case .section(let new) = try ask(.fetch(enrollment.user, receipt: former.receipt)),
      new.receipt != former.receipt
    else {
      Issue.record("no new receipt")
      return
    }
    #expect(try ask(.confirm([entry(new.receipt, 1)])) == .confirmed([.keep(used: 1)]))
    #expect(try isBehind(), "that may not be all that it holds")
    try pass()
    #expect(try one.database.hostsBehind().isEmpty)
    #expect(try ask(.confirm([entry(former.receipt, 1)])) == .confirmed([.replace]))
    #expect(try one.database.hostsBehind().count == 1)
    #expect(try !one.type("7KMF2X9QD4TW0HZA", as: "away").isAccepted)
  }

  // decisive
  // shows: key-change
  @Test func `waits for no host that is given up, whose backup codes are void`() throws {
    let pin = try #require(Pin([UInt8](repeating: 9, count: 32)))
    try fleet.addRows(pin)
    _ = try one.ask("DELETE FROM presence")
    _ = try one.ask("UPDATE host SET seen = now()")
    for name in ["held", "other"] {
      let enrollment = try fleetEnrollment(
        [try authenticator(parameters())], name,
        codes: backupCodes(["7KMF2X9QD4TW0HZA"], id: 0xb0b0))
      try one.store(for: name).create(enrollment, LoginState(initialFor: enrollment))
    }
    #expect(try one.type("287082", as: "held").isAccepted)
    try fleet.change()
    #expect(try one.database.hostsBehind().map(\.name) == ["web1"])
    let host = try #require(FleetHostName(Array("web1".utf8)))
    #expect(try two.database.giveUp(host) == [Array("held".utf8)])
    #expect(try two.database.giveUp(host) == [])
    #expect(try one.database.hostsBehind().isEmpty)
    #expect(try !one.type("7KMF2X9QD4TW0HZA", as: "held", at: 90).isAccepted)
    #expect(try one.type("7KMF2X9QD4TW0HZA", as: "other", at: 90).isAccepted)
    #expect(try one.database.giveUp(#require(FleetHostName(Array("web9".utf8)))) == nil)
  }

  // decisive
  // shows: key-replace
  @Test func `after a theft goes through no row, and while no verifier runs`() throws {
    let name = try one.enroll()
    #expect(try one.type("287082", as: name).isAccepted)
    #expect(try one.database.replaceKey(nil) == .alive(["one", "two"]))
    #expect(try one.database.beginKey(patience: 0) == .lacking(["one", "two"]))
    _ = try one.ask("UPDATE worker SET now = now() - interval '11 s'")
    #expect(try one.database.replaceKey(nil) == .done([]))
    let id = one.database.key.id
    #expect(id != 1 && one.database.key.ids == [id])
    #expect(try one.ask("SELECT next FROM fleet").bytes(0, 0) == nil)
    #expect(try fleet.ids("state", "body", 2).count == 1)
    #expect(try fleet.ids("fleet", "canary") == fleet.ids("fleet"))
    #expect(try !one.type("287082", as: name).isAccepted)
    #expect(try one.type("359152", as: name, at: 89).isAccepted)
    #expect(throws: DatabaseFault.self) { try two.database.begin() }
  }
}
