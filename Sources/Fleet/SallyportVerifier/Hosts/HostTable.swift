package import FleetProtocol
import FleetTransport
package import OneTimePassword
import SallyportCore
package import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 digest, $2 host, $3 until, $4 seal, $5 rights. It invalidates an earlier invitation.
  /// Gives whether there is such a host.
  fileprivate static let invite = """
    WITH old AS (
      DELETE FROM invite WHERE host = $2 OR until < extract(epoch FROM now()) - 2592000
      RETURNING digest),
    starts AS (DELETE FROM presence WHERE subject IN (SELECT digest FROM old)),
    new AS (
      INSERT INTO invite (digest, host, enrolls, until, seal, rights)
      VALUES ($1, $2, false, $3::bigint, $4, $5) RETURNING until)
    SELECT (SELECT count(*) FROM host WHERE name = $2), \(shown("to_timestamp(until)")) FROM new
    """

  static let listing = """
    SELECT name, enrolls, \(shown("to_timestamp(joined)")), \(shown("seen")),
      greatest(0, extract(epoch FROM clock_timestamp() - seen))::bigint, coalesce(p.kind, 0),
      name, key, enrolls, joined, rights,
      coalesce(closed > clock_timestamp() - interval '30 seconds', false)
    FROM host LEFT JOIN presence p ON p.subject = host.key ORDER BY 1
    """

  /// $1 host.
  static let named = "\(hosts) WHERE name = $1"

  /// $1 host.
  static let invitations = """
    SELECT digest, host, enrolls, until, key, seal FROM invite WHERE host = $1
    """

  /// $1 host, $2 seconds. The invitation by which it joined goes too.
  fileprivate static let revoke = """
    WITH void AS (
      DELETE FROM invite WHERE host = $1 OR key = (SELECT key FROM host WHERE name = $1)
      RETURNING digest),
    starts AS (
      DELETE FROM presence WHERE subject IN (
        SELECT digest FROM void UNION SELECT key FROM host WHERE name = $1))
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
    /// nil: they are not the last ones that were given, or somebody without the key made them.
    package let rights: HostRights?
    package let joined: String
    /// nil: never; and seconds since then.
    package let seen: String?
    let unseen: UInt64?
    /// As its starts have it.
    var kind: PresenceRow.Kind = .usual
    var key: [UInt8]?
    /// Whether codes there are accepted only from known places, after too many wrong ones.
    var isClosed = false
    /// For people.
    package var right: String {
      let right = rights.map { $0.text } ?? "none: sallyport-verifier hosts allow"
      return switch kind {
      case .usual: right
      case .putBack: "rests: put back"
      case .copied: "rests: runs twice"
      case .ephemeral: right + ", ephemeral"
      case .givenUp: "rests: given up"
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
    /// A row or an invitation of that name was there, which the fleet has sealed.
    package let isProven: Bool
    /// A row of that name was there, whatever its seal says.
    package let wasThere: Bool
    /// Why it is not in this verifier's own file; nil: it is.
    package let unfiled: PrivateFile.Fault?
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

  let line: DatabaseConnection
  let key: FleetKey
  let file: RevocationFile?

  /// `file`: where this verifier keeps what was revoked; nil: nowhere, as for tests.
  package init(_ words: String, key: FleetKey, file: RevocationFile? = nil) throws(DatabaseFault) {
    line = try DatabaseConnection(words, worker: 0)
    (self.key, self.file) = (key, file)
    try key.follow(line)
  }

  /// `verifiers`: where they are; empty: as they have said themselves. `pin`: of their identity.
  /// `isEphemeral`: the host keeps nothing over its end, so that it holds no backup codes, and is
  /// not taken for one that was put back.
  package func invite(
    _ host: FleetHostName, rights: HostRights = HostRights(), isEphemeral: Bool = false,
    pin: [UInt8], verifiers: [[UInt8]]
  ) throws(Fault) -> Invitation {
    let verifiers = verifiers.isEmpty ? try addresses() : verifiers
    if verifiers.isEmpty { throw .noVerifiers }
    let (row, token) = try make(host, pin: pin, verifiers: verifiers)
    guard let token, let text = try? token.written() else { throw .addresses }
    let sealed = SealedRights(rights: rights, changed: row.made)
    guard let seal = try? row.seal(under: key),
      let rights = try? sealed.sealed(under: key, of: .invite(row))
    else { throw .system }
    if isEphemeral { try noteEphemeral(row.digest) }
    let rows = try asking { () throws(DatabaseFault) in
      try voidInvitations(for: host, at: UnixTime(row.made))
      return try line.ask(
        Statement.invite,
        [
          .bytes(row.digest), .text(host.bytes), .number(UInt64(clamping: row.until)), .bytes(seal),
          .bytes(rights),
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

  /// Later than what is void of that name.
  private func make(_ host: FleetHostName, pin: [UInt8], verifiers: [[UInt8]])
    throws(Fault) -> (InviteRow, JoinToken?)
  {
    let end: Int64
    do throws(DatabaseFault) { end = try self.end(of: host) } catch { throw .database(error) }
    do {
      let secret = try Random.secret(count: JoinToken.secretLength)
      let made = max(try Clock.now().seconds, end + 1)
      let row = InviteRow(
        digest: try SHA256.digest(secret), host: host.bytes,
        until: made + InviteRow.lifetime)
      return (row, JoinToken(pin: pin, secret: secret, verifiers: verifiers))
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

  /// What came of `accept`.
  package enum Accepted: Sendable {
    case done
    /// It does not rest.
    case needless
    /// There is none, or its row was made or changed by somebody without the key.
    case noHost
  }

  /// A host that was put back, or of which there is one again, is as every other, or from now on
  /// one that keeps nothing.
  package func accept(_ host: FleetHostName, isEphemeral: Bool = false) throws(DatabaseFault)
    -> Accepted
  {
    let rows = try line.ask(Statement.named, [.text(host.bytes)])
    guard rows.count > 0, let found = HostRow(rows, 0), let subject = found.key,
      found.isRight(rows.bytes(0, 4) ?? [], under: key)
    else { return .noHost }
    let isNoted = try endRest(of: found.name, subject)
    for _ in 0..<8 {
      let rows = try line.ask(Statement.presence, [.bytes(subject)])
      let (old, seal) = (PresenceRow.sealed(rows, 0, key), rows.bytes(0, 7))
      if isEphemeral {
        if old?.kind == .ephemeral { return isNoted ? .done : .needless }
        let new = PresenceRow(subject: subject, kind: .ephemeral)
        let values = try Database.sealing { () throws(CryptoError) in try new.values(under: key) }
        let saved = try line.ask(Statement.savePresence, values + [.bytes(seal ?? [])])
        if saved.count == 1 { return .done }
      } else {
        let now = rows.number(0, 8).map { Int64(clamping: $0) }
        guard let seal, old?.rests(at: now) ?? true else { return isNoted ? .done : .needless }
        let ended = try line.ask(Statement.endPresence, [.bytes(subject), .bytes(seal)])
        if ended.count == 1 { return .done }
      }
    }
    throw .unusable("the host keeps changing its row: run this again")
  }

  /// Whether it was written down that it rests.
  private func endRest(of host: [UInt8], _ key: [UInt8]) throws(DatabaseFault) -> Bool {
    let names = Revocations.names(of: host, key)
    let since = try end(ofName: names.rests)
    guard since > (try end(ofName: names.accepted)) else { return false }
    guard let now = try? Clock.now() else { throw .unusable("no clock") }
    try note(max(now.seconds, since), of: names.accepted)
    return true
  }

  /// Sorted by name.
  package func hosts() throws(DatabaseFault) -> [Row] {
    var hosts = try HostTable.rows(by: line, under: key, file)
    let rows = try line.ask(Statement.presences)
    let forged = (0..<rows.count).filter { PresenceRow.sealed(rows, $0, key) == nil }
    let subjects = Set(forged.compactMap { rows.bytes($0, 0) })
    for index in hosts.indices where hosts[index].key.map(subjects.contains) == true {
      hosts[index].kind = .putBack
    }
    return hosts
  }

  // MARK: revoking

  /// What is sealed for a name.
  private struct Sealed {
    var keys: [[UInt8]] = []
    /// Of the latest of its rows.
    var latest: Int64 = 0
    var isProven = false
    var wasThere = false
  }

  /// All that was sealed for this name until now is void from now on, also what the database does
  /// not show; so is the key that it shows, where the fleet has sealed it. `reserveFor`: how long a
  /// reserve is good, in seconds. Before anything goes it is written down: if this ends between,
  /// the verifiers remove the host.
  package func revoke(_ host: FleetHostName, reserveFor: UInt64) throws(DatabaseFault) -> Revoked {
    let found = try sealed(for: host)
    guard let now = try? Clock.now() else { throw .unusable("no clock") }
    let at = max(now.seconds, found.latest, try end(of: host) + 1)
    let rows = try Database.sealing { () throws(CryptoError) in
      [try RevokedRow.subject(ofName: host.bytes)] + found.keys
    }.map { RevokedRow(subject: $0, host: host.bytes, at: at) }
    for row in rows { try write(row) }
    var unfiled: PrivateFile.Fault?
    do throws(PrivateFile.Fault) { try file?.add(rows) } catch { unfiled = error }
    let gone = try line.ask(Statement.revoke, [.text(host.bytes), .number(reserveFor)])
    return Revoked(
      seen: gone.count > 0 ? gone.text(0, 0) : nil,
      reserveUntil: gone.count > 0 ? gone.text(0, 1) : nil, isProven: found.isProven,
      wasThere: found.wasThere, unfiled: unfiled)
  }

  private func sealed(for host: FleetHostName) throws(DatabaseFault) -> Sealed {
    var found = Sealed()
    let hosts = try line.ask(Statement.named, [.text(host.bytes)])
    for row in 0..<hosts.count {
      found.wasThere = true
      guard let one = HostRow(hosts, row), one.isRight(hosts.bytes(row, 4) ?? [], under: key) else {
        continue
      }
      (found.isProven, found.latest) = (true, max(found.latest, one.joined))
      // One that asks only over a local socket has none.
      if let pin = one.key.flatMap(Pin.init) { found.keys.append(pin.bytes) }
    }
    let invites = try line.ask(Statement.invitations, [.text(host.bytes)])
    for row in 0..<invites.count {
      found.wasThere = true
      guard let one = InviteRow(invites, row), one.isRight(invites.bytes(row, 5) ?? [], under: key)
      else { continue }
      (found.isProven, found.latest) = (true, max(found.latest, one.made))
    }
    return found
  }

  /// Up to when all of this name is void, as the database or this verifier's file says; 0: nothing.
  private func end(of host: FleetHostName) throws(DatabaseFault) -> Int64 {
    try end(ofName: host.bytes)
  }

  func end(ofName name: [UInt8]) throws(DatabaseFault) -> Int64 {
    let subject = try Database.sealing { () throws(CryptoError) in
      try RevokedRow.subject(ofName: name)
    }
    let filed = (try? file?.read())?.rows.first { $0.subject == subject }
    return max(filed?.at ?? 0, try row(of: subject).0?.at ?? 0)
  }

  /// As `RevokedRow.found`.
  func row(of subject: [UInt8]) throws(DatabaseFault) -> (RevokedRow?, seal: [UInt8]) {
    try RevokedRow.found(subject, under: key) { (statement, values) throws(DatabaseFault) in
      try line.ask(statement, values)
    }
  }

  /// Where a later one is there, that stays.
  func write(_ new: RevokedRow) throws(DatabaseFault) {
    try new.write(under: key) { (statement, values) throws(DatabaseFault) in
      try line.ask(statement, values)
    }
  }
}

extension InviteRow {
  /// digest, host, enrolls, until and key, whatever the seal says.
  init?(_ rows: Rows, _ row: Int) {
    guard let digest = rows.bytes(row, 0), let host = rows.bytes(row, 1),
      let enrolls = rows.bytes(row, 2), let until = rows.number(row, 3)
    else { return nil }
    self.init(
      digest: digest, host: host, enrolls: enrolls == [1], until: Int64(clamping: until),
      key: rows.bytes(row, 4))
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

  /// Of `Statement.listing`. `end`: up to when what was sealed for a name is void.
  func hosts(under key: FleetKey, end: ([UInt8]) -> Int64?) -> [HostTable.Row] {
    (0..<count).map { row in
      HostTable.Row(
        name: text(row, 0) ?? "", rights: rights(row, under: key, end),
        joined: text(row, 2) ?? "", seen: text(row, 3), unseen: number(row, 4),
        kind: number(row, 5).flatMap { PresenceRow.Kind(rawValue: $0) } ?? .usual,
        key: bytes(row, 7), isClosed: bytes(row, 11) == [1])
    }
  }
}
