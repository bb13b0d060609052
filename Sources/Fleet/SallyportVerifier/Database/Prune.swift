import OneTimePassword

extension Statement {
  /// $1 days: as many as are deleted at a time.
  static let prune = """
    WITH gone AS (
      DELETE FROM event WHERE ctid IN (
        SELECT ctid FROM event WHERE at < now() - make_interval(days => $1::int) LIMIT 2000)
      RETURNING 1)
    SELECT count(*) FROM gone
    """

  /// Rows of verifiers that are switched off. One that is not may use some of its own seldom, and
  /// would take it for lost.
  static let forget = """
    DELETE FROM worker w WHERE NOT EXISTS (
      SELECT FROM worker o WHERE o.verifier = w.verifier
        AND o.now >= now() - interval '30 days')
    """
}

extension Database {
  /// Deletes events older than this many days, and what verifiers that have been silent for
  /// 30 days have left, and hosts that are gone; how many events. `words`: of a role that may.
  package static func prune(_ words: String, days: Int) throws(DatabaseFault) -> UInt64 {
    let connection = try DatabaseConnection(words, worker: 1)
    var (all, last) = (UInt64(0), UInt64(1))
    while last > 0 {
      let gone = try connection.ask(Statement.prune, [.number(UInt64(days.magnitude))])
      last = gone.number(0, 0) ?? 0
      all += last
    }
    _ = try connection.ask(Statement.forget)
    _ = try connection.ask(Statement.forgetPresences)
    return all
  }
}
