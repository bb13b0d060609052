/// What is asked of the database: constants, since values are parameters.
///
/// A save is one statement: the row of the state where its version is still the one that was
/// loaded, and with it the event and the count of this connection. It gives 1 where it was done, 0
/// where the version is another.
enum Statement {
  static let load = """
    SELECT e.name, e.body, s.body, s.version
    FROM enrollment e LEFT JOIN state s ON s.name = e.name WHERE e.name IN ($1, $2)
    """

  /// $1 name, $2 version, $3 body, $4 the new version, from $5 on the event and the worker.
  static let save = """
    WITH saved AS (
      UPDATE state SET version = $4::bigint, saved = now(), body = $3
      WHERE name = $1 AND version = $2::bigint RETURNING name),
    \(event), \(count(15)) SELECT count(*) FROM saved
    """

  /// As `save`, with $16 the new enrollment.
  static let saveBoth = """
    WITH saved AS (
      UPDATE state SET version = $4::bigint, saved = now(), body = $3
      WHERE name = $1 AND version = $2::bigint RETURNING name),
    changed AS (UPDATE enrollment e SET body = $16 FROM saved WHERE e.name = saved.name),
    \(event), \(count(15)) SELECT count(*) FROM saved
    """

  /// As `saveBoth`, for a user of whom nothing is kept; $2 is 0.
  static let insert = """
    WITH made AS (
      INSERT INTO enrollment (name, body) SELECT $1, $16 WHERE $2::bigint = 0
      ON CONFLICT DO NOTHING RETURNING name),
    saved AS (
      INSERT INTO state (name, version, body) SELECT name, $4::bigint, $3 FROM made RETURNING name),
    \(event), \(count(15)) SELECT count(*) FROM saved
    """

  /// As `save`, without the condition: many are judged by one decoy at the same time.
  static let saveDecoy = """
    WITH saved AS (
      UPDATE state SET version = $4::bigint, saved = now(), body = $3
      WHERE name = $1 AND $2::bigint >= 0 RETURNING name),
    \(event), \(count(15)) SELECT count(*) FROM saved
    """

  /// $1 verifier, $2 worker, $3 timeline.
  static let probe = "WITH saved AS (SELECT), \(count(3)) SELECT count(*) FROM saved"

  static let forgetWorkers = "DELETE FROM worker WHERE verifier = $1"
  static let host = "SELECT enrolls FROM host WHERE name = $1"
  static let needs = "SELECT needs FROM fleet"

  private static let event = """
    told AS (
      INSERT INTO event (at, host, name, service, address, outcome, authenticator, position)
      SELECT now(), $5, $6::bytea, $7, $8, $9, $10, $11::numeric FROM saved WHERE $12::boolean)
    """

  private static func count(_ last: Int) -> String {
    """
    counted AS (
      INSERT INTO worker (verifier, worker, n, timeline, now)
      SELECT $\(last - 2), $\(last - 1)::int, 1, $\(last), now() FROM saved
      ON CONFLICT (verifier, worker)
      DO UPDATE SET n = worker.n + 1, timeline = excluded.timeline, now = excluded.now)
    """
  }
}
