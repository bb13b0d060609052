import OneTimePassword
package import SallyportCore

/// What `sallyport log` asks on a host that may enroll people of the fleet: what logins came to,
/// or what was changed, the newest first (docs/fleet-format.md). Nothing is changed.
///
/// As bytes: version (1 byte), 0xcc, which no other question has (1), since when and up to when (8
/// each), which of them (1), how many names (1), and each after its length.
package struct EventsRequest: Equatable, Sendable {
  /// In microseconds since 1970, by the database's clock.
  package let since: UInt64
  package var upTo: UInt64
  package var kinds: Kinds
  /// As they were typed: 1 or 2 of one person; none: of everybody.
  package let names: [UserName]

  /// Which of them.
  package enum Kinds: Int, Equatable, Sendable {
    case accepted = 1
    case refused, both
    /// No logins, but what was changed of somebody.
    case acts
  }

  package static let mostNames = 2

  package init(since: UnixTime, upTo: UInt64, _ kinds: Kinds, of names: [UserName]) {
    let seconds = UInt64(clamping: since.seconds)
    self.since = min(seconds, EventsRequest.latest / 1_000_000) * 1_000_000
    (self.upTo, self.kinds, self.names) = (min(upTo, EventsRequest.latest), kinds, names)
  }

  /// The last moment that can be asked for, in the year 2255: a number that the database takes
  /// exactly.
  package static let latest: UInt64 = 9_000_000_000_000_000
}

/// The answer to an `EventsRequest`.
///
/// As bytes: version (1 byte), kind (1), fields. The other kinds are those of `MoveAnswer`.
package enum EventsAnswer: Equatable, Sendable {
  /// The newest first. `next`: up to when to ask on; nil: there is nothing older.
  case told([Entry], next: UInt64?)
  case other(MoveAnswer)

  /// As many as a frame holds at their longest.
  package static let most = 50

  /// A row of the table `event`. Whatever it says is text of somebody's choice.
  package struct Entry: Equatable, Sendable {
    /// In microseconds since 1970.
    package let at: UInt64
    package let host: [UInt8]
    /// As it was typed; empty where nobody has it.
    package let name: [UInt8]
    package let service: [UInt8]
    package let address: [UInt8]
    package let outcome: [UInt8]

    /// `texts`: in the order of the members, of which 255 bytes are told.
    package init?(at: UInt64, texts: [[UInt8]]) {
      guard texts.count == 5 else { return nil }
      let cut = texts.map { Array($0.prefix(255)) }
      self.at = at
      (host, name, service, address, outcome) = (cut[0], cut[1], cut[2], cut[3], cut[4])
    }
  }
}

extension EventsRequest: SecretFrame {
  package static let longest = 20 + mostNames * 256

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    // As far from the other questions' as they are from one another.
    fields.constant(0xcc)
    let since = fields.number(request?.since)
    let upTo = fields.number(request?.upTo)
    if max(since, upTo) > latest || since % 1_000_000 != 0 { fields.fail() }
    let kinds = Kinds(rawValue: fields.kind(request?.kinds.rawValue, of: 4))
    let names = fields.list(request?.names, 0...mostNames) { $0.name($1) }
    return kinds.map {
      EventsRequest(since: UnixTime(Int64(since / 1_000_000)), upTo: upTo, $0, of: names)
    }
  }
}

extension EventsAnswer: FrameAnswer {
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
      var (own, end): ([Entry]?, UInt64??) = (nil, nil)
      if case .told(let entries, let next)? = answer { (own, end) = (entries, .some(next)) }
      let isMore = fields.bit(end.map { $0 != nil })
      let next = isMore ? fields.number(end ?? nil) : nil
      return .told(fields.list(own, 0...most) { Entry.pass($1, &$0) }, next: next)
    case let kind:
      let other: MoveAnswer? = if case .other(let other)? = answer { other } else { nil }
      return MoveAnswer.pass(kind, other, &fields).map { .other($0) }
    }
  }

  /// Total: any bytes give an answer to this request that is written to the same bytes, or nil.
  /// Asking on comes to an end.
  package static func decode(_ frame: [UInt8], to request: EventsRequest) -> EventsAnswer? {
    guard let answer = decode(frame) else { return nil }
    guard case .told(let entries, let next) = answer else { return answer }
    var last = request.upTo
    for entry in entries {
      guard entry.at <= last, entry.at >= request.since else { return nil }
      last = entry.at
    }
    if let next, next >= request.upTo || next < request.since { return nil }
    return answer
  }
}

extension EventsAnswer.Entry {
  fileprivate static func pass(_ entry: Self?, _ fields: inout Fields) -> Self? {
    let at = fields.number(entry?.at)
    let own = entry.map { [$0.host, $0.name, $0.service, $0.address, $0.outcome] }
    return Self(at: at, texts: (0..<5).map { fields.counted(own?[$0]) })
  }
}
