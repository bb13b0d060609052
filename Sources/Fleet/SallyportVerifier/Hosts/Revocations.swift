import CService
import FleetTransport
import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
package import SallyportSupport
import SallyportSystem

extension Statement {
  static let revoked = "SELECT subject, host, at, seal FROM revoked"

  /// $1 subject.
  fileprivate static let revokedOne = "\(revoked) WHERE subject = $1"

  /// $1 subject, $2 host, $3 when, $4 seal, $5 the seal that was read, empty where there was none.
  /// What somebody without the key has put there goes; nothing where another one was faster.
  static let addRevoked = """
    INSERT INTO revoked (subject, host, at, seal) VALUES ($1, $2, $3::bigint, $4)
    ON CONFLICT (subject) DO UPDATE SET host = excluded.host, at = excluded.at,
      seal = excluded.seal WHERE revoked.seal = $5 RETURNING at
    """

  /// $1 verifier, $2 the version that has such a table: others that are alive and keep it.
  fileprivate static let keepers = """
    SELECT count(*) FROM worker WHERE worker = 0 AND verifier <> $1
      AND coalesce(version, 0) >= $2::bigint AND now > clock_timestamp() - interval '10 s'
    """
}

/// What was revoked, for ever: the keys of hosts, and all that was sealed for a name up to a time.
///
/// The database has it, and each verifier in a file of its own, so that a database that is
/// restored, or that somebody writes to, brings no host back. Each time that the hosts are read the
/// union is made: what the database lacks is written there, and what the file lacks there, before
/// any host is answered by what was read. Of two rows with one subject the later one counts.
package final class Revocations: Sendable {
  private struct Known: Sendable {
    var rows: [[UInt8]: RevokedRow] = [:]
    /// Up to when what was sealed for a name is void.
    var names: [[UInt8]: Int64] = [:]
    /// Of each host, the keys and invitations that it had.
    var subjects: [[UInt8]: Set<[UInt8]>] = [:]
    /// How often that has changed, and of which the file has all.
    var (changes, filed) = (0, -1)
    /// Of the file as it was read or written last.
    var mark: RevocationFile.Mark?
    /// The union was made once, so that hosts can be answered.
    var hasBegun = false
    /// Of the file.
    var hasComplained = false

    mutating func take(all rows: some Collection<RevokedRow>) {
      for row in rows { take(row) }
    }

    private mutating func take(_ row: RevokedRow) {
      if let old = rows[row.subject], old.at >= row.at { return }
      rows[row.subject] = row
      changes += 1
      if row.subject == (try? RevokedRow.subject(ofName: row.host)) {
        names[row.host] = row.at
      } else {
        subjects[row.host, default: []].insert(row.subject)
      }
    }
  }

  private static let mostFormer = 64
  private let file: RevocationFile?
  private let key: FleetKey
  private let known: Locked<Known>
  /// One thread at a time reads and writes.
  private let turn = Locked(CheckedRows<RevokedRow>())
  /// There was no file; or one that is damaged.
  private let (isNew, isDamaged): (Bool, Bool)

  /// How long another one takes at most to read the hosts again, in milliseconds.
  private let patience: Int32

  /// Throws where there is a file that cannot be read: nothing is known then of what was revoked.
  package convenience init(at path: String, key: FleetKey, patience: Int32 = 5000)
    throws(PrivateFile.Fault)
  {
    let file = RevocationFile(path, key: key)
    self.init(file, try file.read(), key, patience: patience)
  }

  /// Without a file, as for tests.
  package convenience init(key: FleetKey) { self.init(nil, nil, key, patience: 0) }

  private init(
    _ file: RevocationFile?, _ found: RevocationFile.Content?, _ key: FleetKey, patience: Int32
  ) {
    (self.file, self.key, self.patience) = (file, key, patience)
    isDamaged = found?.isWhole == false
    isNew = file != nil && found?.isWhole != true
    var known = Known()
    known.take(all: found?.rows ?? [])
    if !isNew { known.filed = known.changes }
    self.known = Locked(known)
  }

  /// Whether this key, or the invitation with this digest, was revoked.
  func has(_ subject: [UInt8]) -> Bool { known.withLock { $0.rows[subject] != nil } }

  /// Up to when what was sealed for this name is void, in seconds since 1970; nil: nothing is.
  func end(of name: [UInt8]) -> Int64? { known.withLock { $0.names[name] } }

  /// The keys that a host of this name had before, with invitations for it, the latest first; no
  /// more than are worth a look.
  func formerKeys(of host: [UInt8]) -> [[UInt8]] {
    let found = known.withLock { known in
      known.subjects[host, default: []].map { (key: $0, at: known.rows[$0]?.at ?? 0) }
    }
    return found.sorted { $0.at > $1.at }.prefix(Self.mostFormer).map(\.key)
  }

  func isVoid(_ host: HostRow) -> Bool { end(of: host.name).map { host.joined <= $0 } ?? false }

  func isVoid(_ invite: InviteRow) -> Bool {
    end(of: invite.host).map { invite.made <= $0 } ?? false
  }

  /// Writes down one more time of this kind, in the file and then in the database.
  func add(name: [UInt8], at: Int64, to database: Database) throws(DatabaseFault) {
    try add(names: [(name, at)], to: database)
  }

  func add(names: [(name: [UInt8], at: Int64)], to database: Database) throws(DatabaseFault) {
    let done = turn.withLock { _ in
      Result { () throws(DatabaseFault) in
        let rows = try Database.sealing { () throws(CryptoError) in
          try names.map { (name, at) throws(CryptoError) in
            RevokedRow(subject: try RevokedRow.subject(ofName: name), host: name, at: at)
          }
        }
        note(rows)
        save(database)
        for row in rows {
          try row.write(under: key) { (statement, values) throws(DatabaseFault) in
            try database.ask(statement, values).0
          }
        }
      }
    }
    try done.get()
  }

  /// What was written to the database just now.
  func note(_ rows: [RevokedRow]) { known.withLock { $0.take(all: rows) } }

  /// Before the first host is answered: now, or where this verifier stands aside or its database is
  /// away, with the first reading of the hosts.
  package func begin(by database: Database) throws(DatabaseFault) {
    do throws(DatabaseFault) { try settle(by: database) } catch {
      switch error {
      case .away, .aside, .unreachable: break
      case .refused, .broken, .silent, .moved, .unusable, .warned, .outOfMemory: throw error
      }
    }
  }

  /// A verifier that remembers nothing first lets the others write down what they know.
  private func prepare(by database: Database) throws(DatabaseFault) {
    if isDamaged, let path = file?.path {
      database.alert("\(path) is damaged: it was renamed to \(path).damaged")
    }
    if isNew {
      let (rows, _) = try database.ask(
        Statement.keepers, [.text(database.verifier), .number(Schema.revoking)])
      if rows.number(0, 0) ?? 0 > 0 { _ = poll(nil, 0, patience) }
    }
  }

  /// Makes the union. Throws where the database does not have all of it.
  func settle(by database: Database) throws(DatabaseFault) {
    let done = turn.withLock { checked in
      Result { () throws(DatabaseFault) in try settleAlone(by: database, &checked) }
    }
    try done.get()
  }

  private func settleAlone(by database: Database, _ checked: inout CheckedRows<RevokedRow>)
    throws(DatabaseFault)
  {
    if !known.withLock({ $0.hasBegun }) { try prepare(by: database) }
    look(for: database)
    // What is noted from now on may be in the database before it is read.
    let before = known.withLock { $0.rows }
    let (rows, _) = try database.ask(Statement.revoked)
    var (there, seals): ([[UInt8]: RevokedRow], [[UInt8]: [UInt8]]) = ([:], [:])
    checked.begin()
    for row in 0..<rows.count {
      guard let found = RevokedRow(rows, row), let seal = rows.bytes(row, 3) else { continue }
      seals[found.subject] = seal
      let (isRight, isNews) = checked.check(found, seal, under: key)
      if isRight { there[found.subject] = found }
      if !isRight, isNews { complain(of: found, to: database) }
    }
    let isFiled = known.withLock { known in
      known.take(all: there.values)
      return known.filed == known.changes
    }
    if !isFiled { save(database) }
    let missing = before.values.filter { there[$0.subject].map(\.at) ?? .min < $0.at }
    try add(missing, over: seals, to: database)
    known.withLock { $0.hasBegun = true }
  }

  private func complain(of row: RevokedRow, to database: Database) {
    database.alert(
      "a revocation of host \(String(decoding: row.host, as: UTF8.self)) was made or changed by "
        + "somebody without the key")
  }

  private func add(
    _ missing: [RevokedRow], over seals: [[UInt8]: [UInt8]], to database: Database
  ) throws(DatabaseFault) {
    for row in missing {
      let values = try Database.sealing { () throws(CryptoError) in try row.values(under: key) }
      _ = try database.ask(
        Statement.addRevoked, values + [.bytes(seals[row.subject] ?? [])])
    }
    for host in Set(missing.map(\.host)) {
      database.alert(
        "the database has lost what was revoked of host \(String(decoding: host, as: UTF8.self)): "
          + "was it restored? This verifier writes it there again")
    }
  }

  // MARK: the file

  /// Reads what `revoke` has written there meanwhile.
  private func look(for database: Database) {
    guard let file else { return }
    let mark = file.mark
    guard known.withLock({ $0.mark != mark }) else { return }
    do throws(PrivateFile.Fault) {
      let found = try file.read()
      known.withLock { known in
        known.mark = mark
        let wasFiled = known.filed == known.changes
        known.take(all: found?.rows ?? [])
        // Also where it lacks something: the next save makes the union.
        known.filed =
          wasFiled && found?.isWhole == true && found?.rows.count == known.rows.count
          ? known.changes : -1
      }
    } catch {
      complain(error, to: database)
    }
  }

  /// Where it fails it is tried again with the next reading.
  private func save(_ database: Database) {
    guard let file else { return }
    let (rows, changes) = known.withLock { (Array($0.rows.values), $0.changes) }
    do throws(PrivateFile.Fault) {
      let all = try file.add(rows)
      known.withLock { known in
        known.filed = changes
        known.take(all: all)
        known.hasComplained = false
      }
    } catch {
      complain(error, to: database)
    }
  }

  private func complain(_ fault: PrivateFile.Fault, to database: Database) {
    let isNews = known.withLock { known in
      defer { known.hasComplained = true }
      return !known.hasComplained
    }
    guard isNews, let path = file?.path else { return }
    database.alert("\(path): \(fault.text): what is revoked is not kept here")
  }
}

