import CService
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport

extension Statement {
  /// $1 the host, $2 how many are counted at most, $3 who called, $4 since when at the earliest, in
  /// seconds since 1970: the wrong codes of a day.
  static let wrongCodes = """
    SELECT (SELECT count(*) FROM (
        SELECT 1 FROM event WHERE host = $1 AND outcome = 'wrong-code'
        AND \(ofDay) LIMIT $2::bigint) AS one),
      (SELECT count(*) FROM (
        SELECT 1 FROM event WHERE host = $1 AND outcome = 'wrong-code' AND caller = $3::bigint
        AND \(ofDay) LIMIT $2::bigint) AS two)
    """

  /// Not those of a clock that was ahead.
  private static let ofDay = """
    at > greatest(now() - interval '1 day', to_timestamp($4::bigint)) AND at <= now()
    """

  /// $1 how many at least: the hosts that may have brought that many wrong codes in a day.
  static let manyWrong = """
    SELECT host FROM outcome
    WHERE hour >= extract(epoch FROM now())::bigint / 3600 - 24 AND kind = 'wrong-code'
    GROUP BY host HAVING sum(n) >= $1::bigint
    """

  /// $1 hosts, with commas between them.
  fileprivate static let close = """
    UPDATE host SET closed = now() WHERE name = ANY (string_to_array($1, ','))
    """
}

/// How many wrong codes for enrolled users one host may send in a day, and what it may give back.
///
/// A host where many people are let in may send more of them. Beyond that number, codes are
/// accepted there only from known places of the host; backup codes still work. So an untrusted host
/// uses little of each user's budget. A user who calls su or sudo has a smaller limit of his own.
final class HostLimits: Sendable {
  /// Of one real uid of a host, other than root's.
  static let ofCaller: UInt64 = 20
  /// How many more a host may send for each person who was let in there within a week, and up to
  /// how many in all.
  static let (ofPerson, mostOfHost): (UInt64, UInt64) = (10, 2000)
  /// How long a count is valid, and how long a charge can be given back, in nanoseconds.
  private static let (renewal, memory): (UInt64, UInt64) = (10_000_000_000, 600_000_000_000)
  /// How many are kept in memory.
  private static let most = 10_000

  private struct Who: Hashable, Sendable {
    let host: [UInt8]
    /// Of the caller; nil: of all of the host, or of the user with the name.
    let caller: UInt32?
    var name: [UInt8] = []
  }

  /// Wrong codes, not those up to `reopened`.
  private struct Count: Sendable {
    var n: UInt64
    let reopened: Int64
    let since: UInt64
  }

  private struct Books: Sendable {
    var counts: [Who: Count] = [:]
    var charges: [Who: (charge: Charge, since: UInt64)] = [:]
  }

  private let database: Database
  private let wrongCodes: UInt64
  private let books = Locked(Books())

  /// `wrongCodes`: of a host in a day, where nobody was let in there within a week.
  init(_ database: Database, wrongCodes: UInt64) {
    (self.database, self.wrongCodes) = (database, wrongCodes)
  }

  /// How many wrong codes it may send in a day.
  func bound(of host: [UInt8]) -> UInt64 {
    let grown = wrongCodes.addingReportingOverflow(Self.ofPerson * database.counts.people(of: host))
    return max(wrongCodes, min(grown.overflow ? .max : grown.partialValue, Self.mostOfHost))
  }

  /// Whether codes from there are accepted only from known places. If the database cannot say, it
  /// will not save an answer either.
  func isClosed(_ host: HostIdentity, _ caller: UInt32?) -> Bool {
    let most = bound(of: host.host)
    guard let ofHost = count(of: host, nil, upTo: most) else { return true }
    let isClosed = ofHost >= most
    if database.counts.note(host.host, isClosed: isClosed), isClosed { tellClosed(host.host) }
    if isClosed { return true }
    guard let caller else { return false }
    return count(of: host, caller, upTo: most).map { $0 >= Self.ofCaller } ?? true
  }

