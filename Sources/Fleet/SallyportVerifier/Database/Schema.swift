import OneTimePassword

/// The tables of a fleet, and the rights of the role that verifiers have.
package enum Schema {
  /// One after the other, in one transaction.
  static let tables = [
    """
    CREATE TABLE enrollment (name bytea PRIMARY KEY, body bytea NOT NULL)
    """,
    """
    CREATE TABLE state (
      name bytea PRIMARY KEY REFERENCES enrollment, version bigint NOT NULL,
      saved timestamptz NOT NULL DEFAULT now(), body bytea NOT NULL) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE host (
      name text PRIMARY KEY, key bytea UNIQUE, enrolls boolean NOT NULL, joined bigint NOT NULL,
      seal bytea NOT NULL, seen timestamptz, rights bytea, formerly timestamptz,
      asked timestamptz, reopened bytea, closed timestamptz)
    """,
    """
    CREATE TABLE invite (
      digest bytea PRIMARY KEY, host text NOT NULL, enrolls boolean NOT NULL,
      until bigint NOT NULL, key bytea, seal bytea NOT NULL, rights bytea)
    """,
    """
    CREATE TABLE listener (
      verifier text PRIMARY KEY, address text NOT NULL, since timestamptz NOT NULL)
    """,
    """
    CREATE TABLE worker (
      verifier text, worker int, n bigint NOT NULL, server text NOT NULL, posted text,
      clock bigint, now timestamptz NOT NULL, version bigint, keys bytea, policy text,
      PRIMARY KEY (verifier, worker))
      WITH (fillfactor = 50)
    """,
    revoked,
    presence,
    spent,
    visitor,
    outcome,
    policy,
    """
    CREATE TABLE fleet (
      one boolean PRIMARY KEY DEFAULT true CHECK (one), schema bigint NOT NULL,
      needs bigint NOT NULL, writes bigint NOT NULL, distrust bigint NOT NULL,
      distrusted bigint NOT NULL, canary bytea NOT NULL, seal bytea NOT NULL, incarnation bytea,
      next bytea)
    """,
  ]

  /// Without its days, which `EventDays` adds.
  static let event = [
    """
    CREATE TABLE event (
      at timestamptz NOT NULL, host text NOT NULL, name bytea NOT NULL, service text NOT NULL,
      address text NOT NULL, caller bigint, outcome text NOT NULL, authenticator text,
      position numeric(20)) PARTITION BY RANGE (at)
    """,
    "CREATE INDEX event_at ON event (at)",
    "CREATE INDEX event_name ON event (name, at)",
    "CREATE INDEX event_wrong ON event (host, at) WHERE outcome = 'wrong-code'",
    eventRest,
  ]

  /// For what has no day's part.
  static let eventRest = "CREATE TABLE event_rest PARTITION OF event DEFAULT"

  static let telling = "GRANT SELECT, INSERT ON event TO \(role)"

  private static let revoked = """
    CREATE TABLE IF NOT EXISTS revoked (
      subject bytea PRIMARY KEY, host text NOT NULL, at bigint NOT NULL, seal bytea NOT NULL)
    """

  private static let presence = """
    CREATE TABLE IF NOT EXISTS presence (
      subject bytea PRIMARY KEY, kind bigint NOT NULL, random bytea NOT NULL,
      number bigint NOT NULL, former bytea NOT NULL, suspect bytea NOT NULL, noted bigint NOT NULL,
      seal bytea NOT NULL)
    """

  /// How often a host has used a right in a period. A statement that would go beyond `most` fails
  /// as a whole, so that a change is saved and counted, or neither.
  private static let spent = """
    CREATE TABLE IF NOT EXISTS spent (
      subject bytea, kind bigint, period bigint NOT NULL, n bigint NOT NULL, most bigint NOT NULL,
      PRIMARY KEY (subject, kind), CHECK (n <= most))
    """

  /// Who was let in by a verifier on a host on a day: digests, no names.
  private static let visitor = """
    CREATE TABLE IF NOT EXISTS visitor (
      day bigint, host text, verifier text, people bit(1024) NOT NULL,
      PRIMARY KEY (day, host, verifier))
    """

  /// What came of codes: a row of each verifier, so that none waits for another one's.
  private static let outcome = """
    CREATE TABLE IF NOT EXISTS outcome (
      hour bigint, host text, verifier text, kind text, n bigint NOT NULL,
      PRIMARY KEY (hour, host, verifier, kind)) WITH (fillfactor = 50)
    """

  /// What was the policy of the fleet, and is; the highest serial is.
  private static let policy = """
    CREATE TABLE IF NOT EXISTS policy (
      serial bigint PRIMARY KEY, at bigint NOT NULL, author text NOT NULL, body bytea NOT NULL,
      seal bytea NOT NULL)
    """

  /// Of these tables, and of what this program understands of them. 1 was a preview's; from 3 on
  /// verifiers say what they understand, a state may have 32 known origins, and a document the
  /// enrollments that ended and a taking; from 4 on passes, a block and what is suspended; from 5
  /// on there is what was revoked.
  package static let number: UInt64 = 5
  /// The one before, and the oldest that `migrate` brings to this one while its verifiers go on.
  package static let (former, oldest): (UInt64, UInt64) = (4, 3)
  /// From which on verifiers read what: places and endings, passes and blocks, what was revoked.
  package static let (placing, passing, revoking): (UInt64, UInt64, UInt64) = (3, 4, 5)
  /// From which on all verifiers open what hosts seal.
  static let sealing: UInt64 = 5

  /// From the former one on, and from the oldest, which has the same tables: all or nothing.
  static let additions = [
    revoked, presence, revoking(role), presences, spent, spending, visitor, outcome, counting,
    policy, policies, "ALTER TABLE worker ADD COLUMN IF NOT EXISTS policy text",
    "ALTER TABLE host ADD COLUMN IF NOT EXISTS rights bytea",
    "ALTER TABLE host ADD COLUMN IF NOT EXISTS reopened bytea",
    "ALTER TABLE host ADD COLUMN IF NOT EXISTS closed timestamptz",
    "ALTER TABLE invite ADD COLUMN IF NOT EXISTS rights bytea",
    "ALTER TABLE fleet ADD COLUMN IF NOT EXISTS incarnation bytea",
    "ALTER TABLE fleet ADD COLUMN IF NOT EXISTS next bytea",
    "ALTER TABLE worker ADD COLUMN IF NOT EXISTS keys bytea",
    "ALTER TABLE host ADD COLUMN IF NOT EXISTS formerly timestamptz",
    "ALTER TABLE host ADD COLUMN IF NOT EXISTS asked timestamptz",
    "UPDATE fleet SET schema = 5",
  ]

  private static let presences = "GRANT SELECT, INSERT, UPDATE, DELETE ON presence TO \(role)"

  private static let spending = "GRANT SELECT, INSERT, UPDATE, DELETE ON spent TO \(role)"

  private static let counting = """
    GRANT SELECT, INSERT, UPDATE, DELETE ON visitor, outcome TO \(role)
    """
  private static let policies = "GRANT SELECT, INSERT, UPDATE ON policy TO \(role)"

  private static func revoking(_ role: String) -> String {
    "GRANT SELECT, INSERT, UPDATE ON revoked TO \(role)"
  }

  /// $1 the number, $2 canary, $3 seal of the row.
  static let fleet = "INSERT INTO fleet VALUES (true, $1, $1, $1, 0, 0, $2, $3)"

  static let role = "sallyport_verifier"

  /// Rows alone; an event is never changed.
  static let grants = [
    "GRANT SELECT, INSERT, UPDATE ON enrollment, state TO \(role)",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON worker TO \(role)",
    telling,
    "GRANT SELECT, INSERT, UPDATE, DELETE ON host, invite, listener TO \(role)",
    "GRANT SELECT, UPDATE ON fleet TO \(role)",
    revoking(role), presences, spending, counting, policies,
  ]

  static let isThere = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('fleet')"
  static let found = "SELECT schema FROM fleet"
  static let hasRole = "SELECT count(*) FROM pg_roles WHERE rolname = '\(role)'"
}

