import CService
import SallyportCore
package import SallyportLogin
import SallyportSupport

/// Limits the log lines about one user to sixty a minute, so that they do not reach the limit that
/// the system's log has for all lines of the service. Logins that succeed, or that use a budget,
/// are always logged; and the next line about the user says how many were left out before it. This
/// is kept for a thousand users at most; the number of lines that were left out for others stands
/// in the next line of any user.
package final class LineAllowance: Sendable {
  private static let (lines, time, most) = (60, UInt64(60_000_000_000), 1000)
  private let state = Locked(State())

  private struct Count {
    var lines = 0
    var leftOut = 0
    var since: UInt64
  }

  private struct State {
    var users: [UInt32: Count] = [:]
    var ofOthers = 0

    /// Forgets users whose minute is over, otherwise the one whose minute began first.
    mutating func makeRoom(at now: UInt64) {
      let oldest = users.values.lazy.map(\.since).min() ?? now
      let end = max(oldest, now - min(now, LineAllowance.time))
      for (user, count) in users where count.since <= end {
        ofOthers += count.leftOut
        users[user] = nil
      }
    }
  }

  /// The number of users that are kept.
  var count: Int { state.withLock { $0.users.count } }

  package init() {}

  /// The line to be written; nil: none.
  package func line(_ line: LogLine, of user: UInt32, isCostless: Bool) -> LogLine? {
    guard let leftOut = leftOut(of: user, isCostless: isCostless) else { return nil }
    var line = line
    if leftOut.own > 0 { line.add(" left_out=", leftOut.own) }
    if leftOut.ofOthers > 0 { line.add(" left_out_of_others=", leftOut.ofOthers) }
    return line
  }

  private func leftOut(of user: UInt32, isCostless: Bool) -> (own: Int, ofOthers: Int)? {
    state.withLock { state in
      let now = sys_monotonic()
      if state.users[user] == nil, state.users.count >= Self.most { state.makeRoom(at: now) }
      var count = state.users[user] ?? Count(since: now)
      defer { state.users[user] = count }
      if now - count.since >= Self.time { (count.lines, count.since) = (0, now) }
      if isCostless {
        count.lines += 1
        guard count.lines <= Self.lines else {
          count.leftOut += 1
          return nil
        }
      }
      defer { (count.leftOut, state.ofOthers) = (0, 0) }
      return (count.leftOut, state.ofOthers)
    }
  }
}

extension Outcome {
  /// Whether it let nobody in, and spent nothing of a budget.
  package var isCostless: Bool {
    switch self {
    case .accepted: false
    case .refused(.response(.wrongCode(let charge), _)): charge == nil
    case .refused: true
    }
  }
}

/// A line that strangers can cause: one in ten seconds, with how many there were.
final class RareLine: Sendable {
  private let state = Locked((count: 0, next: UInt64(0)))

  func write(_ text: @autoclosure () -> String) {
    let count = state.withLock { state -> Int? in
      state.count += 1
      let now = sys_monotonic()
      guard now >= state.next else { return nil }
      defer { state = (0, now + 10_000_000_000) }
      return state.count
    }
    guard let count else { return }
    ServiceLog.error(count == 1 ? text() : "\(text()) (\(count) times)")
  }
}
