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
    if allowance.isWider(at: now) {
      accounts.append(
        Account(
          subject: subject, kind: kind + Self.wider,
          period: UInt64(clamping: allowance.until.seconds), most: UInt64(allowance.more)))
    }
    if allowance.daily > 0 {
      accounts.append(
        Account(
          subject: subject, kind: kind, period: nil, most: UInt64(allowance.daily)))
    }
    return accounts
  }

  /// What `more` is counted as, beside its right.
  static let wider = UInt64(HostRight.allCases.count)

  /// For people.
  var name: String { String(decoding: host, as: UTF8.self) }
}

/// Which rights are used up, as this verifier knows it: asked again after a while, as a day may be
/// over.
struct SpentRights: Sendable {
  private static let memory: UInt64 = 10_000_000_000
  private static let most = 10_000
  private var full: [Spending.Account: UInt64] = [:]
  /// Of which it was said, until they can be used again.
  private var told: Set<Spending.Account> = []

  func isFull(_ account: Spending.Account) -> Bool {
    full[account].map { sys_monotonic() &- $0 < Self.memory } ?? false
  }

  /// Whether that is news.
  mutating func note(full account: Spending.Account) -> Bool {
    if full.count >= Self.most { full = [:] }
    if told.count >= Self.most { told = [] }
    full[account] = sys_monotonic()
    return told.insert(account).inserted
  }

  mutating func note(free account: Spending.Account) {
    full[account] = nil
    told.remove(account)
  }
}

extension Database {
  /// Whether there is something left of it now, as far as it is known without asking.
  func mayUse(_ spending: Spending, at now: UnixTime) -> Bool {
    let accounts = spending.accounts(at: now)
    return spent.withLock { spent in accounts.contains { !spent.isFull($0) } }
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
        if let used, used < account.most {
          spent.withLock { $0.note(free: account) }
        } else if used != nil {
          note(full: account, of: spending)
        }
        return result
      } catch {
        // The constraint: what was to be saved with it was not, either.
        guard case .refused("23514", _) = error else { throw error }
        note(full: account, of: spending)
      }
    }
    if isAsked {
      note(
        .warning, "refused: host \(spending.name) has used up its right \(spending.right.word)")
    }
    return nil
  }

  private func note(full account: Spending.Account, of spending: Spending) {
    guard spent.withLock({ $0.note(full: account) }) else { return }
    let (name, word) = (spending.name, spending.right.word)
    alert(
      "host \(name) has used its right \(word) \(account.most) times"
        + (account.period == nil ? " today" : "") + ", as often as it may: was that you? "
        + "sallyport-verifier hosts allow \(name) \(word) --for 1h, or revoke \(name)")
  }

  /// Of each right, how often it was used today.
  func used(by subject: [UInt8]) throws(DatabaseFault) -> [UInt32] {
    let (rows, _) = try ask(Statement.used, [.bytes(subject)])
    let all = (0..<rows.count).compactMap { row in
      rows.number(row, 0).flatMap { kind in
        rows.number(row, 1).flatMap { period in rows.number(row, 2).map { (kind, period, $0) } }
      }
    }
    let today = all.first { $0.0 == 0 }?.1
    return HostRight.allCases.map { right in
      let found = all.first { $0.0 == UInt64(right.rawValue) && $0.1 == today }
      return UInt32(clamping: found?.2 ?? 0)
    }
  }
}
