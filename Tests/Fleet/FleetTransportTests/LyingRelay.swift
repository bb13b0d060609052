import CService
import CTLS
import Glibc
import OneTimePassword
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

/// The keys of hosts, as a verifier of a test has them.
final class FakeSeals: HostSeals {
  struct State: Sendable {
    var keys: [Pin: [SealKeys]] = [:]
    var only: Set<Pin> = []
    var proofs: [[UInt8]] = []
    /// Of each question that was opened, whether it was by former keys.
    var opened: [Bool] = []
    var unsealed = 0
  }
  let state = Locked(State())

  func keys(of host: Pin) -> [SealKeys] { state.withLock { $0.keys[host] ?? [] } }
  func isOnlySealed(_ host: Pin) -> Bool? { state.withLock { $0.only.contains(host) } }
  func proofs(for host: Pin) -> [[UInt8]] { state.withLock { $0.proofs } }
  func noteSealed(_ host: Pin, former: Bool) { state.withLock { $0.opened.append(former) } }
  func noteUnsealed(_ host: Pin) { state.withLock { $0.unsealed += 1 } }
}

/// Somebody between a host and a verifier who has the TLS keys of both: he reads all frames, and
/// sends on what his script says.
final class LyingRelay: Sendable {
  struct Sent: Sendable, Equatable {
    var nonce: UInt64
    var kind: UInt8
    var body: [UInt8]

    var bytes: [UInt8] {
      let frame = Secret(body).flatMap { Frame.make(nonce, kind, $0) }
      return frame.map { $0.bytes(in: 0..<$0.count) } ?? []
    }
  }

  struct Script: Sendable {
    /// nil: the connection is closed.
    var greeting: @Sendable (Sent) -> Sent? = { $0 }
    /// To the verifier, which is waited for after each.
    var up: @Sendable (Sent) -> [Sent] = { [$0] }
    /// To the host, of all answers to what was sent up.
    var down: @Sendable ([Sent]) -> [Sent] = { $0.suffix(1) }
  }

  let script = Locked(Script())
  let (asked, answered): (Locked<[Sent]>, Locked<[Sent]>) = (Locked([]), Locked([]))
  private let (toHost, toVerifier): (TLSSide, TLSSide)
  private let listener: Int32
  private let port: UInt16
  let address: VerifierAddress

  init(_ verifier: TestVerifier, _ host: Identity) throws {
    toHost = try #require(TLSSide(verifier.identity, pins: nil))
    toVerifier = try #require(TLSSide(host, pins: [verifier.identity.pin]))
    port = verifier.server.address.port
    // SAFETY: as many bytes as are said.
    listener = unsafe tls_listen([127, 0, 0, 1], 4, 0)
    try #require(listener >= 0)
    let own = UInt16(clamping: tls_port(listener))
    address = VerifierAddress(bytes: [127, 0, 0, 1], port: own)
    try startThread { [self] in accept() }
  }

  func stop() { _ = shutdown(listener, Int32(SHUT_RDWR)) }

  private func accept() {
    while true {
      var watched = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
      _ = Waiting.poll(&watched, until: sys_monotonic() + 30_000_000_000)
      var source: UInt64 = 0
      // SAFETY: filled within the call.
      let made = unsafe tls_accept(listener, &source)
      if made == -EAGAIN { continue }
      guard made >= 0 else { return }
      do throws(ServiceError) { try startThread { [self] in carry(Raw(accepted: made)) } } catch {
        return
      }
    }
  }

  private func carry(_ host: Raw) {
    guard let verifier = try? Raw(port), let greeted = try? verifier.greet(toVerifier),
      (try? host.shakeHands(toHost)) == true
    else { return }
    let greeting = Sent(nonce: 0, kind: greeted, body: verifier.greeting)
    let script = script.withLock { $0 }
    guard let told = script.greeting(greeting), host.write(told.bytes) else { return }
    while let (nonce, kind, body) = host.frame() {
      let question = Sent(nonce: nonce, kind: kind, body: body.bytes(in: 0..<body.count))
      asked.withLock { $0.append(question) }
      let script = self.script.withLock { $0 }
      var answers: [Sent] = []
      for one in script.up(question) {
        guard verifier.write(one.bytes), let (nonce, kind, body) = verifier.frame() else { return }
        answers.append(Sent(nonce: nonce, kind: kind, body: body.bytes(in: 0..<body.count)))
      }
      answered.withLock { $0 += answers }
      for one in script.down(answers) where !host.write(one.bytes) { return }
    }
  }
}

/// A verifier, a host that has keys, and a relay between them.
final class Sealed: Sendable {
  let identity: Identity
  let seals = FakeSeals()
  let verifier: TestVerifier
  let relay: LyingRelay
  let seal: HostSeal
  let typed = Array("what alice typed".utf8)
  private let pool: VerifierPool

  /// `isOnly`: nothing else counts, on both sides.
  init(isOnly: Bool = true, beginning: Beginning? = nil) throws {
    identity = try newIdentity()
    let (pin, keys) = (identity.pin, try sealKeys(5))
    seals.state.withLock { state in
      state.keys[pin] = [keys]
      if isOnly { state.only = [pin] }
    }
    verifier = try TestVerifier(seals: seals)
    relay = try LyingRelay(verifier, identity)
    seal = HostSeal(identity.pin, keys, isOnly: isOnly)
    pool = VerifierPool(
      FleetFile(
        host: "web1", enrolls: false, verifiers: [relay.address], pins: [verifier.identity.pin]),
      identity, seal: seal, beginning: beginning)
  }

  deinit {
    pool.close()
    relay.stop()
  }

  func ask(_ kind: FrameKind = .question, _ body: Secret? = nil, within: UInt64 = 20_000)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let body = body ?? Secret(typed) else { throw .away }
    return try pool.ask(kind, body, within: within)
  }

  func fault(within: UInt64 = 20_000) -> TransportFault? {
    do throws(TransportFault) {
      _ = try ask(within: within)
      return nil
    } catch {
      return error
    }
  }

  /// The same from now on with another script.
  func lie(_ change: @escaping @Sendable (inout LyingRelay.Script) -> Void) {
    relay.script.withLock { script in
      script = LyingRelay.Script()
      change(&script)
    }
  }

  var heard: Int { verifier.asked.withLock { $0.count } }
}
