package import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportSystem

extension Statement {
  /// $1 name, $2 its seal until now, $3 its rights until now, or NULL, $4 and $5 the new ones; what
  /// is void by that: $6 subject, $7 up to when, $8 seal, $9 the seal that was read, or empty; $10
  /// the key, and $11 of which kinds its count ends, with commas between. Nothing where another one
  /// was faster.
  fileprivate static let setRights = """
    WITH changed AS (
      UPDATE host SET enrolls = false, seal = $4, rights = $5 WHERE name = $1 AND seal = $2
        AND rights IS NOT DISTINCT FROM $3::bytea RETURNING name),
    void AS (
      INSERT INTO revoked (subject, host, at, seal)
      SELECT $6::bytea, name || '/rights', $7::bigint, $8::bytea FROM changed
      ON CONFLICT (subject) DO UPDATE SET host = excluded.host, at = excluded.at,
        seal = excluded.seal WHERE revoked.at < excluded.at OR revoked.seal = $9),
    ended AS (
      DELETE FROM spent USING changed WHERE subject = $10
        AND kind = ANY (string_to_array($11, ',')::bigint[]))
    SELECT name FROM changed
    """
}

// What hosts may do, as the commands of a verifier see and change it.
extension HostTable {
  /// As `hosts`.
  static func rows(
    by line: DatabaseConnection, under key: FleetKey, _ file: RevocationFile?
  ) throws(DatabaseFault) -> [Row] {
    let revoked = try line.ask(Statement.revoked)
    var ends: [[UInt8]: Int64] = [:]
    let found = (0..<revoked.count).compactMap { row in
      RevokedRow(revoked, row).flatMap {
        $0.isRight(revoked.bytes(row, 3) ?? [], under: key) ? $0 : nil
      }
    }
    for one in found + ((try? file?.read())?.rows ?? []) {
      guard one.subject == (try? RevokedRow.subject(ofName: one.host)) else { continue }
      ends[one.host] = max(one.at, ends[one.host] ?? 0)
    }
    var hosts = try line.ask(Statement.listing).hosts(under: key) { ends[$0] }
    for (index, host) in hosts.enumerated() where !host.kind.rests {
      let names = Revocations.names(of: Array(host.name.utf8), host.key ?? [])
      if let since = ends[names.rests], since > ends[names.accepted] ?? .min {
        hosts[index].kind = .putBack
      }
    }
    return hosts
  }

  /// Changes a host's rights; `change` gets those that it has now. nil: there is no such host. In
  /// the same statement it is written down that those of before are void. Where it loses one, open
  /// invitations are void before.
  package func setRights(
    of host: FleetHostName, _ change: (HostRights) -> HostRights
  ) throws(DatabaseFault) -> HostRights? {
    for _ in 0..<8 {
      let rows = try line.ask(Statement.named, [.text(host.bytes)])
      guard rows.count == 1, let old = HostRow(rows, 0), let seal = rows.bytes(0, 4) else {
        return nil
      }
      // Nobody else's key gets rights by it, nor one that was revoked.
      guard old.isRight(seal, under: key), old.joined > (try end(ofName: host.bytes)) else {
        throw .unusable(
          "the row of this host was made or changed by somebody without the key, or put back")
      }
      let former = rows.bytes(0, 5)
      let found =
        former.map { SealedRights.read($0, under: key, of: .host(old)) }
        ?? SealedRights(formerOf: old)
      let name = SealedRights.name(of: old)
      let end = try end(ofName: name)
      guard let now = try? Clock.now() else { throw .unusable("no clock") }
      let present =
        (found.flatMap { $0.isVoid(since: end) ? nil : $0.rights } ?? HostRights()).held(at: now)
      let rights = change(present)
      let lost = HostRight.allCases.filter { !present[$0].isNone && rights[$0].isNone }
      if !lost.isEmpty { try voidInvitations(for: host, at: now) }
      let void = max(now.seconds - 1, end, found?.changed ?? 0)
      let row = HostRow(name: old.name, key: old.key, joined: old.joined)
      let sealed = SealedRights(rights: rights, changed: void + 1)
      let revoked = try Database.sealing { () throws(CryptoError) in
        RevokedRow(subject: try RevokedRow.subject(ofName: name), host: name, at: void)
      }
      let read = try self.row(of: revoked.subject).seal
      let values = try Database.sealing { () throws(CryptoError) in
        [
          Value.text(host.bytes), .bytes(seal), former.map { .bytes($0) } ?? .null,
          .bytes(try row.seal(under: key)), .bytes(try sealed.sealed(under: key, of: .host(row))),
          .bytes(revoked.subject), .number(UInt64(clamping: void)),
          .bytes(try revoked.seal(under: key)), .bytes(read), .bytes(old.key ?? []),
          .text(Array(rights.recounted(after: present).utf8)),
        ]
      }
      guard try line.ask(Statement.setRights, values).count == 1 else { continue }
      // Where this verifier's file cannot be written, it reads it from the database.
      _ = try? file?.add([revoked])
      return rights
    }
    throw .unusable("others keep changing this host")
  }

  /// Where this verifier's file cannot be written, it reads it from the database.
  func note(_ end: Int64, of name: [UInt8]) throws(DatabaseFault) {
    let subject = try Database.sealing { () throws(CryptoError) in
      try RevokedRow.subject(ofName: name)
    }
    let row = RevokedRow(subject: subject, host: name, at: end)
    try write(row)
    _ = try? file?.add([row])
  }

  /// No open invitation of this name counts any more, also where somebody puts its row back.
  func voidInvitations(for host: FleetHostName, at now: UnixTime) throws(DatabaseFault) {
    let rows = try line.ask(Statement.invitations, [.text(host.bytes)])
    let open = (0..<rows.count).compactMap { row in
      InviteRow(rows, row).flatMap { one in
        one.key == nil && one.until > now.seconds
          && one.isRight(rows.bytes(row, 5) ?? [], under: key)
          ? RevokedRow(subject: one.digest, host: one.host, at: now.seconds) : nil
      }
    }
    for one in open { try write(one) }
    if !open.isEmpty { _ = try? file?.add(open) }
  }
}

extension HostRights {
  /// What is counted from the beginning again, as in `spent`: a right that the host lost, and what
  /// it was given up to another time.
  fileprivate func recounted(after former: HostRights) -> String {
    HostRight.allCases.flatMap { right in
      let (old, new, kind) = (former[right], self[right], UInt64(right.rawValue))
      if new.isNone { return [kind, kind + Spending.wider] }
      return new.more > 0 && new.until != old.until ? [kind + Spending.wider] : []
    }.map { "\($0)" }.joined(separator: ",")
  }
}

extension Rows {
  /// Of `Statement.listing`.
  func rights(_ row: Int, under key: FleetKey, _ end: ([UInt8]) -> Int64?) -> HostRights? {
    guard let host = HostRow(self, row, from: 6) else { return nil }
    let found =
      bytes(row, 10).map { SealedRights.read($0, under: key, of: .host(host)) }
      ?? SealedRights(formerOf: host)
    return found.flatMap { found in
      found.isVoid(since: end(SealedRights.name(of: host)))
        ? nil : (try? Clock.now()).map { found.rights.held(at: $0) }
    }
  }
}
