package import FleetProtocol
package import OneTimePassword
import SallyportCore
import SallyportSystem

extension Statement {
  /// $1 digest, $2 host, $3 right, $4 until, $5 seal. It invalidates an earlier invitation.
  /// Gives whether there is such a host.
  fileprivate static let invite = """
    WITH old AS (
      DELETE FROM invite WHERE host = $2 OR until < extract(epoch FROM now()) - 2592000),
    new AS (
      INSERT INTO invite (digest, host, enrolls, until, seal)
      VALUES ($1, $2, $3::boolean, $4::bigint, $5) RETURNING until)
    SELECT (SELECT count(*) FROM host WHERE name = $2), \(shown("to_timestamp(until)")) FROM new
    """

  static let listing = """
    SELECT name, enrolls, \(shown("to_timestamp(joined)")), \(shown("seen")),
      greatest(0, extract(epoch FROM clock_timestamp() - seen))::bigint, coalesce(p.kind, 0)
    FROM host LEFT JOIN presence p ON p.subject = host.key ORDER BY 1
    """

  /// $1 host: what it says next counts.
  fileprivate static let accept = """
    DELETE FROM presence WHERE kind IN (1, 2)
      AND subject = (SELECT key FROM host WHERE name = $1) RETURNING kind
    """

  /// $1 host: its key, and the digests of its invitations, with the one by which it joined.
  fileprivate static let subjects = """
    SELECT key FROM host WHERE name = $1 AND key IS NOT NULL
    UNION SELECT digest FROM invite
      WHERE host = $1 OR key = (SELECT key FROM host WHERE name = $1)
    """

  /// $1 host, $2 seconds. The invitation by which it joined goes too: its key must not join again
  /// by it.
  fileprivate static let revoke = """
    WITH void AS (
      DELETE FROM invite WHERE host = $1 OR key = (SELECT key FROM host WHERE name = $1))
    DELETE FROM host WHERE name = $1
    RETURNING \(shown("seen")), \(shown("seen + $2::bigint * interval '1 second'"))
    """

  /// $1 verifier, $2 address.
  fileprivate static let listens = """
    INSERT INTO listener (verifier, address, since) VALUES ($1, $2, now())
    ON CONFLICT (verifier) DO UPDATE SET address = excluded.address, since = excluded.since
    """

  /// Verifiers, their addresses and when they last saved something. A verifier that did nothing for
  /// 30 days does not belong to the fleet any more.
  static let verifiers = """
    SELECT verifier, l.address, extract(epoch FROM w.now)::bigint
    FROM listener l FULL JOIN (
      SELECT verifier, max(now) AS now FROM worker GROUP BY verifier) w USING (verifier)
    WHERE greatest(l.since, w.now) > now() - interval '30 days' ORDER BY 1 LIMIT 16
    """

  /// For people.
  static func shown(_ time: String) -> String {
    "to_char((\(time)) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC'"
  }
}