extension RevokedRow {
  /// A row of the database, whatever its seal says.
  init?(_ rows: Rows, _ row: Int) {
    guard let subject = rows.bytes(row, 0), Pin(subject) != nil, let host = rows.bytes(row, 1),
      let at = rows.number(row, 2)
    else { return nil }
    self.init(subject: subject, host: host, at: Int64(clamping: at))
  }

  /// Of the table.
  func values(under key: FleetKey) throws(CryptoError) -> [Value] {
    [
      .bytes(subject), .text(host), .number(UInt64(clamping: at)), .bytes(try seal(under: key)),
    ]
  }

  /// The row of the database, where its seal is right, and its seal, empty where there is none.
  static func found(
    _ subject: [UInt8], under key: FleetKey,
    _ ask: (String, [Value]) throws(DatabaseFault) -> Rows
  ) throws(DatabaseFault) -> (RevokedRow?, seal: [UInt8]) {
    let rows = try ask(Statement.revokedOne, [.bytes(subject)])
    guard rows.count > 0, let seal = rows.bytes(0, 3) else { return (nil, []) }
    let found = RevokedRow(rows, 0)
    return (found?.isRight(seal, under: key) == true ? found : nil, seal)
  }

  /// Into the database. Where a later one is there, that stays.
  func write(
    under key: FleetKey, _ ask: (String, [Value]) throws(DatabaseFault) -> Rows
  ) throws(DatabaseFault) {
    for _ in 0..<8 {
      let (old, seal) = try Self.found(subject, under: key, ask)
      if let old, old.at >= at { return }
      let values = try Database.sealing { () throws(CryptoError) in try self.values(under: key) }
      if try ask(Statement.addRevoked, values + [.bytes(seal)]).count == 1 { return }
    }
    throw .unusable("others keep changing what is revoked")
  }
}
