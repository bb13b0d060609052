import CService
import FleetTransport
import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  static let revoked = "SELECT subject, host, at, seal FROM revoked"

  /// $1 subject, $2 host, $3 when, $4 seal. What somebody without the key has put there goes.
  static let addRevoked = """
    INSERT INTO revoked (subject, host, at, seal) VALUES ($1, $2, $3::bigint, $4)
    ON CONFLICT (subject) DO UPDATE SET host = excluded.host, at = excluded.at,
      seal = excluded.seal
    """

  /// $1 verifier, $2 the version that has such a table: others that are alive and keep it.
  fileprivate static let keepers = """
    SELECT count(*) FROM worker WHERE worker = 0 AND verifier <> $1
      AND coalesce(version, 0) >= $2::bigint AND now > clock_timestamp() - interval '10 s'
    """
}

/// What was revoked, for ever: the keys of hosts, and invitations.
///
/// The database has it, and each verifier in a file of its own, so that a database that is
/// restored, or that somebody writes to, brings no host back. Each time that the hosts are read the
/// union is made: what the database lacks is written there, and what the file lacks there, before
/// any host is answered by what was read.
package final class Revocations: Sendable {
  private struct Known: Sendable {
    var rows: [[UInt8]: RevokedRow] = [:]
    /// The file has all of it.
    var isFiled = false
    /// The union was made once, so that hosts can be answered.
    var hasBegun = false
    /// Of what was already complained.
    var complaints: Set<[UInt8]> = []
  }

  private let path: String?
  private let key: FleetKey
  private let known: Locked<Known>
  /// One thread at a time reads and writes.
  private let turn = Locked(0)
  /// There was no file; or one that is damaged, or of another key.
  private let (isNew, isDamaged): (Bool, Bool)

  /// How long another one takes at most to read the hosts again, in milliseconds.
  private let patience: Int32

  /// `path`: of the file; nil: there is none, as for tests.
  package init(at path: String? = nil, key: FleetKey, patience: Int32 = 5000) {
    (self.path, self.key, self.patience) = (path, key, patience)
    let found = path.flatMap { Self.read($0, key) }
    isDamaged = found?.isWhole == false
    isNew = path != nil && found?.isWhole != true
    let rows = (found?.rows ?? []).map { ($0.subject, $0) }
    known = Locked(
      Known(rows: Dictionary(rows) { first, _ in first }, isFiled: path == nil || !isNew))
  }

  /// Whether this key, or the invitation with this digest, was revoked.
  func has(_ subject: [UInt8]) -> Bool { known.withLock { $0.rows[subject] != nil } }

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
    if isDamaged, let path {
      // SAFETY: the C strings live for the call.
      _ = unsafe rename(path, path + ".damaged")
      database.alert("\(path) is damaged, or of another key: it is \(path).damaged now")
    }
    if isNew {
      let (rows, _) = try database.ask(
        Statement.keepers, [.text(database.verifier), .number(Schema.revoking)])
      if rows.number(0, 0) ?? 0 > 0 { _ = poll(nil, 0, patience) }
    }
  }

  /// Makes the union. Throws where the database does not have all of it.
  func settle(by database: Database) throws(DatabaseFault) {
    let done = turn.withLock { _ in
      Result { () throws(DatabaseFault) in try settleAlone(by: database) }
    }
    try done.get()
  }

  private func settleAlone(by database: Database) throws(DatabaseFault) {
    if !known.withLock({ $0.hasBegun }) { try prepare(by: database) }
    let (rows, _) = try database.ask(Statement.revoked)
    let before = known.withLock { $0.rows }
    var there: [[UInt8]: RevokedRow] = [:]
    for row in 0..<rows.count {
      guard let subject = rows.bytes(row, 0) else { continue }
      if let found = RevokedRow(rows, row, key) {
        there[subject] = found
      } else if known.withLock({ $0.complaints.insert(subject).inserted }) {
        database.alert(
          "a revocation of host \(rows.text(row, 1) ?? "") was made or changed by somebody without "
            + "the key")
      }
    }
    let isFiled = known.withLock { known in
      if there.keys.contains(where: { known.rows[$0] == nil }) { known.isFiled = false }
      known.rows.merge(there) { first, _ in first }
      return known.isFiled
    }
    if !isFiled { save(database) }
    try add(before.values.filter { there[$0.subject] == nil }, to: database)
    known.withLock { $0.hasBegun = true }
  }

  private func add(_ missing: [RevokedRow], to database: Database) throws(DatabaseFault) {
    for row in missing {
      _ = try database.ask(
        Statement.addRevoked,
        try Database.sealing { () throws(CryptoError) in
          try row.values(under: key)
        })
      database.alert(
        "host \(String(decoding: row.host, as: UTF8.self)) was revoked, and the database did not "
          + "know it any more: was it restored? It is written there again")
    }
  }

  // MARK: the file

  private static let head = """
    # Kept by sallyport-verifier(8): what was revoked. It may not be lost or older than it is.
    version = 1

    """
  private static let longest = 64 << 20

  /// The rows that are sealed with this key, and whether that is all of the file; nil where there
  /// is none.
  private static func read(_ path: String, _ key: FleetKey) -> (rows: [RevokedRow], isWhole: Bool)?
  {
    let text: [UInt8]
    do throws(PrivateFile.Fault) {
      let content = try PrivateFile.read(path, upTo: longest)
      text = content.bytes(in: 0..<content.count)
    } catch {
      return error == .absent ? nil : ([], false)
    }
    guard text.starts(with: head.utf8) else { return ([], false) }
    let lines = text.dropFirst(head.utf8.count).split(separator: UInt8(ascii: "\n"))
    let rows = lines.compactMap { RevokedRow(line: Array($0), key) }
    return (rows, rows.count == lines.count && text.last == UInt8(ascii: "\n"))
  }

  /// Where it fails it is tried again with the next reading.
  private func save(_ database: Database) {
    guard let path else { return }
    let rows = known.withLock { $0.rows.values.sorted { $0.at < $1.at } }
    do {
      let text = try Array(Self.head.utf8) + rows.flatMap { try $0.line(under: key) }
      try replaceFile(path, text)
      known.withLock { $0.isFiled = $0.rows.count == rows.count }
    } catch {
      let isNews = known.withLock { $0.complaints.insert([]).inserted }
      if isNews {
        let reason =
          (error as? SystemError).map { errnoDescription($0.number) } ?? "libcrypto failed"
        database.alert("\(path): \(reason): what is revoked is not kept here")
      }
    }
  }
}

