import CPostgres

extension Statement {
  /// Rows of verifiers that are switched off. One that is not may use some of its own seldom, and
  /// would take it for lost.
  static let forget = """
    DELETE FROM worker w WHERE NOT EXISTS (
      SELECT FROM worker o WHERE o.verifier = w.verifier
        AND o.now >= now() - interval '30 days')
    """
}

extension Database {
  /// Deletes the days of events that are older than this many days, what verifiers that have been
  /// silent for 30 days have left, and hosts that are gone; how many days of events. Adds days to
  /// come. Nothing where the clocks differ. `words`: of the role that owns the tables. `clock`:
  /// this machine's, in milliseconds since 1970; nil for the system's.
  package static func prune(_ words: String, days: Int, clock: Int64? = nil)
    throws(DatabaseFault) -> Int
  {
    let connection = try DatabaseConnection(words, worker: 1)
    _ = try connection.time(by: clock ?? pg_time())
    let events = try EventDays(connection)
    let gone = try events.prune(UInt64(days.magnitude))
    try events.keep()
    _ = try connection.ask(Statement.forget)
    _ = try connection.ask(Statement.forgetPresences)
    return gone
  }
}
