import CService
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

private func bytes(_ secret: Secret) -> [UInt8] { secret.bytes(in: 0..<secret.count) }

@Suite struct `A host and a verifier of two versions` {
  @Test func `go on without a seal until both have it`() throws {
    let (seals, identity) = (FakeSeals(), try newIdentity())
    let keys = try sealKeys(5)
    let verifier = try TestVerifier(seals: seals) { _, kind, body, _ in
      kind == .keys
        ? VerifierAnswer(to: kind, keys.encoded().map(bytes) ?? [])
        : VerifierAnswer(to: kind, bytes(body))
    }
    let former = try TestVerifier(verifier.identity)
    func pool(_ verifier: TestVerifier, _ seal: HostSeal?) -> VerifierPool {
      VerifierPool(
        FleetFile(
          host: "web1", enrolls: false, verifiers: [verifier.server.address],
          pins: [verifier.identity.pin]), identity, seal: seal)
    }
    let question = try secret(3)
    // A host of the former version, and one of a verifier without seals, which has keys.
    #expect(
      try pool(verifier, nil).ask(.question, question, within: 20_000).body == bytes(question))
    let early = HostSeal(identity.pin, keys)
    #expect(try pool(former, early).ask(.question, question, within: 20_000).answers(.question))
    #expect(!early.isBehind)
    // One without keys fetches them once a verifier has some.
    let seal = HostSeal(identity.pin)
    let line = pool(verifier, seal)
    _ = try line.ask(.question, question, within: 20_000)
    line.renewSeal()
    #expect(seal.keys == nil && !seal.isBehind)
    seals.state.withLock { $0.keys[identity.pin] = [keys] }
    let later = pool(verifier, seal)
    _ = try later.ask(.question, question, within: 20_000)
    #expect(seals.state.withLock { $0.opened.isEmpty })
    later.renewSeal()
    #expect(seal.keys?.name == keys.name)
    _ = try later.ask(.question, question, within: 20_000)
    #expect(seals.state.withLock { $0.opened } == [false])
    #expect(later.look())
  }

  // decisive; shows: sealed
  @Test func `count alone with the seal, once the verifiers say so`() throws {
    let sealed = try Sealed(isOnly: false)
    // Who has the TLS key is answered until then.
    let plain = VerifierPool(
      FleetFile(
        host: "web1", enrolls: false, verifiers: [sealed.verifier.server.address],
        pins: [sealed.verifier.identity.pin]), sealed.identity)
    #expect(try plain.ask(.question, try secret(3), within: 20_000).answers(.question))
    #expect(!sealed.seal.isOnly)
    sealed.seals.state.withLock { $0.only = [sealed.identity.pin] }
    for kind in FrameKind.allCases where kind != .join {
      #expect(try plain.ask(kind, try secret(3), within: 20_000) == .databaseAway)
    }
    #expect(!plain.look())
    #expect(sealed.heard == 1)
    _ = try sealed.ask()
    #expect(sealed.seal.isOnly)
  }

  @Test func `take the next keys under those of before`() throws {
    let (seals, identity) = (FakeSeals(), try newIdentity())
    let (old, new) = (try sealKeys(5), try sealKeys(6))
    let verifier = try TestVerifier(seals: seals) { _, kind, body, _ in
      VerifierAnswer(to: kind, kind == .keys ? new.encoded().map(bytes) ?? [] : bytes(body))
    }
    seals.state.withLock { state in
      (state.keys[identity.pin], state.only) = ([old], [identity.pin])
    }
    let seal = HostSeal(identity.pin, old, isOnly: true)
    let line = VerifierPool(
      FleetFile(
        host: "web1", enrolls: false, verifiers: [verifier.server.address],
        pins: [verifier.identity.pin]), identity, seal: seal)
    let question = try secret(3)
    _ = try line.ask(.question, question, within: 20_000)
    line.renewSeal()
    #expect(seal.keys?.name == old.name)
    // On the connection that is kept.
    seals.state.withLock { $0.keys[identity.pin] = [new, old] }
    _ = try line.ask(.question, question, within: 20_000)
    #expect(seal.isBehind)
    line.renewSeal()
    #expect(seal.keys?.name == new.name && !seal.isBehind)
    seals.state.withLock { $0.keys[identity.pin] = [new] }
    _ = try line.ask(.question, question, within: 20_000)
    #expect(seals.state.withLock { $0.opened } == [false, true, true, false])
    // Who has missed it is answered no more, and says so.
    let late = HostSeal(identity.pin, old, isOnly: true)
    let behind = VerifierPool(
      FleetFile(
        host: "web1", enrolls: false, verifiers: [verifier.server.address],
        pins: [verifier.identity.pin]), identity, seal: late)
    #expect(throws: TransportFault.unsealed) { try behind.ask(.question, question, within: 2000) }
    #expect(!late.isBehind, "it takes no keys that are not sealed")
  }
}