extension RevokedRow {
  /// A row of the database; nil where somebody without the key has made it.
  fileprivate init?(_ rows: Rows, _ row: Int, _ key: FleetKey) {
    guard let subject = rows.bytes(row, 0), let host = rows.bytes(row, 1),
      let at = rows.number(row, 2), let seal = rows.bytes(row, 3)
    else { return nil }
    let found = RevokedRow(subject: subject, host: host, at: Int64(clamping: at))
    guard let wanted = try? found.seal(under: key), constantTimeEquals(seal, wanted) else {
      return nil
    }
    self = found
  }

  /// Of the table.
  func values(under key: FleetKey) throws(CryptoError) -> [Value] {
    [
      .bytes(subject), .text(host), .number(UInt64(clamping: at)), .bytes(try seal(under: key)),
    ]
  }

  /// A line of the file: subject and seal in hexadecimal, and between them host and time.
  fileprivate func line(under key: FleetKey) throws(CryptoError) -> [UInt8] {
    let time = Array(String(max(at, 0)).utf8)
    let fields = [hexadecimal(subject), host, time, hexadecimal(try seal(under: key))]
    return Array(fields.joined(separator: [UInt8(ascii: " ")])) + [UInt8(ascii: "\n")]
  }

  fileprivate init?(line: [UInt8], _ key: FleetKey) {
    let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard fields.count == 4, let pin = Pin(hex: String(decoding: fields[0], as: UTF8.self)),
      let at = Int64(String(decoding: fields[2], as: UTF8.self))
    else { return nil }
    self.init(subject: pin.bytes, host: Array(fields[1]), at: at)
    guard let wanted = try? self.line(under: key), wanted == line + [UInt8(ascii: "\n")] else {
      return nil
    }
  }
}
