import Glibc
import OneTimePassword
import SallyportCore
import SallyportSystem

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
  /// the table that becomes it: the statements that make it, take into it what the rest has of it,
  /// attach it, give that table its name, put aside what that table has besides, bound it, have the
  /// server look whether that is so, and take the bound away.
  fileprivate static let eventPart = """
    SELECT 'CREATE TABLE ' || part || ' (LIKE event INCLUDING DEFAULTS)',
      'WITH gone AS (DELETE FROM event_rest WHERE ' || coalesce('at >= ' || since || ' AND ', '')
        || 'at < ' || until || ' RETURNING *) INSERT INTO ' || part || ' SELECT * FROM gone',
      'ALTER TABLE event ATTACH PARTITION ' || part || ' FOR VALUES FROM ('
        || coalesce(since, 'MINVALUE') || ') TO (' || until || ')',
      'ALTER TABLE ' || $3::text || ' RENAME TO ' || part,
      'WITH gone AS (DELETE FROM ' || $3::text || ' WHERE '
        || coalesce('at < ' || since || ' OR ', '') || 'at >= ' || until
        || ' RETURNING *) INSERT INTO event_aside SELECT * FROM gone',
      'ALTER TABLE ' || $3::text || ' ADD CONSTRAINT event_bound CHECK ('
        || coalesce('at >= ' || since || ' AND ', '') || 'at < ' || until || ') NOT VALID',
      'ALTER TABLE ' || $3::text || ' VALIDATE CONSTRAINT event_bound',
      'ALTER TABLE ' || part || ' DROP CONSTRAINT event_bound'
    FROM (
      SELECT 'event_' || to_char(date '1970-01-01' + $2::int, 'YYYYMMDD') AS part,
        'to_timestamp(' || $1::bigint || ')' AS since,
        'to_timestamp(' || 86400 * ($2::bigint + 1) || ')' AS until) AS one
    """

  /// Of one program at a time, as long as its connection is.
  fileprivate static let alone =
    "SELECT pg_try_advisory_lock(hashtextextended('sallyport event', 0))"

  /// The tables with a bound that was left there, and whether rows are aside; of both one row at
  /// least.
  fileprivate static let leftovers = """
    SELECT c.conrelid::regclass::text, to_regclass('event_aside') IS NOT NULL
    FROM (SELECT) AS one LEFT JOIN pg_constraint c ON c.conname = 'event_bound'
    """

  /// For what the rest has that no part may have.
  fileprivate static let eventAside = "CREATE TABLE event_aside (LIKE event INCLUDING DEFAULTS)"

  fileprivate static let back = "INSERT INTO event SELECT * FROM event_aside"

  /// $1 up to when, in seconds since 1970.
  fileprivate static let pruneRest = "DELETE FROM event_rest WHERE at < to_timestamp($1::bigint)"

  /// No statement but those that wait for a lock keeps logins waiting; such a one waits briefly.
  fileprivate static let patient = """
    SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', '500', false)
    """

  /// $1 name.
  fileprivate static let forgetPerson = """
    WITH gone AS (
      UPDATE event SET name = '', caller = NULL, authenticator = NULL
      WHERE name = $1 AND ctid = ANY (ARRAY(
        SELECT ctid FROM event WHERE name = $1 LIMIT 2000)) RETURNING 1)
    SELECT count(*) FROM gone
    """
}

/// The parts of the table `event`, of one day each by UTC, as the role that owns it keeps them.
///
/// What no part is for goes to one for the rest, so that no save fails because a part is missing.
/// The parts follow each other without a gap, and the first one has all that is earlier.
///
/// A table with rows becomes a part without a look at them while logins wait: for that it has a
/// bound for a while, which refuses events beyond it. So the bound is as far ahead as parts are,
/// and goes with what failed, or else with the next of these.
struct EventDays {
  /// For how many days after today there are parts.
  static let ahead: UInt64 = 30
  /// How long one statement may take that nothing waits for, in milliseconds.
  private static let patience: Int32 = 6 * 3_600_000

  /// How often a lock is tried for.
  var attempts = 40
  let line: DatabaseConnection

  /// Of two at once the second one throws.
  init(_ line: DatabaseConnection) throws(DatabaseFault) {
    self.line = line
    _ = try line.ask(Statement.patient)
    guard try line.ask(Statement.alone).bytes(0, 0) == [1] else {
      throw .unusable("another migrate or init is at work: again when it has ended")
    }
    try undo()
  }

