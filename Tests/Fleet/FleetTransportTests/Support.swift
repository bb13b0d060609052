import CService
import CTLS
import Foundation
import OneTimePassword
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

/// A key of its own.
func newIdentity() throws -> Identity { try Identity(pem: try Identity.newKey()) }

func secret(_ count: Int, _ byte: UInt8 = 7) throws -> Secret {
  try #require(Secret([UInt8](repeating: byte, count: count)))
}

/// Whether it holds, after a while at the latest.
func soon(_ holds: () -> Bool) -> Bool {
  let end = sys_monotonic() + 30_000_000_000
  while !holds() {
    if sys_monotonic() > end { return false }
    _ = poll(nil, 0, 5)
  }
  return true
}

/// A verifier on a free port of this machine that gives back what it is asked; ended with the
/// value.
final class TestVerifier: Sendable {
  typealias Answer = @Sendable (Pin, FrameKind, Secret, UInt64) -> VerifierAnswer

  let identity: Identity
  let server: FleetServer
  /// The keys that it knows; nil: all. And those that it knows to be revoked.
  let known = Locked<Set<Pin>?>(nil)
  let revoked = Locked<Set<Pin>>([])
  let asked = Locked<[FrameKind]>([])

  init(
    _ identity: Identity? = nil, limits: ConnectionLimits = ConnectionLimits(),
    seals: (any HostSeals)? = nil, handler: Answer? = nil,
    in line: @escaping @Sendable (Secret) -> FleetServer.Line? = { _ in nil },
    standing: FleetServer.Recognizer? = nil
  ) throws {
    let identity = try identity ?? newIdentity()
    self.identity = identity
    let (known, revoked, asked) = (known, revoked, asked)
    let address = VerifierAddress(bytes: [127, 0, 0, 1], port: 0)
    let answer: Answer =
      handler
      ?? { _, kind, body, _ in
        asked.withLock { $0.append(kind) }
        return VerifierAnswer(to: kind, body.bytes(in: 0..<body.count))
      }
    server = try FleetServer(
      on: address, identity: identity, limits: limits, seals: seals,
      standing: standing ?? { pin in
        if revoked.withLock({ $0.contains(pin) }) { return .revoked }
        return known.withLock { $0?.contains(pin) ?? true } ? .member : .unknown
      },
      handler: { pin, kind, body, arrived in
        FleetServer.Request(in: line(body)) { answer(pin, kind, body, arrived) }
      })
  }

  /// Without waiting for hosts that are gone with it.
  deinit { server.stop(within: 0) }

  /// A host that has this verifier's pin, or that one.
  func client(_ identity: Identity? = nil, pin: Pin? = nil, also: [VerifierAddress] = []) throws
    -> VerifierPool
  {
    let file = FleetFile(
      host: "web1", enrolls: false, verifiers: also + [server.address],
      pins: [pin ?? self.identity.pin])
    return VerifierPool(file, try identity ?? newIdentity())
  }

  /// A bare connection.
  func raw() throws -> Raw { try Raw(server.address.port) }
}

/// A connection without TLS, or with TLS and without manners.
final class Raw: @unchecked Sendable {
  let descriptor: Int32
  var connection: TLSConnection?
  /// What the verifier said first.
  private(set) var greeting: [UInt8] = []

  init(_ port: UInt16) throws {
    // SAFETY: as many bytes as are said.
    descriptor = unsafe tls_connect([127, 0, 0, 1], 4, port)
    try #require(descriptor >= 0)
    try #require(wait(toWrite: true))
  }

