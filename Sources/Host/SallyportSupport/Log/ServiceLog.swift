import CService
import Glibc
import SallyportCore
package import SallyportLogin

/// Writes a line of a login.
package typealias LogWriter = @Sendable (LogLevel, LogLine) -> Void

/// A service's lines in the log of the system.
package enum ServiceLog {
  /// Before the first line, which the name begins.
  package static func open(as name: StaticString, options: Int32 = LOG_PID) {
    // SAFETY: a text that ends with NUL and lives for ever.
    unsafe service_open_log(
      UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self), options)
  }

  package static func error(_ text: String) { write(LOG_ERR, text) }
  package static func info(_ text: String) { write(LOG_INFO, text) }

  /// To standard error as well, for an administrator who starts the service by hand.
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

  /// With a priority of syslog(3).
  package static func write(_ level: Int32, _ text: String, limit: Int = 500) {
    write(level, escaped(Array(text.utf8), limit: limit))
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
