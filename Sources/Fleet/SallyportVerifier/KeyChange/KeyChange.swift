import CService
import OneTimePassword
import SallyportSupport
import SallyportSystem

extension Statement {
  fileprivate static let keys = """
    SELECT needs, writes, distrust, distrusted, seal, canary, next FROM fleet
    """

  /// $1 the seal of the row, $2 the next key, sealed. The first one stays.
  fileprivate static let announce = "UPDATE fleet SET next = $2 WHERE seal = $1 AND next IS NULL"

  /// $1 the id of a key: verifiers that are alive and have not said that it is on their disk.
  private static let lacking = """
    SELECT verifier FROM worker WHERE worker = 0 AND now > clock_timestamp() - interval '10 s'
      AND coalesce($1::bytea NOT IN (substr(keys, 1, 4), substr(keys, 5, 4)), true)
    """

  fileprivate static let withoutKey = "\(lacking) ORDER BY 1"

  /// $1 the id of the next key, $2 the seal of the row, $3 the one by that key, $4 the key as it
  /// was announced. Nothing where the row was changed meanwhile, or a verifier lacks the key.
  fileprivate static let turn = """
    WITH turned AS (
      UPDATE fleet SET seal = $3
      WHERE seal = $2 AND next = $4 AND NOT EXISTS (\(lacking)) RETURNING one),
    begun AS (UPDATE host SET formerly = NULL, asked = NULL FROM turned)
    SELECT one FROM turned
    """

  /// Hosts that may hold receipts by the former key: they have not asked about their reserve five
  /// minutes after they showed the last one. They ask for all of it each ten minutes.
  fileprivate static let notRenewed = """
    SELECT h.name, \(shown("h.seen")) FROM host h LEFT JOIN presence p ON p.subject = h.key
    WHERE h.key IS NOT NULL AND h.seen IS NOT NULL AND coalesce(p.kind, 0) < 3
      AND NOT coalesce(h.asked - h.formerly >= interval '5 minutes', false) ORDER BY 1
    """

  /// $1 the id of the present key, $2 the seal of the row, $3 the canary of the key before, $4 the
  /// one of the present key.
  fileprivate static let finishKey = """
    UPDATE fleet SET canary = $4, next = NULL
    WHERE seal = $2 AND canary = $3 AND NOT EXISTS (\(lacking)) RETURNING one
    """

  /// $1 verifier, $2 the ids of the keys that it has on its disk, one after the other.
  fileprivate static let tellKeys = """
    UPDATE worker SET keys = $2 WHERE verifier = $1 AND worker = 0 AND keys IS DISTINCT FROM $2
    """

  /// Verifiers of the last 30 days, whether each is alive, and its keys.
  fileprivate static let keyHolders = """
    SELECT verifier, now > clock_timestamp() - interval '10 s', coalesce(keys, '') FROM worker
    WHERE worker = 0 AND now > now() - interval '30 days' ORDER BY 1
    """
}

/// Where a change of the fleet's key stands, as the row of the fleet says: its seal names the key
/// that seals, its canary the oldest one that is needed (docs/fleet-format.md).
package struct KeyStanding: Equatable, Sendable {
  package let present: UInt32
  package let oldest: UInt32
  /// The next key, sealed with the one before it; nil: none was announced.
  let announced: [UInt8]?
  let row: FleetRow
  let (seal, canary): ([UInt8], [UInt8])

  package var isChanging: Bool { present != oldest }
  /// One was made, and does not seal yet.
  package var isAnnounced: Bool { announced != nil && !isChanging }
}

/// Who has which keys.
package struct KeyHolder: Equatable, Sendable {
  package let name: String
  package let isAlive: Bool
  package let ids: [UInt32]
}

// The steps of a change of the fleet's key. Each is done in one statement or one file, so that it
// can end after any of them, and be begun again.
extension Database {
  package func keyStanding() throws(DatabaseFault) -> KeyStanding {
    let (rows, _) = try ask(Statement.keys)
    guard rows.count == 1, let row = FleetRow(rows, 0, from: 0), let seal = rows.bytes(0, 4),
      let canary = rows.bytes(0, 5), let present = FleetKey.id(of: seal),
      let oldest = FleetKey.id(of: canary)
    else { throw .unusable("the fleet row is missing: sallyport-verifier init") }
    if let lack = key.lacks(seal) { throw .unusable(lack) }
    guard row.isRight(seal, under: key), key.isRight(canary, "canary", []) else {
      throw .unusable("the fleet row was modified by somebody without the key")
    }
    key.follow(seal)
    return KeyStanding(
      present: present, oldest: oldest, announced: rows.bytes(0, 6), row: row, seal: seal,
      canary: canary)
  }

