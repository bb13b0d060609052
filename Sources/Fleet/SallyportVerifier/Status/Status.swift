import Glibc
package import SallyportLogin

/// What `sallyport-verifier status` shows of the fleet, from its database.
package struct FleetStatus: Sendable {
  struct Verifier: Sendable {
    let name: String
    let saves: UInt64
    let connections: UInt64
    /// When it was last heard from (it reports every two seconds), and seconds since then.
    let heard: String
    let silent: UInt64
    /// Difference of its clock and the database's, in milliseconds; nil if it has not reported it.
    let offset: Int64?
    /// Whether it has verified the present database server.
    let hasLooked: Bool
    /// What it says of its policy: its number, or `file:` and a digest of its file; nil: nothing.
    var policy: String?

    var answers: Bool { silent <= FleetStatus.silence }
  }

  struct Facts: Sendable {
    let schema: UInt64
    /// How often codes were invalidated after a loss, or by `distrust`; and when last.
    let losses: UInt64
    let lost: String
    let timeline: String
    /// As `synchronous_standby_names` has them.
    let synchronous: String
    /// How many of them are there now, those too that wait for their turn; nil where this role may
    /// not see it.
    let standbys: UInt64?
    /// Connections whose save waits for one.
    let waiting: UInt64
    /// nil: not counted in time.
    var users: UInt64?
    /// Seconds until a certificate expires by which libpq and the server authenticate each other.
    var certificate: Int64?
    /// For how many days after today `event` has parts; nil: not for today.
    var eventDays: UInt64?
    /// Whether events of a later day are refused, as a migrate has not ended.
    var isBound = false
  }

  let facts: Facts
  let verifiers: [Verifier]
  let hosts: [HostTable.Row]
  /// Of the last day.
  let outcomes: [(word: String, count: UInt64)]
  /// Which of users, hosts and outcomes the database did not say in time.
  var leftOut: [Part] = []
  /// Whether a copy of this verifier's keys was checked.
  let hasCopy: Bool
  /// What is wrong with this verifier's sallyport.conf.
  let policyFlaw: String?

  /// What is told without, where it takes too long.
  enum Part: String, Sendable { case users, hosts, outcomes }

  /// Of how many days of `event` to come status warns that there are no more.
  static let fewDays: UInt64 = 7

  /// After how many seconds a verifier counts as silent, and a host as unused.
  static let (silence, unseen): (UInt64, UInt64) = (10, 30 * 86_400)

  /// How long before its expiry status warns of a certificate, in seconds.
  static let certificateEnding: Int64 = 30 * 86_400
}

extension FleetStatus {
  package init(
    _ words: String, key: FleetKey, _ file: RevocationFile, hasCopy: Bool, policyFlaw: LogLine?
  ) throws(DatabaseFault) {
    let connection = try DatabaseConnection(words, worker: 0)
    guard var facts = Facts(try connection.ask(Statement.facts)) else {
      throw .unusable("the fleet row is missing: sallyport-verifier init")
    }
    facts.certificate = connection.certificatesEnd.map { $0 - Int64(time(nil)) }
    let verifiers = try connection.ask(Statement.statusOfVerifiers, [.text(connection.server)])
    _ = try connection.ask(Statement.brief)
    var leftOut: [Part] = []
    facts.users = try Self.part(.users, &leftOut) { () throws(DatabaseFault) in
      try connection.ask(Statement.users).number(0, 0)
    }
    let hosts = try Self.part(.hosts, &leftOut) { () throws(DatabaseFault) in
      try HostTable.rows(by: connection, under: key, file)
    }
    let outcomes = try Self.part(.outcomes, &leftOut) { () throws(DatabaseFault) in
      try connection.ask(Statement.outcomes)
    }
    self.init(
      facts: facts, verifiers: (0..<verifiers.count).map { Verifier(verifiers, $0) },
      hosts: hosts ?? [], outcomes: outcomes?.outcomes ?? [], leftOut: leftOut, hasCopy: hasCopy,
      policyFlaw: policyFlaw.map { String(decoding: $0.bytes, as: UTF8.self) })
  }

