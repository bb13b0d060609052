import OneTimePassword
import SallyportCore

extension Statement {
  /// $1 the version: verifiers that are alive, and of an older one.
  fileprivate static let older = """
    SELECT verifier FROM worker WHERE worker = 0 AND coalesce(version, 0) < $1::bigint
      AND now > clock_timestamp() - interval '10 s' ORDER BY 1
    """

  /// $1 the version, $2 the seal that was read, $3 the new one. Nothing where the row was changed
  /// meanwhile, or a verifier of an older version is alive.
  fileprivate static let finish = """
    UPDATE fleet SET needs = $1::bigint, writes = $1::bigint, seal = $3
    WHERE seal = $2 AND NOT EXISTS (
      SELECT FROM worker WHERE worker = 0 AND coalesce(version, 0) < $1::bigint
        AND now > clock_timestamp() - interval '10 s')
    RETURNING one
    """
}

extension Database {
  /// The result of a migration.
  package enum Migrated: Equatable, Sendable {
    case done
    case wasDone
    /// Tables with this schema number, which this program does not know.
    case other(UInt64)
  }

  /// Adds what is new in this version to the tables, while verifiers of the former one go on as
  /// before, and days to the events. `words`: of the role that owns the tables.
  package static func migrate(_ words: String) throws(DatabaseFault) -> Migrated {
    let connection = try DatabaseConnection(words, worker: 1)
    let found = try connection.ask(Schema.found).number(0, 0) ?? 0
    if found == Schema.number {
      try EventDays(connection).keep()
      return .wasDone
    }
    guard (Schema.oldest...Schema.former).contains(found) else { return .other(found) }
    for statement in ["BEGIN"] + Schema.additions + ["COMMIT"] {
      _ = try connection.ask(statement)
    }
    try EventDays(connection).keep()
    return .done
  }

  /// The result of finishing a migration.
  package enum Finished: Equatable, Sendable {
    case done
    case wasDone
    /// Nothing was changed: these verifiers are alive and of an older version.
    case older([String])
  }

  /// From now on verifiers write what only this version reads, and no older one starts. A verifier
  /// that
  /// was silent meanwhile works on the row that is there when it returns: see `fleet`.
  package func finishMigration() throws(DatabaseFault) -> Finished {
    let connection = try DatabaseConnection(words, worker: 1)
    for _ in 0..<8 {
      let old = try fleet(by: connection)
      if old.writes >= Schema.number, old.needs >= Schema.number { return .wasDone }
      let late = try connection.ask(Statement.older, [.number(Schema.number)])
      if late.count > 0 { return .older((0..<late.count).map { late.text($0, 0) ?? "" }) }
      var new = old
      (new.needs, new.writes) = (Schema.number, Schema.number)
      let seals = try Self.sealing { () throws(CryptoError) in
        (old: try old.seal(under: key), new: try new.seal(under: key))
      }
      let rows = try connection.ask(
        Statement.finish,
        [.number(Schema.number), .bytes(seals.old), .bytes(seals.new)])
      if rows.count == 1 { return .done }
    }
    throw .unusable("other verifiers keep changing the fleet row")
  }
}

extension LoginState {
  /// Keeps of an earlier state the places that are known beyond those that one machine keeps: in a
  /// fleet there is one for each host. As many as every version reads.
  mutating func keepOrigins(of earlier: LoginState) {
    for known in earlier.origins where origins.count < LoginState.readableOrigins {
      if !origins.contains(where: { $0.origin == known.origin }) { origins.append(known) }
    }
  }
}
