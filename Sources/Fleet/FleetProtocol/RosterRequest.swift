import OneTimePassword
package import SallyportCore

/// What doctor asks about many people at once, on a host that may enroll people of the fleet
/// (docs/fleet-format.md). Nothing is changed.
///
/// As bytes: version (1 byte), 7, which no `MoveRequest` and no `PersonRequest` has (1), how many
/// names (1), and each after its length.
package struct RosterRequest: Equatable, Sendable {
  /// 1 to `most`.
  package let names: [UserName]

  package static let most = 200

  package init(_ names: [UserName]) { self.names = names }
}

/// The answer to a `RosterRequest`.
///
/// As bytes: version (1 byte), kind (1), fields. The other kinds are those of `MoveAnswer`.
package enum RosterAnswer: Equatable, Sendable {
  /// Of each name that was asked, in the same order.
  case told([Entry])
  case other(MoveAnswer)

  /// What the fleet has of one person, without anything from which somebody could make a code.
  package struct Entry: Equatable, Sendable {
    /// Whether he is enrolled, and where.
    package enum Place: Equatable, Sendable {
      case enrolled(Factors)
      case notEnrolled
      /// By the files of this host, which has taken him, and nowhere else.
      case taken(by: FleetHostName)
      /// His rows were changed by somebody, or are older than what was seen: he is refused. The
      /// verifier has logged why.
      case unreadable
    }

    package let place: Place
    /// What was set for him by name.
    package let level: UserNote.Level?

    package init(_ place: Place, _ level: UserNote.Level?) {
      (self.place, self.level) = (place, level)
    }
  }
}

extension RosterRequest: SecretFrame {
  package static let longest = 3 + most * 256

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    fields.constant(Wire.robust(7))
    return RosterRequest(fields.list(request?.names, 1...most) { $0.name($1) })
  }
}

extension RosterAnswer: FrameAnswer {
  package static let longest = 65_536

  private var kind: Int {
    switch self {
    case .told: 5
    case .other(let answer): answer.kind
    }
  }

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    switch fields.kind(answer?.kind, of: 5) {
    case 5:
      let entries: [Entry]? = if case .told(let entries)? = answer { entries } else { nil }
      return .told(fields.list(entries, 1...RosterRequest.most) { Entry.pass($1, &$0) })
    case let kind:
      let other: MoveAnswer? = if case .other(let other)? = answer { other } else { nil }
      return MoveAnswer.pass(kind, other, &fields).map { .other($0) }
    }
  }

  /// Total: any bytes give an answer to this request that is written to the same bytes, or nil.
  package static func decode(_ frame: [UInt8], to request: RosterRequest) -> RosterAnswer? {
    guard let answer = decode(frame) else { return nil }
    if case .told(let entries) = answer, entries.count != request.names.count { return nil }
    return answer
  }
}

extension RosterAnswer.Entry {
  fileprivate static func pass(_ entry: Self?, _ fields: inout Fields) -> Self? {
    let level = fields.level(entry.map { $0.level })
    let (kind, factors, host): (Int?, Factors?, FleetHostName?) =
      switch entry?.place {
      case nil: (nil, nil, nil)
      case .enrolled(let factors)?: (1, factors, nil)
      case .notEnrolled?: (2, nil, nil)
      case .taken(let host)?: (3, nil, host)
      case .unreadable?: (4, nil, nil)
      }
    let place: Place? =
      switch fields.kind(kind, of: 4) {
      case 1: .enrolled(fields.factors(factors))
      case 2: .notEnrolled
      case 3: fields.host(host).map { .taken(by: $0) }
      case _: .unreadable
      }
    return place.map { Self($0, level) }
  }
}

extension Fields {
  /// Bit n: the kind with the number n.
  fileprivate mutating func factors(_ value: Factors?) -> Factors {
    let kinds = FactorKind.allCases
    let bits = byte(
      value.map { value in
        kinds.reduce(0) { $0 | (value.contains($1) ? 1 << $1.rawValue : 0) }
      })
    var factors = Factors()
    for kind in kinds where bits >> kind.rawValue & 1 == 1 { factors.insert(kind) }
    return factors
  }
}