  /// nil where the server ended it, as it took too long or waited for a lock.
  private static func part<R>(
    _ part: Part, _ leftOut: inout [Part], _ body: () throws(DatabaseFault) -> R?
  ) throws(DatabaseFault) -> R? {
    do throws(DatabaseFault) {
      return try body()
    } catch {
      guard case .refused(let state, _) = error, ["57014", "55P03"].contains(state) else {
        throw error
      }
      leftOut.append(part)
      return nil
    }
  }
}

extension FleetStatus.Facts {
  fileprivate init?(_ rows: Rows) {
    guard let schema = rows.number(0, 0) else { return nil }
    self.init(
      schema: schema, losses: rows.number(0, 1) ?? 0, lost: rows.text(0, 2) ?? "",
      timeline: rows.text(0, 3) ?? "", synchronous: rows.text(0, 4) ?? "",
      standbys: rows.number(0, 5), waiting: rows.number(0, 6) ?? 0, eventDays: rows.number(0, 7),
      isBound: rows.bytes(0, 8) == [1])
  }
}

extension Rows {
  /// Of `Statement.outcomes`.
  fileprivate var outcomes: [(String, UInt64)] {
    (0..<count).map { (text($0, 0) ?? "", number($0, 1) ?? 0) }
  }
}

extension FleetStatus.Verifier {
  fileprivate init(_ rows: Rows, _ row: Int) {
    let time = Int64(clamping: rows.number(row, 6) ?? 0)
    self.init(
      name: rows.text(row, 0) ?? "", saves: rows.number(row, 1) ?? 0,
      connections: rows.number(row, 2) ?? 0, heard: rows.text(row, 3) ?? "",
      silent: rows.number(row, 4) ?? 0,
      offset: rows.number(row, 5).map { Int64(clamping: $0) - time },
      hasLooked: rows.bytes(row, 7) == [1],
      policy: rows.text(row, 8)?.split(separator: " ").first.map(String.init))
  }
}

extension Statement {
  fileprivate static let facts = """
    SELECT f.schema, f.distrust & 1048575, \(shown("to_timestamp(f.distrusted)")),
      substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
      current_setting('synchronous_standby_names'),
      (SELECT CASE WHEN pg_has_role('pg_read_all_stats', 'usage') THEN count(*) END
        FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum', 'potential')),
      (SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'),
      (SELECT (max(to_date(right(c.relname, 8), 'YYYYMMDD'))
          - (now() AT TIME ZONE 'UTC')::date)::bigint
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass('event') AND c.relname ~ '^event_[0-9]{8}$'),
      EXISTS (SELECT FROM pg_constraint WHERE conname = 'event_bound')
    FROM fleet f
    """

  /// How long each part may take that can be left out, so that all is told within a second.
  fileprivate static let brief = """
    SELECT set_config('statement_timeout', '300', false), set_config('lock_timeout', '300', false)
    """

  fileprivate static let users = "SELECT count(*) FROM enrollment WHERE get_byte(name, 0) <> 47"

  /// $1 the server.
  fileprivate static let statusOfVerifiers = """
    SELECT verifier, sum(n)::bigint, count(*), \(shown("max(now)")),
      greatest(0, extract(epoch FROM clock_timestamp() - max(now)))::bigint,
      max(clock) FILTER (WHERE worker = 0),
      (extract(epoch FROM max(now) FILTER (WHERE worker = 0)) * 1000)::bigint,
      coalesce(max(posted) FILTER (WHERE worker = 0) = $1, false),
      max(policy) FILTER (WHERE worker = 0)
    FROM worker GROUP BY verifier HAVING bool_or(worker = 0) ORDER BY 1
    """
}
