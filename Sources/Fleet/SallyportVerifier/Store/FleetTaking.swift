import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

extension Statement {
  /// $1 name, $2 the host that asks: where else he was let in of late, as many as an answer has.
  fileprivate static let elsewhere = """
    SELECT DISTINCT host FROM event WHERE name = $1 AND host <> $2 AND outcome = 'accepted'
      AND at > now() - interval '30 days' ORDER BY host LIMIT 32
    """
}

// Enrollments that go to the files of a host. The fleet uses its own until it has ended it,
// in exactly the version that the host has copied: what was used up to then is in the copy, and
// after it no login is verified here.
extension FleetStore {
  /// What the host may copy. Nothing is changed.
  func fetch(_ name: UserName) throws(StoreTrouble) -> FetchAnswer {
    let row = try row(of: name.bytes, reload: true)
    guard let row, let enrollment = row.document.enrollment, let state = row.state else {
      return .other(.standing(row.standing))
    }
    var own = state
    own.reconcile(with: enrollment)
    return .copy(MoveRequest.Moving(enrollment, own.withoutPlaces), version: row.seen.digest)
  }

  /// The hosts but this one where he was let in within 30 days.
  func hosts(of name: UserName, but host: [UInt8]) throws(StoreTrouble) -> [FleetHostName] {
    let (rows, _) = try ask { () throws(DatabaseFault) in
      try database.ask(Statement.elsewhere, [.bytes(name.bytes), .text(host)])
    }
    return (0..<rows.count).compactMap { rows.bytes($0, 0).flatMap { FleetHostName($0) } }
  }

  /// nil: this taking has ended the enrollment here. Otherwise what is there, unchanged.
  func bury(_ name: UserName, _ burial: MoveRequest.Tombstone, by host: [UInt8])
    throws(StoreTrouble)
    -> FleetStanding?
  {
    guard let host = FleetHostName(host) else { return try standing(of: name) }
    let key = name.bytes
    return try database.alone(for: try hash(of: key), until: deadline) {
      () throws(StoreTrouble) -> FleetStanding? in
      for _ in 0..<Self.attempts {
        let found = try row(of: key, reload: true)
        let standing = found.standing
        guard let row = found else { return standing }
        var document = row.document
        if document.isBuried(by: burial) {
          // A repeated question, as after a lost answer: then only the primary may have it.
          if try saveBoth(document, nil, of: key, over: row.mark) { return nil }
          continue
        }
        guard standing.person == .enrolled(burial.id) else { return standing }
        if row.isBehind || row.isDistrusted {
          // The copy may be from before a loss, in the same version. No copy is given out until
          // codes are trusted again.
          _ = try saveBoth(document, row.state, of: key, over: row.mark)
          continue
        }
        guard row.seen.digest == burial.version else { return standing }
        document.place = .taken(burial.id, token: burial.token, host: host)
        if try saveBoth(document, nil, of: key, over: row.mark) { return nil }
      }
      throw .busy(path: "fleet")
    }
  }
}

extension FleetDocument {
  fileprivate func isBuried(by burial: MoveRequest.Tombstone) -> Bool {
    guard case .taken(burial.id, burial.token, _) = place else { return false }
    return true
  }
}
