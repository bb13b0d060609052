import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport

extension Statement {
  /// $1 verifier, $2 hosts and $3 of each whom it has let in today, as below, with commas between
  /// them.
  fileprivate static let letIn = """
    INSERT INTO visitor (day, host, verifier, people)
    SELECT \(today), one.host, $1, ('x' || one.people)::bit(1024)
    FROM unnest(string_to_array($2, ','), string_to_array($3, ',')) AS one (host, people)
    ON CONFLICT (day, host, verifier) DO UPDATE SET people = visitor.people | excluded.people
    """

  /// Of each host how many different people were let in there within a week.
  fileprivate static let people = """
    SELECT host, bit_count(bit_or(people)) FROM visitor WHERE day > \(today) - 7 GROUP BY host
    """

  fileprivate static let forgetPeople = "DELETE FROM visitor WHERE day <= \(today) - 7"

  /// What is written here may be lost with a server, and never waits for a standby.
  fileprivate static let unhurried = "SELECT set_config('synchronous_commit', 'off', false)"

  private static let today = "extract(epoch FROM now())::bigint / 86400"
}

/// What a verifier knows of its hosts by counting: kept in memory, and written and read each ten
/// seconds on a connection that no login uses.
final class HostCounts: Sendable {
  /// Of a host and a day a set of people: for each the bit of a digest of the name. Two may share
  /// one, so that there are a few less than they are, and never more.
  typealias People = [UInt64]
  private static let words = 16
  /// Of how many hosts something is kept until it is written.
  private static let most = 20_000
  /// How many hosts are written at a time.
  private static let batch = 200

  private struct Books: Sendable {
    /// Let in and not written yet; and written for this day.
    var (new, written): ([[UInt8]: People], [[UInt8]: People]) = ([:], [:])
    var day = 0
    /// Of all verifiers within a week.
    var counts: [[UInt8]: UInt64] = [:]
    var closed: Set<[UInt8]> = []
  }

  private let books = Locked(Books())

  // MARK: what logins tell and ask

  /// Somebody was let in there.
  func noteLetIn(_ name: [UInt8], on host: [UInt8]) {
    guard let digest = try? SHA256.digest(name) else { return }
    let (word, bit) = (Int(digest[0]) % Self.words, UInt64(1) << UInt64(digest[1] % 64))
    books.withLock { books in
      if books.written[host].map({ $0[word] & bit != 0 }) ?? false { return }
      guard books.new.count < Self.most || books.new[host] != nil else { return }
      books.new[host, default: People(repeating: 0, count: Self.words)][word] |= bit
    }
  }

  /// How many different people were let in there within a week, as it was ten seconds ago.
  func people(of host: [UInt8]) -> UInt64 { books.withLock { $0.counts[host] ?? 0 } }

  /// Whether codes there are accepted only from known places, as it was ten seconds ago.
  func isClosed(_ host: [UInt8]) -> Bool { books.withLock { $0.closed.contains(host) } }

  /// As a login has found; whether that is news.
  func note(_ host: [UInt8], isClosed: Bool) -> Bool {
    books.withLock { books in
      isClosed ? books.closed.insert(host).inserted : books.closed.remove(host) != nil
    }
  }

  func note(closed hosts: Set<[UInt8]>) { books.withLock { $0.closed = hosts } }

  // MARK: what is kept in the database

  /// `verifier`: in whose name it is written.
  func exchange(by line: DatabaseConnection, as verifier: [UInt8]) throws(DatabaseFault) {
    try write(by: line, as: verifier)
    let rows = try line.ask(Statement.people)
    var counts: [[UInt8]: UInt64] = [:]
    for row in 0..<rows.count {
      if let host = rows.bytes(row, 0) { counts[host] = rows.number(row, 1) }
    }
    books.withLock { $0.counts = counts }
    _ = try line.ask(Statement.forgetPeople)
  }

  private func write(by line: DatabaseConnection, as verifier: [UInt8]) throws(DatabaseFault) {
    let today = time(nil) / 86_400
    var new = books.withLock { books in
      if books.day != today { (books.day, books.written) = (today, [:]) }
      defer { books.new = [:] }
      return books.new
    }
    while !new.isEmpty {
      let some = Array(new.prefix(Self.batch))
      let hosts = some.map(\.key).joined(separator: [UInt8(ascii: ",")])
      let people = some.map { Self.text(of: $0.value) }.joined(separator: [UInt8(ascii: ",")])
      do throws(DatabaseFault) {
        _ = try line.ask(
          Statement.letIn, [.text(verifier), .text(Array(hosts)), .text(Array(people))])
      } catch {
        let left = new
        books.withLock { books in books.new.merge(left, uniquingKeysWith: Self.union) }
        throw error
      }
      books.withLock { books in
        for (host, people) in some {
          books.written[host] = books.written[host].map { Self.union($0, people) } ?? people
        }
      }
      for (host, _) in some { new[host] = nil }
    }
  }

  private static func union(_ one: People, _ other: People) -> People {
    zip(one, other).map { $0 | $1 }
  }

  private static func text(of people: People) -> [UInt8] { people.flatMap { hexadecimal($0) } }
}

/// The thread that writes and reads what is counted of hosts.
final class CountKeeper {
  /// In milliseconds.
  private static let pause: Int32 = 10_000

  private let database: Database
  private let limits: HostLimits
  private var line: DatabaseConnection?

  init(_ database: Database, _ limits: HostLimits) {
    (self.database, self.limits) = (database, limits)
  }

  /// A function and no closure: the optimizer makes one that never returns into another.
  @inline(never) func keep() {
    var isOver = false
    while !isOver {
      turn()
      _ = poll(nil, 0, Self.pause)
      isOver = database.losses < 0
    }
  }

  /// Nothing depends on it but how much a host may do, which is less where nothing can be read: so
  /// no login is refused because this is slow.
  func turn() {
    if database.isAway { return line = nil }
    do throws(DatabaseFault) {
      let line = try ownLine()
      try database.counts.exchange(by: line, as: database.verifier)
      try limits.look(by: line)
    } catch {
      line = nil
      if !database.isAway { database.note(.error, "database error: counts: \(error.text)") }
    }
  }

  private func ownLine() throws(DatabaseFault) -> DatabaseConnection {
    if let line { return line }
    let new = try DatabaseConnection(database.words, worker: 0)
    _ = try new.ask(Statement.unhurried)
    line = new
    return new
  }
}
