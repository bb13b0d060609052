import CService
import OneTimePassword
import SallyportCore
package import SallyportLine
import SallyportLogin
import SallyportSystem
import SallyportThreads

extension Statement {
  /// $1 keys in hexadecimal, with commas between them. Once in a minute is enough to know who is
  /// there.
  fileprivate static let seen = """
    UPDATE host SET seen = now() WHERE (seen IS NULL OR seen < now() - interval '1 minute')
      AND encode(key, 'hex') = ANY (string_to_array($1, ','))
    """

  static let hosts = "SELECT name, key, enrolls, joined, seal FROM host"
}

/// Who asks: whose key it is, and which host of the fleet has it.
package struct Asker: Equatable, Sendable {
  /// nil: none of this name, or of this key, is in the fleet.
  package let host: [UInt8]?
  /// Whether the host may change what is enrolled.
  package let enrolls: Bool
  package let pin: Pin

  package init(_ pin: Pin, host: [UInt8]?, enrolls: Bool = false) {
    (self.pin, self.host, self.enrolls) = (pin, host, enrolls)
  }
}

/// The hosts of the fleet, as the table `host` said at most five seconds ago.
///
/// All of them are read at once: so a stranger's key costs the database nothing, however many keys
/// he makes.
package final class Hosts: Sendable {
  /// What the table says of a key, or cannot say.
  package enum Standing: Equatable, Sendable {
    case host(Asker)
    case stranger
    /// The database cannot be asked, and what it said is too old.
    case unclear
  }

  /// In nanoseconds: when it is read again, and when what was read does not count any more.
  private static let (renewal, lifetime): (UInt64, UInt64) = (2_000_000_000, 5_000_000_000)
  /// The same where somebody is not found, who may have joined meanwhile.
  private static let renewalForStrangers: UInt64 = 1_000_000_000
  /// And where somebody has asked this verifier to join.
  private static let renewalAfterJoining: UInt64 = 100_000_000

  private struct Known: Sendable {
    var hosts: [Pin: Asker] = [:]
    /// When it was read; 0: never.
    var since: UInt64 = 0
    var isBeingRead = false
    /// Somebody may have joined since it was read.
    var mayBeMore = false
    /// Who has asked since then.
    var asked: Set<Pin> = []
  }

  private let database: Database
  private let known = Locked(Known())

  package init(_ database: Database) { self.database = database }

  /// The host with this key.
  package func standing(of pin: Pin) -> Standing {
    let now = service_monotonic()
    let (found, since) = known.withLock { known in
      if known.hosts[pin] != nil { known.asked.insert(pin) }
      return (known.hosts[pin], known.since)
    }
    let age = since == 0 ? UInt64.max : now &- since
    if age >= (found == nil ? Self.renewalForStrangers : Self.renewal) {
      read(orWait: age >= Self.lifetime)
    }
    return known.withLock { known in
      guard known.since != 0, service_monotonic() &- known.since < Self.lifetime else {
        return .unclear
      }
      return known.hosts[pin].map { .host($0) } ?? .stranger
    }
  }

  /// Somebody may have joined.
  func expectMore() { known.withLock { $0.mayBeMore = true } }

  /// What was known when it was read last, however long ago: enough to keep a line, not to answer.
  package func wasKnown(_ pin: Pin) -> Bool { known.withLock { $0.hosts[pin] != nil } }

  /// One thread reads; others go on with what there is, unless that is too old.
  private func read(orWait mustWait: Bool) {
    let isMine = known.withLock { known in
      guard !known.isBeingRead || mustWait else { return false }
      (known.isBeingRead, known.mayBeMore) = (true, false)
      return true
    }
    guard isMine else { return }
    let start = service_monotonic()
    let found = table()
    let asked = known.withLock { known in
      known.isBeingRead = false
      guard let found, start > known.since else { return Set<Pin>() }
      defer { known.asked = [] }
      (known.hosts, known.since) = (found, start)
      return known.asked
    }
    note(asked)
  }

  /// For people: nothing hangs on it.
  private func note(_ asked: Set<Pin>) {
    if asked.isEmpty { return }
    let keys = Array(asked.map(\.hex).joined(separator: ",").utf8)
    _ = try? database.ask(Statement.seen, [.text(keys)])
  }

  /// A row that was there, was not there, and is there again: who put it back has not asked us,
  /// since no two rows that we make are alike.
  private func isRevoked(_ seal: [UInt8], _ row: HostRow) -> Bool {
    guard seals.withLock({ $0.gone.contains(seal) }) else { return false }
    database.alert(
      "host \(String(decoding: row.name, as: UTF8.self)): its row was put back after it was revoked"
    )
    return true
  }

  private func remember(_ now: Set<[UInt8]>) {
    seals.withLock { seals in
      seals.gone.formUnion(seals.there.subtracting(now))
      seals.there = now
    }
  }

  private struct Seals: Sendable {
    var there: Set<[UInt8]> = []
    var gone: Set<[UInt8]> = []
  }

  private let seals = Locked(Seals())

  private func table() -> [Pin: Asker]? {
    do throws(DatabaseFault) {
      let (rows, _) = try database.ask(Statement.hosts, [])
      var hosts: [Pin: Asker] = [:]
      var seals: Set<[UInt8]> = []
      for row in 0..<rows.count {
        guard let found = HostRow.sealed(rows, row, database), let seal = rows.bytes(row, 4),
          let pin = found.key.flatMap({ Pin($0) })
        else { continue }
        seals.insert(seal)
        guard !isRevoked(seal, found) else { continue }
        hosts[pin] = Asker(pin, host: found.name, enrolls: found.enrolls)
      }
      remember(seals)
      return hosts
    } catch {
      var line = LogLine("database error: hosts: ")
      line.add(escaped(Array(error.text.utf8), limit: 400))
      database.note(.error, line)
      return nil
    }
  }
}

extension HostRow {
  /// name, key, enrolls, joined and seal; nil for one that was made or changed by somebody without
  /// the key.
  static func sealed(_ rows: Rows, _ row: Int, _ database: Database) -> HostRow? {
    guard let name = rows.bytes(row, 0), let enrolls = rows.bytes(row, 2),
      let joined = rows.number(row, 3), let seal = rows.bytes(row, 4)
    else { return nil }
    let found = HostRow(
      name: name, key: rows.bytes(row, 1), enrolls: enrolls == [1], joined: Int64(clamping: joined))
    if let wanted = try? found.seal(under: database.key), isSeal(seal, wanted) { return found }
    database.alert(
      "host \(String(decoding: name, as: UTF8.self)): its row was made or changed by somebody "
        + "without the key")
    return nil
  }
}