/// The hosts of a fleet, as the commands of a verifier see and change them.
package struct HostTable {
  /// A host of the fleet. Times are for people.
  package struct Row: Equatable, Sendable {
    package let name: String
    package let enrolls: Bool
    package let joined: String
    /// nil: never; and seconds since then.
    package let seen: String?
    let unseen: UInt64?
    /// As its starts have it.
    var kind: PresenceRow.Kind = .usual
    /// For people.
    package var right: String {
      let right = enrolls ? "enrolls" : "asks"
      return switch kind {
      case .usual: right
      case .putBack: "rests: put back"
      case .copied: "rests: runs twice"
      case .ephemeral: right + ", ephemeral"
      }
    }
  }

  /// What an administrator types on the machine.
  package struct Invitation: Sendable {
    /// Shown once: the database keeps only a digest of its secret.
    package let token: Secret
    /// For people.
    package let until: String
    /// Whether there is a host of this name, whose key will be replaced.
    package let replaces: Bool
    /// Where the machine will ask.
    package let verifiers: [[UInt8]]
  }

  /// What was revoked. Times are for people.
  package struct Revoked: Equatable, Sendable {
    /// nil: never.
    package let seen: String?
    /// Until when its reserve may be valid.
    package let reserveUntil: String?
  }

  /// Why there is no invitation.
  package enum Fault: Error, Equatable {
    case database(DatabaseFault)
    /// No verifier has said where it listens, and none was named.
    case noVerifiers
    /// An address that does not fit into a token, or too many.
    case addresses
    case system
  }

  private let line: DatabaseConnection
  private let key: FleetKey

  package init(_ words: String, key: FleetKey) throws(DatabaseFault) {
    line = try DatabaseConnection(words, worker: 0)
    self.key = key
  }

  /// `verifiers`: where they are; empty: as they have said themselves. `pin`: of their identity.
  /// `isEphemeral`: the host keeps nothing over its end, so that it holds no backup codes, and is
  /// not taken for one that was put back.
  package func invite(
    _ host: FleetHostName, enrolls: Bool, isEphemeral: Bool = false, pin: [UInt8],
    verifiers: [[UInt8]]
  ) throws(Fault) -> Invitation {
    let verifiers = verifiers.isEmpty ? try addresses() : verifiers
    if verifiers.isEmpty { throw .noVerifiers }
    let (token, row) = try make(host, enrolls: enrolls, pin: pin, verifiers: verifiers)
    guard let token, let text = try? token.written() else { throw .addresses }
    guard let seal = try? row.seal(under: key) else { throw .system }
    if isEphemeral { try noteEphemeral(row.digest) }
    let rows = try asking { () throws(DatabaseFault) in
      try line.ask(
        Statement.invite,
        [
          .bytes(row.digest), .text(host.bytes), .text([UInt8(ascii: enrolls ? "t" : "f")]),
          .number(UInt64(clamping: row.until)), .bytes(seal),
        ])
    }
    return Invitation(
      token: text, until: rows.text(0, 1) ?? "", replaces: rows.number(0, 0) == 1,
      verifiers: verifiers)
  }

  private func noteEphemeral(_ digest: [UInt8]) throws(Fault) {
    let presence = PresenceRow(subject: digest, kind: .ephemeral)
    guard let values = try? presence.values(under: key) else { throw .system }
    _ = try asking { () throws(DatabaseFault) in
      try line.ask(Statement.savePresence, values + [.bytes([])])
    }
  }

  private func make(_ host: FleetHostName, enrolls: Bool, pin: [UInt8], verifiers: [[UInt8]])
    throws(Fault) -> (JoinToken?, InviteRow)
  {
    do {
      let secret = try Random.secret(count: JoinToken.secretLength)
      let row = InviteRow(
        digest: try SHA256.digest(secret), host: host.bytes, enrolls: enrolls,
        until: try Clock.now().seconds + 86_400)
      return (JoinToken(pin: pin, secret: secret, verifiers: verifiers), row)
    } catch {
      throw .system
    }
  }

  /// The addresses that the verifiers of the fleet report.
  private func addresses() throws(Fault) -> [[UInt8]] {
    try asking { () throws(DatabaseFault) in try line.ask(Statement.verifiers) }.addresses
  }

  private func asking(_ body: () throws(DatabaseFault) -> Rows) throws(Fault) -> Rows {
    do throws(DatabaseFault) { return try body() } catch { throw .database(error) }
  }

  /// A host that was put back, or of which there is one again, is as every other. false: it was
  /// that, or is none.
  package func accept(_ host: FleetHostName) throws(DatabaseFault) -> Bool {
    try line.ask(Statement.accept, [.text(host.bytes)]).count > 0
  }

  /// Sorted by name.
  package func hosts() throws(DatabaseFault) -> [Row] {
    try line.ask(Statement.listing).hosts
  }

  /// nil: there is no such host, and no invitation for one. `reserveFor`: how long a reserve is
  /// good, in seconds. Before anything goes it is written down that it was revoked: if this ends
  /// between, the verifiers remove the host.
  package func revoke(_ host: FleetHostName, reserveFor: UInt64) throws(DatabaseFault) -> Revoked? {
    let subjects = try line.ask(Statement.subjects, [.text(host.bytes)])
    for row in 0..<subjects.count {
      guard let subject = subjects.bytes(row, 0), let now = try? Clock.now() else { continue }
      let revoked = RevokedRow(subject: subject, host: host.bytes, at: now.seconds)
      _ = try line.ask(
        Statement.addRevoked,
        try Database.sealing { () throws(CryptoError) in try revoked.values(under: key) })
    }
    let rows = try line.ask(Statement.revoke, [.text(host.bytes), .number(reserveFor)])
    guard rows.count > 0 else {
      return subjects.count > 0 ? Revoked(seen: nil, reserveUntil: nil) : nil
    }
    return Revoked(seen: rows.text(0, 0), reserveUntil: rows.text(0, 1))
  }
}

extension Database {
  /// Says where hosts ask this verifier, for tokens and for hosts that join.
  package func listens(at address: String) throws(DatabaseFault) {
    _ = try ask(Statement.listens, [.text(verifier), .text(Array(address.utf8))])
  }
}

extension Rows {
  /// Of `Statement.verifiers`: those that said where they are; at most as many as a token holds.
  var addresses: [[UInt8]] {
    [[UInt8]]((0..<count).compactMap { bytes($0, 1) }.prefix(JoinToken.mostVerifiers))
  }

  /// Of `Statement.listing`.
  var hosts: [HostTable.Row] {
    (0..<count).map { row in
      HostTable.Row(
        name: text(row, 0) ?? "", enrolls: bytes(row, 1) == [1], joined: text(row, 2) ?? "",
        seen: text(row, 3), unseen: number(row, 4),
        kind: number(row, 5).flatMap { PresenceRow.Kind(rawValue: $0) } ?? .usual)
    }
  }
}
