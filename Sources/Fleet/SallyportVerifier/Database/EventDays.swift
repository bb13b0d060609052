import Glibc
import OneTimePassword

extension Statement {
  /// The parts of `event`: of each its name and its last day, since 1970 by UTC.
  fileprivate static let eventParts = """
    SELECT c.relname::text, (to_date(right(c.relname, 8), 'YYYYMMDD') - date '1970-01-01')::bigint
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass('event') AND c.relname ~ '^event_[0-9]{8}$' ORDER BY 2
    """

  /// Whether it has parts at all, and today.
  fileprivate static let eventKind = """
    SELECT relkind = 'p', extract(epoch FROM now())::bigint / 86400
    FROM pg_class WHERE oid = to_regclass('event')
    """

  fileprivate static let eventRest = "SELECT EXISTS (SELECT FROM event_rest)"

  /// $1 since when a part is, in seconds since 1970, or NULL for the first one, $2 its last day, $3
  /// the table that becomes it: the statements that make it, attach it, give that table its name,
  /// bound it, have the server look whether that is so, and take the bound away.
  fileprivate static let eventPart = """
    SELECT 'CREATE TABLE ' || part || ' (LIKE event INCLUDING DEFAULTS)',
      'ALTER TABLE event ATTACH PARTITION ' || part || ' FOR VALUES FROM ('
        || coalesce(since, 'MINVALUE') || ') TO (' || until || ')',
      'ALTER TABLE ' || $3::text || ' RENAME TO ' || part,
      'ALTER TABLE ' || $3::text || ' DROP CONSTRAINT IF EXISTS event_bound, '
        || 'ADD CONSTRAINT event_bound CHECK (' || coalesce('at >= ' || since || ' AND ', '')
        || 'at < ' || until || ') NOT VALID',
      'ALTER TABLE ' || $3::text || ' VALIDATE CONSTRAINT event_bound',
      'ALTER TABLE ' || part || ' DROP CONSTRAINT event_bound'
    FROM (
      SELECT 'event_' || to_char(date '1970-01-01' + $2::int, 'YYYYMMDD') AS part,
        'to_timestamp(' || $1::bigint || ')' AS since,
        'to_timestamp(' || 86400 * ($2::bigint + 1) || ')' AS until) AS one
    """

  /// No statement but those that wait for a lock keeps logins waiting; such a one waits briefly.
  fileprivate static let patient = """
    SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', '500', false)
    """

  /// $1 name.
  fileprivate static let forgetPerson = """
    WITH gone AS (
      UPDATE event SET name = '' WHERE name = $1 AND ctid = ANY (ARRAY(
        SELECT ctid FROM event WHERE name = $1 LIMIT 2000)) RETURNING 1)
    SELECT count(*) FROM gone
    """
}

/// The parts of the table `event`, of one day each by UTC, as the role that owns it keeps them.
///
/// What no part is for goes to one for the rest, so that no save fails because a part is missing.
/// The parts follow each other without a gap, and the first one has all that is earlier.
struct EventDays {
  /// For how many days after today there are parts.
  static let ahead: UInt64 = 30
  /// How long one statement may take that nothing waits for, in milliseconds.
  private static let patience: Int32 = 6 * 3_600_000
  /// How often a lock is tried for.
  private static let attempts = 40

  let line: DatabaseConnection

  init(_ line: DatabaseConnection) throws(DatabaseFault) {
    self.line = line
    _ = try line.ask(Statement.patient)
  }

  /// Whatever was done before, or not to its end.
  func keep() throws(DatabaseFault) {
    let kind = try line.ask(Statement.eventKind)
    guard let today = kind.number(0, 1) else { throw .unusable("no table event") }
    if kind.bytes(0, 0) != [1] {
      try divide(upTo: today + 1)
    } else if try line.ask(Statement.eventRest).bytes(0, 0) == [1] {
      try emptyRest(upTo: today + 1)
    }
    var last = try parts().last?.day
    while last ?? 0 < today + Self.ahead {
      // Where there was none for a while, the first one has all days up to today.
      let day = max(last.map { $0 + 1 } ?? today, today)
      let part = try part(after: last, day)
      try together([part.make, part.attach])
      last = day
    }
  }

