import Glibc
import SallyportSupport
import Testing

@testable import FleetTransport

@Suite(.serialized) struct `One who waits for a handshake of the same machine` {
  enum Waiting: CaseIterable, Sendable { case usual, usualInCrowd, tooLong, tooLongInCrowd, hungUp }

  private func limits(_ waiting: Waiting) -> ConnectionLimits {
    var limits = ConnectionLimits()
    (limits.round, limits.untilBegun) = (20_000_000, .max)
    // Longer than a handshake takes on a busy machine.
    if waiting == .tooLong { limits.untilGreeted = 1_000_000_000 }
    // More than half of the room is taken, also when the first one is done.
    if [.usualInCrowd, .tooLongInCrowd].contains(waiting) { limits.strangers = 3 }
    if [.usual, .tooLongInCrowd].contains(waiting) { limits.untilBegun = 0 }
    return limits
  }

  // decisive; shows: handshakes
  @Test(arguments: Waiting.allCases)
  func `costs none where he will be gone before its end`(_ waiting: Waiting) throws {
    let (isHeld, found) = (Locked(true), Locked(0))
    let verifier = try TestVerifier(
      limits: limits(waiting),
      standing: { _ in
        found.withLock { $0 += 1 }
        _ = soon { !isHeld.withLock { $0 } }
        return .member
      })
    let side = try #require(TLSSide(try newIdentity(), pins: [verifier.identity.pin]))
    let first = try verifier.raw()
    #expect(try first.shakeHands(side))
    #expect(soon { found.withLock { $0 } == 1 })
    let second = try verifier.raw()
    try second.begin(side)
    let silent = try verifier.raw()
    #expect(soon { waiting == .tooLong || verifier.server.connections == 3 })
    // Came later, and is over.
    if waiting == .tooLong { #expect(silent.isClosed()) }
    if waiting == .hungUp { shutdown(second.descriptor, Int32(SHUT_WR)) }
    isHeld.withLock { $0 = false }
    if [.usual, .usualInCrowd].contains(waiting) {
      #expect(try second.greet(side) == 0x84)
    } else {
      #expect(second.countRest() == 0)
    }
    withExtendedLifetime((first, silent)) {}
  }
}