  private func tellClosed(_ host: [UInt8]) {
    let name = String(decoding: host, as: UTF8.self)
    database.alert(
      "host \(name) brought \(bound(of: host)) wrong codes in a day: from now on it gets codes "
        + "accepted only from places where their user logged in before "
        + "(sallyport-verifier hosts reopen \(name))")
  }

  private func count(of host: HostIdentity, _ caller: UInt32?, upTo most: UInt64) -> UInt64? {
    let now = sys_monotonic()
    let who = Who(host: host.host, caller: caller)
    if let found = books.withLock({ $0.counts[who] }), found.reopened == host.reopened,
      now &- found.since < Self.renewal
    {
      return found.n
    }
    do throws(DatabaseFault) {
      let (rows, _) = try database.ask(
        Statement.wrongCodes, Self.values(host.host, caller, since: host.reopened, upTo: most))
      guard let ofHost = rows.number(0, 0), let ofCaller = rows.number(0, 1) else { return nil }
      return books.withLock { books in
        if books.counts.count >= Self.most { books.counts = [:] }
        let all = Who(host: host.host, caller: nil)
        books.counts[all] = Count(n: ofHost, reopened: host.reopened, since: now)
        if caller == nil { return ofHost }
        books.counts[who] = Count(n: ofCaller, reopened: host.reopened, since: now)
        return ofCaller
      }
    } catch {
      return nil
    }
  }

  private static func values(
    _ host: [UInt8], _ caller: UInt32?, since reopened: Int64, upTo most: UInt64
  ) -> [Value] {
    [
      .text(host), .number(max(most, ofCaller)), caller.map { .number(UInt64($0)) } ?? .null,
      .number(UInt64(clamping: reopened)),
    ]
  }

  /// Looks which hosts are closed, also where nobody types a code, and says so in the database, for
  /// status. `line`: not one that logins use.
  func look(by line: DatabaseConnection) throws(DatabaseFault) {
    let found = try line.ask(Statement.manyWrong, [.number(wrongCodes)])
    var closed: Set<[UInt8]> = []
    let many = Set((0..<found.count).compactMap { found.bytes($0, 0) })
    for name in many.union(database.counts.closed) {
      let rows = try line.ask(Statement.named, [.text(name)])
      guard let host = HostRow(rows, 0) else { continue }
      let reopened = Reopening.read(rows.bytes(0, 6), under: database.key, of: host)
      let most = bound(of: name)
      let counted = try line.ask(
        Statement.wrongCodes, Self.values(name, nil, since: reopened, upTo: most))
      if counted.number(0, 0) ?? 0 >= most { closed.insert(name) }
    }
    for host in database.counts.note(closed: closed) { tellClosed(host) }
    if closed.isEmpty { return }
    let names = closed.map { String(decoding: $0, as: UTF8.self) }.sorted()
    _ = try line.ask(Statement.close, [.text(Array(names.joined(separator: ",").utf8))])
  }

  /// Of the amount that a host asks back: what it was charged in this login, once.
  func believed(_ role: ResponseRole, _ host: [UInt8], _ name: [UInt8]) -> ResponseRole {
    guard case .last(let charge?) = role else { return role }
    let who = Who(host: host, caller: nil, name: name)
    let found = books.withLock { $0.charges.removeValue(forKey: who) }
    guard let found, found.charge == charge, sys_monotonic() &- found.since < Self.memory else {
      return .last(givingBack: nil)
    }
    return role
  }

  /// Records what a host was charged. Nothing that cost nobody anything counts: a backup code that
  /// nobody can guess.
  func note(
    _ outcome: Outcome, as role: ResponseRole, of name: [UInt8], on host: [UInt8],
    by caller: UInt32?
  ) {
    guard case .refused(.response(.wrongCode(let charge?), _)) = outcome else { return }
    let now = sys_monotonic()
    books.withLock { books in
      books.counts[Who(host: host, caller: nil)]?.n += 1
      if caller != nil { books.counts[Who(host: host, caller: caller)]?.n += 1 }
      guard role == .firstPass else { return }
      if books.charges.count >= Self.most { books.charges = [:] }
      books.charges[Who(host: host, caller: nil, name: name)] = (charge, now)
    }
  }
}
