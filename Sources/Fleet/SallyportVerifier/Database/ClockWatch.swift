import CService
import Glibc
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  fileprivate static let time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
}

extension DatabaseConnection {
  /// The database's time, in milliseconds since 1970. Throws where it is further from this
  /// machine's, `mine`, than a verifier's may be: what goes by it would go wrong.
  func time(by mine: Int64) throws(DatabaseFault) -> Int64 {
    guard let time = try ask(Statement.time).number(0, 0).map({ Int64(clamping: $0) }) else {
      throw .unusable("it has no clock")
    }
    guard abs(Double(time) - Double(mine)) <= Double(ClockWatch.most) else {
      throw .unusable(
        "its clock is \(ClockWatch.told(time - mine)) this one: nothing was done; set the one "
          + "that is wrong (timedatectl, here and there)")
    }
    return time
  }
}

/// Compares the clocks: this verifier's, the database's, and the other verifiers'. All in
/// milliseconds, as offsets from the database's.
struct ClockWatch {
  /// Beyond it this verifier refuses all logins, unless another verifier's clock agrees with its
  /// own.
  static let most: Int64 = 30_000
  /// Beyond it the log has a warning.
  static let usual: Int64 = 2000
  /// How often the warning is repeated.
  private static let pause: Int64 = 60_000

  enum Verdict: Equatable {
    case fine
    /// It, or the database's, is off by this much.
    case off
    /// The database's: another verifier agrees with this one.
    case databaseIsOff
    /// This verifier's, or the database's: no other verifier agrees with it.
    case aside
  }

  /// One clock by the one that only runs: that it was set shows before any other is asked.
  struct Reading: Sendable {
    /// In milliseconds since 1970.
    let time: Int64
    /// In nanoseconds of CLOCK_MONOTONIC.
    let running: UInt64

    init(_ clock: () -> Int64) { (time, running) = (clock(), sys_monotonic()) }

    /// By how much the clock was set since then, in milliseconds; ahead is above 0. That the
    /// machine slept counts, too.
    func step(since earlier: Reading) -> Int64 {
      time - earlier.time - Int64(clamping: (running &- earlier.running) / 1_000_000)
    }
  }

  private var last = Verdict.fine
  private var said: Int64 = 0

  /// Of a clock that was read before a question, and of the answer's. It is off by half of what the
  /// answer took, at most: that counts for the clock.
  static func offset(_ before: Int64, tookUntil after: Int64, from time: Int64) -> Int64 {
    let half = max(0, min(after - before, Int64(Database.patience))) / 2
    let middle = before + half - time
    return middle.magnitude <= half.magnitude ? 0 : middle > 0 ? middle - half : middle + half
  }

  static func verdict(_ mine: Int64, _ others: [Int64]) -> Verdict {
    if mine.magnitude <= UInt64(usual) { return .fine }
    if mine.magnitude <= UInt64(most) { return .off }
    let isAgreed = others.contains { abs(Double($0) - Double(mine)) <= Double(most) }
    return isAgreed ? .databaseIsOff : .aside
  }

  /// Whether one of these agrees with the database's clock.
  static func agrees(_ others: [Int64]) -> Bool { others.contains { $0.magnitude <= most } }

  /// Goes by it from now on, until the clock is set.
  mutating func look(
    _ database: Database, _ mine: Int64, _ others: [Int64], at reading: Reading
  ) {
    database.meters.note(offset: mine)
    let verdict = Self.verdict(mine, others)
    let (wasAside, step) = database.books.withLock { books in
      defer { (books.isAside, books.compared) = (verdict == .aside, reading) }
      return (books.isAside, books.compared.map { reading.step(since: $0) } ?? 0)
    }
    if step.magnitude > UInt64(Self.most) {
      database.alert(
        "this clock was set \(Self.seconds(step)) s \(step < 0 ? "back" : "forward"), or the "
          + "machine slept: this verifier compares it again")
    }
    if wasAside, verdict != .aside {
      database.note(.notice, LogLine("the clock is right again: logins are verified"))
    }
    let now = reading.time
    let isNew = verdict != last || now < said || now - said >= Self.pause
    last = verdict
    guard isNew, verdict != .fine else { return }
    said = now
    switch verdict {
    case .fine: break
    case .off:
      database.alert(
        "this clock is \(Self.told(mine)) the database's: timedatectl, here and there")
    case .databaseIsOff:
      database.alert(
        "this clock is \(Self.told(mine)) the database's, and another verifier's agrees with this "
          + "one, so these verifiers use their own; "
          + (Self.agrees(others)
            ? "but one agrees with the database: set those that are wrong (timedatectl)"
            : "set the database's (timedatectl there)"))
    case .aside:
      database.alert(
        "this clock is \(Self.told(mine)) the database's, and no other verifier's agrees with it: "
          + "logins are refused here until they agree; set the one that is wrong "
          + "(timedatectl, here and there)")
    }
  }

  /// Which way and by how much, of milliseconds, before the other clock.
  static func told(_ offset: Int64) -> String {
    "\(seconds(offset)) s \(offset < 0 ? "behind" : "ahead of")"
  }

  /// Of milliseconds, rounded.
  private static func seconds(_ offset: Int64) -> UInt64 { (offset.magnitude + 500) / 1000 }
}

extension Database {
  /// Whether this clock was set since it was compared with the others: then this verifier stands
  /// aside until the watch, which this wakes, has compared it again.
  func isClockSet() -> Bool {
    guard let compared = books.withLock({ $0.compared }) else { return false }
    let step = ClockWatch.Reading(clock).step(since: compared)
    guard step.magnitude > UInt64(ClockWatch.most) else { return false }
    let isFirst = books.withLock { books in
      defer { books.isAside = true }
      return !books.isAside
    }
    if isFirst { service_count_up(losses, 1) }
    return true
  }
}