  /// From another machine, as its address 127.0.0.`last` says.
  init(_ port: UInt16, from last: UInt8) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(descriptor >= 0)
    var (own, other) = (Self.address(last, 0), Self.address(1, port))
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = unsafe withUnsafePointer(to: &own) { [descriptor] pointer in
      // SAFETY: an address of the length that is said; so below.
      unsafe bind(
        descriptor, UnsafeRawPointer(pointer).assumingMemoryBound(to: sockaddr.self), length)
    }
    let isThere = unsafe withUnsafePointer(to: &other) { [descriptor] pointer in
      unsafe connect(
        descriptor, UnsafeRawPointer(pointer).assumingMemoryBound(to: sockaddr.self), length)
    }
    try #require(isBound == 0 && isThere == 0)
    let flags = fcntl(descriptor, F_GETFL)
    try #require(fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0)
  }

  private static func address(_ last: UInt8, _ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = (0x7f00_0000 | UInt32(last)).bigEndian
    return address
  }

  init(accepted: Int32) { descriptor = accepted }

  deinit { if connection == nil { close(descriptor) } }

  func wait(toWrite: Bool) -> Bool {
    var watched = [pollfd(fd: descriptor, events: Int16(toWrite ? POLLOUT : POLLIN), revents: 0)]
    return Waiting.poll(&watched, until: sys_monotonic() + 30_000_000_000) > 0
  }

  /// Bytes that are no TLS.
  func send(_ bytes: [UInt8]) -> Bool {
    // SAFETY: as many bytes as are said.
    unsafe Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  /// Whether the other side closes, in time.
  func isClosed() -> Bool {
    var byte: UInt8 = 0
    while wait(toWrite: false) {
      // SAFETY: one byte.
      if unsafe recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) <= 0 { return true }
    }
    return false
  }

  /// Whether nothing came that was not read, not even the end.
  var isSilent: Bool { connection?.isQuiet ?? false }

  /// Does the handshake as a host with this key, and takes the greeting. Its kind.
  func greet(_ side: TLSSide) throws -> UInt8? {
    guard try shakeHands(side), let (_, kind, body) = frame() else { return nil }
    greeting = body.bytes(in: 0..<body.count)
    return kind
  }

  /// Whether the handshake was done, on this side.
  func shakeHands(_ side: TLSSide) throws -> Bool {
    let made = try connection ?? begin(side)
    while true {
      switch made.handshake() {
      case .done: return true
      case .moreIn: if !wait(toWrite: false) { return false }
      case .moreOut: if !wait(toWrite: true) { return false }
      case .gone, .unpinned: return false
      }
    }
  }

  /// Sends the first message of the handshake, at least.
  @discardableResult
  func begin(_ side: TLSSide) throws -> TLSConnection {
    let made = try #require(TLSConnection(side, descriptor))
    connection = made
    _ = made.handshake()
    return made
  }

  /// How many bytes come until the other side closes.
  func countRest() -> Int {
    var (all, some) = (0, [UInt8](repeating: 0, count: 4096))
    while wait(toWrite: false) {
      // SAFETY: as many bytes as are said.
      let count = unsafe recv(descriptor, &some, some.count, Int32(MSG_DONTWAIT))
      if count <= 0 { break }
      all += count
    }
    return all
  }

  /// The next frame, nil where the connection ends.
  func frame() -> (nonce: UInt64, kind: UInt8, body: Secret)? {
    guard let connection else { return nil }
    let reader = FrameReader()
    while true {
      switch reader.advance(connection) {
      case .whole(let nonce, let kind, let body): return (nonce, kind, body)
      case .more(let toWrite, _): if !wait(toWrite: toWrite) { return nil }
      case .over, .unpinned: return nil
      }
    }
  }

  /// Bytes within TLS.
  func write(_ bytes: [UInt8]) -> Bool {
    guard let connection, let content = Secret(bytes) else { return false }
    var sent = 0
    while sent < bytes.count {
      switch connection.write(content, from: sent) {
      case .done(let count): sent += count
      case .moreOut: if !wait(toWrite: true) { return false }
      case .moreIn: if !wait(toWrite: false) { return false }
      case .gone, .unpinned: return false
      }
    }
    return true
  }
}
