import FleetProtocol
package import OneTimePassword
import SallyportCore
package import SallyportLine

/// Answers the frames of one kind.
package protocol LineDesk: Sendable {
  /// `body`: of the frame, any bytes. `arrived`: in nanoseconds of `CLOCK_MONOTONIC`. Called by
  /// several threads at once. The kind of the answer is `LineAnswer(to:_:)`'s, or that the database
  /// is away, or that this is not served.
  func answer(_ body: Secret, from asker: Asker, arrived: UInt64) -> LineAnswer
}

/// Where the frames of hosts arrive: each kind has a desk of its own. Whoever is no host of the
/// fleet may only join.
package struct Reception: Sendable {
  private let hosts: Hosts
  private let desks: [LineKind: any LineDesk]

  package init(_ hosts: Hosts, _ desks: [LineKind: any LineDesk]) {
    (self.hosts, self.desks) = (hosts, desks)
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
  package func subject(_ kind: LineKind, _ body: Secret) -> UInt64? {
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

  package func answer(_ pin: Pin, _ kind: LineKind, _ body: Secret, arrived: UInt64)
    -> LineAnswer
  {
    var asker = Asker(pin, host: nil)
    switch hosts.standing(of: pin) {
    case .host(let found): asker = found
    case .stranger: if kind != .join { return .unknownHost }
    // Who was revoked since then would be answered.
    case .unclear: if kind != .join { return .databaseAway }
    }
    if kind == .ping { return LineAnswer(to: .ping, []) }
    guard let desk = desks[kind] else { return .notServed }
    let answer = desk.answer(body, from: asker, arrived: arrived)
    if kind == .join, answer.isWelcome { hosts.expectMore() }
    return answer
  }
}

extension LineAnswer {
  fileprivate var isWelcome: Bool {
    if case .welcome = JoinAnswer.decode(body) { true } else { false }
  }
}
