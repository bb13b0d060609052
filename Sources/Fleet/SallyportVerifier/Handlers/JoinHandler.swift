import FleetProtocol
package import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

extension Statement {
  /// $1 digest, $2 key: the invitation, and the hosts of its name and of this key.
  fileprivate static let invited = """
    SELECT i.host, i.enrolls, i.until, i.key, i.seal, h.name, h.key, h.enrolls, h.joined, h.seal,
      i.rights
    FROM invite i LEFT JOIN host h ON h.name = i.host OR h.key = $2 WHERE i.digest = $1
    """

  /// $1 digest, $2 its seal until now, $3 key, $4 its new seal; the host: $5 name, $6 right, $7
  /// when, $8 seal; $9 the key that it had, or NULL, and $10 its seal as revoked, or NULL; $11 the
  /// subject of its name, $12 up to when that is void, and $13 the seal of that; $14 its rights.
  /// Nothing where another one was faster.
  fileprivate static let join = """
    WITH taken AS (
      UPDATE invite SET key = $3, seal = $4 WHERE digest = $1 AND seal = $2 AND NOT EXISTS (
        SELECT FROM host WHERE name = $5 AND key <> $3 AND key IS DISTINCT FROM $9::bytea)
      RETURNING digest),
    replaced AS (
      INSERT INTO revoked (subject, host, at, seal)
      SELECT $9::bytea, $5, $12::bigint, $10::bytea FROM taken WHERE $10::bytea IS NOT NULL
      UNION ALL SELECT $11::bytea, $5, $12::bigint, $13::bytea FROM taken
      ON CONFLICT (subject) DO UPDATE SET host = excluded.host, at = excluded.at,
        seal = excluded.seal WHERE revoked.at < excluded.at),
    starts AS (
      DELETE FROM presence WHERE subject IN (SELECT digest FROM taken UNION ALL
        SELECT $9::bytea FROM taken))
    INSERT INTO host (name, key, enrolls, joined, seal, seen, rights)
    SELECT $5, $3::bytea, $6::boolean, $7::bigint, $8::bytea, now(), $14::bytea FROM taken
    ON CONFLICT (name) DO UPDATE SET key = excluded.key, enrolls = excluded.enrolls,
      joined = excluded.joined, seal = excluded.seal, seen = excluded.seen, rights = excluded.rights
    RETURNING name
    """

  /// $1 names in hexadecimal, with commas between them.
  fileprivate static let known = """
    SELECT e.name FROM unnest(string_to_array($1, ',')) AS one(name)
    JOIN enrollment e ON e.name = decode(one.name, 'hex')
    """
}