extension Database {
  /// The result of `makeSchema`.
  package enum Made: Equatable, Sendable {
    case new
    case wasThere
    /// Tables of the former version: the administrator has to call `migrate`.
    case former
    /// Tables with this number, which this program does not have.
    case other(UInt64)
    /// Nothing, since the role that verifiers have does not exist.
    case noRole
  }

  /// Makes the tables where there are none, all or nothing.
  /// `policy`: the first one; nil: the verifiers go by their files.
  package static func makeSchema(_ words: String, key: FleetKey, policy: StoredPolicy? = nil)
    throws(DatabaseFault) -> Made
  {
    let connection = try DatabaseConnection(words, worker: 0)
    if try connection.ask(Schema.isThere).number(0, 0) == 1 {
      let found = try connection.ask(Schema.found).number(0, 0)
      if found == Schema.number { grantAgain(by: connection) }
      guard let found, found != Schema.number else { return .wasThere }
      return (Schema.oldest...Schema.former).contains(found) ? .former : .other(found)
    }
    if try connection.ask(Schema.hasRole).number(0, 0) != 1 { return .noRole }
    let row = FleetRow(needs: Schema.number, writes: Schema.number)
    let values = try Self.sealing { () throws(CryptoError) in
      [Value.number(Schema.number), .bytes(try key.canary()), .bytes(try row.seal(under: key))]
    }
    for statement in ["BEGIN"] + Schema.tables + Schema.event + Schema.grants {
      _ = try connection.ask(statement)
    }
    _ = try connection.ask(Schema.fleet, values)
    if let policy {
      _ = try connection.ask(Statement.putPolicy, try policy.columns(under: key) + [.null])
    }
    _ = try connection.ask("COMMIT")
    try EventDays(connection).keep()
    return .new
  }

  /// Restores rights that somebody took away. A role other than the owner cannot, and need not.
  private static func grantAgain(by connection: DatabaseConnection) {
    for statement in Schema.grants {
      guard (try? connection.ask(statement)) != nil else { return }
    }
  }

  static func sealing<R>(_ body: () throws(CryptoError) -> R) throws(DatabaseFault) -> R {
    do throws(CryptoError) { return try body() } catch { throw .refused("", "libcrypto failed") }
  }
}
