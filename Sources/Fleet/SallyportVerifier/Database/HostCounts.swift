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

  /// $1 verifier, $2 hosts, $3 kinds and $4 how many, with commas between them.
  fileprivate static let count = """
    INSERT INTO outcome (hour, host, verifier, kind, n)
    SELECT \(hour), one.host, $1, one.kind, one.n::bigint FROM unnest(
      string_to_array($2, ','), string_to_array($3, ','), string_to_array($4, ','))
      AS one (host, kind, n)
    ON CONFLICT (hour, host, verifier, kind) DO UPDATE SET n = outcome.n + excluded.n
    """

  /// What came of codes within a day, by kind.
  static let outcomes = """
    SELECT kind, sum(n)::bigint FROM outcome WHERE hour > \(hour) - 24 GROUP BY kind ORDER BY 1
    """

  /// A part at a time, so that neither takes longer than a statement may.
  fileprivate static let forgetOutcomes = """
    DELETE FROM outcome WHERE hour <= \(hour) - 48 AND ctid = ANY (ARRAY(
      SELECT ctid FROM outcome WHERE hour <= \(hour) - 48 LIMIT 5000))
    """

  fileprivate static let forgetPeople = """
    DELETE FROM visitor WHERE day <= \(today) - 7 AND ctid = ANY (ARRAY(
      SELECT ctid FROM visitor WHERE day <= \(today) - 7 LIMIT 5000))
    """

  private static let hour = "extract(epoch FROM now())::bigint / 3600"
  private static let today = "extract(epoch FROM now())::bigint / 86400"
}

/// What a verifier knows of its hosts by counting: kept in memory, and written and read each ten
/// seconds on a connection that no login uses.
final class HostCounts: Sendable {
  /// Of a host and a day a set of people: for each the bit of a digest of the name. Two may share
  /// one, so that there are a few less than they are, and never more.
  typealias People = [UInt64]
  private static let words = 16
  /// Of how many hosts, and of how many kinds of them, something is kept until it is written.
  private static let most = 20_000
  /// How many are written at a time.
  private static let batch = 200
  /// In what time a refusal that costs a host nothing is told so often; and how long after it was
  /// said that more are not, that is not said again of that host. In nanoseconds.
  private static let (freeWindow, quiet): (UInt64, UInt64) = (60_000_000_000, 3_600_000_000_000)

  /// What came of a code, and on which host.
  private struct Kind: Hashable, Sendable {
    let host: [UInt8]
    let word: [UInt8]
  }

  /// Where a refusal is told that costs a host nothing, and how often at once.
  enum Place: Int, Sendable {
    case event = 10
    case log = 60
  }

  private struct FreeKey: Hashable, Sendable {
    let host: [UInt8]
    let place: Place
  }

  private struct Free: Sendable {
    var since: UInt64
    var n = 0
    /// When that was said.
    var told: UInt64?
  }

  private struct Books: Sendable {
    /// Let in and not written yet; and written for this day.
    var (new, written): ([[UInt8]: People], [[UInt8]: People]) = ([:], [:])
    var day = 0
    /// Of all verifiers within a week.
    var counts: [[UInt8]: UInt64] = [:]
    var closed: Set<[UInt8]> = []
    /// What is not written yet.
    var outcomes: [Kind: UInt64] = [:]
    /// How many were not kept, since there was no room.
    var leftOut: UInt64 = 0
    var free: [FreeKey: Free] = [:]
  }

  private let books = Locked(Books())

  // MARK: what logins tell and ask

  /// Somebody was let in there.
  func noteLetIn(_ name: [UInt8], on host: [UInt8]) {
    guard let digest = try? SHA256.digest(name) else { return }
    let (word, bit) = (Int(digest[0]) % Self.words, UInt64(1) << UInt64(digest[1] % 64))
    books.withLock { books in
      if books.written[host].map({ $0[word] & bit != 0 }) ?? false { return }
      guard books.new.count < Self.most || books.new[host] != nil else {
        books.leftOut += 1
        return
      }
      books.new[host, default: People(repeating: 0, count: Self.words)][word] |= bit
    }
  }

