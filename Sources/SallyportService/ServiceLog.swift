import CService
import Glibc
import SallyportCore
package import SallyportLogin
import SallyportThreads

/// A service's lines in the log of the system.
package enum ServiceLog {
  /// Before the first line, which the name begins.
  package static func open(as name: StaticString) {
    // SAFETY: a text that ends with NUL and lives for ever.
    unsafe service_open_log(
      UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self))
  }

  package static func error(_ text: String) { write(LOG_ERR, text) }
  package static func info(_ text: String) { write(LOG_INFO, text) }

  /// To standard error as well, for whoever starts the service by hand.
  package static func fatal(_ text: String, of program: StaticString) {
    error(text)
    let line = Array("\(program): \(text)\n".utf8)
    // SAFETY: the bytes live for the call.
    _ = unsafe Glibc.write(2, line, line.count)
  }

  /// A line of a login.
  package static func write(_ level: LogLevel, _ line: LogLine) {
    write(level.rawValue, line.bytes)
  }

  private static func write(_ level: Int32, _ text: String) {
    write(level, escaped(Array(text.utf8), limit: 500))
  }

  private static func write(_ level: Int32, _ text: [UInt8]) {
    let line = text + [0]
    // SAFETY: a C string that lives for the call.
    unsafe line.withUnsafeBytes { bytes in
      guard let base = unsafe bytes.bindMemory(to: CChar.self).baseAddress else { return }
      unsafe service_log(level, base)
    }
  }
}

/// How many lines that cost nobody anything are written of one user: sixty a minute. More would
/// reach the limit that the log of the system has for all lines of the service. What lets in, or
/// costs something of a budget, is always written; and the next line that is written says how many
/// were left out before it.
final class LineAllowance: Sendable {
  private static let (lines, time) = (60, UInt64(60_000_000_000))
  private let users = Locked<[UInt32: Count]>([:])

  private struct Count {
    var lines = 0
    var leftOut = 0
    var since: UInt64
  }

  /// The line to be written; nil: none.
  func line(_ line: LogLine, of user: UInt32, isCostless: Bool) -> LogLine? {
    guard let leftOut = leftOut(of: user, isCostless: isCostless) else { return nil }
    var line = line
    if leftOut > 0 { line.add(" left_out=", leftOut) }
    return line
  }

  private func leftOut(of user: UInt32, isCostless: Bool) -> Int? {
    users.withLock { users in
      let now = service_monotonic()
      if users.count > 1000 {
        users = users.filter { now - $0.value.since < LineAllowance.time || $0.value.leftOut > 0 }
      }
      var count = users[user] ?? Count(since: now)
      defer { users[user] = count }
      if now - count.since >= LineAllowance.time { (count.lines, count.since) = (0, now) }
      if isCostless {
        count.lines += 1
        guard count.lines <= LineAllowance.lines else {
          count.leftOut += 1
          return nil
        }
      }
      defer { count.leftOut = 0 }
      return count.leftOut
    }
  }
}

extension Outcome {
  /// Whether it let nobody in, and spent nothing of a budget.
  var isCostless: Bool {
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
      let now = service_monotonic()
      guard now >= state.next else { return nil }
      defer { state = (0, now + 10_000_000_000) }
      return state.count
    }
    guard let count else { return }
    ServiceLog.error(count == 1 ? text() : "\(text()) (\(count) times)")
  }
}
