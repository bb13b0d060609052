import FleetTransport
import Foundation
import SallyportAdministration
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService
@testable import SallyportSystem

@Suite struct `The thread of a reserve's keeper` {
  /// As often as a test can bear.
  private static var quick: ReserveSync.Pace {
    var pace = ReserveSync.Pace()
    (pace.probing, pace.pinging) = (10, 10)
    return pace
  }

  @Test func `finds by itself that the verifiers are back`() throws {
    let host = try CutHost(pace: Self.quick)
    host.keeper.start()
    try host.logIn("alice")
    #expect(soon { (try? host.entry("alice")) != nil })
    host.fleet.change { $0.isCut = true }
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
    host.fleet.change { $0.isCut = false }
    #expect(soon { host.fleet.used("alice") == 1 })
    #expect(soon { (try? host.reserve.isPending(name("alice"))) == false })
    // A code that is used here while they are there goes up at once.
    #expect(try host.type(second, as: "alice") == .accepted(.backupCode(left: 0)))
    #expect(soon { host.fleet.used("alice") == 3 })
  }

  @Test func `ends, and leaves nothing, when the host has left the fleet`() throws {
    let host = try CutHost(pace: Self.quick)
    try host.logIn("alice")
    host.keeper.start()
    host.isMember.withLock { $0 = false }
    #expect(soon { !FileManager.default.fileExists(atPath: host.path) })
    #expect(soon { host.log.contains { $0.contains("has left the fleet") } })
  }
}
