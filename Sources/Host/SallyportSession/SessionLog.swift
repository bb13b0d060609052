internal import CService
import Glibc
internal import SallyportAdministration
internal import SallyportCore
package import SallyportLogin
internal import SallyportSystem

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

  /// Why the user reads English where the policy sets another language.
  static func brokenCatalog(_ trouble: StoreTrouble) -> LogLine {
    var line = LogLine("language: ")
    line.add(trouble)
    line.add("; English is used")
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

  /// Why a helper may do nothing, with what was found of the one whom he named.
  static func denied(
    _ helper: UserName, _ refusal: StaticString, _ verb: HelpVerb, for name: UserName,
    because why: String
  ) -> LogLine {
    var line = denied(helper.bytes, refusal)
    line.add(" act=")
    line.add(verb.name)
    line.add(" for=")
    line.add(field: name.bytes)
    if !why.isEmpty {
      line.add(" why=")
      line.add(field: Array(why.utf8))
    }
    return line
  }

  /// A helper did as much in a day as he may, and wants more.
  static func tooMuchHelp(by helper: UserName) -> LogLine {
    var line = LogLine("ALERT: a helper wants to do more than ten acts in a day:")
    line.add(" by=")
    line.add(field: helper.bytes)
    return line
  }

  /// The status of somebody was shown to a helper.
  static func shown(_ person: UserName, to helper: UserName) -> LogLine {
    var line = LogLine("status shown to a helper: by=")
    line.add(field: helper.bytes)
    line.add(" for=")
    line.add(field: person.bytes)
    return line
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
