import CService
package import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 keys in hexadecimal, with commas between them. Once in a minute is enough for "last seen".
  fileprivate static let seen = """
    UPDATE host SET seen = now() WHERE (seen IS NULL OR seen < now() - interval '1 minute')
      AND encode(key, 'hex') = ANY (string_to_array($1, ','))
    """

  static let hosts = "SELECT name, key, enrolls, joined, seal FROM host"
}

/// Who asks: a host of the fleet, and its key.
package struct HostIdentity: Equatable, Sendable {
  /// Its name.
  package let host: [UInt8]
  /// Whether the host may change what is enrolled.
  package let enrolls: Bool
  package let pin: Pin

  package init(_ pin: Pin, host: [UInt8], enrolls: Bool = false) {
    (self.pin, self.host, self.enrolls) = (pin, host, enrolls)
  }
}

/// The hosts of the fleet, as the table `host` said at most five seconds ago.
///
/// All hosts are read at once, so that a stranger costs the database nothing, however many keys he
/// makes.
package final class Hosts: Sendable {
  /// What the table says of a key, or cannot say.
  package enum HostLookup: Equatable, Sendable {
    case host(HostIdentity)
    case stranger
    /// The database cannot be asked, and the last answer is too old.
    case unclear
  }

  /// In nanoseconds: when it is read again, and when the last answer expires.
  private static let (renewal, lifetime): (UInt64, UInt64) = (2_000_000_000, 5_000_000_000)
  /// The same for an unknown key, whose host may have joined meanwhile.
  private static let renewalForStrangers: UInt64 = 1_000_000_000

  private struct Known: Sendable {
    var list = HostList()
    var isBeingRead = false
    /// Somebody has joined since it was read, or could have by now.
    var mayBeMore = false
    /// Who has asked since then.
    var asked: Set<Pin> = []
  }

  private let database: Database
  private let known = Locked(Known())

  package init(_ database: Database) { self.database = database }

  /// The host with this key.
  package func lookup(_ pin: Pin) -> HostLookup {
    let now = sys_monotonic()
    let (found, since, mayBeMore) = known.withLock { known in
      let found = known.list.hosts[pin]
      if found != nil { known.asked.insert(pin) }
      return (found, known.list.since, known.mayBeMore)
    }
    let age = since == 0 ? UInt64.max : now &- since
    let hasJoined = found == nil && mayBeMore
    if hasJoined || age >= (found == nil ? Self.renewalForStrangers : Self.renewal) {
      read(orWait: hasJoined || age >= Self.lifetime)
    }
    return known.withLock { known in
      let list = known.list
      guard list.since != 0, sys_monotonic() &- list.since < Self.lifetime else {
        return .unclear
      }
      return list.hosts[pin].map { .host($0) } ?? .stranger
    }
  }

  /// Somebody with a token has asked: the next one who is not found is looked for at once.
  func expectMore() { known.withLock { $0.mayBeMore = true } }

  /// The last answer, however old: enough to keep a connection, not to answer on it.
  package func wasKnown(_ pin: Pin) -> Bool {
    known.withLock { $0.list.since == 0 || $0.list.hosts[pin] != nil }
  }

  /// One thread reads; others go on with what there is, unless that is too old.
  private func read(orWait mustWait: Bool) {
    let isMine = known.withLock { known in
      guard !known.isBeingRead || mustWait else { return false }
      (known.isBeingRead, known.mayBeMore) = (true, false)
      return true
    }
    guard isMine else { return }
    let start = sys_monotonic()
    let found = table()
    let (asked, putBack) = known.withLock { known in
      known.isBeingRead = false
      guard let found, let putBack = known.list.take(found, asOf: start) else {
        return (Set<Pin>(), [[UInt8]]())
      }
      defer { known.asked = [] }
      return (known.asked, putBack)
    }
    note(asked)
    for host in putBack {
      database.alert(
        "host \(String(decoding: host, as: UTF8.self)): its row was restored after it was revoked")
    }
  }

  /// For people: nothing depends on it.
  private func note(_ asked: Set<Pin>) {
    if asked.isEmpty { return }
    let keys = Array(asked.map(\.hex).joined(separator: ",").utf8)
    _ = try? database.ask(Statement.seen, [.text(keys)])
  }

  private func table() -> [HostList.Line]? {
    do throws(DatabaseFault) {
      let (rows, _) = try database.ask(Statement.hosts)
      return (0..<rows.count).compactMap { row in
        guard let found = HostRow.sealed(rows, row, database), let seal = rows.bytes(row, 4),
          let pin = found.key.flatMap({ Pin($0) })
        else { return nil }
        return HostList.Line(seal, HostIdentity(pin, host: found.name, enrolls: found.enrolls))
      }
    } catch {
      database.note(.error, "database error: hosts: \(error.text)")
      return nil
    }
  }
}

/// What is known of the table: its hosts, and the rows that disappeared.
struct HostList: Sendable {
  /// One row, whose seal was right.
  struct Line: Sendable {
    let seal: [UInt8]
    let asker: HostIdentity

    init(_ seal: [UInt8], _ asker: HostIdentity) { (self.seal, self.asker) = (seal, asker) }
  }

  private(set) var hosts: [Pin: HostIdentity] = [:]
  /// When it was read; 0: never.
  private(set) var since: UInt64 = 0
  private var there: Set<[UInt8]> = []
  private var gone: Set<[UInt8]> = []

  /// Of several that read at a time, what was asked for last counts: a host that joined meanwhile
  /// is not gone because it is not in an older answer, which gives nil. The names of hosts whose
  /// row was there, was not there, and is there again: who put it back has not asked us, since no
  /// two rows that we make are alike.
  mutating func take(_ lines: [Line], asOf start: UInt64) -> [[UInt8]]? {
    guard start > since else { return nil }
    let now = Set(lines.map(\.seal))
    gone.formUnion(there.subtracting(now))
    (hosts, since, there) = ([:], start, now)
    var putBack: [[UInt8]] = []
    for line in lines {
      if gone.contains(line.seal) {
        putBack.append(line.asker.host)
      } else {
        hosts[line.asker.pin] = line.asker
      }
    }
    return putBack
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
    if let wanted = try? found.seal(under: database.key), constantTimeEquals(seal, wanted) {
      return found
    }
    database.alert(
      "host \(String(decoding: name, as: UTF8.self)): its row was made or changed by somebody "
        + "without the key")
    return nil
  }
}
