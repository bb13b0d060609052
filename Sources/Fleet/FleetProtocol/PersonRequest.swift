import OneTimePassword
package import SallyportCore

/// What root's verbs ask about one person of a fleet, on a host that may enroll people of it
/// (docs/fleet-format.md).
///
/// As bytes: version (1 byte), 6, which no `MoveRequest` has (1), what (1), the name after its
/// length, and fields.
package struct PersonRequest: Equatable, Sendable {
  /// `id`: of the enrollment that the verb has seen; of another one nothing is changed.
  package enum Verb: Equatable, Sendable {
    /// What does the fleet have of him? Nothing is changed.
    case tell
    /// Forget his wrong codes.
    case unlock(id: UInt64)
    /// He is enrolled no more.
    case end(id: UInt64)
    /// Forget from where he is not asked for a code.
    case forget(id: UInt64)
    /// Whether he must enroll, or is exempt, while he is not enrolled; nil: as the policy says.
    case level(UserNote.Level?)
    /// Resynchronize the authenticator of this name, or the one that the codes match.
    case resynchronize(CodePair, named: Label?, under: Policy, id: UInt64)
    /// Accept nothing of him, and enroll him by nothing, up to this time or without an end.
    case block(until: UnixTime?)
    /// Lift that.
    case unblock
    /// What would be enrolled after `restore`? Nothing is changed. `suspension`: its id.
    case former(suspension: UInt64, id: UInt64)
    /// Put that in the place of what is enrolled.
    case restore(suspension: UInt64, id: UInt64)
    /// What a helper asks for who is not root. The answer is a `HelpAnswer`.
    case help(HelpOrder)
  }

  package let name: UserName
  package let verb: Verb

  package init(_ verb: Verb, of name: UserName) { (self.verb, self.name) = (verb, name) }
}

/// A person's record, without anything from which somebody could make a code or a backup code.
package struct PersonFacts: Sendable {
  /// Whether he is enrolled, and where.
  package enum EnrollmentPlace: Sendable {
    case enrolled(MoveRequest.Moving)
    case notEnrolled
    /// By the files of this host, which has taken him, and nowhere else.
    case taken(by: FleetHostName)
  }

  package let place: EnrollmentPlace
  package let note: UserNote
  /// Logins counted without an enrollment.
  package let logins: UInt32
  /// Also one that has ended.
  package let block: FleetBlock?

  package init(
    _ place: EnrollmentPlace, _ note: UserNote, logins: UInt32, block: FleetBlock? = nil
  ) {
    (self.place, self.note, self.logins, self.block) = (place, note, logins, block)
  }
}

/// The answer to a `PersonRequest`.
///
/// As bytes: version (1 byte), kind (1), fields. The other kinds are those of `MoveAnswer`.
package enum PersonAnswer: Sendable {
  case told(PersonFacts)
  /// He is not enrolled, or by another enrollment than the one that was seen; or not blocked.
  /// Nothing was done.
  case changed
  case resynchronized(Resync)
  case other(MoveAnswer)
}

extension PersonRequest: SecretFrame {
  package static let longest = 1024

  private var kind: Int {
    switch verb {
    case .tell: 1
    case .unlock: 2
    case .end: 3
    case .level: 4
    case .resynchronize: 5
    case .forget: 6
    case .block, .unblock, .former, .restore, .help: 7
    }
  }

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    fields.constant(Wire.robust(6))
    let kind = fields.kind(request?.kind, of: 7)
    guard let name = fields.name(request?.name),
      let verb = pass(kind, request?.verb, &fields)
    else { return nil }
    return PersonRequest(verb, of: name)
  }

  private static func pass(_ kind: Int, _ verb: Verb?, _ fields: inout Fields) -> Verb? {
    switch kind {
    case 1: return .tell
    case 2: return .unlock(id: fields.number(verb?.id))
    case 3: return .end(id: fields.number(verb?.id))
    case 4:
      let own: UserNote.Level?? = if case .level(let level)? = verb { .some(level) } else { nil }
      return .level(fields.level(own))
    case 5:
      var own: (codes: CodePair, name: Label?, policy: Policy)?
      if case .resynchronize(let codes, let name, let policy, _)? = verb {
        own = (codes, name, policy)
      }
      let id = fields.number(verb?.id)
      let digits = Digits(rawValue: fields.byte(own?.codes.digits.rawValue))
      let (first, second) = (fields.number(own?.codes.first), fields.number(own?.codes.second))
      let (name, policy) = (fields.noneOrLabel(own?.name), fields.policy(own?.policy))
      guard let digits, max(first, second) < digits.modulus,
        let codes = CodePair(.code(first, digits), .code(second, digits))
      else { return nil }
      return .resynchronize(codes, named: name, under: policy, id: id)
    case 6: return .forget(id: fields.number(verb?.id))
    case 7: return later(verb, &fields)
    case _: return nil
    }
  }

  /// What a further byte tells apart.
  private static func later(_ verb: Verb?, _ fields: inout Fields) -> Verb? {
    switch fields.kind(verb?.laterKind, of: 5) {
    case 1:
      let own: UnixTime?? = if case .block(let until)? = verb { .some(until) } else { nil }
      return .block(until: fields.end(own))
    case 2: return .unblock
    case 3: return .former(suspension: fields.number(verb?.suspension), id: fields.number(verb?.id))
    case 4:
      return .restore(suspension: fields.number(verb?.suspension), id: fields.number(verb?.id))
    case 5:
      let own: HelpOrder? = if case .help(let order)? = verb { order } else { nil }
      return HelpOrder.pass(own, &fields).map { .help($0) }
    case _: return nil
    }
  }
}

