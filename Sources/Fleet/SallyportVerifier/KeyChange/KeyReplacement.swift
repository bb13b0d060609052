import OneTimePassword
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 the seal of the row, $2 the one by the new key. Nothing while a verifier is alive.
  fileprivate static let replaceKey = """
    UPDATE fleet SET seal = $2, next = NULL WHERE seal = $1 AND NOT EXISTS (
      SELECT FROM worker WHERE worker = 0 AND now > clock_timestamp() - interval '10 s')
    RETURNING one
    """
}

// After a theft: the new key goes through nothing that the former one opens.
extension Database {
  /// What came of `replaceKey`.
  package enum KeyReplaced: Equatable, Sendable {
    /// These people's rows nobody can believe: they are as they were, and no key opens them again.
    case done([[UInt8]])
    /// These verifiers answer hosts: nothing was changed.
    case alive([String])
    /// A change is under way whose key the former one opens: nothing was changed.
    case isChanging
    case unfinished
    /// Of these rows somebody has changed something meanwhile: again.
    case left(KeyLeft)
  }

  /// Seals everything with a new key, which is on this machine alone, and removes the former one.
  /// It may be ended at any step: the next call goes on. `file`: what was revoked.
  package func replaceKey(_ file: RevocationFile?) throws(DatabaseFault) -> KeyReplaced {
    let alive = try keyHolders().filter(\.isAlive)
    if !alive.isEmpty { return .alive(alive.map(\.name)) }
    var standing = try keyStanding()
    if standing.isChanging, standing.announced != nil { return .isChanging }
    if standing.row.writes < Schema.number { return .unfinished }
    if !standing.isChanging {
      guard try turnAlone(standing) else { return .alive([]) }
      standing = try keyStanding()
    }
    var pass = ResealPass(.seal)
    try reseal(&pass) { () throws(DatabaseFault) in }
    let left = try keyLeft()
    guard left.count == 0, try endKey(standing) else { return .left(left) }
    do throws(PrivateFile.Fault) {
      try file?.sealAgain()
      try key.endFirst()
    } catch {
      throw .unusable("the fleet's former key is not removed here: \(error.text)")
    }
    return .done(left.disbelieved)
  }

  /// false where a verifier is alive, or another one has changed the row.
  private func turnAlone(_ standing: KeyStanding) throws(DatabaseFault) -> Bool {
    guard let whole = try? Random.secret(count: FleetKey.fileLength),
      let new = try? FleetKey.key(in: whole), key.key(new.id) == nil
    else { throw .unusable("no key could be made: run this again") }
    if try isSealingNext(besides: nil) {
      throw .unusable(
        "rows are sealed with another next key, which is here: sallyport-verifier key next, then "
          + "key finish, then this again")
    }
    do throws(PrivateFile.Fault) {
      // This verifier was not there when the change before came to its end.
      if key.isFirstOver { try key.endFirst() }
      try key.take(next: whole)
    } catch {
      throw .unusable("the fleet's new key is not kept here: \(error.text)")
    }
    let seal = try Self.sealing { () throws(CryptoError) in
      try new.bind(FleetRow.table, standing.row.fields)
    }
    let rows = try ask(Statement.replaceKey, [.bytes(standing.seal), .bytes(seal)]).0
    if rows.count == 1 { key.follow(seal) }
    return rows.count == 1
  }
}
