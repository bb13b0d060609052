import FleetProtocol
package import FleetTransport
package import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// Answers the frames of one kind. Each is read once.
package protocol FrameHandler: Sendable {
  associatedtype Question: Sendable

  /// The body of a frame, any bytes; nil: no question of this kind.
  func read(_ body: Secret) -> Question?
  /// Of a handler whose questions about one user wait for each other: about whom this is; nil:
  /// about nobody.
  func name(in question: Question) -> [UInt8]?
  /// `arrived`: in nanoseconds of `CLOCK_MONOTONIC`. Called by several threads at once. The kind of
  /// the answer is `VerifierAnswer(to:_:)`'s, or that the database is away, or that this is not
  /// served.
  func answer(_ question: Question?, from asker: HostIdentity, arrived: UInt64) -> VerifierAnswer
}

extension FrameHandler {
  package func name(in question: Question) -> [UInt8]? { nil }
}

/// Where the frames of hosts arrive: each kind has a handler of its own. A peer that is no host of
/// the fleet may only join.
package struct FrameRouter: Sendable {
  private let hosts: Hosts
  private let handlers: [FrameKind: any FrameHandler]

  package init(_ hosts: Hosts, _ handlers: [FrameKind: any FrameHandler]) {
    (self.hosts, self.handlers) = (hosts, handlers)
  }

  /// Whether this key is, or was when the database answered last, a host's of the fleet.
  package func isKnown(_ pin: Pin) -> Bool {
    switch hosts.lookup(pin) {
    case .host: true
    case .stranger: false
    case .unclear: hosts.wasKnown(pin)
    }
  }

  package func read(_ pin: Pin, _ kind: FrameKind, _ body: Secret, arrived: UInt64)
    -> FleetServer.Request
  {
    // What a stranger sends is not even read.
    if let refusal = refusal(of: hosts.lookup(pin), kind) { return FleetServer.Request { refusal } }
    if let handler = handlers[kind] { return read(pin, kind, body, arrived: arrived, by: handler) }
    return FleetServer.Request {
      answer(pin, kind) { _ in kind == .ping ? VerifierAnswer(to: .ping, []) : .notServed }
    }
  }

  private func read<Handler: FrameHandler>(
    _ pin: Pin, _ kind: FrameKind, _ body: Secret, arrived: UInt64, by handler: Handler
  ) -> FleetServer.Request {
    let question = handler.read(body)
    return FleetServer.Request(about: question.flatMap { handler.name(in: $0) }) {
      answer(pin, kind) { handler.answer(question, from: $0, arrived: arrived) }
    }
  }

  private func answer(
    _ pin: Pin, _ kind: FrameKind, _ body: (HostIdentity) -> VerifierAnswer
  ) -> VerifierAnswer {
    // Again: it may have waited for others about the same user, and the host may be revoked by now.
    let found = hosts.lookup(pin)
    if let refusal = refusal(of: found, kind) { return refusal }
    let asker = if case .host(let known) = found { known } else { HostIdentity(pin, host: nil) }
    let answer = body(asker)
    if kind == .join, answer.isWelcome { hosts.expectMore() }
    return answer
  }

  /// nil: it may ask.
  private func refusal(of peer: Hosts.HostLookup, _ kind: FrameKind) -> VerifierAnswer? {
    if kind == .join { return nil }
    switch peer {
    case .host: return nil
    case .stranger: return .unknownHost
    // Who was revoked since then would be answered.
    case .unclear: return .databaseAway
    }
  }
}

extension VerifierAnswer {
  /// An empty one where there is none that a host would understand.
  init(to kind: FrameKind, _ answer: (some FrameAnswer)?) {
    self.init(to: kind, answer?.encoded() ?? [])
  }

  fileprivate var isWelcome: Bool {
    if case .welcome = JoinAnswer.decode(body) { true } else { false }
  }
}

extension Database {
  /// Logs what was done for a user because a host asked for it.
  func note(
    _ level: LogLevel, _ action: StaticString, of user: UserName, on host: [UInt8],
    remark: StaticString = ""
  ) {
    var line = LogLine(remark)
    line.add(action)
    line.add(user: user.bytes)
    line.add(" host=")
    line.add(field: host)
    note(level, line)
  }
}