/// Takes machines into the fleet by the tokens of `sallyport-verifier invite`.
package struct JoinHandler: Sendable {
  private static let attempts = 8
  private let database: Database
  private let revocations: Revocations
  /// Of the verifiers' identity.
  private let pins: [[UInt8]]

  /// `revocations`: nil for ones that nothing remembers.
  package init(_ database: Database, _ revocations: Revocations? = nil, pins: [Pin]) {
    (self.database, self.pins) = (database, pins.map(\.bytes))
    self.revocations = revocations ?? Revocations(key: database.key)
  }

  /// To a machine with this key.
  func answer(key: [UInt8], _ request: JoinRequest) -> JoinAnswer {
    do throws(DatabaseFault) {
      return try answer(request, key)
    } catch {
      database.note(.error, "database error: joining: \(error.text)")
      return .trouble
    }
  }

  /// Of two that join by one token the first wins; the same key may do so again, since it may not
  /// have heard the answer.
  private func answer(_ request: JoinRequest, _ key: [UInt8]) throws(DatabaseFault) -> JoinAnswer {
    guard let digest = try? SHA256.digest(request.secret), let now = try? Clock.now() else {
      return .trouble
    }
    for _ in 0..<Self.attempts {
      let (rows, _) = try database.ask(Statement.invited, [.bytes(digest), .bytes(key)])
      guard let found = invitation(rows, digest) else { return .refused(.unknownToken) }
      try revocations.settle(by: database)
      if revocations.has(digest) { return .refused(.unknownToken) }
      // As with another host's: a new key is to be made.
      if revocations.has(key) { return .refused(.otherHost) }
      if let refusal = refusal(found, rows, key, at: now) { return .refused(refusal) }
      let isHost = isHost(found.row, rows, key)
      // A used one: its host is gone, and rights that it has lost since would come back.
      if !isHost, found.row.key != nil || revocations.isVoid(found.row) {
        return .refused(.unknownToken)
      }
      if isHost || request.purpose == .look { return try welcome(found, request.names) }
      let presences = Presences(database: database)
      if try presences.kind(of: digest) == .ephemeral { try presences.noteEphemeral(key) }
      if try join(found, key, from: rows, at: now) {
        note(found, key)
        return try welcome(found, request.names)
      }
    }
    return .trouble
  }

  // MARK: the rows

  private struct Found {
    let row: InviteRow
    let seal: [UInt8]
    let rights: HostRights
  }

  /// nil where there is none, or one that somebody made or changed without the key.
  private func invitation(_ rows: Rows, _ digest: [UInt8]) -> Found? {
    guard rows.count > 0, let host = rows.bytes(0, 0), let enrolls = rows.bytes(0, 1),
      let until = rows.number(0, 2), let seal = rows.bytes(0, 4)
    else { return nil }
    let row = InviteRow(
      digest: digest, host: host, enrolls: enrolls == [1], until: Int64(clamping: until),
      key: rows.bytes(0, 3))
    if row.isRight(seal, under: database.key) {
      let rights = rows.bytes(0, 10)
        .map { SealedRights.read($0, under: database.key, of: .invite(row)) }
        .map { $0?.rights ?? HostRights() }
      return Found(row: row, seal: seal, rights: rights ?? HostRights(former: row.enrolls))
    }
    database.alert(
      "the invitation of host \(String(decoding: host, as: UTF8.self)) was made or changed by "
        + "somebody without the key")
    return nil
  }

  private func refusal(_ found: Found, _ rows: Rows, _ key: [UInt8], at now: UnixTime)
    -> JoinAnswer.Refusal?
  {
    if let used = found.row.key, used != key { return .usedToken }
    if found.row.until <= now.seconds { return .expiredToken }
    let isOther = (0..<rows.count).contains {
      rows.bytes($0, 6) == key && rows.bytes($0, 5) != found.row.host
    }
    return isOther ? .otherHost : nil
  }

  /// Whether all of it was done before, whatever rights the host has been given since.
  private func isHost(_ row: InviteRow, _ rows: Rows, _ key: [UInt8]) -> Bool {
    row.key == key
      && (0..<rows.count).contains {
        rows.bytes($0, 5) == row.host && rows.bytes($0, 6) == key
      }
  }

  /// The host of this name until now: its key, whatever its seal says, and its row where that is
  /// right.
  private func former(_ name: [UInt8], _ rows: Rows) -> (key: [UInt8]?, HostRow?) {
    guard let row = (0..<rows.count).first(where: { rows.bytes($0, 5) == name }),
      let found = HostRow(rows, row, from: 5)
    else { return (nil, nil) }
    if found.isRight(rows.bytes(row, 9) ?? [], under: database.key) { return (found.key, found) }
    database.alert(found.forged)
    return (found.key, nil)
  }

  /// false where another one was faster. All that was sealed for the name until now is void then,
  /// also a row that somebody hides meanwhile.
  private func join(_ found: Found, _ key: [UInt8], from rows: Rows, at now: UnixTime)
    throws(DatabaseFault) -> Bool
  {
    var used = found.row
    used.key = key
    let (formerKey, former) = former(used.host, rows)
    let ends = [used.host, SealedHosts.name(of: used.host)].map { revocations.end(of: $0) ?? 0 }
    let end = ends.reduce(max(now.seconds - 1, former?.joined ?? 0), max)
    let host = HostRow(name: used.host, key: key, joined: end + 1)
    let oldKey = former?.key.flatMap(Pin.init)?.bytes
    let old =
      oldKey == key ? nil : oldKey.map { RevokedRow(subject: $0, host: host.name, at: end) }
    let subject = try Database.sealing { () throws(CryptoError) in
      try RevokedRow.subject(ofName: host.name)
    }
    let name = RevokedRow(subject: subject, host: host.name, at: end)
    let sealed = try Database.sealing { () throws(CryptoError) in
      try values(found, used, host, replacing: formerKey, as: old, until: name)
    }
    do throws(DatabaseFault) {
      guard try database.ask(Statement.join, sealed).0.count == 1 else { return false }
    } catch {
      switch error {
      // Another one was faster: serializable, or by the same key for another host.
      case .refused("40001", _), .refused("23505", _): return false
      case _: throw error
      }
    }
    revocations.note([name] + (old.map { [$0] } ?? []))
    return true
  }

  /// Of the statement.
  private func values(
    _ found: Found, _ used: InviteRow, _ host: HostRow, replacing former: [UInt8]?,
    as old: RevokedRow?, until name: RevokedRow
  ) throws(CryptoError) -> [Value] {
    let key = database.key
    let invited: [Value] = [
      .bytes(used.digest), .bytes(found.seal), .bytes(used.key ?? []),
      .bytes(try used.seal(under: key)),
    ]
    let joined: [Value] = [
      .text(host.name), .text(bytes(of: "f")),
      .number(UInt64(clamping: host.joined)), .bytes(try host.seal(under: key)),
    ]
    let changed = max(host.joined, (revocations.end(of: SealedRights.name(of: host)) ?? 0) + 1)
    let rights = SealedRights(rights: found.rights, changed: changed)
    let replaced: [Value] = [
      former == nil || former == used.key ? .null : .bytes(former ?? []),
      old == nil ? .null : .bytes(try old?.seal(under: key) ?? []),
    ]
    return invited + joined + replaced + [
      .bytes(name.subject), .number(UInt64(clamping: name.at)), .bytes(try name.seal(under: key)),
      .bytes(try rights.sealed(under: key, of: .host(host))),
    ]
  }

  // MARK: the answer

  private func welcome(_ found: Found, _ names: [UserName]) throws(DatabaseFault) -> JoinAnswer {
    guard let host = FleetHostName(found.row.host) else { return .trouble }
    return .welcome(
      JoinAnswer.Welcome(
        host: host, enrolls: !found.rights.isEmpty,
        verifiers: try database.ask(Statement.verifiers).0.addresses, pins: pins,
        known: try known(names)))
  }

  private func known(_ names: [UserName]) throws(DatabaseFault) -> [UserName] {
    if names.isEmpty { return [] }
    let text = [UInt8](names.map { hexadecimal($0.bytes) }.joined(separator: [0x2c]))
    let (rows, _) = try database.ask(Statement.known, [.text(text)])
    let found = Set((0..<rows.count).compactMap { rows.bytes($0, 0) })
    return names.filter { found.contains($0.bytes) }
  }

  private func note(_ found: Found, _ key: [UInt8]) {
    var line = LogLine("joined the fleet: host=")
    line.add(field: found.row.host)
    line.add(" rights=")
    line.add(field: Array(found.rights.words.joined(separator: ",").utf8))
    line.add(" key=")
    line.add(hexadecimal(key))
    database.note(.notice, line)
  }
}
