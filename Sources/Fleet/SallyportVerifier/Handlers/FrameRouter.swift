import FleetProtocol
package import FleetTransport
package import OneTimePassword
import SallyportCore

/// Answers the frames of one kind.
package protocol FrameHandler: Sendable {
  /// `body`: of the frame, any bytes. `arrived`: in nanoseconds of `CLOCK_MONOTONIC`. Called by
  /// several threads at once. The kind of the answer is `VerifierAnswer(to:_:)`'s, or that the
  /// database is away, or that this is not served.
  func answer(_ body: Secret, from asker: HostIdentity, arrived: UInt64) -> VerifierAnswer
}

/// Where the frames of hosts arrive: each kind has a handler of its own. Whoever is no host of the
/// fleet may only join.
package struct FrameRouter: Sendable {
  private let hosts: Hosts
  private let handlers: [FrameKind: any FrameHandler]

  package init(_ hosts: Hosts, _ handlers: [FrameKind: any FrameHandler]) {
    (self.hosts, self.handlers) = (hosts, handlers)
  }

  /// Whether this key is, or was when the database answered last, a host's of the fleet.
  package func isKnown(_ pin: Pin) -> Bool {
    switch hosts.standing(of: pin) {
    case .host: true
    case .stranger: false
    case .unclear: hosts.wasKnown(pin)
    }
  }

  /// About whom a question is, by a number that is his as long as this program runs.
  package func subject(_ kind: FrameKind, _ body: Secret) -> UInt64? {
    let name: [UInt8]? =
      switch kind {
      case .question: HostFrame.decode(body)?.request.name
      case .management:
        (MoveRequest.decode(body)?.name ?? PersonRequest.decode(body)?.name)?.bytes
      case .join, .reserve, .ping, .status: nil
      }
    guard let name else { return nil }
    var hasher = Hasher()
    hasher.combine(name)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  package func answer(_ pin: Pin, _ kind: FrameKind, _ body: Secret, arrived: UInt64)
    -> VerifierAnswer
  {
    var asker = HostIdentity(pin, host: nil)
    switch hosts.standing(of: pin) {
    case .host(let found): asker = found
    case .stranger: if kind != .join { return .unknownHost }
    // Who was revoked since then would be answered.
    case .unclear: if kind != .join { return .databaseAway }
    }
    if kind == .ping { return VerifierAnswer(to: .ping, []) }
    guard let handler = handlers[kind] else { return .notServed }
    let answer = handler.answer(body, from: asker, arrived: arrived)
    if kind == .join, answer.isWelcome { hosts.expectMore() }
    return answer
  }
}

extension VerifierAnswer {
  fileprivate var isWelcome: Bool {
    if case .welcome = JoinAnswer.decode(body) { true } else { false }
  }
}
