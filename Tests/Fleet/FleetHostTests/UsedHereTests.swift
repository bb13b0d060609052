import CService
import FleetProtocol
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService
@testable import SallyportSystem

/// The keeper's own questions reach nobody: the cable is cut when the answer is there.
@Suite struct `A backup code that a verifier has accepted` {
  private let host: CutHost
  private let lines = Locked<[String]>([])

  init() throws {
    host = try CutHost()
    try host.logIn("alice")
    host.fleet.change { $0.isCut = true }
  }

  private func type(_ text: String, _ proof: Proof = .backupCode(left: 1)) throws -> ServiceAnswer?
  {
    let lines = lines
    let reserve = try ReserveSync(
      host.reserve, host.fleet, isMember: { true },
      log: { _, line in
        lines.withLock { $0.append(String(decoding: line.bytes, as: UTF8.self)) }
      })
    defer { reserve.stop() }
    let relay = Relay(
      { () throws(MembershipFault) in ScriptedVerifiers(.outcome(.accepted(proof))) },
      away: reserve, news: { _, _ in })
    let verb = LoginQuestion.Verb.attempt(
      try secret(text), knownAs: nil, as: .last(givingBack: nil))
    let question = try question(verb, until: sys_monotonic() + 5_000_000_000)
    return try relay.answer(question) { _, _ in }
  }

  // shows: cut-off
  @Test(arguments: [first, "7kmf2x9qd4tw0hza"])
  func `is used on this host, too, before anybody is told`(_ typed: String) throws {
    #expect(try type(typed) == .outcome(.accepted(.backupCode(left: 1))))
    #expect(try host.entry("alice")?.used == 1)
    let left = BudgetLeft(known: 0, other: 0)
    #expect(
      try host.type(first, as: "alice")
        == .refused(.response(.replayed(until: UnixTime(0)), left: left)))
    #expect(try host.type(second, as: "alice") == .accepted(.backupCode(left: 0)))
    // Nothing that a verifier has to hear of before it is asked, nor is it verified here.
    #expect(lines.withLock { $0 }.isEmpty)
  }

  /// Another host may hold the same codes.
  // decisive
  @Test func `is not good here where the fleet is there, and has not taken what was used`() throws {
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
    host.fleet.change { ($0.isCut, $0.disbelieves) = (false, true) }
    #expect(try type(second) == .trouble(mayBeTheCallers: false))
    #expect(try host.entry("alice")?.used == 1)
    host.fleet.change { $0.disbelieves = false }
    #expect(try type(second) == .outcome(.accepted(.backupCode(left: 1))))
    #expect(try host.entry("alice")?.used == 3)
  }

  @Test func `has not to go up before a verifier is asked again`() throws {
    _ = try type(first)
    #expect(try !host.reserve.isPending(name("alice")))
    // And yet it goes up with all the others: the fleet may have lost it.
    host.fleet.change { $0.isCut = false }
    host.keeper.noteAway()
    host.keeper.work()
    #expect(host.fleet.used("alice") == 1)
  }

  @Test func `uses none of these where it was another code, or one of a newer set`() throws {
    _ = try type("123456", .authenticator(name: Label("phone"), drift: 0))
    _ = try type("0000-0000-0000-000A")
    _ = try type("12345678")
    #expect(try host.entry("alice")?.used == 0)
    #expect(lines.withLock { $0 }.isEmpty)
  }

  @Test func `lets in where that cannot be noted, which is logged`() throws {
    try FileManager.default.removeItem(atPath: host.path + "/users")
    try Data().write(to: URL(fileURLWithPath: host.path + "/users"))
    #expect(try type(first) == .outcome(.accepted(.backupCode(left: 1))))
    #expect(lines.withLock { $0 }.contains { $0.contains("user=alice") })
  }
}