  /// Whatever was done before, or not to its end.
  func keep() throws(DatabaseFault) {
    let kind = try line.ask(Statement.eventKind)
    guard let today = kind.number(0, 1) else { throw .unusable("no table event") }
    if kind.bytes(0, 0) != [1] {
      try divide(upTo: today + Self.ahead)
    } else if try line.ask(Statement.eventRest).bytes(0, 0) == [1] {
      try emptyRest(today)
    }
    var last = try parts().last?.day
    while last ?? 0 < today + Self.ahead {
      // Where there was none for a while, the first one has all days up to today.
      let day = max(last.map { $0 + 1 } ?? today, today)
      let part = try part(after: last, day)
      // The rest has what came by a clock that was ahead.
      try together([part.make, part.fill, part.attach])
      last = day
    }
  }

  /// Removes the parts of which all is older than this many days, and what the rest has of them;
  /// how many parts.
  func prune(_ days: UInt64) throws(DatabaseFault) -> Int {
    let kind = try line.ask(Statement.eventKind)
    guard kind.bytes(0, 0) == [1], let today = kind.number(0, 1) else { return 0 }
    let old = try parts().filter { $0.day + days < today }
    for part in old { try together(["DROP TABLE " + part.name]) }
    if days < today {
      _ = try line.ask(Statement.pruneRest, [.number((today - days) * 86_400)], Self.patience)
    }
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
    let fill: String
    let attach: String
    let rename: String
    let aside: String
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
    let texts = (0..<8).compactMap { rows.text(0, $0) }
    guard texts.count == 8 else { throw .unusable("an unrecognized answer") }
    return Part(
      make: texts[0], fill: texts[1], attach: texts[2], rename: texts[3], aside: texts[4],
      bound: texts[5], look: texts[6], free: texts[7])
  }

  /// A table from before there were parts becomes one, up to the end of that day.
  private func divide(upTo day: UInt64) throws(DatabaseFault) {
    try patiently([
      "DROP INDEX CONCURRENTLY IF EXISTS event_name_before",
      "CREATE INDEX CONCURRENTLY event_name_before ON event (name, at)",
    ])
    let part = try part(after: nil, day, of: "event")
    let renaming = [
      part.rename, "ALTER INDEX event_at RENAME TO event_at_before",
      "ALTER INDEX event_wrong RENAME TO event_wrong_before",
    ]
    try replace(part, by: renaming + Schema.event + [part.attach, part.free, Schema.telling])
  }

  /// What came when there was no part for it gets one, with all days to come: those of the rest
  /// alone are made one by one.
  private func emptyRest(_ today: UInt64) throws(DatabaseFault) {
    let last = try parts().last?.day
    if let last, last >= today { return }
    let part = try part(after: last, today + Self.ahead, of: "event_rest")
    try replace(
      part,
      by: [
        "ALTER TABLE event DETACH PARTITION event_rest", part.rename, Schema.eventRest,
        part.attach, part.free,
      ])
  }

  /// A table becomes a part, by these statements at the end. So that the server needs not look at
  /// its rows while logins wait, it is bounded before.
  private func replace(_ part: Part, by statements: [String]) throws(DatabaseFault) {
    do throws(DatabaseFault) {
      try together([Statement.eventAside, part.aside, part.bound])
      try patiently([part.look])
      try together(statements)
    } catch {
      try? undo()
      throw error
    }
    try undo()
  }

  /// Takes a bound away that is left, and puts back what is aside.
  private func undo() throws(DatabaseFault) {
    let found = try line.ask(Statement.leftovers)
    let tables = (0..<found.count).compactMap { found.text($0, 0) }
    var statements = tables.map { "ALTER TABLE " + $0 + " DROP CONSTRAINT event_bound" }
    if found.bytes(0, 1) == [1] { statements += [Statement.back, "DROP TABLE event_aside"] }
    if !statements.isEmpty { try together(statements) }
  }

  /// One after the other, each by itself; again from the first one on.
  private func patiently(_ statements: [String]) throws(DatabaseFault) {
    try retrying { () throws(DatabaseFault) in
      for statement in statements { _ = try line.ask(statement, [], Self.patience) }
    }
  }

  /// All or nothing.
  private func together(_ statements: [String]) throws(DatabaseFault) {
    try retrying { () throws(DatabaseFault) in
      do throws(DatabaseFault) {
        for statement in ["BEGIN"] + statements + ["COMMIT"] {
          _ = try line.ask(statement, [], Self.patience)
        }
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
        guard case .refused("55P03", _) = error, attempt < attempts else { throw error }
        _ = poll(nil, 0, 250)
      }
    }
  }
}

extension Database {
  /// Takes somebody's name from the events, and what is hers alone; how many. `words`: of the role
  /// that owns the tables.
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
