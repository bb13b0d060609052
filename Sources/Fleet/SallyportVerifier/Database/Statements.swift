/// The statements for the database: constants, because values are parameters.
///
/// A save is one statement: the row of the state where its version is still the one that was
/// loaded, and with it the event and the count of this connection. It gives 1 where it was done, 0
/// where the version is another.
enum Statement {
  /// What each login asks, of which a connection has the server make one plan.
  static let prepared = [load, save, saveDecoy, wrongCodes]

  /// The first statement of each connection: settings of the role or the database must not weaken a
  /// save. Which server it is, since when; names are qualified, since the search path
  /// is not ours yet. A plan is made once, perhaps while a table is small, and is kept while it
  /// grows: the settings of the planner see to it that it goes by the index, which is right for the
  /// rows of one user at any size.
  static let greeting = """
    SELECT concat_ws('/', (SELECT system_identifier FROM pg_catalog.pg_control_system()),
        substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8),
        extract(epoch FROM pg_catalog.pg_postmaster_start_time())),
      pg_catalog.set_config('client_min_messages', 'notice', false),
      pg_catalog.set_config('synchronous_commit',
        CASE pg_catalog.current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
      pg_catalog.set_config('search_path', 'public, pg_temp', false),
      pg_catalog.set_config('lock_timeout', '1500', false),
      pg_catalog.set_config('statement_timeout', '1900', false),
      pg_catalog.set_config('idle_in_transaction_session_timeout', '5000', false),
      pg_catalog.set_config('row_security', 'on', false),
      pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false),
      pg_catalog.set_config('enable_seqscan', 'off', false),
      pg_catalog.set_config('jit', 'off', false)
    """

  static let load = """
    SELECT e.name, e.body, s.body, s.version, f.needs, f.writes, f.distrust, f.distrusted, f.seal
    FROM fleet f LEFT JOIN enrollment e ON e.name IN ($1, $2) LEFT JOIN state s ON s.name = e.name
    """

  /// $1 name, $2 version, $3 body, $4 the new version, from $5 on the event and the worker.
  static let save = """
    WITH \(saved("version = $2::bigint")), \(event(5)), \(count(16)) \(doneAndSeen)
    """

  /// As `save`, with $17 the new enrollment.
  static let saveBoth = """
    WITH \(saved("version = $2::bigint")),
    \(changed), \(event(5)), \(count(16)) \(doneAndSeen)
    """

  /// As `saveBoth`, for a user without rows; $2 is 0.
  static let insert = """
    WITH \(made), \(event(5)), \(count(16)) \(doneAndSeen)
    """

  private static let changed = """
    changed AS (UPDATE enrollment e SET body = $17 FROM saved WHERE e.name = saved.name)
    """

  private static let made = """
    made AS (
      INSERT INTO enrollment (name, body) SELECT $1, $17 WHERE $2::bigint = 0
      ON CONFLICT DO NOTHING RETURNING name),
    saved AS (
      INSERT INTO state (name, version, body) SELECT name, $4::bigint, $3 FROM made RETURNING name)
    """

  /// As `save`, `saveBoth` and `insert`, with what `charged` has at the end: what a host may do a
  /// number of times a day. Beyond it nothing is saved.
  static let spendingSave = """
    WITH \(saved("version = $2::bigint")), \(event(5)), \(charged(17)), \(count(16))
    \(doneAndSeen), (SELECT n FROM charged)
    """

  static let spendingSaveBoth = """
    WITH \(saved("version = $2::bigint")),
    \(changed), \(event(5)), \(charged(18)), \(count(16)) \(doneAndSeen), (SELECT n FROM charged)
    """

  static let spendingInsert = """
    WITH \(made), \(event(5)), \(charged(18)), \(count(16)) \(doneAndSeen), (SELECT n FROM charged)
    """

  /// As `save`, without the condition: many logins use one decoy at the same time.
  static let saveDecoy = """
    WITH \(saved("$2::bigint >= 0")), \(event(5)), \(count(16)) \(doneAndSeen)
    """

  /// The row of the fleet, with its canary.
  static let fleet = "SELECT needs, writes, distrust, distrusted, seal, canary, schema FROM fleet"

  /// $1 the distrust that was read, $2 its new number, $3 the time, $4 the seal, then the worker,
  /// $8 the seal that was read.
  static let distrust = """
    WITH saved AS (
      UPDATE fleet SET distrust = $2::bigint, distrusted = $3::bigint, seal = $4
      WHERE distrust = $1::bigint AND seal = $8 RETURNING one),
    \(count(7)) \(done)
    """