extension PersonRequest.Verb {
  fileprivate var id: UInt64? {
    switch self {
    case .tell, .level, .block, .unblock, .help: nil
    case .unlock(let id), .end(let id), .forget(let id), .resynchronize(_, _, _, let id),
      .former(_, let id), .restore(_, let id):
      id
    }
  }

  fileprivate var suspension: UInt64? {
    switch self {
    case .tell, .level, .block, .unblock, .unlock, .end, .forget, .resynchronize, .help: nil
    case .former(let suspension, _), .restore(let suspension, _): suspension
    }
  }

  /// nil: it has none.
  fileprivate var laterKind: Int? {
    switch self {
    case .tell, .unlock, .end, .forget, .level, .resynchronize: nil
    case .block: 1
    case .unblock: 2
    case .former: 3
    case .restore: 4
    case .help: 5
    }
  }
}

extension PersonAnswer: FrameAnswer {
  package static let longest = 65_536

  private var kind: Int {
    switch self {
    case .told: 5
    case .changed: 6
    case .resynchronized: 7
    case .other(let answer): answer.kind
    }
  }

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    switch fields.kind(answer?.kind, of: 7) {
    case 5:
      let facts: PersonFacts? = if case .told(let facts)? = answer { facts } else { nil }
      return PersonFacts.pass(facts, &fields).map { .told($0) }
    case 6: return .changed
    case 7:
      let result: Resync? = if case .resynchronized(let result)? = answer { result } else { nil }
      return Resync.pass(result, &fields).map { .resynchronized($0) }
    case let kind:
      let other: MoveAnswer? = if case .other(let other)? = answer { other } else { nil }
      return MoveAnswer.pass(kind, other, &fields).map { .other($0) }
    }
  }
}

extension PersonFacts {
  fileprivate static func pass(_ facts: Self?, _ fields: inout Fields) -> Self? {
    let note = UserNote(level: fields.level((facts?.note).map { $0.level }))
    let logins = fields.number(facts?.logins)
    let (kind, moving, host): (Int?, MoveRequest.Moving?, FleetHostName?) =
      switch facts?.place {
      case nil: (nil, nil, nil)
      case .enrolled(let moving)?: (1, moving, nil)
      case .notEnrolled?: (2, nil, nil)
      case .taken(let host)?: (3, nil, host)
      }
    let place: EnrollmentPlace? =
      switch fields.kind(kind, of: 3) {
      case 1: MoveRequest.Moving.pass(moving, &fields).map { .enrolled($0) }
      case 2: .notEnrolled
      case _: fields.host(host).map { .taken(by: $0) }
      }
    // Last, and only where there is one: a host of the version before reads all others.
    let block: FleetBlock? =
      if let facts { facts.block.map { fields.block($0) } } else {
        fields.isWhole ? nil : fields.block(nil)
      }
    return place.map { PersonFacts($0, note, logins: logins, block: block) }
  }
}

extension Fields {
  /// Outside nil: to be read. 0: as the policy says; 1 and 2: required, without and with the time
  /// from which on; 3 and 4: exempt, without and with its end. An older peer refuses 4.
  mutating func level(_ level: UserNote.Level??) -> UserNote.Level? {
    let (number, from): (UInt8?, UnixTime?) =
      switch level {
      case nil: (nil, nil)
      case .some(nil): (0, nil)
      case .some(.required(let from)): (from == nil ? 1 : 2, from)
      case .some(.exempt(let until)): (until == nil ? 3 : 4, until)
      }
    switch byte(number) {
    case 0: return nil
    case 1: return .required(from: nil)
    case 2: return .required(from: timeOfLevel(from))
    case 3: return .exempt(until: nil)
    case 4: return .exempt(until: timeOfLevel(from))
    case _:
      fail()
      return nil
    }
  }

  private mutating func timeOfLevel(_ own: UnixTime?) -> UnixTime {
    let time = time(own)
    if time.seconds < 0 { fail() }
    return time
  }
}

extension Resync {
  fileprivate static func pass(_ result: Self?, _ fields: inout Fields) -> Self? {
    let (kind, own): (Int?, Parts?) =
      switch result {
      case nil: (nil, nil)
      case .done(let name, let drift, let reopened)?: (1, Parts(name, drift, reopened: reopened))
      case .refused(.clockOff(let name, let drift, let period, let accepted))?:
        (2, Parts(name, drift, period: period, accepted: accepted))
      case .refused(.replayed(let name))?: (3, Parts(name))
      case .refused(.notFound)?: (4, nil)
      case .refused(.waits(let name, let until))?: (5, Parts(name, reopened: until))
      }
    let read = fields.kind(kind, of: 5)
    if read == 4 { return .refused(.notFound) }
    guard let name = fields.label(own?.name) else { return nil }
    if read == 3 { return .refused(.replayed(name: name)) }
    if read == 5 { return .refused(.waits(name: name, until: fields.time(own?.reopened))) }
    let drift = fields.number(own?.drift)
    if read == 1 {
      return .done(
        name: name, drift: drift, reopened: fields.optional(own?.reopened) { $0.time($1) })
    }
    return .refused(
      .clockOff(
        name: name, drift: drift, period: fields.number(own?.period),
        accepted: fields.byte(own?.accepted)))
  }

  private struct Parts {
    let name: Label
    let drift: Int32
    let reopened: UnixTime?
    let period: UInt32
    let accepted: UInt8

    init(
      _ name: Label, _ drift: Int32 = 0, reopened: UnixTime? = nil, period: UInt32 = 0,
      accepted: UInt8 = 0
    ) {
      (self.name, self.drift, self.reopened) = (name, drift, reopened)
      (self.period, self.accepted) = (period, accepted)
    }
  }
}
