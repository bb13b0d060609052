import CService
import CTLS
import Foundation
import OneTimePassword
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

@Suite(.serialized) struct `A connection between host and verifier` {
  private func fault(_ client: VerifierPool, _ kind: FrameKind = .question, within: UInt64 = 20_000)
    -> TransportFault?
  {
    do throws(TransportFault) {
      guard let body = Secret(count: 1) else { return nil }
      _ = try client.ask(kind, body, within: within)
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [0, 1, 16_384, 65_599])
  func `carries questions and answers of any length`(_ count: Int) throws {
    let verifier = try TestVerifier()
    let client = try verifier.client()
    let body = try secret(count)
    for kind in FrameKind.allCases {
      let answer = try client.ask(kind, body, within: 20_000)
      #expect(answer.answers(kind))
      #expect(answer.body == body.bytes(in: 0..<count))
    }
    #expect(verifier.server.connections == 1)
  }

  @Test func `carries no question that is too long`() throws {
    let verifier = try TestVerifier()
    let client = try verifier.client()
    let long = try secret(VerifierPool.longestBody + 1)
    #expect(throws: TransportFault.away) { try client.ask(.question, long, within: 20_000) }
    #expect(verifier.asked.withLock { $0.isEmpty })
  }

  @Test func `is for the verifier with the pin alone`() throws {
    let verifier = try TestVerifier()
    let client = try verifier.client(pin: try newIdentity().pin)
    #expect(fault(client) == .unpinned)
    #expect(verifier.asked.withLock { $0.isEmpty })
  }

  @Test func `takes a verifier with the second pin`() throws {
    let verifier = try TestVerifier()
    let file = FleetFile(
      host: "web1", enrolls: false, verifiers: [verifier.server.address],
      pins: [try newIdentity().pin, verifier.identity.pin])
    #expect(fault(VerifierPool(file, try newIdentity())) == nil)
  }

  @Test func `lets who is no host of the fleet only join`() throws {
    let verifier = try TestVerifier()
    verifier.known.withLock { $0 = [] }
    let client = try verifier.client()
    #expect(fault(client) == .stranger)
    #expect(verifier.asked.withLock { $0.isEmpty })
    #expect(fault(client, .join) == nil)
    #expect(verifier.asked.withLock { $0 } == [.join])
  }

  @Test func `lets a host that was revoked not even join`() throws {
    let (verifier, identity) = (try TestVerifier(), try newIdentity())
    verifier.revoked.withLock { $0 = [identity.pin] }
    let client = try verifier.client(identity)
    for kind in FrameKind.allCases { #expect(fault(client, kind) == .revoked) }
    #expect(!client.look())
    #expect(verifier.asked.withLock { $0.isEmpty })
  }

  @Test func `is greeted by the form, which hosts of the former version read alone`() {
    let greetings: [(HostStanding, [UInt8])] = [
      (.member, [1]), (.unknown, [1, 1]), (.revoked, [1, 2]),
    ]
    for (standing, greeting) in greetings {
      #expect(standing.greeting == greeting)
      #expect(HostStanding(greeting: 0x84, standing.greeting) == standing)
    }
    #expect(HostStanding(greeting: 0x84, [1, 3]) == .unknown)
    // Of the former version.
    #expect(HostStanding(greeting: 0xed, [1]) == .unknown)
    for (kind, body): (UInt8, [UInt8]) in [(0x84, []), (0x84, [2]), (0xee, [1])] {
      #expect(HostStanding(greeting: kind, body) == nil)
    }
  }

  // decisive
  @Test func `ends when the host is revoked, also while it is open`() throws {
    let verifier = try TestVerifier()
    let identity = try newIdentity()
    verifier.known.withLock { $0 = [identity.pin] }
    let client = try verifier.client(identity)
    #expect(fault(client) == nil)
    #expect(verifier.server.connections == 1)
    let start = sys_monotonic()
    verifier.revoked.withLock { $0 = [identity.pin] }
    #expect(soon { verifier.server.connections == 0 })
    #expect(sys_monotonic() - start < 5_000_000_000)
    #expect(fault(client) == .revoked)
  }

  @Test func `stays where it began while others were looked up`() throws {
    let (first, second) = (try newIdentity(), try newIdentity())
    let (looks, isThere) = (Locked(0), Locked(false))
    var limits = ConnectionLimits()
    limits.round = 10_000_000
    let verifier = try newIdentity()
    let server = try FleetServer(
      on: VerifierAddress(bytes: [127, 0, 0, 1], port: 0), identity: verifier, limits: limits,
      standing: { pin in
        // The second time is that of the thread which looks for hosts that were revoked.
        guard pin == first.pin else { return .member }
        let look = looks.withLock { looks in
          looks += 1
          return looks
        }
        return look != 2 || soon { isThere.withLock { $0 } } ? .member : .unknown
      }, handler: { _, kind, _, _ in FleetServer.Request { VerifierAnswer(to: kind, []) } })
    defer { server.stop(within: 0) }
    let file = FleetFile(
      host: "web1", enrolls: false, verifiers: [server.address], pins: [verifier.pin])
    let clients = [VerifierPool(file, first), VerifierPool(file, second)]
    #expect(fault(clients[0]) == nil)
    #expect(soon { looks.withLock { $0 } == 2 })
    #expect(fault(clients[1]) == nil)
    isThere.withLock { $0 = true }
    #expect(soon { looks.withLock { $0 } > 2 })
    #expect(server.connections == 2)
  }

  @Test func `is away where nobody listens, at once`() throws {
    let verifier = try TestVerifier()
    let client = try verifier.client()
    #expect(verifier.server.stop())
    let start = sys_monotonic()
    #expect(fault(client) == .away)
    #expect(sys_monotonic() - start < 900_000_000)
  }

  @Test func `is away where somebody listens and says nothing`() throws {
    let silent = try Silent()
    let verifier = try TestVerifier()
    let file = FleetFile(
      host: "web1", enrolls: false, verifiers: [silent.address], pins: [verifier.identity.pin])
    let client = VerifierPool(file, try newIdentity())
    #expect(fault(client) == .away)
    // Put aside: nothing is tried.
    let start = sys_monotonic()
    #expect(fault(client) == .away)
    #expect(sys_monotonic() - start < 900_000_000)
  }

  @Test func `is to another verifier where the first is silent or gone`() throws {
    let silent = try Silent()
    let gone = try Silent()
    let verifier = try TestVerifier()
    gone.close()
    for _ in 0..<6 {
      let client = try verifier.client(also: [silent.address, gone.address])
      #expect(fault(client) == nil)
    }
  }

  @Test func `is closed after a question without an answer, which is not asked again`() throws {
    let asked = Locked(0)
    let go = Locked(false)
    let verifier = try TestVerifier { _, kind, _, _ in
      let isFirst = asked.withLock { asked in
        asked += 1
        return asked == 1
      }
      if isFirst { _ = soon { go.withLock { $0 } } }
      return VerifierAnswer(to: kind, [])
    }
    let client = try verifier.client()
    #expect(fault(client, within: 800) == .unknown)
    // Put aside, as silent as it was.
    #expect(fault(client) == .away)
    go.withLock { $0 = true }
    #expect(client.look())
    #expect(fault(client) == nil)
    #expect(soon { verifier.server.connections == 1 })
    #expect(asked.withLock { $0 } == 3)
  }

  @Test func `that was closed while idle is replaced, and nothing is lost`() throws {
    let identity = try newIdentity()
    var limits = ConnectionLimits()
    // Longer than a question takes on a busy machine: one that is under way must not be closed.
    (limits.idle, limits.round) = (700_000_000, 10_000_000)
    let verifier = try TestVerifier(identity, limits: limits)
    let client = try verifier.client()
    for _ in 0..<3 {
      #expect(fault(client) == nil)
      #expect(soon { verifier.server.connections == 0 })
    }
    #expect(verifier.asked.withLock { $0.count } == 3)
  }

  // decisive
  @Test func `that sends another nonce, or no frame, has answered nothing`() throws {
    let answers: [[UInt8]] = [
      [1, 0, 0, 0] + [UInt8](repeating: 9, count: 8) + [0x81], [0, 0, 0, 0], [],
    ]
    for bytes in answers {
      let liar = try Liar(bytes)
      let file = FleetFile(
        host: "web1", enrolls: false, verifiers: [liar.address], pins: [liar.identity.pin])
      #expect(fault(VerifierPool(file, try newIdentity())) == .unknown, "\(bytes)")
    }
  }

  @Test func `that is told of the end is not kept, and what was asked by it is answered`() throws {
    let liar = try Liar([1, 0, 0, 0] + [UInt8](repeating: 0, count: 8) + [0xec], thenAnswers: true)
    let file = FleetFile(
      host: "web1", enrolls: false, verifiers: [liar.address], pins: [liar.identity.pin])
    let client = VerifierPool(file, try newIdentity())
    #expect(fault(client) == nil)
    // The other side has gone on its own account: nothing is sent on that connection.
    #expect(fault(client, within: 300) == .away)
  }

  @Test func `is asked by many at a time`() throws {
    let verifier = try TestVerifier()
    let client = try verifier.client()
    let (done, wrong) = (Locked(0), Locked(0))
    for thread in 0..<8 {
      #expect(
        Threads.start {
          for index in 0..<20 {
            let body = Secret([UInt8(thread), UInt8(index)])
            let answer = try? body.map { try client.ask(.question, $0, within: 20_000) }
            if answer?.body != [UInt8(thread), UInt8(index)] { wrong.withLock { $0 += 1 } }
          }
          done.withLock { $0 += 1 }
        } == 0)
    }
    #expect(soon { done.withLock { $0 } == 8 })
    #expect(wrong.withLock { $0 } == 0)
    #expect(verifier.asked.withLock { $0.count } == 160)
  }

  @Test func `is looked after, and tells when the fleet is back`() throws {
    let back = Locked(0)
    let identity = try newIdentity()
    var verifier: TestVerifier? = try TestVerifier(identity)
    let client = try #require(try verifier?.client())
    #expect(client.startKeeper { back.withLock { $0 += 1 } })
    #expect(!client.startKeeper())
    #expect(soon { verifier?.server.connections == 1 })
    let port = try #require(verifier?.server.address.port)
    verifier?.server.stop()
    verifier = nil
    let again = VerifierAddress(bytes: [127, 0, 0, 1], port: port)
    #expect(soon { client.misses > 0 })
    let server = try FleetServer(
      on: again, identity: identity, standing: { _ in .member },
      handler: { _, kind, _, _ in FleetServer.Request { VerifierAnswer(to: kind, []) } })
    #expect(soon { back.withLock { $0 } == 1 })
    #expect(fault(client) == nil)
    client.close()
    #expect(server.stop())
  }
}

/// Listens, and never accepts.
final class Silent {
  let address: VerifierAddress
  private var descriptor: Int32