  func tellKeys() throws(DatabaseFault) {
    let ids = key.ids.flatMap { FleetKey.bytes(of: $0) }
    _ = try ask(Statement.tellKeys, [.text(verifier), .bytes(ids)])
  }

  package func keyHolders() throws(DatabaseFault) -> [KeyHolder] {
    let (rows, _) = try ask(Statement.keyHolders)
    return (0..<rows.count).map { row in
      let ids = rows.bytes(row, 2) ?? []
      return KeyHolder(
        name: rows.text(row, 0) ?? "", isAlive: rows.bytes(row, 1) == [1],
        ids: stride(from: 0, to: ids.count, by: 4).compactMap { place in
          FleetKey.id(of: Array(ids[place...]))
        })
    }
  }

  // MARK: the next key

  /// What came of `beginKey`.
  package enum KeyBegun: Equatable, Sendable {
    /// The next key seals from now on.
    case done
    /// Nothing seals with it yet: these verifiers are alive and do not have it.
    case lacking([String])
    /// The one before has not come to its end.
    case isChanging
    /// Verifiers of a former version may be there.
    case unfinished
  }

  /// Makes the next key, gives it to the verifiers, and has it seal once each that is alive has it.
  /// `patience`: how long it waits for them, in milliseconds.
  package func beginKey(patience: UInt64 = 15_000) throws(DatabaseFault) -> KeyBegun {
    var standing = try keyStanding()
    if standing.isChanging { return .isChanging }
    if standing.row.writes < Schema.number { return .unfinished }
    if standing.announced == nil {
      let sealed = try newKey()
      _ = try ask(Statement.announce, [.bytes(standing.seal), .bytes(sealed)])
      // Another one may have been faster.
      standing = try keyStanding()
    }
    try takeAnnounced(standing.announced, present: standing.present, oldest: standing.oldest)
    guard let announced = standing.announced, let next = key.ids.last, next != standing.present,
      let sealing = key.key(next)
    else { throw .unusable("the next key in the database cannot be opened") }
    let end = sys_monotonic() + patience * 1_000_000
    while true {
      let seal = try Self.sealing { () throws(CryptoError) in
        try sealing.bind(FleetRow.table, standing.row.fields)
      }
      let id = Value.bytes(FleetKey.bytes(of: next))
      let turned = try ask(
        Statement.turn, [id, .bytes(standing.seal), .bytes(seal), .bytes(announced)]
      ).0
      if turned.count == 1 {
        key.follow(seal)
        return .done
      }
      let late = try ask(Statement.withoutKey, [id]).0
      guard sys_monotonic() < end else {
        return .lacking((0..<late.count).map { late.text($0, 0) ?? "" })
      }
      _ = poll(nil, 0, 200)
      standing = try keyStanding()
      if standing.isChanging { return .done }
    }
  }

  /// Sealed with the present one, for the way through the database. Its id is another one.
  private func newKey() throws(DatabaseFault) -> [UInt8] {
    for _ in 0..<8 {
      guard let whole = try? Random.secret(count: FleetKey.fileLength),
        let new = try? FleetKey.key(in: whole)
      else { break }
      if key.key(new.id) != nil { continue }
      guard let sealed = try? key.seal(whole, .key, of: []) else { break }
      return sealed
    }
    throw .unusable("no key could be made")
  }

  // MARK: the end

  /// What is sealed with the key of before.
  package func keyLeft() throws(DatabaseFault) -> KeyLeft {
    try reseal(.count) { () throws(DatabaseFault) in }
  }

  /// Verifiers that are alive and lack the present key.
  package func lackingKey(_ standing: KeyStanding) throws(DatabaseFault) -> [String] {
    let id = FleetKey.bytes(of: standing.present)
    let late = try ask(Statement.withoutKey, [.bytes(id)]).0
    return (0..<late.count).map { late.text($0, 0) ?? "" }
  }

  /// Hosts whose used backup codes might be lost without the former key, and when they were seen.
  package func hostsBehind() throws(DatabaseFault) -> [(name: String, seen: String)] {
    let rows = try ask(Statement.notRenewed).0
    return (0..<rows.count).map { (rows.text($0, 0) ?? "", rows.text($0, 1) ?? "") }
  }

  /// The key of before is needed no more; each verifier removes it. false: something has changed
  /// meanwhile, look again.
  package func endKey(_ standing: KeyStanding) throws(DatabaseFault) -> Bool {
    let canary = try Self.sealing { () throws(CryptoError) in try key.canary() }
    guard FleetKey.id(of: canary) == standing.present else { return false }
    let id = FleetKey.bytes(of: standing.present)
    let rows = try ask(
      Statement.finishKey,
      [.bytes(id), .bytes(standing.seal), .bytes(standing.canary), .bytes(canary)]
    ).0
    return rows.count == 1
  }
}
