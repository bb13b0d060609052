import CService
import OneTimePassword
import SallyportSupport
import SallyportSystem

extension Statement {
  fileprivate static let keys = """
    SELECT needs, writes, distrust, distrusted, seal, canary, next FROM fleet
    """

  /// Verifiers that are alive.
  private static let live = "worker = 0 AND now > clock_timestamp() - interval '10 s'"

  /// Verifiers that are alive, and of which the first key is another one than that of this id.
  private static func former(_ id: String) -> String {
    "\(live) AND substr(keys, 1, 4) <> \(id)"
  }

  /// $1 the id of the present key.
  fileprivate static let withFormer = """
    SELECT verifier FROM worker WHERE \(former("$1::bytea")) ORDER BY 1
    """

  /// $1 the seal of the row, $2 the next key, sealed, $3 what was announced before, which nobody
  /// can open, or NULL, $4 the id of the present key. Nothing where the row was changed meanwhile,
  /// or a verifier has still to remove the key before the present one.
  fileprivate static let announce = """
    UPDATE fleet SET next = $2 WHERE seal = $1 AND next IS NOT DISTINCT FROM $3::bytea
      AND NOT EXISTS (SELECT FROM worker WHERE \(former("$4::bytea"))) RETURNING one
    """

  /// $1 the id of the present key: next ones with which rows are sealed all the same, and the
  /// verifier that has said that it has each.
  fileprivate static let heldElsewhere = """
    SELECT id, verifier FROM (
      SELECT substr(keys, 5, 4) AS id, verifier FROM worker
      WHERE worker = 0 AND octet_length(keys) = 8 AND substr(keys, 1, 4) = $1::bytea) AS held
    WHERE \(sealing("id")) ORDER BY 2
    """

  /// $1 the id of a key: verifiers that are alive and have not said that it is on their disk.
  private static let lacking = """
    SELECT verifier FROM worker WHERE \(live)
      AND coalesce($1::bytea NOT IN (substr(keys, 1, 4), substr(keys, 5, 4)), true)
    """

  fileprivate static let withoutKey = "\(lacking) ORDER BY 1"

  /// $1 the id of the next key, $2 the seal of the row, $3 the one by that key, $4 the key as it
  /// was announced. Nothing where the row was changed meanwhile, or a verifier lacks the key.
  fileprivate static let turn = """
    WITH turned AS (
      UPDATE fleet SET seal = $3
      WHERE seal = $2 AND next = $4 AND NOT EXISTS (\(lacking)) RETURNING one),
    begun AS (UPDATE host SET formerly = now(), asked = NULL FROM turned)
    SELECT one FROM turned
    """

