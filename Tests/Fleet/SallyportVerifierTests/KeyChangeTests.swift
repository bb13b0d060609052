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
  private let own: OwnDatabase
  private let (one, two): (Verifier, Verifier)
  private let keepers: [KeyKeeper]

  init() throws {
    own = try OwnDatabase()
    (one, two) = (try Verifier("one", in: own), try Verifier("two", in: own))
    keepers = [one, two].map { KeyKeeper($0.database, nil, patience: 0, grace: 0) }
  }

  private func turn() { for keeper in keepers { keeper.turn() } }

  private func change() throws {
    // Made, and taken by each; then it seals.
    #expect(try one.database.beginKey(patience: 0) == .lacking(["one", "two"]))
    turn()
    #expect(try one.database.beginKey(patience: 0) == .done)
  }

  /// How many rows of each kind are sealed with which key.
  private func ids(_ table: String, _ column: String = "seal", _ place: Int = 1) throws
    -> [String]
  {
    let rows = try one.ask(
      """
      SELECT DISTINCT encode(substr(\(column), \(place), 4), 'hex') FROM \(table)
      WHERE octet_length(\(column)) > 0 ORDER BY 1
      """)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  // shows: key-change
  @Test func `seals nothing before each verifier that is alive has the next key`() throws {
    #expect(try one.database.beginKey(patience: 0) == .lacking(["one", "two"]))
    #expect(try one.database.keyStanding().isAnnounced)
    keepers[0].turn()
    #expect(try two.database.beginKey(patience: 0) == .lacking(["two"]))
    #expect(try ids("fleet") == ["01000000"] && !one.database.keyStanding().isChanging)
    keepers[1].turn()
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
    try addRows(pin)
    try change()
    #expect(try !two.type("287082", as: used).isAccepted)
    turn()
    for (table, column, place) in [
      ("enrollment", "body", 2), ("state", "body", 2), ("host", "seal", 1), ("invite", "seal", 1),
      ("revoked", "seal", 1), ("presence", "seal", 1), ("host", "rights", 58),
      ("invite", "rights", 58), ("fleet", "incarnation", 17),
    ] {
      let found = try ids(table, column, place)
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
    try change()
    let store = two.store(for: name)
    let user = try #require(UserName(Array(name.utf8)))
    let record = try #require(try store.load(Account(name: user, uid: 1000)))
    keepers[0].turn()
    let done = try store.transact(record, asKnown: true) { _, state in ((), state) }
    guard case .committed = done else {
      Issue.record("\(done)")
      return
    }
    #expect(try one.type("287082", as: name).isAccepted)
  }

  @Test func `ends when nothing is left, and each verifier removes the former key`() throws {
    let name = try one.enroll()
    try change()
    let left = try one.database.keyLeft()
    #expect(left.people.contains(Array(name.utf8)) && left.count > 64)
    keepers[1].turn()
    #expect(try one.database.keyLeft() == KeyLeft())
    #expect(try one.database.endKey(one.database.keyStanding()))
    turn()
    turn()
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
    try change()
    let three = try Verifier("three", in: own)
    #expect(try three.type("287082", as: name).isAccepted)
    #expect(three.database.key.ids == one.database.key.ids)
    turn()
    #expect(try !one.database.endKey(one.database.keyStanding()), "it has not said so")
    KeyKeeper(three.database, nil).turn()
    #expect(try one.database.endKey(one.database.keyStanding()))
    #expect(throws: DatabaseFault.self) { try Verifier("four", in: own) }
  }

  @Test func `leaves rows alone that nobody with a key has sealed`() throws {
    let name = try one.enroll()
    try change()
    _ = try one.ask(
      "UPDATE enrollment SET body = set_byte(body, 40, get_byte(body, 40) # 1) WHERE name = $1",
      [.text(Array(name.utf8))])
    turn()
    #expect(try one.database.keyLeft() == KeyLeft())
    #expect(try ids("enrollment", "body", 2).count == 2)
  }

  // decisive
  // shows: key-change
  @Test func `loses no backup code that a host has used, and waits for hosts`() throws {
    let directory = try TemporaryDirectory()
    let logins = RecentLogins()
    let handler = ReserveHandler(one.database, logins, FleetPolicy(in: directory.path))
    let pin = try #require(Pin([UInt8](repeating: 9, count: 32)))
    try addRows(pin)
    _ = try one.ask("DELETE FROM presence")
    func ask(_ question: ReserveQuestion) throws -> ReserveAnswer {
      let holder = HostIdentity(pin, host: Array("web1".utf8))
      let answer = handler.answer(
        try #require(question.encoded()), from: holder, arrived: 0)
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
    try change()
    _ = try one.ask("UPDATE host SET seen = now()")
    #expect(try one.database.hostsBehind().map(\.name) == ["web1"])
    #expect(try ask(.confirm([entry(former.receipt, 1)])) == .confirmed([.keep(used: 1)]))
    #expect(try ask(.confirm([entry(former.receipt, 1)])) == .confirmed([.replace]))
    guard
      case .section(let new) = try ask(.fetch(enrollment.user, receipt: former.receipt)),
      new.receipt != former.receipt
    else {
      Issue.record("no new receipt")
      return
    }
    #expect(try ask(.confirm([entry(new.receipt, 1)])) == .confirmed([.keep(used: 1)]))
    _ = try one.ask("UPDATE host SET formerly = formerly - interval '4 min'")
    #expect(try ask(.confirm([entry(new.receipt, 1)])) == .confirmed([.keep(used: 1)]))
    #expect(try one.database.hostsBehind().count == 1)
    _ = try one.ask("UPDATE host SET formerly = formerly - interval '1 min'")
    #expect(try one.database.hostsBehind().isEmpty)
    #expect(try ask(.confirm([entry(former.receipt, 1)])) == .confirmed([.replace]))
    #expect(try one.database.hostsBehind().count == 1)
    #expect(try !one.type("7KMF2X9QD4TW0HZA", as: "away").isAccepted)
  }

  // decisive
  // shows: key-change
  @Test func `waits for no host that is given up, whose backup codes are void`() throws {
    let pin = try #require(Pin([UInt8](repeating: 9, count: 32)))
    try addRows(pin)
    _ = try one.ask("DELETE FROM presence")
    _ = try one.ask("UPDATE host SET seen = now()")
    for name in ["held", "other"] {
      let enrollment = try fleetEnrollment(
        [try authenticator(parameters())], name,
        codes: backupCodes(["7KMF2X9QD4TW0HZA"], id: 0xb0b0))
      try one.store(for: name).create(enrollment, LoginState(initialFor: enrollment))
    }
    #expect(try one.type("287082", as: "held").isAccepted)
    try change()
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
    #expect(try one.database.replaceKey(nil) == .done)
    let id = one.database.key.id
    #expect(id != 1 && one.database.key.ids == [id])
    #expect(try one.ask("SELECT next FROM fleet").bytes(0, 0) == nil)
    #expect(try ids("state", "body", 2).count == 1 && ids("fleet", "canary") == ids("fleet"))
    #expect(try !one.type("287082", as: name).isAccepted)
    #expect(try one.type("359152", as: name, at: 89).isAccepted)
    #expect(throws: DatabaseFault.self) { try two.database.begin() }
  }

  /// One of each table, with rights.
  private func addRows(_ pin: Pin) throws {
    let key = try fleetKey()
    let host = HostRow(name: Array("web1".utf8), key: pin.bytes, joined: 5)
    let invite = InviteRow(
      digest: [UInt8](repeating: 8, count: 32), host: Array("web2".utf8), until: 90_000)
    let revoked = RevokedRow(
      subject: [UInt8](repeating: 7, count: 32), host: Array("web3".utf8), at: 4)
    let rights = SealedRights(rights: HostRights([.takes]), changed: 6)
    _ = try one.ask(
      "INSERT INTO host (name, key, enrolls, joined, seal, rights) "
        + "VALUES ($1, $2, false, 5, $3, $4)",
      [
        .text(host.name), .bytes(pin.bytes), .bytes(try host.seal(under: key)),
        .bytes(try rights.sealed(under: key, of: .host(host))),
      ])
    _ = try one.ask(
      "INSERT INTO invite (digest, host, enrolls, until, seal, rights) "
        + "VALUES ($1, $2, false, 90000, $3, $4)",
      [
        .bytes(invite.digest), .text(invite.host), .bytes(try invite.seal(under: key)),
        .bytes(try rights.sealed(under: key, of: .invite(invite))),
      ])
    _ = try one.ask(
      "INSERT INTO revoked (subject, host, at, seal) VALUES ($1, $2, 4, $3)",
      [.bytes(revoked.subject), .text(revoked.host), .bytes(try revoked.seal(under: key))])
    try Presences(database: one.database).noteEphemeral(pin.bytes)
    let random = [UInt8](repeating: 3, count: 16)
    _ = try one.ask(
      "UPDATE fleet SET incarnation = $1",
      [.bytes(random + (try key.bind("incarnation", [random])))])
  }
}
