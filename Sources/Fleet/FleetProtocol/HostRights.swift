package import SallyportCore

/// What a host may do beside asking about the logins of its own users. Each is off unless root has
/// given it on a verifier.
package enum HostRight: Int, CaseIterable, Sendable {
  /// First enrollments, and those by a pass that enrolls.
  case enrolls = 1
  /// All other changes of people, and questions about them.
  case changes
  /// The secrets of people, for its own files.
  case takes

  /// As it is typed and shown.
  package var word: String {
    switch self {
    case .enrolls: "enrolls"
    case .changes: "changes"
    case .takes: "takes"
    }
  }

  /// How often in a day, where nobody has said it.
  package var usual: UInt32 {
    switch self {
    case .enrolls, .changes: 20
    case .takes: 10
    }
  }
}

/// The rights of a host: how often in a day it may do what, and how often more up to some time.
package struct HostRights: Equatable, Sendable {
  /// Of one right.
  package struct Allowance: Equatable, Sendable {
    /// In a day, by UTC; 0: none.
    package var daily: UInt32
    /// Beside that, up to `until`.
    package var more: UInt32
    package var until: UnixTime

    package init(daily: UInt32 = 0, more: UInt32 = 0, until: UnixTime = UnixTime(0)) {
      (self.daily, self.more, self.until) = (daily, more, until)
    }

    /// Whether `more` counts.
    package func isWider(at now: UnixTime) -> Bool { more > 0 && now < until }

    package func allows(at now: UnixTime) -> Bool { daily > 0 || isWider(at: now) }
  }

  private var allowances: [Allowance]

  /// None.
  package init() {
    allowances = [Allowance](repeating: Allowance(), count: HostRight.allCases.count)
  }

  /// These, as often as is usual.
  package init(_ rights: [HostRight]) {
    self.init()
    for right in rights { self[right].daily = right.usual }
  }

  package subscript(_ right: HostRight) -> Allowance {
    get { allowances[right.rawValue - 1] }
    set { allowances[right.rawValue - 1] = newValue }
  }

  package func allows(_ right: HostRight, at now: UnixTime) -> Bool { self[right].allows(at: now) }

  /// Whether it has any right, for however long.
  package var isEmpty: Bool { self == HostRights() }
}

/// What a host asks to show its own rights (docs/fleet-format.md).
///
/// As bytes: version (1 byte), 0x96 (1).
package struct RightsRequest: Equatable, Sendable {
  package init() {}
}

/// The answer to a `RightsRequest`: each right, and how often it was used today.
///
/// As bytes: version (1 byte), kind (1), fields. The other kinds are those of `MoveAnswer`.
package enum RightsAnswer: Equatable, Sendable {
  case told(HostRights, used: [UInt32])
  case other(MoveAnswer)
}

extension RightsRequest: SecretFrame {
  package static let longest = 2

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    fields.constant(0x96)
    return RightsRequest()
  }
}

extension RightsAnswer: FrameAnswer {
  package static let longest = 128

  private var kind: Int {
    switch self {
    case .told: 5
    case .other(let answer): answer.kind
    }
  }

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    switch fields.kind(answer?.kind, of: 5) {
    case 5:
      var own: (rights: HostRights, used: [UInt32])?
      if case .told(let rights, let used)? = answer { own = (rights, used) }
      var (rights, used) = (HostRights(), [UInt32]())
      for (index, right) in HostRight.allCases.enumerated() {
        rights[right] = HostRights.Allowance(
          daily: fields.number(own?.rights[right].daily),
          more: fields.number(own?.rights[right].more),
          until: fields.time(own?.rights[right].until))
        used.append(fields.number(own?.used[index]))
      }
      return .told(rights, used: used)
    case let kind:
      let other: MoveAnswer? = if case .other(let other)? = answer { other } else { nil }
      return MoveAnswer.pass(kind, other, &fields).map { .other($0) }
    }
  }
}
