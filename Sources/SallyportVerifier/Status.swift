/// What `sallyport-verifier status` tells of the database.
package struct FleetStatus: Sendable {
  /// One line each, without a line end.
  package let lines: [String]

  package init(_ words: String) throws(DatabaseFault) {
    let line = try DatabaseLine(words, worker: 0)
    var lines: [String] = []
    for (what, statement) in Self.questions {
      let rows = try line.ask(statement, [], Database.patience)
      for row in 0..<rows.count { lines.append("\(what): \(rows.text(row, 0) ?? "none")") }
    }
    self.lines = lines
  }

  private static let questions = [
    ("schema", "SELECT schema::text FROM fleet"),
    (
      "database",
      """
      SELECT format('timeline %s, synchronous standbys %s', substr(pg_walfile_name(
        pg_current_wal_lsn()), 1, 8), coalesce(nullif(current_setting('synchronous_standby_names'),
        ''), 'none'))
      """
    ),
    ("users", "SELECT count(*)::text FROM enrollment WHERE get_byte(name, 0) <> 47"),
    ("host", "SELECT name || CASE WHEN enrolls THEN ', enrolls' ELSE '' END FROM host ORDER BY 1"),
    (
      "verifier",
      """
      SELECT format('%s: %s saves by %s connections, the last at %s UTC', verifier, sum(n),
        count(*), to_char(max(now) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'))
      FROM worker GROUP BY verifier ORDER BY 1
      """
    ),
    (
      "last day",
      """
      SELECT format('%s: %s', outcome, count(*)) FROM event WHERE at > now() - interval '1 day'
      GROUP BY outcome ORDER BY 1
      """
    ),
  ]
}