  init() throws {
    // SAFETY: as many bytes as are said.
    descriptor = unsafe tls_listen([127, 0, 0, 1], 4, 0)
    try #require(descriptor >= 0)
    address = VerifierAddress(bytes: [127, 0, 0, 1], port: UInt16(clamping: tls_port(descriptor)))
  }

  func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  deinit { close() }
}

/// A verifier that greets, takes one question, sends these bytes and perhaps an answer, and closes.
final class Liar {
  let identity: Identity
  let address: VerifierAddress
  private let listener: Int32

  init(_ bytes: [UInt8], thenAnswers: Bool = false) throws {
    identity = try newIdentity()
    // SAFETY: as many bytes as are said.
    listener = unsafe tls_listen([127, 0, 0, 1], 4, 0)
    try #require(listener >= 0)
    address = VerifierAddress(bytes: [127, 0, 0, 1], port: UInt16(clamping: tls_port(listener)))
    let (identity, listener) = (identity, listener)
    #expect(Threads.start { Liar.serve(listener, identity, bytes, thenAnswers) } == 0)
  }

  deinit { Glibc.close(listener) }

  private static func serve(
    _ listener: Int32, _ identity: Identity, _ bytes: [UInt8], _ answers: Bool
  ) {
    var watched = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
    let end = sys_monotonic() + 30_000_000_000
    guard Waiting.poll(&watched, until: end) > 0, let side = TLSSide(identity, pins: nil) else {
      return
    }
    var source: UInt64 = 0
    // SAFETY: filled within the call.
    let made = unsafe tls_accept(listener, &source)
    guard made >= 0, let tls = TLSConnection(side, made) else { return }
    let connection = ServerConnection(tls, from: source)
    while case .more(let toWrite) = connection.handshake() {
      if !tls.wait(toWrite: toWrite, until: end) { return }
    }
    let hello = VerifierAnswer(kind: 0x84, body: [Frame.form])
    guard connection.send(0, hello, until: end) else { return }
    var read = connection.read()
    while case .more = read {
      if !tls.wait(toWrite: false, until: end) { return }
      read = connection.read()
    }
    if let content = Secret(bytes), !bytes.isEmpty { _ = tls.write(content, from: 0) }
    guard answers, case .whole(let nonce, _, _) = read else { return }
    _ = connection.send(nonce, VerifierAnswer(to: .question, []), until: end)
  }
}
