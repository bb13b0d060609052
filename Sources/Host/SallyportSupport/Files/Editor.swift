import Glibc

/// How an editor ended.
package enum EditorStatus: Equatable {
  case done
  /// The exit status, not 0; 127 if the shell did not find the editor.
  case failed(Int32)
  case cannotRun(errno: Int32)
}

/// Runs the user's editor.
package enum Editor {
  /// If neither variable is set: Debian's choice, or the editor that every system has.
  private static let usual = "$(command -v editor || echo vi)"

  /// Runs the editor on a file, on this process's terminal, and waits for it.
  package static func run(_ path: String) -> EditorStatus {
    let set = [environment("VISUAL"), environment("EDITOR")].compactMap { $0 }
    let command = set.first { !$0.isEmpty } ?? usual
    // While it waits, system(3) ignores SIGINT and SIGQUIT, which are meant for the editor.
    // SAFETY: the C string lives for the call.
    let status = unsafe system("\(command) \(quotedForPOSIX(path))")
    if status < 0 { return .cannotRun(errno: errno) }
    if status == 0 { return .done }
    return .failed(status & 0x7f == 0 ? status >> 8 & 0xff : 128 + (status & 0x7f))
  }
}

/// The value of a variable of the environment; nil if it is not set.
package func environment(_ name: String) -> String? {
  // SAFETY: nobody changes the environment while it is read; the text is copied.
  unsafe getenv(name).map { unsafe String(cString: $0) }
}