  /// What a verifier says of itself every two seconds: $4 its clock in milliseconds (NULL: it has
  /// stopped, and all that it saved was acknowledged before), $5 the server that it has checked
  /// (NULL: as before), $6 the least that its number here may be, $7 its version, $8 the least that
  /// the one of its row in `state` may be, $9 its policy.
  /// Gives both numbers, of its row here and of its own in `state`, and the row of the fleet.
  static let beat = """
    WITH counted AS (
      INSERT INTO worker (verifier, worker, n, server, posted, clock, now, version, policy)
      VALUES ($1, $2::int, 1 + $6::bigint, $3, $5, $4::bigint, clock_timestamp(), $7::bigint, $9)
      ON CONFLICT (verifier, worker) DO UPDATE SET n = greatest(worker.n, $6::bigint) + 1,
        server = excluded.server, posted = coalesce(excluded.posted, worker.posted),
        clock = excluded.clock, now = excluded.now, version = excluded.version,
        policy = excluded.policy RETURNING n),
    named AS (
      INSERT INTO enrollment (name, body) VALUES (\(witness(1)), '') ON CONFLICT DO NOTHING),
    seen AS (
      INSERT INTO state (name, version, body) VALUES (\(witness(1)), 1 + $8::bigint, '')
      ON CONFLICT (name) DO UPDATE SET version = greatest(state.version, $8::bigint) + 1
      RETURNING version)
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, n, seen.version,
      needs, writes, distrust, distrusted, seal, incarnation
    FROM counted CROSS JOIN seen LEFT JOIN fleet ON true
    """

  /// $1 verifier: the rows that the others say of themselves, whether each lives, and the number
  /// of its row in `state`.
  static let others = """
    SELECT verifier, posted, clock, (extract(epoch FROM now) * 1000)::bigint,
      (now > clock_timestamp() - interval '10 s'), n, (SELECT version FROM state
        WHERE name = convert_to('/verifier/' || verifier, 'UTF8')) FROM worker
    WHERE worker = 0 AND verifier <> $1
    """

  /// What the verifiers' clocks and the database's said at the same time, and what its says now.
  static let clocks = """
    SELECT clock, (extract(epoch FROM now) * 1000)::bigint,
      (extract(epoch FROM clock_timestamp()) * 1000)::bigint, verifier FROM worker
    WHERE worker = 0 AND clock IS NOT NULL
    """

  /// $1 verifier: what is there of what was acknowledged to it; the last is `Books.witness`.
  static let own = """
    SELECT worker, n, posted, (extract(epoch FROM now) * 1000)::bigint FROM worker
    WHERE verifier = $1
    UNION ALL
    SELECT 2147483647, version, NULL, NULL FROM state WHERE name = \(witness(1))
    """

  /// The name of a verifier's own row in `state`, which nobody can have. $n its name.
  static func witness(_ n: Int) -> String {
    "convert_to('/verifier/' || $\(n)::text, 'UTF8')"
  }

  private static func saved(_ condition: String) -> String {
    """
    saved AS (
      UPDATE state SET version = $4::bigint, saved = now(), body = $3
      WHERE name = $1 AND \(condition) RETURNING name)
    """
  }

  private static let done = "SELECT (SELECT count(*) FROM saved), (SELECT max(n) FROM counted)"

  /// With the number of this verifier's own row in `state`.
  private static let doneAndSeen = """
    \(done), (SELECT version FROM state WHERE name = \(witness(14)))
    """

  /// $n to $n+8.
  static func event(_ n: Int) -> String {
    """
    told AS (
      INSERT INTO event (
        at, host, name, service, address, caller, outcome, authenticator, position)
      SELECT now(), $\(n), $\(n + 1)::bytea, $\(n + 2), $\(n + 3), $\(n + 4)::bigint, $\(n + 5),
        $\(n + 6), $\(n + 7)::numeric FROM saved
      WHERE $\(n + 8)::boolean)
    """
  }

  /// $n subject, then kind, period (NULL: today) and how often at most. One that is over begins no
  /// count: another verifier may have former rights still, and the database's clock go back; but a
  /// day after tomorrow was no day.
  static func charged(_ n: Int) -> String {
    """
    charged AS (
      INSERT INTO spent (subject, kind, period, n, most)
      SELECT $\(n)::bytea, $\(n + 1)::bigint,
        coalesce($\(n + 2)::bigint, extract(epoch FROM now())::bigint / 86400), 1,
        $\(n + 3)::bigint FROM saved
      ON CONFLICT (subject, kind) DO UPDATE SET
        n = CASE WHEN $\(n + 2)::bigint IS NULL AND spent.period > excluded.period + 1 THEN 1
          WHEN spent.period >= excluded.period THEN spent.n + 1 ELSE 1 END,
        period = CASE WHEN $\(n + 2)::bigint IS NULL AND spent.period > excluded.period + 1
          THEN excluded.period ELSE greatest(spent.period, excluded.period) END,
        most = excluded.most
      RETURNING n)
    """
  }

  private static func count(_ last: Int) -> String {
    """
    counted AS (
      INSERT INTO worker (verifier, worker, n, server, now)
      SELECT $\(last - 2), $\(last - 1)::int, 1, $\(last), now() FROM saved
      ON CONFLICT (verifier, worker)
      DO UPDATE SET n = worker.n + 1, server = excluded.server, now = excluded.now RETURNING n)
    """
  }
}
