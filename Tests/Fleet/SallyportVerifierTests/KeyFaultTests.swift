import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

/// What goes wrong while the fleet changes its key, by accident or by somebody who writes to the
/// database.
@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A change of the fleet's key, disturbed` {
  private let fleet: ChangingFleet
  private var one: Verifier { fleet.one }
  private var two: Verifier { fleet.two }

  init() throws { fleet = try ChangingFleet() }

  private func damage(_ name: String) throws {
    // Twice is as it was.
    _ = try one.ask(
      "UPDATE state SET body = set_byte(body, 60, get_byte(body, 60) # 1) WHERE name = $1",
      [.text(Array(name.utf8))])
  }

  // decisive
  @Test func `counts rows that nobody can believe, says so once, and ends without them`() throws {
    let (name, other) = (try one.enroll(), try one.enroll())
    try damage(name)
    try fleet.change()
    for _ in 0..<3 { fleet.turn() }
    for verifier in [one, two] {
      let left = try verifier.database.keyLeft()
      #expect(left.count == 0 && left.disbelieved == [Array(name.utf8)])
      let told = verifier.complaints.filter { $0.contains(name) }
      #expect(told.count == 2 && told.contains { $0.contains("key status says") }, "\(told)")
    }
    // Another one in their place is looked at again.
    try damage(name)
    fleet.turn()
    #expect(try one.database.keyLeft() == KeyLeft())
    #expect(try one.type("287082", as: name).isAccepted)
    // Root has said so: it ends, and they stay as they are.
    _ = try one.ask(
      "UPDATE state SET body = overlay(body PLACING '\\x01000000' FROM 2) WHERE name = $1",
      [.text(Array(other.utf8))])
    #expect(try one.database.keyLeft().disbelieved == [Array(other.utf8)])
    try fleet.finish()
    fleet.turn()
    #expect(one.database.key.ids == [one.database.key.id])
    #expect(two.database.key.ids == [one.database.key.id])
  }

  // decisive
  @Test func `keeps the key of before for older rows that were put back, until they count`()
    throws
  {
    let name = try one.enroll()
    let rows = try one.ask(
      "SELECT e.body, s.body, version FROM enrollment e JOIN state s USING (name) WHERE name = $1",
      [.text(Array(name.utf8))])
    let user = try #require(UserName(Array(name.utf8)))
    #expect(try one.store(for: name).block(Account(name: user, uid: nil), until: nil))
    try fleet.change()
    fleet.turn()
    try fleet.finish()
    let values: [Value] = [.text(Array(name.utf8))]
    _ = try one.ask(
      "UPDATE enrollment SET body = $2 WHERE name = $1", values + [.bytes(rows.bytes(0, 0) ?? [])])
    _ = try one.ask(
      "UPDATE state SET body = $2, version = $3::bigint WHERE name = $1",
      values + [.bytes(rows.bytes(0, 1) ?? []), .number(rows.number(0, 2) ?? 0)])
    // One has seen the block, and does not believe them; the other one has not, and seals them.
    for _ in 0..<2 { fleet.keepers[0].turn() }
    #expect(one.database.key.ids.count == 2)
    #expect(one.complaints.filter { $0.contains(name) && $0.contains("restart it") }.count == 1)
    let both = try fleetKey()
    try both.take(next: #require(one.database.key.present.whole))
    let third = try Verifier("third", in: fleet.own, key: both)
    KeyKeeper(third.database, nil, patience: 0, grace: 0, rest: 0).turn()
    fleet.keepers[0].turn()
    #expect(one.database.key.ids.count == 1)
    #expect(try fleet.ids("state", "body", 2).count == 1)
  }

  // decisive; shows: key-lost
  @Test func `overwrites no key that seals, where the row of the fleet alone was put back`()
    throws
  {
    let name = try one.enroll()
    let three = try Verifier("three", in: fleet.own)
    let former = try one.ask("SELECT seal, canary FROM fleet")
    #expect(try one.database.beginKey(patience: 0) == .lacking(["one", "three", "two"]))
    fleet.turn()
    _ = try one.ask("UPDATE worker SET now = now() - interval '11 s' WHERE verifier = 'three'")
    #expect(try one.database.beginKey(patience: 0) == .done)
    let id = one.database.key.id
    #expect(try one.type("287082", as: name).isAccepted)
    _ = try one.ask(
      "UPDATE fleet SET seal = $1, canary = $2, next = NULL",
      [.bytes(former.bytes(0, 0) ?? []), .bytes(former.bytes(0, 1) ?? [])])
    fleet.turn()
    #expect(one.database.key.id == 1)
    // By one that lacks it, and by one that has it, also where another one was announced.
    #expect(three.database.key.ids == [1])
    #expect(try three.database.beginKey(patience: 0) == .elsewhere(["one", "two"]))
    let other = SealingKey(id: 9, secret: try secret([UInt8](repeating: 9, count: 32)))
    let strange = try #require(other.whole)
    _ = try one.ask(
      "UPDATE fleet SET next = $1", [.bytes(try one.database.key.seal(strange, .key, of: []))])
    fleet.turn()
    #expect(one.database.key.ids == [1, id])
    #expect(one.complaints.contains { $0.contains("key next, here") })
    #expect(try one.database.beginKey(patience: 0) == .done)
    #expect(one.database.key.id == id)
    fleet.turn()
    #expect(try one.database.keyLeft() == KeyLeft())
    #expect(try two.type("359152", as: name, at: 89).isAccepted)
  }

  // decisive
  @Test func `follows another one as soon as each verifier has removed the key before`() throws {
    let name = try one.enroll()
    try fleet.change()
    let second = one.database.key.id
    try fleet.finish()
    // They have it still: nothing is made that they could not take.
    #expect(try one.database.beginKey(patience: 0) == .holding(["one", "two"]))
    #expect(try one.ask("SELECT next FROM fleet").bytes(0, 0) == nil)
    fleet.turn()
    #expect(one.database.key.ids == [second])
    // One that nobody can open is replaced.
    _ = try one.ask("UPDATE fleet SET next = '\\x0102030405'")
    #expect(try one.database.beginKey(patience: 0) == .lacking(["one", "two"]))
    fleet.turn()
    #expect(try one.database.beginKey(patience: 0) == .done)
    #expect(![1, second].contains(one.database.key.id))
    #expect(try two.type("287082", as: name).isAccepted)
  }

  // decisive
  @Test func `is taken up by a verifier that was not there when the one before ended`() throws {
    let name = try one.enroll()
    try fleet.change()
    let second = one.database.key.id
    // It sleeps with both keys from here on.
    try fleet.finish()
    _ = try one.ask("UPDATE worker SET now = now() - interval '11 s' WHERE verifier = 'two'")
    fleet.keepers[0].turn()
    #expect(try one.database.beginKey(patience: 0) == .lacking(["one"]))
    fleet.keepers[0].turn()
    #expect(try one.database.beginKey(patience: 0) == .done)
    #expect(two.database.key.ids == [1, second])
    try two.database.begin()
    #expect(two.database.key.ids == [second, one.database.key.id])
    #expect(try two.type("287082", as: name).isAccepted)
  }

  // decisive; shows: key-lost
  @Test func `is not undone by an older row of the fleet, once nothing needs the key before`()
    throws
  {
    let name = try one.enroll()
    let former = try one.ask("SELECT seal, canary FROM fleet")
    try fleet.change()
    let id = one.database.key.id
    try fleet.finish()
    fleet.keepers[0].turn()
    _ = try two.database.keyStanding()
    _ = try one.ask("UPDATE fleet SET seal = $1", [.bytes(former.bytes(0, 0) ?? [])])
    let store = two.store(for: name)
    #expect(throws: (any Error).self) {
      _ = try store.load(Account(name: #require(UserName(Array(name.utf8))), uid: 1000))
    }
    #expect(two.database.isAway && two.database.key.id == id)
    #expect(two.complaints.contains { $0.contains("last change of the fleet's key") })
  }

  @Test func `is not kept from its end by rights that nobody with the key has made`() throws {
    let pin = try #require(Pin([UInt8](repeating: 9, count: 32)))
    try fleet.addRows(pin)
    _ = try one.ask("UPDATE host SET rights = set_byte(rights, 70, get_byte(rights, 70) # 1)")
    _ = try one.ask("UPDATE invite SET rights = set_byte(rights, 70, get_byte(rights, 70) # 1)")
    let row = try #require(HostRow(one.ask(Statement.hosts), 0))
    _ = try one.ask(
      "UPDATE host SET reopened = $1", [.bytes(try Reopening.mark(7, under: fleetKey(), of: row))])
    try fleet.change()
    fleet.turn()
    #expect(try one.database.keyLeft() == KeyLeft())
    let reopened = try one.ask("SELECT reopened FROM host").bytes(0, 0)
    #expect(reopened?.dropFirst(8).starts(with: FleetKey.bytes(of: one.database.key.id)) == true)
    #expect(Reopening.read(reopened, under: one.database.key, of: row) == 7)
  }

  @Test func `goes on beside a row that somebody has locked, names it, and comes back`() throws {
    let pin = try #require(Pin([UInt8](repeating: 9, count: 32)))
    try fleet.addRows(pin)
    let (name, other) = (try one.enroll(), try one.enroll())
    try fleet.change()
    _ = try one.ask("BEGIN")
    _ = try one.ask("SET LOCAL idle_in_transaction_session_timeout = 0")
    _ = try one.ask("SELECT 1 FROM state WHERE name = $1 FOR UPDATE", [.text(Array(name.utf8))])
    _ = try one.ask("SELECT 1 FROM host FOR UPDATE")
    fleet.keepers[0].turn()
    let left = try two.database.keyLeft()
    #expect(left.count == 2 && left.names == [Array("web1".utf8), Array(name.utf8)], "\(left)")
    for row in [name, "web1"] {
      #expect(one.warnings.filter { $0.contains(row) && $0.contains("tries again") }.count == 1)
    }
    _ = try one.ask("COMMIT")
    fleet.keepers[0].turn()
    #expect(try two.database.keyLeft() == KeyLeft())
    #expect(try two.type("287082", as: other).isAccepted)
    #expect(one.complaints.isEmpty)
  }

  // decisive
  @Test func `changes nothing for who is on the way to the fleet`() throws {
    let name = try #require(UserName(Array("moving".utf8)))
    let store = two.store(for: "moving")
    _ = try store.countLogin(of: Account(name: name, uid: nil))
    let before = try store.standing(of: name)
    try fleet.change()
    fleet.turn()
    let after = try two.store(for: "moving").standing(of: name)
    #expect(after == before && after.version > 0)
    let enrollment = try fleetEnrollment([try authenticator(parameters())], "moving")
    let moving = MoveRequest.Moving(enrollment, LoginState(initialFor: enrollment))
    #expect(
      try two.store(for: "moving").put(moving, over: before.version, from: Array("web1".utf8))
        == nil)
  }
}
