import CService
import OneTimePassword
import SallyportSupport
import Testing

@testable import FleetTransport

@Suite struct `The turns of a verifier` {
  @Test func `are as many as there is a share, and the others follow in their order`() {
    var limits = ConnectionLimits()
    (limits.workersOfUser, limits.workersOfOne) = (2, 1)
    var turns = FairQueue(limits)
    let alice = FairQueue.QueueKey.user(1)
    var begun = [1, 2, 3, 4].map { turns.begin($0, of: alice) }
    #expect(begun == [true, true, false, false])
    begun = [turns.begin(5, of: .user(2)), turns.begin(6, of: alice)]
    #expect(begun == [true, false])
    let next = (0..<5).map { _ in turns.next(of: alice) }
    #expect(next == [3, 4, 6, nil, nil])
    begun = [7, 8, 9].map { turns.begin($0, of: alice) }
    #expect(begun == [true, true, false])
  }

  // decisive
  @Test func `are never none`() {
    var limits = ConnectionLimits()
    (limits.workersOfUser, limits.workersOfOne, limits.workersOfStrangers) = (0, -1, 0)
    var turns = FairQueue(limits)
    let begun = [turns.begin(1, of: .user(1)), turns.begin(2, of: .strangers)]
    #expect(begun == [true, true])
  }
}

@Suite(.serialized) struct `A verifier that is busy` {
  private let go = Locked(false)
  private let asked = Locked<[UInt8]>([])

  /// Answers questions whose first byte is not 0 when it is let go; that byte says about whom, and
  /// 9 about a reserve.
  private func verifier(_ limits: ConnectionLimits) throws -> TestVerifier {
    let (go, asked) = (go, asked)
    let handler: TestVerifier.Answer = { _, kind, body, _ in
      asked.withLock { $0.append(body[0]) }
      if body[0] > 0 { _ = soon { go.withLock { $0 } } }
      return VerifierAnswer(to: kind, [body[0]])
    }
    return try TestVerifier(
      limits: limits, handler: handler,
      in: { body in body[0] == 9 ? .reserves : body[0] > 0 ? .user([body[0]]) : nil })
  }

  private func connection(to verifier: TestVerifier, _ kind: FrameKind, _ about: UInt8) throws
    -> Raw
  {
    let raw = try verifier.raw()
    let side = try #require(TLSSide(try newIdentity(), pins: [verifier.identity.pin]))
    #expect(try raw.greet(side) == 0x84)
    #expect(raw.write([2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, kind.rawValue, about]))
    return raw
  }

  private func count(_ about: UInt8) -> Int {
    asked.withLock { $0.count { $0 == about } }
  }

  // shows: fair-workers
  @Test func `with one user, answers about others`() throws {
    var limits = ConnectionLimits()
    (limits.workers, limits.workersOfUser) = (3, 2)
    let verifier = try verifier(limits)
    let about1 = try (0..<6).map { _ in try connection(to: verifier, .question, 1) }
    #expect(soon { count(1) == 2 })
    let other = try connection(to: verifier, .question, 0)
    #expect(other.frame()?.kind == 0x81)
    #expect(count(1) == 2)
    // Nothing is verified for a caller who has left by then.
    shutdown(about1[5].descriptor, Int32(SHUT_RDWR))
    go.withLock { $0 = true }
    #expect(about1.map { $0.frame()?.body[0] }.count { $0 == 1 } == 5)
    #expect(soon { verifier.server.connections == 6 })
    #expect(count(1) == 5)
  }

  // shows: fair-workers
  @Test func `with a crowd that confirms its reserves, answers others, and then all of it`() throws
  {
    var limits = ConnectionLimits()
    (limits.workers, limits.workersOfReserves) = (3, 2)
    let verifier = try verifier(limits)
    let crowd = try (0..<12).map { _ in try connection(to: verifier, .reserve, 9) }
    #expect(soon { count(9) == 2 })
    let other = try connection(to: verifier, .question, 0)
    #expect(other.frame()?.kind == 0x81)
    #expect(count(9) == 2)
    go.withLock { $0 = true }
    for host in crowd { #expect(host.frame()?.kind == 0x83) }
  }

  // shows: fair-workers
  @Test func `with strangers, answers hosts`() throws {
    var limits = ConnectionLimits()
    (limits.workers, limits.workersOfUser, limits.workersOfStrangers) = (2, 2, 1)
    let verifier = try verifier(limits)
    verifier.known.withLock { $0 = [] }
    let strangers = try (1...4).map { try connection(to: verifier, .join, $0) }
    #expect(soon { asked.withLock { $0.count } == 1 })
    verifier.known.withLock { $0 = nil }
    #expect(try connection(to: verifier, .question, 0).frame()?.kind == 0x81)
    #expect(asked.withLock { $0.count } == 2)
    go.withLock { $0 = true }
    for stranger in strangers { #expect(stranger.frame()?.kind == 0x82) }
  }
}
