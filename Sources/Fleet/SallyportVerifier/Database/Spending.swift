import CService
import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 subject: how often each right was used in the period that is there, and which that is; the
  /// last row is today.
  static let used = """
    SELECT kind, period, n FROM spent WHERE subject = $1
    UNION ALL SELECT 0, extract(epoch FROM now())::bigint / 86400, 0
    """
}

/// What is counted of a host with each change or secret: one of as many as its rights have. It is
/// counted in the statement of the save itself, so that all verifiers together allow no more.
struct Spending: Sendable {
  /// The SHA-256 of the host's public key.
  let subject: [UInt8]
  let host: [UInt8]
  let right: HostRight
  let allowance: HostRights.Allowance
  /// By name; nil: it is about many.
  let person: [UInt8]?
  /// Of what people can change of their own, half as often: the rest is root's, so that nobody
  /// there keeps root from blocking him.
  var isOwn = false

  /// Where it is counted: what is there up to some time, then what is there each day.
  struct Account: Hashable, Sendable {
    let subject: [UInt8]
    let kind: UInt64
    /// nil: today, by the database's clock.
    let period: UInt64?
    let most: UInt64

    /// The last values of the statement.
    var values: [Value] {
      [
        .bytes(subject), .number(kind), period.map { .number($0) } ?? .null, .number(most),
      ]
    }
  }

  func accounts(at now: UnixTime) -> [Account] {
    let kind = UInt64(right.rawValue)
    var accounts: [Account] = []
    let share: UInt64 = isOwn ? 2 : 1
    if allowance.isWider(at: now, for: person) {
      accounts.append(
        Account(
          subject: subject, kind: kind + Self.wider,
          period: UInt64(clamping: allowance.until.seconds), most: UInt64(allowance.more) / share))
    }
    if allowance.daily > 0 {
      accounts.append(
        Account(
          subject: subject, kind: kind, period: nil, most: UInt64(allowance.daily) / share))
    }
    return accounts.filter { $0.most > 0 }
  }

  /// What `more` is counted as, beside its right.
  static let wider = UInt64(HostRight.allCases.count)

  /// For people.
  var name: String { String(decoding: host, as: UTF8.self) }
}

/// How often rights were used, as this verifier knows it: asked again after a while, as a day may
/// be over, or root have given more.
struct SpentRights: Sendable {
  /// Where it is counted, however often it may be.
  private struct Counter: Hashable {
    let subject: [UInt8]
    let kind: UInt64
    let period: UInt64?
  }

  private struct Count {
    var n: UInt64
    /// When the database said so.
    var since: UInt64
    /// The day, by this verifier's clock, on which it was said that this is as often as it may.
    var told: Int64?
  }

  /// In nanoseconds: when the database is asked again.
  var memory: UInt64 = 10_000_000_000
  private static let most = 10_000
  private var counts: [Counter: Count] = [:]

  private func counter(_ account: Spending.Account) -> Counter {
    Counter(subject: account.subject, kind: account.kind, period: account.period)
  }

  /// Whether it was when the database was asked last, just now or before.
  func wasFull(_ account: Spending.Account) -> Bool {
    counts[counter(account)].map { $0.n >= account.most } ?? false
  }

  func isFull(_ account: Spending.Account) -> Bool {
    guard wasFull(account), let found = counts[counter(account)] else { return false }
    return sys_monotonic() &- found.since < memory
  }

  mutating func note(_ n: UInt64, of account: Spending.Account) {
    if counts.count >= Self.most { counts = [:] }
    counts[counter(account), default: Count(n: 0, since: 0)].n = n
    counts[counter(account)]?.since = sys_monotonic()
  }

  /// The database is being asked.
  mutating func renew(_ account: Spending.Account) {
    counts[counter(account)]?.since = sys_monotonic()
  }

  /// Whether that is news on this day.
  mutating func note(told account: Spending.Account, at now: UnixTime) -> Bool {
    let day = now.seconds / 86_400
    defer { counts[counter(account)]?.told = day }
    return counts[counter(account)]?.told != day
  }
}

