import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportSystem

@Suite struct `The mark that a host keeps` {
  private func shown(_ host: CutHost) -> [UInt8]? {
    host.fleet.state.withLock { $0.pings.last }
  }

  @Test func `is the last one that a verifier gave, and is shown in each ping`() throws {
    let host = try CutHost()
    host.keeper.work()
    #expect(shown(host) == [1])
    for mark: [UInt8] in [[7, 8], [9]] {
      host.fleet.change { $0.pong = Ping.answer(mark) }
      host.keeper.work()
      host.keeper.work()
      #expect(shown(host) == [1] + mark)
    }
    // Of the former version, or not now: it is kept.
    for pong: [UInt8] in [[], [0], [1], [2, 3], [1] + [UInt8](repeating: 7, count: 256)] {
      host.fleet.change { $0.pong = pong }
      host.keeper.work()
      host.keeper.work()
      #expect(shown(host) == [1, 9])
    }
  }

  @Test func `outlives its service, and is not written at each ping`() throws {
    let host = try CutHost()
    host.fleet.change { $0.pong = Ping.answer([7]) }
    host.keeper.work()
    host.fleet.change { $0.pong = Ping.answer([8]) }
    host.keeper.work()
    func restarted() throws -> [UInt8]? {
      try ReserveSync(host.restarted(), host.fleet) { _, _ in }.mark
    }
    #expect(try restarted() == [7])
    // Ten minutes later.
    host.keeper.state.withLock { $0.marked = 0 }
    host.keeper.work()
    #expect(try restarted() == [8])
    try host.reserve.store.keep(fleetMark: [UInt8](repeating: 7, count: 256))
    #expect(try restarted() == [], "that is none")
  }

  // decisive
  @Test func `is shown before a login is asked, which is not where the answer is no`() throws {
    let host = try CutHost()
    host.fleet.change { $0.pong = Ping.answer([7]) }
    host.keeper.work()
    let answers: [(VerifierAnswer?, Bool)] = [
      (VerifierAnswer(to: .ping, Ping.answer([8])), true), (VerifierAnswer(to: .ping, []), true),
      (VerifierAnswer(to: .ping, Ping.answer(nil)), false), (.databaseAway, false), (nil, false),
    ]
    for (answer, isFine) in answers {
      let asked = Locked<[UInt8]>([])
      let found = host.keeper.showMark { body in
        asked.withLock { $0 = bytes(body) }
        return answer
      }
      #expect(found == isFine)
      #expect(asked.withLock { $0.first } == 1)
    }
    #expect(host.keeper.mark == [8])
  }

  @Test func `is none where nothing can be kept, as on a root that is read-only`() throws {
    let own = try TemporaryDirectory()
    let reserve = Reserve(at: own.path + "/a/file/reserve", owner: .effectiveUser)
    try "".write(toFile: own.path + "/a", atomically: true, encoding: .utf8)
    #expect(throws: (any Error).self) { try reserve.prepare() }
    let fleet = ScriptedFleet()
    fleet.change { $0.pong = Ping.answer([7]) }
    let keeper = try ReserveSync(reserve, fleet) { _, _ in }
    keeper.work()
    #expect(keeper.showMark { VerifierAnswer(to: .ping, bytes($0).isEmpty ? [] : [0]) })
    #expect(keeper.mark == nil)
  }
}
