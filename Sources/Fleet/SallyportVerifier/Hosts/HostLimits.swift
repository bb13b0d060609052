import CService
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport

extension Statement {
  /// $1 the host, $2 how many are counted at most, $3 who called: the wrong codes of a day.
  static let wrongCodes = """
    SELECT (SELECT count(*) FROM (
        SELECT 1 FROM event WHERE host = $1 AND outcome = 'wrong-code'
        AND at > now() - interval '1 day' LIMIT $2::bigint) AS one),
      (SELECT count(*) FROM (
        SELECT 1 FROM event WHERE host = $1 AND outcome = 'wrong-code' AND caller = $3::bigint
        AND at > now() - interval '1 day' LIMIT $2::bigint) AS two)
    """
}

/// How many wrong codes for enrolled users one host may send in a day, and what it may give back.
///
/// Beyond that number, codes are accepted there only from known places of the host; backup codes
/// still work. So an untrusted host uses little of each user's budget. A user who calls su or sudo
/// has a smaller limit of his own.
final class HostLimits: Sendable {
  /// Of one real uid of a host, other than root's.
  static let ofCaller: UInt64 = 20
  /// How long a count is valid, and how long a charge can be given back, in nanoseconds.
  private static let (renewal, memory): (UInt64, UInt64) = (1_000_000_000, 600_000_000_000)
  /// How many are kept in memory.
  private static let most = 10_000

  private struct Who: Hashable, Sendable {
    let host: [UInt8]
    /// Of the caller, or of the user's name.
    let caller: UInt32?
    var name: [UInt8] = []
  }

  private struct Count: Sendable {
    var ofHost: UInt64
    var ofCaller: UInt64
    let since: UInt64
  }

  private struct Books: Sendable {
    var counts: [Who: Count] = [:]
    var closed: Set<[UInt8]> = []
    var charges: [Who: (charge: Charge, since: UInt64)] = [:]
  }

  private let database: Database
  private let wrongCodes: UInt64
  private let books = Locked(Books())

  init(_ database: Database, wrongCodes: UInt64) {
    (self.database, self.wrongCodes) = (database, wrongCodes)
  }

  /// Whether codes from there are accepted only from known places. If the database cannot say, it
  /// will not save an answer either.
  func isClosed(_ host: [UInt8], _ caller: UInt32?) -> Bool {
    let who = Who(host: host, caller: caller)
    guard let count = count(of: who) else { return true }
    let isClosed = count.ofHost >= wrongCodes
    let isNew = books.withLock { books in
      guard isClosed else {
        books.closed.remove(host)
        return false
      }
      return books.closed.insert(host).inserted
    }
    if isNew {
      database.alert(
        "host \(String(decoding: host, as: UTF8.self)): \(wrongCodes) wrong codes in a day: codes "
          + "from unknown places of users are refused there from now on")
    }
    return isClosed || caller != nil && count.ofCaller >= Self.ofCaller
  }

  private func count(of who: Who) -> Count? {
    let now = sys_monotonic()
    if let found = books.withLock({ $0.counts[who] }), now &- found.since < Self.renewal {
      return found
    }
    let caller = who.caller.map { Value.number(UInt64($0)) } ?? .null
    do throws(DatabaseFault) {
      let (rows, _) = try database.ask(
        Statement.wrongCodes,
        [.text(who.host), .number(max(wrongCodes, Self.ofCaller)), caller])
      guard let ofHost = rows.number(0, 0), let ofCaller = rows.number(0, 1) else { return nil }
      let count = Count(ofHost: ofHost, ofCaller: ofCaller, since: now)
      books.withLock { books in
        if books.counts.count >= Self.most { books.counts = [:] }
        books.counts[who] = count
      }
      return count
    } catch {
      return nil
    }
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

  /// Records what a host was charged.
  func note(
    _ outcome: Outcome, as role: ResponseRole, of name: [UInt8], on host: [UInt8],
    by caller: UInt32?
  ) {
    guard case .refused(.response(.wrongCode(let charge), _)) = outcome else { return }
    let now = sys_monotonic()
    books.withLock { books in
      let counted = Who(host: host, caller: caller)
      books.counts[counted]?.ofHost += 1
      books.counts[counted]?.ofCaller += 1
      guard role == .firstPass, let charge else { return }
      if books.charges.count >= Self.most { books.charges = [:] }
      books.charges[Who(host: host, caller: nil, name: name)] = (charge, now)
    }
  }
}
