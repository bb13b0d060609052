import Glibc
import SallyportText

/// What came of a person's editing.
enum EditorStatus: Equatable {
  case done
  /// It says that nothing is to be kept; 127: the shell did not find it.
  case failed(Int32)
  case cannotRun(errno: Int32)
}

/// The editor that a person likes.
enum Editor {
  /// Where nobody says which: Debian's choice, or the one that every system has.
  private static let usual = "$(command -v sensible-editor || echo vi)"

  /// Runs it on a file, in this process's terminal, and waits for it.
  static func run(_ path: String) -> EditorStatus {
    let command = variable("VISUAL") ?? variable("EDITOR") ?? usual
    // system(3) leaves to the editor what the keyboard sends meanwhile.
    // SAFETY: the C string lives for the call.
    let status = unsafe system("\(command) \(shellQuoted(path))")
    if status < 0 { return .cannotRun(errno: errno) }
    if status == 0 { return .done }
    return .failed(status & 0x7f == 0 ? status >> 8 & 0xff : 128 + (status & 0x7f))
  }

  /// An empty one counts as none.
  private static func variable(_ name: String) -> String? {
    // SAFETY: the environment is not changed by anybody while it is read; the text is copied.
    let value = unsafe getenv(name).map { unsafe String(cString: $0) }
    return value.flatMap { $0.isEmpty ? nil : $0 }
  }
}
