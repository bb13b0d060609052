import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService
@testable import SallyportSystem

@Suite struct `The keeper of a reserve` {
  @Test func `fetches the codes of each user who logs in, and what is used of them`() throws {
    let host = try CutHost()
    try host.logIn("alice", used: 1)
    #expect(try host.entry("alice")?.used == 1)
    #expect(try host.type(second, as: "alice") == .accepted(.backupCode(left: 0)))
  }

  // decisive
  @Test func `asks once a minute about somebody who logs in again and again`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    let asked = host.fleet.state.withLock { $0.asked.count }
    for _ in 0..<10 {
      host.keeper.fetch(try name("alice"), after: false)
      host.keeper.work()
    }
    #expect(host.fleet.state.withLock { $0.asked.count } == asked)
    // With a backup code he has used one.
    host.fleet.change { $0.people[Array("alice".utf8)]?.used = 1 }
    host.keeper.fetch(try name("alice"), after: true)
    host.keeper.work()
    #expect(try host.entry("alice")?.used == 1)
  }

  @Test func `has nobody who has no backup codes any more`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.fleet.change { $0.people = [:] }
    host.keeper.fetch(try name("alice"))
    host.keeper.work()
    #expect(try host.reserve.entries().isEmpty)
  }

  // shows: reserve-goes-up
  @Test func `sends up what was used before a verifier is asked about that person`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    try host.logIn("bob")
    host.fleet.change { $0.isCut = true }
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
    #expect(try host.keeper.report(name("alice"), within: 100) == .away)
    #expect(try host.keeper.report(name("bob"), within: 100) == .taken)
    host.fleet.change { $0.isCut = false }
    #expect(host.fleet.used("alice") == 0)
    #expect(try host.keeper.report(name("alice"), within: 100) == .taken)
    #expect(host.fleet.used("alice") == 1)
    #expect(try !host.restarted().isPending(name("alice")))
  }

  // shows: reserve-goes-up
  @Test func `sends up, after a restart, what the service before it had not`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.fleet.change { $0.isCut = true }
    _ = try host.type(second, as: "alice")
    let again = try host.restarted()
    let keeper = try ReserveSync(again, host.fleet) { _, _ in }
    host.fleet.change { $0.isCut = false }
    keeper.work()
    #expect(host.fleet.used("alice") == 2)
    #expect(try !again.isPending(name("alice")))
  }

  @Test func `keeps pending what was used while the rest went up`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.fleet.change { $0.isCut = true }
    _ = try host.type(first, as: "alice")
    let stored = try host.reserve.store.storedName(of: name("alice"))
    let sent = try #require(try host.reserve.entry(stored: stored))
    _ = try host.type(second, as: "alice")
    try host.reserve.wentUp(sent, stored: stored)
    #expect(try host.reserve.isPending(name("alice")))
    let all = try #require(try host.reserve.entry(stored: stored))
    try host.reserve.wentUp(all, stored: stored)
    #expect(try !host.reserve.isPending(name("alice")))
  }

  /// Else he would be answered as if the fleet were away, once more than he has to be.
  @Test func `keeps nothing pending where more was used elsewhere while it was away`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.fleet.change { $0.isCut = true }
    _ = try host.type(first, as: "alice")
    host.fleet.change {
      $0.isCut = false
      $0.people[Array("alice".utf8)]?.used = 2
    }
    #expect(try host.keeper.report(name("alice"), within: 100) == .taken)
    #expect(try host.entry("alice")?.used == 3 && host.fleet.used("alice") == 3)
    #expect(try !host.restarted().isPending(name("alice")))
  }

  // decisive
  @Test func `keeps what was used after the report that the answer is about`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    let stored = try host.reserve.store.storedName(of: name("alice"))
    host.fleet.change { $0.isCut = true }
    let before = try #require(try host.reserve.entry(stored: stored))
    _ = try host.type(first, as: "alice")
    let all = try #require(try host.reserve.entry(stored: stored))
    try host.reserve.remove(reported: before, stored: stored)
    try host.reserve.remove(name("alice"))
    try host.reserve.void()
    #expect(try host.entry("alice") == all && host.restarted().isPending(name("alice")))
    try host.reserve.remove(reported: all, stored: stored)
    #expect(try host.entry("alice") == nil && !host.restarted().isPending(name("alice")))
  }

  // decisive
  @Test func `reports again what a verifier kept without having taken it`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.fleet.change { $0.isCut = true }
    _ = try host.type(first, as: "alice")
    host.fleet.change { ($0.isCut, $0.disbelieves) = (false, true) }
    host.keeper.work()
    #expect(try host.keeper.report(name("alice"), within: 100) == .notTaken)
    host.fleet.change { $0.garbage = [] }
    #expect(try host.keeper.report(name("alice"), within: 100) == .notTaken)
    host.fleet.change { $0.garbage = nil }
    #expect(try host.reserve.isPending(name("alice")) && host.fleet.used("alice") == 0)
    host.fleet.change { $0.disbelieves = false }
    host.keeper.work()
    #expect(try !host.reserve.isPending(name("alice")) && host.fleet.used("alice") == 1)
  }

  @Test func `does not take up what verifiers say is away`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.fleet.change { $0.isDatabaseAway = true }
    _ = try host.type(first, as: "alice")
    #expect(try host.keeper.report(name("alice"), within: 100) == .away)
    // Each time twice as late, up to a bound: many hosts may be waiting.
    let pauses = (0..<5).map { _ in host.keeper.work() }
    #expect(pauses == [1000, 2000, 4000, 4000, 4000])
    host.fleet.change { $0.isDatabaseAway = false }
    #expect(host.keeper.work() == ReserveSync.Pace().pinging)
    host.fleet.change { $0.isDatabaseAway = true }
    #expect(host.keeper.work() == ReserveSync.Pace().probing)
    host.fleet.change { $0.isDatabaseAway = false }
    host.keeper.work()
    #expect(host.fleet.used("alice") == 1)
  }

  // shows: reserve-ends
  @Test func `learns what was used elsewhere, and whom the fleet has no more`() throws {
    let host = try CutHost()
    for person in ["alice", "bob", "carol"] { try host.logIn(person) }
    let new = try codes(0xc0c0)
    host.fleet.change {
      $0.isCut = true
      $0.people[Array("alice".utf8)]?.used = 1
      $0.people[Array("bob".utf8)] = nil
      $0.people[Array("carol".utf8)]?.set = new
    }
    host.keeper.work()
    #expect(try host.reserve.entries().count == 3)
    host.fleet.change { $0.isCut = false }
    host.keeper.work()
    #expect(try host.entry("alice")?.used == 1)
    #expect(try host.entry("bob") == nil)
    #expect(try host.entry("carol")?.setID == 0xc0c0)
  }

  @Test func `wipes a user who was enrolled again, whatever was used of the old codes`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.fleet.change { $0.isCut = true }
    _ = try host.type(first, as: "alice")
    host.fleet.change {
      $0.isCut = false
      $0.people[Array("alice".utf8)]?.enrollment = 0xf0f0
    }
    host.keeper.work()
    #expect(try host.reserve.entries().isEmpty)
    #expect(try !host.reserve.isPending(name("alice")))
    #expect(host.fleet.used("alice") == 0)
  }

  @Test func `confirms a large reserve in parts, also where each part is cut short`() throws {
    let host = try CutHost()
    let set = try codes(0xb0b0)
    for number in 0..<450 {
      let person = try name("user\(number)")
      try host.reserve.put(
        person,
        ReserveAnswer.Section(
          enrollmentID: 0xe0e0, receipt: ScriptedFleet.receipt, set: set, used: 0))
      host.fleet.change {
        $0.people[person.bytes] = ScriptedFleet.Person(enrollment: 0xe0e0, set: set, used: 2)
      }
    }
    host.fleet.change { ($0.most, $0.busy) = (70, 2) }
    host.keeper.work()
    let entries = try host.reserve.entries()
    #expect(entries.count == 450 && entries.allSatisfy { $0.used == 2 })
    #expect(host.fleet.state.withLock { $0.asked.count } >= 7)
    #expect(host.reserve.isGood(for: 1))
  }

  @Test func `does not take a reserve for confirmed of which it saw a part`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.pass(1000)
    host.fleet.change { $0.isCut = true }
    host.keeper.work()
    #expect(!host.reserve.isGood(for: 1000))
    #expect(host.reserve.isGood(for: 1001))
    host.fleet.change { $0.isCut = false }
    host.keeper.work()
    #expect(host.reserve.isGood(for: 1))
  }

  @Test func `notes how old the reserve is while it is cut off, each ten minutes`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    let noted = try host.reserve.store.confirmation()
    host.fleet.change { $0.isCut = true }
    host.pass(599)
    host.keeper.work()
    #expect(try host.reserve.store.confirmation() == noted)
    host.pass(1)
    host.keeper.work()
    #expect(try host.reserve.store.confirmation() != noted)
    // Back at the first boot's clock, as a machine without a clock of its own.
    host.moment.withLock {
      $0 = ReserveAge.Moment(clock: CutHost.start.clock, boot: Array("next".utf8), uptime: 5)
    }
    #expect(try !host.restarted().isGood(for: UInt64.max))
  }

  @Test func `changes nothing by answers that are none`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    var random = Seeded(5)
    for person in ["alice", "bob"] { host.keeper.fetch(try name(person)) }
    host.keeper.noteAway()
    for count in 0..<50 {
      host.fleet.change { $0.garbage = random.bytes(count) }
      host.keeper.work()
      #expect(try host.reserve.entries().count == 1)
    }
    host.fleet.change { $0.garbage = nil }
    host.keeper.work()
    #expect(try host.entry("alice") != nil)
    // The same words once, not fifty times.
    #expect(host.log.count { $0.contains("unrecognized answer") } == 1)
  }

  // decisive
  // shows: empty-database
  @Test func `keeps all where no verifier knows the host, and reports to one that does`() throws {
    let host = try CutHost()
    for person in ["alice", "bob"] { try host.logIn(person) }
    host.fleet.change { $0.isCut = true }
    host.keeper.work()
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
    host.fleet.change { ($0.isCut, $0.isStranger) = (false, true) }
    for _ in 0..<3 { host.keeper.work() }
    #expect(try host.reserve.entries().count == 2)
    #expect(try host.reserve.isPending(try name("alice")))
    // Another verifier, which knows this host, does not know what was used here.
    #expect(throws: TransportFault.stranger) {
      try host.keeper.report(name("alice"), within: 1000)
    }
    #expect(!host.keeper.isConfirmed)
    host.fleet.change { $0.isStranger = false }
    host.keeper.work()
    #expect(host.fleet.used("alice") == 1)
    #expect(try !host.reserve.isPending(try name("alice")))
    #expect(host.log.count { $0.contains("no verifier knows this host") } == 1)
  }

  // decisive
  @Test func `says which start it is, more after each code and each restart, on disk before`()
    throws
  {
    let host = try CutHost()
    try host.logIn("alice")
    let told = try #require(host.fleet.state.withLock { $0.starts.last })
    #expect(try host.reserve.store.startNumber() == told.number)
    #expect(host.fleet.state.withLock { $0.starts.map { $0.confirmed != nil } } == [false, true])
    host.fleet.change { $0.isCut = true }
    host.keeper.work()
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
    let used = try #require(host.reserve.start)
    #expect(used == HostStart(random: told.random, number: told.number + 1))
    #expect(try host.reserve.store.startNumber() == used.number)
    host.fleet.change { $0.isCut = false }
    host.keeper.work()
    let last = try #require(host.fleet.state.withLock { $0.starts.last })
    #expect(last.random == used.random && last.number == used.number)
    let next = try #require(try host.restarted().start)
    #expect(next.number == used.number + 1 && next.random != used.random)
    // It says so again until it is fine, and that it rests.
    for reply in [HostStartReply.again, .rests, .fine] {
      host.fleet.change { $0.reply = reply }
      host.keeper.noteAway()
      let before = host.fleet.state.withLock { $0.starts.count }
      for _ in 0..<3 { host.keeper.work() }
      let said = host.fleet.state.withLock { $0.starts.count } - before
      #expect(said == (reply == .fine ? 2 : 4))
      #expect(try host.reserve.entries().isEmpty == (reply == .rests))
      if reply == .rests { host.keeper.fetch(try name("alice")) }
    }
    #expect(host.log.count { $0.contains("its rights rest") } == 1)
  }

  // decisive
  @Test func `ends the reserve of a host that was revoked, and says what did not go up`() throws {
    let host = try CutHost()
    for person in ["alice", "bob"] { try host.logIn(person) }
    host.fleet.change { $0.isCut = true }
    host.keeper.work()
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
    host.fleet.change { ($0.isCut, $0.isRevoked) = (false, true) }
    for _ in 0..<3 { host.keeper.work() }
    #expect(try host.reserve.entries().map(\.name) == [try name("alice")])
    #expect(host.log.filter { $0.contains("does not know to be used") }.count == 1)
    #expect(host.log.contains { $0.contains("user=alice") && $0.contains("does not know") })
    #expect(host.log.contains { $0.contains("this host was revoked") })
    // Also after a restart, and where it is cut off again: no code of it is taken.
    host.fleet.change { $0.isCut = true }
    for reserve in [host.reserve, try host.restarted()] {
      #expect(!reserve.isGood(for: .max))
      for person in ["alice", "bob"] {
        for code in [first, second] {
          #expect(try host.type(code, as: person, in: reserve) == wrong)
        }
      }
    }
    host.isMember.withLock { $0 = false }
    host.keeper.dismantle()
    #expect(host.log.filter { $0.contains("does not know to be used") }.count == 2)
  }

  @Test func `wipes an entry that cannot be read, and goes on with the others`() throws {
    let host = try CutHost()
    for person in ["alice", "bob"] { try host.logIn(person) }
    try Data("garbage".utf8).write(
      to: URL(fileURLWithPath: host.path + "/users/alice/enrollment"), options: [])
    host.keeper.noteAway()
    host.keeper.work()
    #expect(try host.reserve.names().count == 1)
    #expect(host.reserve.isGood(for: 1))
  }

  @Test func `makes a new reserve where somebody has removed it`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    try FileManager.default.removeItem(atPath: host.path)
    host.keeper.noteAway()
    host.keeper.work()
    host.keeper.work()
    try host.logIn("bob")
    #expect(try host.entry("bob") != nil)
  }
}
