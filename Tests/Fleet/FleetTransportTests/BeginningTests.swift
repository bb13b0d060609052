import OneTimePassword
import SallyportSupport
import Testing

@testable import FleetTransport

@Suite struct `The first question of a login on a connection` {
  /// What came to a verifier, and how it answers pings.
  private final class Asked: Sendable {
    let kinds = Locked<[FrameKind]>([])
    let refuses = Locked(false)

    func verifier(_ identity: Identity? = nil) throws -> TestVerifier {
      try TestVerifier(identity) { [self] _, kind, _, _ in
        kinds.withLock { $0.append(kind) }
        return VerifierAnswer(to: kind, kind == .ping && refuses.withLock { $0 } ? [0] : [1])
      }
    }

    func take() -> [FrameKind] {
      kinds.withLock { kinds in
        defer { kinds = [] }
        return kinds
      }
    }
  }

  private func host(of verifiers: TestVerifier...) throws -> VerifierPool {
    let identity = try #require(verifiers.first).identity
    let file = FleetFile(
      host: "web1", enrolls: false, verifiers: verifiers.map(\.server.address),
      pins: [identity.pin])
    return VerifierPool(file, try newIdentity()) { ping in
      Secret([9]).flatMap(ping)?.body == [1]
    }
  }

  // decisive
  @Test func `comes after a ping, once on each connection, and no other question does`() throws {
    let asked = Asked()
    let verifier = try asked.verifier()
    let client = try host(of: verifier)
    for kind in [FrameKind.reserve, .status, .management] {
      _ = try client.ask(kind, try secret(1), within: 20_000)
    }
    #expect(asked.take() == [.reserve, .status, .management])
    // Also on a connection that was kept from before.
    for _ in 0..<3 { _ = try client.ask(.question, try secret(1), within: 20_000) }
    #expect(asked.take() == [.ping, .question, .question, .question])
    _ = try host(of: verifier).ask(.question, try secret(1), within: 20_000)
    #expect(asked.take() == [.ping, .question])
  }

  // decisive
  @Test func `is asked of another verifier where the answer to it is no, or none`() throws {
    let (no, yes) = (Asked(), Asked())
    let first = try no.verifier()
    let second = try yes.verifier(first.identity)
    no.refuses.withLock { $0 = true }
    // Which one is asked first is left to chance.
    for _ in 0..<8 {
      let client = try host(of: first, second)
      #expect(try client.ask(.question, try secret(1), within: 20_000).answers(.question))
    }
    #expect(!no.take().contains(.question))
    #expect(yes.take().contains(.question))
    yes.refuses.withLock { $0 = true }
    let client = try host(of: first, second)
    // Also over a connection that was kept.
    _ = try client.ask(.status, try secret(1), within: 20_000)
    for _ in 0..<2 {
      #expect(throws: TransportFault.away) {
        try client.ask(.question, try secret(1), within: 20_000)
      }
    }
    #expect(!(no.take() + yes.take()).contains(.question))
  }

  // decisive
  // shows: sealed
  @Test func `is sealed after the ping, which is sealed too`() throws {
    let sealed = try Sealed { ping in Secret([9]).flatMap(ping)?.body == [9] }
    for _ in 0..<2 { #expect(try sealed.ask().body == sealed.typed) }
    #expect(sealed.verifier.asked.withLock { $0 } == [.ping, .question, .question])
    #expect(sealed.verifier.server.connections == 1)
    #expect(sealed.relay.asked.withLock { $0.map(\.kind) } == [0x07, 0x07, 0x07])
    #expect(sealed.relay.answered.withLock { $0.map(\.kind) } == [0x87, 0x87, 0x87])
    // The answer to the ping is not of a verifier: no question goes up, on a new connection.
    sealed.lie { $0.down = { _ in [] } }
    #expect(sealed.fault(within: 300) == .unknown)
    sealed.lie { script in
      script.down = { $0.map { LyingRelay.Sent(nonce: $0.nonce, kind: 0x84, body: [9]) } }
    }
    #expect(sealed.fault() == .away)
    #expect(sealed.verifier.asked.withLock { $0.suffix(2) } == [.question, .ping])
  }
}