  /// Hosts that may hold receipts by the former key, when each was seen, and whether it has said
  /// since the change that all it holds was confirmed. `asked` is when that began, `formerly` when
  /// it showed such a receipt last, or the change began; an answer may be on its way for a moment.
  fileprivate static let notRenewed = """
    SELECT h.name, \(shown("h.seen")), h.asked IS NOT NULL
    FROM host h LEFT JOIN presence p ON p.subject = h.key
    WHERE h.key IS NOT NULL AND h.seen IS NOT NULL AND coalesce(p.kind, 0) < 3
      AND NOT coalesce(h.asked > h.formerly + interval '1 minute', h.asked IS NOT NULL) ORDER BY 1
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
    let isRightCanary = key.isRight(canary, "canary", [])
    if isRightCanary { key.noteOldest(canary) }
    if let lack = key.lacks(seal) { throw .unusable(lack) }
    guard isRightCanary, row.isRight(seal, under: key) else {
      throw .unusable("the fleet row was modified by somebody without the key")
    }
    key.follow(seal)
    // An older one that is put back from now on is another one.
    books.withLock { if row.distrust >= $0.highest { $0.fleet = (seal, row) } }
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
    /// Nothing was made: these verifiers are alive and have still to remove the key before.
    case holding([String])
    /// Nothing was made: rows are sealed with another key, which these verifiers have, and not
    /// this one.
    case elsewhere([String])
    /// The one before has not come to its end.
    case isChanging
    /// Verifiers of a former version may be there.
    case unfinished
  }

  /// Makes the next key, gives it to the verifiers, and has it seal once each that is alive has it.
  /// `patience`: how long it waits for them, in milliseconds.
  package func beginKey(patience: UInt64 = 15_000) throws(DatabaseFault) -> KeyBegun {
    let end = sys_monotonic() + patience * 1_000_000
    var standing = try keyStanding()
    if standing.isChanging { return .isChanging }
    if standing.row.writes < Schema.number { return .unfinished }
    let found = key.announced(standing.announced, by: standing.present)
    let isOther = try found.map { (found) throws(DatabaseFault) in
      try isSealingNext(besides: found.key.id)
    }
    if isOther ?? true {
      if let fault = try announce(standing, until: end) { return fault }
      standing = try keyStanding()
      // Another one was faster.
      if standing.isChanging { return .done }
    }
    return try turn(standing, until: end)
  }

  /// nil: there is one that can be opened, or somebody has changed the row meanwhile.
  private func announce(_ standing: KeyStanding, until end: UInt64) throws(DatabaseFault)
    -> KeyBegun?
  {
    let id = Value.bytes(FleetKey.bytes(of: standing.present))
    if let names = try holding(id, until: end) { return .holding(names) }
    let line = try DatabaseConnection(words, worker: 0)
    _ = try line.ask(Statement.overAllRows)
    let held = try line.ask(Statement.heldElsewhere, [id], 600_000)
    let others = (0..<held.count).filter { row in
      FleetKey.id(of: held.bytes(row, 0) ?? []).flatMap { key.key($0) } == nil
    }
    if !others.isEmpty { return .elsewhere(others.map { held.text($0, 1) ?? "" }) }
    let values: [Value] = [
      .bytes(standing.seal), .bytes(try nextKey(after: standing.present)),
      standing.announced.map { .bytes($0) } ?? .null, id,
    ]
    if try ask(Statement.announce, values).0.count == 1 { return nil }
    return try holding(id, until: end).map { .holding($0) }
  }

  /// Waits for verifiers that have still to remove the key before the present one, whose id this
  /// is. nil: there is none any more.
  private func holding(_ id: Value, until end: UInt64) throws(DatabaseFault) -> [String]? {
    while true {
      let late = try ask(Statement.withFormer, [id]).0
      if late.count == 0 { return nil }
      guard sys_monotonic() < end else { return (0..<late.count).map { late.text($0, 0) ?? "" } }
      _ = poll(nil, 0, 200)
    }
  }

  /// Has the key that was announced seal.
  private func turn(_ asked: KeyStanding, until end: UInt64) throws(DatabaseFault) -> KeyBegun {
    var standing = asked
    guard let found = key.announced(standing.announced, by: standing.present) else {
      throw .unusable("others keep changing the row of the fleet: run this again")
    }
    try takeAnnounced(standing.announced, present: standing.present, oldest: standing.oldest)
    let id = Value.bytes(FleetKey.bytes(of: found.key.id))
    while true {
      let seal = try Self.sealing { () throws(CryptoError) in
        try found.key.bind(FleetRow.table, standing.row.fields)
      }
      let turned = try ask(
        Statement.turn,
        [id, .bytes(standing.seal), .bytes(seal), .bytes(standing.announced ?? [])]
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

  /// The one that this verifier has already, or a new one of another id: sealed with the present
  /// one, for the way through the database.
  private func nextKey(after present: UInt32) throws(DatabaseFault) -> [UInt8] {
    var whole: Secret?
    if let next = key.next, next.id != present { whole = next.whole }
    for _ in 0..<8 where whole == nil {
      guard let made = try? Random.secret(count: FleetKey.fileLength),
        let new = try? FleetKey.key(in: made)
      else { break }
      if key.key(new.id) == nil { whole = made }
    }
    guard let whole, let sealed = try? key.seal(whole, .key, of: []) else {
      throw .unusable("no key could be made")
    }
    return sealed
  }

  // MARK: the end

  /// What is sealed with the key of before.
  package func keyLeft() throws(DatabaseFault) -> KeyLeft {
    _ = try keyStanding()
    var pass = ResealPass(.count)
    try reseal(&pass) { () throws(DatabaseFault) in }
    return pass.left
  }

  /// Verifiers that are alive and lack the present key.
  package func lackingKey(_ standing: KeyStanding) throws(DatabaseFault) -> [String] {
    let id = FleetKey.bytes(of: standing.present)
    let late = try ask(Statement.withoutKey, [.bytes(id)]).0
    return (0..<late.count).map { late.text($0, 0) ?? "" }
  }

  /// Hosts whose used backup codes might be lost without the former key, when they were seen, and
  /// whether they have said since the change began that all they hold was confirmed.
  package func hostsBehind() throws(DatabaseFault) -> [(name: String, seen: String, told: Bool)] {
    let rows = try ask(Statement.notRenewed).0
    return (0..<rows.count).map {
      (rows.text($0, 0) ?? "", rows.text($0, 1) ?? "", rows.bytes($0, 2) == [1])
    }
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
