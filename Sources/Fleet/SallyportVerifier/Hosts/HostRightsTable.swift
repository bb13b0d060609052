package import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportSystem

extension Statement {
  /// $1 name, $2 its seal until now, $3 its rights until now, or NULL, $4 and $5 the new ones.
  /// Nothing where another one was faster.
  fileprivate static let setRights = """
    UPDATE host SET enrolls = false, seal = $4, rights = $5 WHERE name = $1 AND seal = $2
      AND rights IS NOT DISTINCT FROM $3::bytea RETURNING name
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
    return try line.ask(Statement.listing).hosts(under: key) { ends[$0] }
  }

  /// Changes a host's rights; `change` gets those that it has now. nil: there is no such host.
  /// Before they are changed it is written down that those of before are void: if this ends
  /// between, the host has none.
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
      let present = found.flatMap { $0.isVoid(since: end) ? nil : $0.rights } ?? HostRights()
      let rights = change(present)
      guard let now = try? Clock.now() else { throw .unusable("no clock") }
      let void = max(now.seconds - 1, end, found?.changed ?? 0)
      try note(void, of: name)
      let row = HostRow(name: old.name, key: old.key, joined: old.joined)
      let sealed = SealedRights(rights: rights, changed: void + 1)
      let values = try Database.sealing { () throws(CryptoError) in
        [
          Value.text(host.bytes), .bytes(seal), former.map { .bytes($0) } ?? .null,
          .bytes(try row.seal(under: key)), .bytes(try sealed.sealed(under: key, of: .host(row))),
        ]
      }
      if try line.ask(Statement.setRights, values).count == 1 { return rights }
    }
    throw .unusable("others keep changing this host")
  }

  /// Where this verifier's file cannot be written, it reads it from the database.
  private func note(_ end: Int64, of name: [UInt8]) throws(DatabaseFault) {
    let subject = try Database.sealing { () throws(CryptoError) in
      try RevokedRow.subject(ofName: name)
    }
    let row = RevokedRow(subject: subject, host: name, at: end)
    try write(row)
    _ = try? file?.add([row])
  }
}

extension Rows {
  /// Of `Statement.listing`.
  func rights(_ row: Int, under key: FleetKey, _ end: ([UInt8]) -> Int64?) -> HostRights? {
    guard let host = HostRow(self, row, from: 6) else { return nil }
    let found =
      bytes(row, 10).map { SealedRights.read($0, under: key, of: .host(host)) }
      ?? SealedRights(formerOf: host)
    return found.flatMap { $0.isVoid(since: end(SealedRights.name(of: host))) ? nil : $0.rights }
  }
}
