import FleetProtocol
package import FleetTransport
package import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

/// Answers the frames of one kind. Each is read once.
package protocol FrameHandler: Sendable {
  associatedtype Question: Sendable

  /// The body of a frame, any bytes; nil: no question of this kind.
  func read(_ body: Secret) -> Question?
  /// Of a handler whose questions wait for each other: in which line. nil: this one waits for none.
  func line(of question: Question) -> FleetServer.Line?
  /// `arrived`: in nanoseconds of `CLOCK_MONOTONIC`. Called by several threads at once. The kind of
  /// the answer is `VerifierAnswer(to:_:)`'s, or that the database is away, or that this is not
  /// served.
  func answer(_ question: Question?, from asker: HostIdentity, arrived: UInt64) -> VerifierAnswer
}

extension FrameHandler {
  package func line(of question: Question) -> FleetServer.Line? { nil }
}

/// Where the frames of hosts arrive: each kind has a handler of its own. A peer that is no host of
/// the fleet may only join.
package struct FrameRouter: Sendable {
  private let hosts: Hosts
  private let join: JoinHandler?
  private let handlers: [FrameKind: any FrameHandler]

  package init(_ hosts: Hosts, join: JoinHandler? = nil, _ handlers: [FrameKind: any FrameHandler])
  {
    (self.hosts, self.join, self.handlers) = (hosts, join, handlers)
  }

  /// What this key is, or was when the database answered last.
  package func standing(of pin: Pin) -> HostStanding {
    switch hosts.lookup(pin) {
    case .host: return .member
    case .stranger:
      hosts.noteStranger()
      return .unknown
    case .revoked: return .revoked
    case .unclear: return hosts.wasKnown(pin) ? .member : .unknown
    }
  }

  package func read(_ pin: Pin, _ kind: FrameKind, _ body: Secret, arrived: UInt64)
    -> FleetServer.Request
  {
    if kind == .join { return FleetServer.Request { joined(pin, body) } }
    guard let handler = handlers[kind] else {
      return FleetServer.Request {
        answer(pin) { _ in kind == .ping ? VerifierAnswer(to: .ping, []) : .notServed }
      }
    }
    // What a stranger sends is not even read, nor while the table of hosts cannot be read. A host
    // asks again.
    guard case .host = hosts.lookup(pin) else {
      return FleetServer.Request { answer(pin) { _ in .databaseAway } }
    }
    return read(pin, body, arrived: arrived, by: handler)
  }

  private func read<Handler: FrameHandler>(
    _ pin: Pin, _ body: Secret, arrived: UInt64, by handler: Handler
  ) -> FleetServer.Request {
    let question = handler.read(body)
    return FleetServer.Request(in: question.flatMap { handler.line(of: $0) }) {
      answer(pin) { handler.answer(question, from: $0, arrived: arrived) }
    }
  }

  /// The key is looked up for each answer: the question may have waited for others.
  private func answer(_ pin: Pin, _ body: (HostIdentity) -> VerifierAnswer) -> VerifierAnswer {
    switch hosts.lookup(pin) {
    case .host(let host): body(host)
    // The database may not be the fleet's: another verifier is to be asked. Who is revoked is told
    // so when he connects again.
    case .stranger, .revoked: .databaseAway
    // Who was revoked since then would be answered.
    case .unclear: .databaseAway
    }
  }

  private func joined(_ pin: Pin, _ body: Secret) -> VerifierAnswer {
    guard let join else { return .notServed }
    let answer = JoinRequest.decode(body).map { join.answer(key: pin.bytes, $0) }
    if case .welcome = answer { hosts.expectMore() }
    return VerifierAnswer(to: .join, answer)
  }
}

extension VerifierAnswer {
  /// An empty one where there is none that a host would understand.
  init(to kind: FrameKind, _ answer: (some FrameAnswer)?) {
    self.init(to: kind, answer?.encoded() ?? [])
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

  /// Logs a change with the keys that it has on a host. Who asked there, that host's log says.
  func note(
    act verb: Act.Verb, _ facts: [Act.Fact] = [], of user: UserName, on host: [UInt8]
  ) {
    let act = Act(verb, .done, for: user, facts, via: .verifier)
    let actor = Actor(
      name: "host(\(String(decoding: host, as: UTF8.self)))", login: nil, claimed: nil)
    var line = LogLine("")
    line.add(Array(act.text(by: actor).utf8))
    note(.notice, line)
  }
}
