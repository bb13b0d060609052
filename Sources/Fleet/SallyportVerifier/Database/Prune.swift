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
  /// come. `words`: of the role that owns the tables.
  package static func prune(_ words: String, days: Int) throws(DatabaseFault) -> Int {
    let connection = try DatabaseConnection(words, worker: 1)
    let events = try EventDays(connection)
    try events.keep()
    let gone = try events.prune(UInt64(days.magnitude))
    _ = try connection.ask(Statement.forget)
    _ = try connection.ask(Statement.forgetPresences)
    return gone
  }
}
