import CService
import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportSystem

extension Statement {
  /// $1 and $2 since when and up to when, in microseconds, $3 how many rows: where they end.
  fileprivate static let edge = """
    SELECT (extract(epoch FROM at) * 1000000)::bigint FROM event
    WHERE at >= \(since) AND at <= \(upTo) ORDER BY at DESC LIMIT 1 OFFSET $3::int
    """

  /// The same of the names $4 and $5.
  fileprivate static let edgeOfNames = """
    SELECT (extract(epoch FROM at) * 1000000)::bigint FROM (
      SELECT at FROM event WHERE name = $4 AND at >= \(since) AND at <= \(upTo)
      UNION ALL
      SELECT at FROM event WHERE name = $5 AND at >= \(since) AND at <= \(upTo)) AS one
    ORDER BY at DESC LIMIT 1 OFFSET $3::int
    """

  /// $1 after when and $2 up to when, in microseconds, $3 how many, $4 to $6 whether with what was
  /// accepted, with refusals and with acts.
  fileprivate static let events = """
    SELECT (extract(epoch FROM at) * 1000000)::bigint, host, name, service, address, outcome
    FROM event WHERE at > \(since) AND at <= \(upTo) AND \(kind)
    ORDER BY at DESC LIMIT $3::int
    """

  /// The same of the names $7 and $8.
  fileprivate static let eventsOfNames = """
    SELECT (extract(epoch FROM at) * 1000000)::bigint, host, name, service, address, outcome FROM (
      SELECT at, host, name, service, address, outcome FROM event
      WHERE name = $7 AND at > \(since) AND at <= \(upTo)
      UNION ALL
      SELECT at, host, name, service, address, outcome FROM event
      WHERE name = $8 AND at > \(since) AND at <= \(upTo)) AS one
    WHERE \(kind) ORDER BY at DESC LIMIT $3::int
    """

  private static let since = "timestamptz 'epoch' + $1::bigint * interval '1 microsecond'"
  private static let upTo = "timestamptz 'epoch' + $2::bigint * interval '1 microsecond'"
  private static let kind = """
    CASE WHEN outcome LIKE 'act-%' THEN $6::boolean
      WHEN outcome IN ('accepted', 'used-away') THEN $4::boolean ELSE $5::boolean END
    """
}

// What logins came to, and what was changed, for the log of a host.
extension FleetStore {
  /// How many rows are looked at for a page, by the index of time or of names. Of all logins there
  /// are enough in fewer.
  private static let mostLookedAt: (ofSome: UInt64, ofAll: UInt64) = (20_000, 1000)

  /// Never more than that, however many others there are.
  func events(_ request: EventsRequest) throws(StoreTrouble) -> EventsAnswer {
    let names = request.names.map(\.bytes)
    // One name twice would give each of its rows twice.
    let other = names.dropFirst().first { $0 != names[0] }
    let both = names.isEmpty ? [] : [Value.bytes(names[0]), other.map { .bytes($0) } ?? .null]
    let most =
      names.isEmpty && request.kinds != .acts ? Self.mostLookedAt.ofAll : Self.mostLookedAt.ofSome
    let (edge, _) = try ask { () throws(DatabaseFault) in
      try database.ask(
        names.isEmpty ? Statement.edge : Statement.edgeOfNames,
        [.number(request.since), .number(request.upTo), .number(most)] + both)
    }
    let end = edge.number(0, 0)
    let (rows, _) = try ask { () throws(DatabaseFault) in
      try database.ask(
        names.isEmpty ? Statement.events : Statement.eventsOfNames,
        [
          .number(end ?? (request.since > 0 ? request.since - 1 : 0)), .number(request.upTo),
          .number(UInt64(EventsAnswer.most + 1)),
          .flag([.accepted, .both].contains(request.kinds)),
          .flag([.refused, .both].contains(request.kinds)), .flag(request.kinds == .acts),
        ] + both)
    }
    return Self.page((0..<rows.count).compactMap { EventsAnswer.Entry(rows, $0) }, else: end)
  }

  /// What is left over is asked for again, with all of its moment.
  private static func page(_ found: [EventsAnswer.Entry], else end: UInt64?) -> EventsAnswer {
    guard found.count > EventsAnswer.most, let next = found.last?.at else {
      return .told(found, next: end)
    }
    let whole = found.filter { $0.at > next }
    if !whole.isEmpty { return .told(whole, next: next) }
    // More in one moment than a frame holds: no further ones of it are told.
    return .told(Array(found.dropLast()), next: next > 0 ? next - 1 : nil)
  }
}

extension EventsAnswer.Entry {
  fileprivate init?(_ rows: Rows, _ row: Int) {
    guard let at = rows.number(row, 0) else { return nil }
    self.init(at: at, texts: (1...5).map { rows.bytes(row, $0) ?? [] })
  }
}

extension Value {
  fileprivate static func flag(_ value: Bool) -> Value {
    .text([UInt8(ascii: value ? "t" : "f")])
  }
}

extension FleetStore {
  /// Whether there is to be an event of what a question came to: a host that floods what costs it
  /// nothing fills no disk. It is counted all the same.
  func isWritten(_ word: (any EventWord)?) -> Bool {
    guard let word, word.isFree else { return true }
    let (isWritten, isNews) = database.counts.takeFree(on: event.host, at: sys_monotonic())
    if isNews {
      database.alert(
        "host \(String(decoding: event.host, as: UTF8.self)): more than 10 refusals in a minute "
          + "that cost it nothing (unknown names, throttled, malformed): more of them are counted, "
          + "but have no event")
    }
    return isWritten
  }
}
