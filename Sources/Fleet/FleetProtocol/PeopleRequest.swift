import OneTimePassword
package import SallyportCore

/// What `sallyport list --fleet` asks on a host that may enroll people of the fleet: the next ones
/// in the order of their names (docs/fleet-format.md). Nothing is changed.
///
/// As bytes: version (1 byte), 0xaa, which no other question has (1), the name after its length,
/// and how many (1).
package struct PeopleRequest: Equatable, Sendable {
  /// Those whose names are greater, byte by byte; empty: from the first one on. It need not be a
  /// name that a user can have: somebody may have written such a row.
  package let after: [UInt8]
  /// 1 to `most`.
  package let count: Int

  /// As many as a frame holds at their longest.
  package static let most = 60

  package init(after: [UInt8], count: Int = most) { (self.after, self.count) = (after, count) }
}

/// The answer to a `PeopleRequest`.
///
/// As bytes: version (1 byte), kind (1), fields. The other kinds are those of `MoveAnswer`.
package enum PeopleAnswer: Equatable, Sendable {
  /// In the order of their names. `isLast`: there is nobody after them.
  case told([Entry], isLast: Bool)
  case other(MoveAnswer)

  /// What the fleet has of one person, without anything from which somebody could make a code.
  package struct Entry: Equatable, Sendable {
    /// Of the row: 1 to 255 bytes.
    package let name: [UInt8]
    package let place: Place
    /// What was set for him by name.
    package let level: UserNote.Level?
    /// Also one that has ended.
    package let block: FleetBlock?

    package init(
      _ name: [UInt8], _ place: Place, level: UserNote.Level? = nil, block: FleetBlock? = nil
    ) {
      (self.name, self.place, self.level, self.block) = (name, place, level, block)
    }
  }

  /// Whether somebody is enrolled, and where.
  package enum Place: Equatable, Sendable {
    case enrolled(Enrolled)
    case notEnrolled
    /// By the files of this host, which has taken him, and nowhere else.
    case taken(by: FleetHostName)
    /// His rows were changed by somebody, or are older than what was seen: he is refused. The
    /// verifier has logged why.
    case unreadable
  }

  /// What somebody has, and what was used of it.
  package struct Enrolled: Equatable, Sendable {
    /// The names of the authenticators.
    package let authenticators: [Label]
    package let backupCodesLeft: Int
    package let since: UnixTime
    /// When a code or a backup code was last accepted. Never before 1970.
    package let lastUse: UnixTime?
    package let openPasses: Int
    package let lock: Lock

    package init(
      _ authenticators: [Label], backupCodesLeft: Int, since: UnixTime, lastUse: UnixTime?,
      openPasses: Int, lock: Lock
    ) {
      (self.authenticators, self.backupCodesLeft) = (authenticators, backupCodesLeft)
      (self.since, self.lastUse) = (since, lastUse)
      (self.openPasses, self.lock) = (openPasses, lock)
    }
  }

  /// Whether wrong codes are used up, from known places or from elsewhere.
  package enum Lock: Equatable, Sendable {
    case none
    /// Up to then, under the verifiers' policy.
    case until(UnixTime)
    /// Until somebody unlocks.
    case forGood
  }
}

extension PeopleRequest: SecretFrame {
  package static let longest = 4 + 255

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    // Beside the numbers from 1 to 7, as far from each of them as they are from one another.
    fields.constant(0xaa)
    let after = fields.counted(request?.after)
    let count = fields.length(request?.count, bytes: 1)
    if !(1...most).contains(count) { fields.fail() }
    return PeopleRequest(after: after, count: count)
  }
}

extension PeopleAnswer: FrameAnswer {
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
      var (own, isLast): ([Entry]?, Bool?) = (nil, nil)
      if case .told(let entries, let last)? = answer { (own, isLast) = (entries, last) }
      let last = fields.bit(isLast)
      let entries = fields.list(own, 0...PeopleRequest.most) { Entry.pass($1, &$0) }
      return .told(entries, isLast: last)
    case let kind:
      let other: MoveAnswer? = if case .other(let other)? = answer { other } else { nil }
      return MoveAnswer.pass(kind, other, &fields).map { .other($0) }
    }
  }

  /// Total: any bytes give an answer to this request that is written to the same bytes, or nil.
  /// Asking on after its last name comes to an end.
  package static func decode(_ frame: [UInt8], to request: PeopleRequest) -> PeopleAnswer? {
    guard let answer = decode(frame) else { return nil }
    guard case .told(let entries, let isLast) = answer else { return answer }
    guard entries.count <= request.count, isLast || !entries.isEmpty else { return nil }
    var last = request.after
    for entry in entries {
      guard last.lexicographicallyPrecedes(entry.name) else { return nil }
      last = entry.name
    }
    return answer
  }
}

extension PeopleAnswer.Entry {
  fileprivate static func pass(_ entry: Self?, _ fields: inout Fields) -> Self? {
    let name = fields.counted(entry?.name)
    if name.isEmpty { fields.fail() }
    let level = fields.level(entry.map { $0.level })
    let hasBlock = fields.flag(entry.map { $0.block != nil })
    let block = hasBlock ? fields.block(entry?.block) : nil
    return PeopleAnswer.Place.pass(entry?.place, &fields).map {
      Self(name, $0, level: level, block: block)
    }
  }
}

extension PeopleAnswer.Place {
  fileprivate static func pass(_ place: Self?, _ fields: inout Fields) -> Self? {
    let (kind, enrolled, host): (Int?, PeopleAnswer.Enrolled?, FleetHostName?) =
      switch place {
      case nil: (nil, nil, nil)
      case .enrolled(let enrolled)?: (1, enrolled, nil)
      case .notEnrolled?: (2, nil, nil)
      case .taken(let host)?: (3, nil, host)
      case .unreadable?: (4, nil, nil)
      }
    switch fields.kind(kind, of: 4) {
    case 1: return .enrolled(PeopleAnswer.Enrolled.pass(enrolled, &fields))
    case 2: return .notEnrolled
    case 3: return fields.host(host).map { .taken(by: $0) }
    case _: return .unreadable
    }
  }
}

extension PeopleAnswer.Enrolled {
  fileprivate static func pass(_ own: Self?, _ fields: inout Fields) -> Self {
    let most = Enrollment.maximumAuthenticators
    let names = fields.list(own?.authenticators, 1...most) { $0.label($1) }
    let left = fields.length(own?.backupCodesLeft, bytes: 1)
    let since = fields.time(own?.since)
    let last = fields.end(own.map { $0.lastUse })
    let passes = fields.length(own?.openPasses, bytes: 1)
    return Self(
      names, backupCodesLeft: left, since: since, lastUse: last, openPasses: passes,
      lock: fields.lock(own?.lock))
  }
}

extension Fields {
  fileprivate mutating func lock(_ lock: PeopleAnswer.Lock?) -> PeopleAnswer.Lock {
    let (kind, end): (Int?, UnixTime?) =
      switch lock {
      case nil: (nil, nil)
      case .some(.none): (1, nil)
      case .until(let time)?: (2, time)
      case .forGood?: (3, nil)
      }
    switch self.kind(kind, of: 3) {
    case 2: return .until(time(end))
    case 3: return .forGood
    case _: return .none
    }
  }
}
