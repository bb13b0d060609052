import CSystem

#if canImport(Glibc)
  import Glibc
#endif

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
    // SAFETY: the C strings live for the call.
    let status = unsafe command.withCString { command in
      unsafe path.withCString { unsafe edit_run(command, $0) }
    }
    return status == 0 ? .done : status > 0 ? .failed(status) : .cannotRun(errno: -status)
  }

  /// An empty one counts as none.
  private static func variable(_ name: String) -> String? {
    // SAFETY: the environment is not changed by anybody while it is read; the text is copied.
    let value = unsafe getenv(name).map { unsafe String(cString: $0) }
    return value.flatMap { $0.isEmpty ? nil : $0 }
  }
}