  /// Removes the parts of which all is older than this many days; how many.
  func prune(_ days: UInt64) throws(DatabaseFault) -> Int {
    guard let today = try line.ask(Statement.eventKind).number(0, 1) else { return 0 }
    let old = try parts().filter { $0.day + days < today }
    for part in old { try together(["DROP TABLE " + part.name]) }
    return old.count
  }

  private func parts() throws(DatabaseFault) -> [(name: String, day: UInt64)] {
    let rows = try line.ask(Statement.eventParts)
    return (0..<rows.count).compactMap { row in
      rows.text(row, 0).flatMap { name in rows.number(row, 1).map { (name, $0) } }
    }
  }

  /// What makes a part.
  private struct Part {
    let make: String
    let attach: String
    let rename: String
    let bound: String
    let look: String
    let free: String
  }

  private func part(after last: UInt64?, _ day: UInt64, of table: String = "") throws(DatabaseFault)
    -> Part
  {
    let rows = try line.ask(
      Statement.eventPart,
      [
        last.map { .number(($0 + 1) * 86_400) } ?? .null, .number(day), .text(Array(table.utf8)),
      ])
    let texts = (0..<6).compactMap { rows.text(0, $0) }
    guard texts.count == 6 else { throw .unusable("an unrecognized answer") }
    return Part(
      make: texts[0], attach: texts[1], rename: texts[2], bound: texts[3], look: texts[4],
      free: texts[5])
  }

  /// A table from before there were parts becomes one, up to the end of that day.
  private func divide(upTo day: UInt64) throws(DatabaseFault) {
    try patiently("DROP INDEX CONCURRENTLY IF EXISTS event_name_before")
    try patiently("CREATE INDEX CONCURRENTLY event_name_before ON event (name, at)")
    let part = try part(after: nil, day, of: "event")
    // So that the server needs not look while logins wait.
    try together([part.bound])
    try patiently(part.look)
    let renaming = [
      part.rename, "ALTER INDEX event_at RENAME TO event_at_before",
      "ALTER INDEX event_wrong RENAME TO event_wrong_before",
    ]
    try together(renaming + Schema.event + [part.attach, part.free, Schema.telling])
  }

  /// What came when there was no part for it gets one.
  private func emptyRest(upTo day: UInt64) throws(DatabaseFault) {
    let last = try parts().last?.day
    if let last, last >= day { return }
    let part = try part(after: last, day, of: "event_rest")
    try together([part.bound])
    try patiently(part.look)
    try together(
      [
        "ALTER TABLE event DETACH PARTITION event_rest", part.rename, Schema.eventRest,
        part.attach, part.free,
      ])
  }

  private func patiently(_ statement: String) throws(DatabaseFault) {
    try retrying { () throws(DatabaseFault) in
      _ = try line.ask(statement, [], Self.patience)
    }
  }

  /// All or nothing.
  private func together(_ statements: [String]) throws(DatabaseFault) {
    try retrying { () throws(DatabaseFault) in
      do throws(DatabaseFault) {
        for statement in ["BEGIN"] + statements + ["COMMIT"] { _ = try line.ask(statement) }
      } catch {
        _ = try? line.ask("ROLLBACK")
        throw error
      }
    }
  }

  /// While somebody else has the lock: logins wait behind who waits for it.
  private func retrying(_ body: () throws(DatabaseFault) -> Void) throws(DatabaseFault) {
    for attempt in 1... {
      do throws(DatabaseFault) {
        return try body()
      } catch {
        guard case .refused("55P03", _) = error, attempt < Self.attempts else { throw error }
        _ = poll(nil, 0, 250)
      }
    }
  }
}

extension Database {
  /// Takes somebody's name from the events; how many. `words`: of the role that owns the tables.
  package static func forgetPerson(_ words: String, _ name: [UInt8]) throws(DatabaseFault) -> UInt64
  {
    let line = try DatabaseConnection(words, worker: 1)
    var (all, last) = (UInt64(0), UInt64(1))
    while last > 0 {
      last = try line.ask(Statement.forgetPerson, [.bytes(name)]).number(0, 0) ?? 0
      all += last
    }
    return all
  }
}
