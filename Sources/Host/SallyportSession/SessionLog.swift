internal import CService
import Glibc
internal import SallyportCore
package import SallyportLogin

/// The session's lines in the log of the system, as `sallyport-session`.
package enum SessionLog {
  /// Before the first line.
  package static func open() {
    let name: StaticString = "sallyport-session"
    // SAFETY: a text that ends with NUL and lives for ever.
    unsafe service_open_log(
      UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self), LOG_PID)
  }

  package static func write(_ level: LogLevel, _ line: LogLine) {
    let text = line.bytes + [0]
    // SAFETY: a C string that lives for the call.
    unsafe text.withUnsafeBytes { bytes in
      guard let base = unsafe bytes.bindMemory(to: CChar.self).baseAddress else { return }
      unsafe service_log(level.rawValue, base)
    }
  }
}

extension LogLine {
  /// Why a user who connected is not served.
  static func notServed(_ user: UInt32, _ why: StaticString) -> LogLine {
    var line = LogLine("not served: ")
    line.add(why)
    line.add(" uid=", Int(user))
    return line
  }

  /// The code was accepted, and the change begins.
  static func begun(
    _ user: [UInt8], action: StaticString, _ names: [Label], by process: Int32
  ) -> LogLine {
    var line = LogLine("enrollment about to change in a session: action=")
    line.add(facts: user, action, names, process)
    return line
  }

  /// A change that the user made of his own enrollment. It begins as the lines of a login that
  /// changes one: alerts look for that.
  static func changed(
    _ user: [UInt8], action: StaticString, _ names: [Label], by process: Int32
  ) -> LogLine {
    var line = LogLine("enrollment changed in a session: action=")
    line.add(facts: user, action, names, process)
    return line
  }

  private mutating func add(
    facts user: [UInt8], _ action: StaticString, _ names: [Label], _ process: Int32
  ) {
    add(action)
    add(user: user)
    for name in names { add(authenticator: name) }
    add(" pid=", Int(process))
  }

  /// The password, or the account, was refused by the stack `sallyport`.
  static func passwordRefused(_ user: [UInt8], _ code: Int32) -> LogLine {
    var line = LogLine("refused: reason=password")
    line.add(user: user)
    line.add(" code=", Int(code))
    return line
  }

  /// Why the user may change nothing.
  static func denied(_ user: [UInt8], _ refusal: StaticString) -> LogLine {
    var line = LogLine("denied: reason=")
    line.add(refusal)
    line.add(user: user)
    return line
  }
}
