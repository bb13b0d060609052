package import SallyportCore

/// The answer to a `MoveRequest.fetch`.
///
/// As bytes: version (1 byte), kind (1), fields, of a copy the last one the enrollment as its file
/// has it. The other kinds are those of `MoveAnswer`.
package enum FetchAnswer: Sendable {
  /// A row of this version, in effect.
  case copy(MoveRequest.Moving, version: UInt64)
  /// He has logged in on these hosts, too, in the last 30 days.
  case used(on: [FleetHostName])
  /// For a while backup codes are refused, of which some may be used: nothing can be copied.
  case held
  case other(MoveAnswer)

  /// No answer has more.
  package static let mostHosts = 32
}

extension FetchAnswer: FrameAnswer {
  package static let longest = 65_536

  private var kind: Int {
    switch self {
    case .copy: 5
    case .used: 6
    case .held: 7
    case .other(let answer): answer.kind
    }
  }

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    switch fields.kind(answer?.kind, of: 7) {
    case 5:
      var (own, version): (MoveRequest.Moving?, UInt64?)
      if case .copy(let moving, let of)? = answer { (own, version) = (moving, of) }
      let read = fields.number(version)
      return MoveRequest.Moving.pass(own, &fields).map { .copy($0, version: read) }
    case 6:
      let hosts: [FleetHostName]? = if case .used(let hosts)? = answer { hosts } else { nil }
      return .used(on: fields.list(hosts, 1...mostHosts) { $0.host($1) })
    case 7: return .held
    case let kind:
      let other: MoveAnswer? = if case .other(let other)? = answer { other } else { nil }
      return MoveAnswer.pass(kind, other, &fields).map { .other($0) }
    }
  }
}

extension MoveRequest.Moving {
  /// The state, and the enrollment, each after its length.
  static func pass(_ moving: Self?, _ fields: inout Fields) -> Self? {
    let state = fields.text(moving?.stateBytes)
    let text = fields.secret(moving?.enrollment.written())
    return moving ?? text.flatMap { Self($0, state, of: nil) }
  }
}
