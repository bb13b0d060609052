import Glibc
import SallyportLogin
import SallyportSupport

/// Compares the clocks: this verifier's, the database's, and the other verifiers'. All in
/// milliseconds, as offsets from the database's.
struct ClockWatch {
  /// Beyond it this verifier refuses all logins, if the other verifiers agree that its clock is
  /// off.
  static let most: Int64 = 30_000
  /// Beyond it the log has a warning.
  static let usual: Int64 = 2000
  /// How often the warning is repeated.
  private static let pause: Int64 = 60_000

  enum Verdict: Equatable {
    case fine
    /// It, or the database's, is off by this much.
    case off
    /// The database's: the other verifiers agree with this one, or there are none.
    case databaseIsOff
    /// This verifier's.
    case aside
  }

  private var last = Verdict.fine
  private var said: Int64 = 0

  /// nil if the answer took too long to compare the clocks.
  static func offset(_ before: Int64, _ after: Int64, from time: Int64) -> Int64? {
    guard after >= before, after - before < 1000 else { return nil }
    return before / 2 + after / 2 - time
  }

  static func verdict(_ mine: Int64, _ others: [Int64]) -> Verdict {
    if mine.magnitude <= UInt64(usual) { return .fine }
    if mine.magnitude <= UInt64(most) { return .off }
    let isAgreed = others.contains { abs(Double($0) - Double(mine)) <= Double(most) }
    return others.isEmpty || isAgreed ? .databaseIsOff : .aside
  }

  mutating func look(_ database: Database, _ mine: Int64?, _ others: [Int64]) {
    guard let mine else { return }
    database.meters.note(offset: mine)
    let verdict = Self.verdict(mine, others)
    let wasAside = database.books.withLock { books in
      defer { books.isAside = verdict == .aside }
      return books.isAside
    }
    if wasAside, verdict != .aside {
      database.note(.notice, LogLine("the clock is right again: logins are verified"))
    }
    let now = database.clock()
    let isNew = verdict != last || now < said || now - said >= Self.pause
    last = verdict
    guard isNew, verdict != .fine else { return }
    said = now
    let seconds = mine / 1000
    switch verdict {
    case .fine: break
    case .off: database.alert("this clock and the database's differ by \(seconds) s")
    case .databaseIsOff:
      database.alert(
        "this clock and the database's differ by \(seconds) s, and no verifier reports that it is "
          + "this one: it is used")
    case .aside:
      database.alert(
        "this clock is \(seconds) s off the database's, and off the other verifiers': logins are "
          + "refused here until it is right")
    }
  }
}