extension Database {
  /// Whether there is something left of it now. What was used up the database is asked again, at
  /// most once in ten seconds: nobody is to begin what cannot be saved.
  func mayUse(_ spending: Spending, at now: UnixTime) -> Bool {
    let accounts = spending.accounts(at: now)
    let (mayBe, isStale) = spent.withLock { spent in
      if accounts.contains(where: { !spent.wasFull($0) }) { return (true, false) }
      let stale = accounts.filter { !spent.isFull($0) }
      for one in stale { spent.renew(one) }
      return (false, !stale.isEmpty)
    }
    guard isStale else { return mayBe }
    var rights = HostRights()
    rights[spending.right] = spending.allowance
    guard let used = try? used(by: spending.subject, of: rights)[spending.right.rawValue - 1] else {
      return false
    }
    let isFree = spent.withLock { spent in
      for one in accounts {
        spent.note(UInt64(one.period == nil ? used.daily : used.more), of: one)
      }
      return accounts.contains { !spent.wasFull($0) }
    }
    if !isFree { noteRefused(spending) }
    return isFree
  }

  /// Runs `body` with the first account that is not used up. nil: all are, and nothing was done.
  func spending<R>(
    _ spending: Spending, at now: UnixTime,
    _ body: (Spending.Account) throws(DatabaseFault) -> (R, used: UInt64?)
  ) throws(DatabaseFault) -> R? {
    var isAsked = false
    for account in spending.accounts(at: now) {
      if spent.withLock({ $0.isFull(account) }) { continue }
      isAsked = true
      do throws(DatabaseFault) {
        let (result, used) = try body(account)
        if let used {
          spent.withLock { $0.note(used, of: account) }
          // Who uses the last one tells it, on each day.
          if used >= account.most {
            _ = spent.withLock { $0.note(told: account, at: now) }
            tell(account, of: spending)
          }
        }
        return result
      } catch {
        // What was to be saved with it was not, either.
        guard error.isRefused(by: "spent_check") else { throw error }
        let isNews = spent.withLock { spent in
          spent.note(account.most, of: account)
          return spent.note(told: account, at: now)
        }
        // The answer to the last one may be lost.
        if isNews { tell(account, of: spending) }
      }
    }
    if isAsked { noteRefused(spending) }
    return nil
  }

  private func noteRefused(_ spending: Spending) {
    note(
      .warning,
      "refused: host \(spending.name) has used up its right \(spending.right.word)"
        + (spending.isOwn ? ", as far as it is for what people change of their own" : ""))
  }

  private func tell(_ account: Spending.Account, of spending: Spending) {
    let (name, word) = (spending.name, spending.right.word)
    if spending.isOwn { return noteRefused(spending) }
    alert(
      "host \(name) has used its right \(word) \(account.most) times"
        + (account.period == nil ? " today" : "") + ", as often as it may: was that you? "
        + "sallyport-verifier hosts allow \(name) \(word) --for 1h, or revoke \(name)")
  }

  /// Of each right, how often it was used; of `more` in what these rights have of it. `name`: for
  /// whom; nil: for nobody.
  func used(by subject: [UInt8], of rights: HostRights, for name: [UInt8]? = nil)
    throws(DatabaseFault) -> [HostRights.Use]
  {
    let (rows, _) = try ask(Statement.used, [.bytes(subject)])
    var all: [UInt64: (period: UInt64, n: UInt64)] = [:]
    for row in 0..<rows.count {
      guard let kind = rows.number(row, 0), let period = rows.number(row, 1),
        let n = rows.number(row, 2)
      else { continue }
      all[kind] = (period, n)
    }
    /// The same as a save that is counted now adds to.
    func count(_ kind: UInt64, since period: UInt64, upTo last: UInt64 = .max) -> UInt32 {
      UInt32(clamping: all[kind].map { $0.period >= period && $0.period <= last ? $0.n : 0 } ?? 0)
    }
    let today = all[0]?.period ?? 0
    return HostRight.allCases.map { right in
      let kind = UInt64(right.rawValue)
      let more = rights[right]
      return HostRights.Use(
        daily: count(kind, since: today, upTo: today + 1),
        more: more.more == 0
          ? 0 : count(kind + Spending.wider, since: UInt64(clamping: more.until.seconds)),
        others: name.map { more.people.contains($0) } ?? false
          ? 0 : UInt32(clamping: more.people.count))
    }
  }
}
