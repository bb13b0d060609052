/// The tables of a fleet, and the rights of the role that verifiers have.
enum Schema {
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
      name text PRIMARY KEY, key bytea UNIQUE, enrolls boolean NOT NULL DEFAULT false,
      joined timestamptz NOT NULL DEFAULT now(), seen timestamptz)
    """,
    """
    CREATE TABLE worker (
      verifier text, worker int, n bigint NOT NULL, timeline text NOT NULL,
      now timestamptz NOT NULL, PRIMARY KEY (verifier, worker)) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE event (
      at timestamptz NOT NULL, host text NOT NULL, name bytea NOT NULL, service text NOT NULL,
      address text NOT NULL, outcome text NOT NULL, authenticator text, position numeric(20))
    """,
    "CREATE INDEX event_at ON event (at)",
    "CREATE TABLE fleet (schema bigint NOT NULL, needs bigint NOT NULL, writes bigint NOT NULL)",
    "INSERT INTO fleet VALUES (1, 1, 1)",
  ]

  static let role = "sallyport_verifier"

  /// Rows alone; an event is never changed.
  static let grants = [
    "GRANT SELECT, INSERT, UPDATE ON enrollment, state TO \(role)",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON worker TO \(role)",
    "GRANT SELECT, INSERT ON event TO \(role)",
    "GRANT SELECT ON host, fleet TO \(role)",
  ]

  static let isThere = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('fleet')"
  static let hasRole = "SELECT count(*) FROM pg_roles WHERE rolname = '\(role)'"
}

extension Database {
  /// What `makeSchema` found and did.
  package enum Made: Equatable, Sendable {
    case new
    case wasThere
    /// Nothing, since the role that verifiers have does not exist.
    case noRole
  }

  /// Makes the tables where there are none, all or nothing.
  package static func makeSchema(_ words: String) throws(DatabaseFault) -> Made {
    let line = try DatabaseLine(words, worker: 0)
    if try line.ask(Schema.isThere, [], patience).number(0, 0) == 1 { return .wasThere }
    if try line.ask(Schema.hasRole, [], patience).number(0, 0) != 1 { return .noRole }
    for statement in ["BEGIN"] + Schema.tables + Schema.grants + ["COMMIT"] {
      _ = try line.ask(statement, [], patience)
    }
    return .new
  }
}