  /// What came of a code: the word of its outcome.
  func note(_ word: [UInt8], on host: [UInt8]) {
    let kind = Kind(host: host, word: word)
    books.withLock { books in
      guard books.outcomes.count < Self.most || books.outcomes[kind] != nil else {
        books.leftOut += 1
        return
      }
      books.outcomes[kind, default: 0] += 1
    }
  }

  /// Whether a refusal that costs this host nothing is to be written there, and whether it is to be
  /// said that no more are. `now`: in nanoseconds.
  func takeFree(on host: [UInt8], at now: UInt64, in place: Place = .event)
    -> (isWritten: Bool, isNews: Bool)
  {
    let key = FreeKey(host: host, place: place)
    return books.withLock { books in
      if books.free.count >= Self.most, books.free[key] == nil { books.free = [:] }
      var free = books.free[key] ?? Free(since: now)
      if now &- free.since >= Self.freeWindow { (free.since, free.n) = (now, 0) }
      let isWritten = free.n < place.rawValue
      let isNews = !isWritten && (free.told.map { now &- $0 >= Self.quiet } ?? true)
      if isNews { free.told = now }
      if isWritten { free.n += 1 }
      books.free[key] = free
      return (isWritten, isNews)
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

  /// Of which that is so.
  var closed: Set<[UInt8]> { books.withLock { $0.closed } }

  /// Those that were not before.
  func note(closed hosts: Set<[UInt8]>) -> Set<[UInt8]> {
    books.withLock { books in
      defer { books.closed = hosts }
      return hosts.subtracting(books.closed)
    }
  }

  /// How many were not counted since it was asked last.
  func takeLeftOut() -> UInt64 {
    books.withLock { books in
      defer { books.leftOut = 0 }
      return books.leftOut
    }
  }

  // MARK: what is kept in the database

  /// The server may be another one, or have lost what was written to it last.
  func forgetWritten() { books.withLock { $0.written = [:] } }

  /// `verifier`: in whose name it is written.
  func write(by line: DatabaseConnection, as verifier: [UInt8]) throws(DatabaseFault) {
    try writeOutcomes(by: line, as: verifier)
    try writePeople(by: line, as: verifier)
  }

  /// The same, and reads what all verifiers have written.
  func exchange(by line: DatabaseConnection, as verifier: [UInt8]) throws(DatabaseFault) {
    try write(by: line, as: verifier)
    let rows = try line.ask(Statement.people)
    var counts: [[UInt8]: UInt64] = [:]
    for row in 0..<rows.count {
      if let host = rows.bytes(row, 0) { counts[host] = rows.number(row, 1) }
    }
    books.withLock { $0.counts = counts }
    _ = try line.ask(Statement.forgetPeople)
    _ = try line.ask(Statement.forgetOutcomes)
  }

  /// What is written without an answer is not written again: it may be counted.
  private func writeOutcomes(by line: DatabaseConnection, as verifier: [UInt8])
    throws(DatabaseFault)
  {
    while true {
      let some = books.withLock { books in
        let some = Array(books.outcomes.prefix(Self.batch))
        for (kind, _) in some { books.outcomes[kind] = nil }
        return some
      }
      if some.isEmpty { return }
      let columns = [
        some.map(\.key.host), some.map(\.key.word), some.map { Array(String($0.value).utf8) },
      ]
      _ = try line.ask(
        Statement.count,
        [.text(verifier)] + columns.map { .text(Array($0.joined(separator: [UInt8(ascii: ",")]))) })
    }
  }

  private func writePeople(by line: DatabaseConnection, as verifier: [UInt8])
    throws(DatabaseFault)
  {
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
