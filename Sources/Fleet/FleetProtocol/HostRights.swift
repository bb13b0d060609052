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
    /// For whom alone `more` is, by their names; empty: for everybody.
    package var people: [[UInt8]]

    /// In such a list at most.
    package static let mostPeople = 500

    package init(
      daily: UInt32 = 0, more: UInt32 = 0, until: UnixTime = UnixTime(0), people: [[UInt8]] = []
    ) {
      (self.daily, self.more, self.until, self.people) = (daily, more, until, people)
    }

    /// Whether `more` counts.
    package func isWider(at now: UnixTime) -> Bool { more > 0 && now < until }

    /// The same for this one; nil: for everybody.
    package func isWider(at now: UnixTime, for name: [UInt8]?) -> Bool {
      isWider(at: now) && (people.isEmpty || name.map { people.contains($0) } ?? false)
    }

    package func allows(at now: UnixTime, for name: [UInt8]?) -> Bool {
      daily > 0 || isWider(at: now, for: name)
    }

    /// Whether there is neither, also none that has ended.
    package var isNone: Bool { daily == 0 && more == 0 }
  }

  /// How often one right was used.
  package struct Use: Equatable, Sendable {
    /// Today, and of `more` since it was given.
    package let (daily, more): (UInt32, UInt32)
    /// For how many people alone `more` is, where it is not for the one who was asked about.
    package let others: UInt32

    package init(daily: UInt32 = 0, more: UInt32 = 0, others: UInt32 = 0) {
      (self.daily, self.more, self.others) = (daily, more, others)
    }
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

  /// `name`: of the person; nil: it is about many.
  package func allows(_ right: HostRight, at now: UnixTime, for name: [UInt8]?) -> Bool {
    self[right].allows(at: now, for: name)
  }

  /// Without what has ended by then.
  package func held(at now: UnixTime) -> HostRights {
    var held = self
    for right in HostRight.allCases where !self[right].isWider(at: now) {
      held[right] = Allowance(daily: self[right].daily)
    }
    return held
  }

  /// Whether it has any right, for however long.
  package var isEmpty: Bool { self == HostRights() }
}

/// What a host asks to show its own rights (docs/fleet-format.md).
///
/// As bytes: version (1 byte), 0x96 (1), and the name of a person after its length (1; 0: nobody).
package struct RightsRequest: Equatable, Sendable {
  /// Who is to be changed or taken.
  package let name: UserName?

  package init(for name: UserName? = nil) { self.name = name }
}

/// The answer to a `RightsRequest`: each right that it has now, and how often it was used; and
/// whether codes there are accepted only from known places, after too many wrong ones.
///
/// As bytes: version (1 byte), kind (1), fields. The other kinds are those of `MoveAnswer`.
package enum RightsAnswer: Equatable, Sendable {
  case told(HostRights, used: [HostRights.Use], isClosed: Bool)
  case other(MoveAnswer)
}

extension RightsRequest: SecretFrame {
  package static let longest = 258

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    fields.constant(0x96)
    let name = fields.counted(request.map { $0.name?.bytes ?? [] })
    return RightsRequest(for: name.isEmpty ? nil : fields.valid(UserName(name)))
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
      var own: (rights: HostRights, used: [HostRights.Use], isClosed: Bool)?
      if case .told(let rights, let used, let isClosed)? = answer { own = (rights, used, isClosed) }
      var (rights, used) = (HostRights(), [HostRights.Use]())
      for (index, right) in HostRight.allCases.enumerated() {
        rights[right] = HostRights.Allowance(
          daily: fields.number(own?.rights[right].daily),
          more: fields.number(own?.rights[right].more),
          until: fields.time(own?.rights[right].until))
        used.append(
          HostRights.Use(
            daily: fields.number(own?.used[index].daily),
            more: fields.number(own?.used[index].more),
            others: fields.number(own?.used[index].others)))
      }
      return .told(rights, used: used, isClosed: fields.flag(own?.isClosed))
    case let kind:
      let other: MoveAnswer? = if case .other(let other)? = answer { other } else { nil }
      return MoveAnswer.pass(kind, other, &fields).map { .other($0) }
    }
  }
}
