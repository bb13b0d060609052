import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

extension Statement {
  /// $1 serial: that policy, and those above it.
  fileprivate static let policies = """
    SELECT serial, at, author, body, seal FROM policy WHERE serial >= $1::bigint
    ORDER BY serial LIMIT 100
    """

  /// $1 serial, then the other columns; $6 the seal of the row that may be there in its place.
  static let putPolicy = """
    INSERT INTO policy (serial, at, author, body, seal)
    VALUES ($1::bigint, $2::bigint, $3, $4, $5)
    ON CONFLICT (serial) DO UPDATE SET at = excluded.at, author = excluded.author,
      body = excluded.body, seal = excluded.seal
    WHERE policy.seal = $6 RETURNING serial
    """

  /// Of each verifier that lives: its name, its version and what it says of its policy.
  fileprivate static let readers = """
    SELECT verifier, version, policy FROM worker
    WHERE worker = 0 AND now > clock_timestamp() - interval '10 s' ORDER BY 1
    """
}

// The policy of the fleet in its database.
extension Database {
  struct FoundPolicy {
    let row: StoredPolicy
    let seal: [UInt8]
  }

  /// Those from this serial on, the lowest first.
  func policies(from serial: UInt64, by line: DatabaseConnection) throws(DatabaseFault)
    -> [FoundPolicy]
  {
    let rows = try line.ask(Statement.policies, [.number(serial)])
    return (0..<rows.count).compactMap { row in
      // Also of a time that nobody stored: its seal is wrong, and it is to be put right.
      guard let serial = rows.number(row, 0), let at = rows.signed(row, 1) else { return nil }
      let policy = StoredPolicy(
        serial: serial, at: at, author: rows.bytes(row, 2) ?? [],
        text: rows.bytes(row, 3) ?? [])
      return FoundPolicy(row: policy, seal: rows.bytes(row, 4) ?? [])
    }
  }

  /// Takes the newest one that is sealed. One that is older than what was seen, missing or forged
  /// is put right.
  func lookForPolicy(by line: DatabaseConnection) throws(DatabaseFault) {
    if let damage = policy.takeDamage() {
      alert("\(damage): whether the policy went back is not known; the database's is used")
    }
    var found = try policies(from: policy.newest?.serial ?? 0, by: line)
    while let new = newest(of: found) {
      take(new)
      found = try policies(from: new.serial, by: line)
    }
    guard let held = policy.newest else {
      return complain(found.isEmpty ? "" : "no policy of the fleet is sealed with its key")
    }
    if policy.isLate { keep() }
    let place = found.first { $0.row.serial == held.serial }
    if place?.row == held, place.map({ held.isRight($0.seal, under: key) }) == true {
      let isForged = found.contains { !$0.row.isRight($0.seal, under: key) }
      return complain(
        isForged
          ? "somebody without the key stored a policy: policy \(held.serial) stays in force" : "")
    }
    complain(
      "policy \(held.serial) was removed from the database, changed, or lost by a restore: "
        + "it stays in force, and is put back")
    _ = try put(held, insteadOf: place?.seal, by: line)
  }

  private func newest(of found: [FoundPolicy]) -> StoredPolicy? {
    let held = policy.newest
    let right = found.filter { $0.row.isRight($0.seal, under: key) && $0.row.isNewer(than: held) }
    return right.last?.row
  }

  private func complain(_ text: String) {
    if policy.isNews(text) { alert(text + " (sallyport-verifier config history)") }
  }

  private func take(_ new: StoredPolicy) {
    if let flaw = policy.take(new) {
      return alert("\(flaw): the last policy that could be read holds; upgrade this verifier")
    }
    note(.notice, "policy \(new.serial) of the fleet is used from now on")
    keep()
  }

  private func keep() {
    if let fault = policy.keep() {
      alert("\(fault): after its next start this verifier cannot say whether the policy went back")
    }
  }

  /// false where another one is there.
  func put(_ new: StoredPolicy, insteadOf seal: [UInt8]?, by line: DatabaseConnection)
    throws(DatabaseFault) -> Bool
  {
    let columns = try new.columns(under: key)
    let rows = try line.ask(Statement.putPolicy, columns + [seal.map { .bytes($0) } ?? .null])
    return rows.count == 1
  }
}

extension StoredPolicy {
  /// In their order in the table.
  func columns(under key: FleetKey) throws(DatabaseFault) -> [Value] {
    let seal = try Database.sealing { () throws(CryptoError) in try self.seal(under: key) }
    return [
      .number(serial), .number(UInt64(clamping: at)), .text(author), .bytes(text), .bytes(seal),
    ]
  }
}

// MARK: for the commands

extension Database {
  /// What became of a policy that was to be stored.
  package enum PolicyStored: Equatable, Sendable {
    case done(UInt64)
    /// Another one has this serial meanwhile.
    case late(UInt64)
    /// These verifiers live, and may not be able to read it.
    case unread([String])
  }

  /// The newest one, of the database or of this verifier's file; nil: the fleet has none.
  package func newestPolicy() throws(DatabaseFault) -> StoredPolicy? {
    let line = try DatabaseConnection(words, worker: 1)
    // Of a version that has policies.
    _ = try fleet(by: line)
    var found = try policies(from: policy.newest?.serial ?? 0, by: line)
    while let new = newest(of: found) {
      _ = policy.take(new)
      found = try policies(from: new.serial, by: line)
    }
    return policy.newest
  }

  /// All that are sealed, the first one first.
  package func policyHistory() throws(DatabaseFault) -> [StoredPolicy] {
    let line = try DatabaseConnection(words, worker: 1)
    var (all, next): ([StoredPolicy], UInt64) = ([], 0)
    while true {
      let page = try policies(from: next, by: line)
      all += page.filter { $0.row.isRight($0.seal, under: key) }.map(\.row)
      guard let last = page.last?.row.serial, last < UInt64(Int64.max) else { return all }
      next = last + 1
    }
  }

  /// Stores it in the place after `former`, which is what its author has seen: of two at once one
  /// is late. `former`: nil for the first one.
  package func store(policy text: [UInt8], by author: [UInt8], after former: StoredPolicy?)
    throws(DatabaseFault) -> PolicyStored
  {
    let line = try DatabaseConnection(words, worker: 1)
    let readers = try line.ask(Statement.readers)
    let unfit = (0..<readers.count).filter { row in
      let keys = readers.text(row, 2)?.split(separator: " ").last.flatMap { Int($0) } ?? 0
      return readers.number(row, 1) ?? 0 < Schema.number || keys < PolicyKey.allCases.count
    }
    if !unfit.isEmpty { return .unread(unfit.map { readers.text($0, 0) ?? "" }) }
    let serial = (former?.serial ?? 0) + 1
    let there = try policies(from: serial, by: line)
    if let right = there.last(where: { $0.row.isRight($0.seal, under: key) }) {
      return .late(right.row.serial)
    }
    let new = StoredPolicy(
      serial: serial, at: max(clock() / 1000, former?.at ?? 0), author: author, text: text)
    let place = there.first { $0.row.serial == serial }?.seal
    return try put(new, insteadOf: place, by: line) ? .done(serial) : .late(serial)
  }

  /// Of each verifier that lives, by which file of its own it goes: its name, and a digest.
  package func policyFiles() throws(DatabaseFault) -> [(name: String, digest: String)] {
    let rows = try DatabaseConnection(words, worker: 1).ask(Statement.readers)
    return (0..<rows.count).map { row in
      let told = rows.text(row, 2)?.split(separator: " ").first
      return (rows.text(row, 0) ?? "", told.map(String.init) ?? "")
    }
  }
}
