import Glibc
import SallyportDoctor
import SallyportSupport

/// Our file in sshd's configuration directory, replaced in one step.
struct SSHFile {
  /// Put in front of the path; empty on this machine.
  let root: String

  private var path: String { root + SSHStage.path }

  /// Returns nil if the file does not exist.
  func text() throws(SSHTrouble) -> String? {
    do throws(SystemError) {
      let file = try OpenFile(path, O_RDONLY | O_NONBLOCK)
      return String(decoding: try file.bytes(65536), as: UTF8.self)
    } catch {
      if error.number == ENOENT { return nil }
      throw SSHFile.failed(error)
    }
  }

  /// Writes the file, or removes it if `text` is nil, and syncs its directory.
  func put(_ text: String?) throws(SSHTrouble) {
    let old = try self.text()
    guard old != text else { return }
    try filing { () throws(SystemError) in
      guard let text else { return try removeFileForGood(path) }
      // sshd's `Include` matches no name that begins with a dot, as that of the new file does.
      try replaceFile(path, isNew: old == nil, mode: 0o644, Array(text.utf8))
    }
  }

  /// Puts the old text back and returns the error to report. `running` is the sshd that was told to
  /// reload, nil if none was; `wanted` is what it offered, if that differs from what the old text
  /// says.
  func takenBack(
    _ text: String?, _ running: RunningSSHD?, wanted: Set<String>? = nil, _ error: CommandError
  ) -> CommandError {
    do throws(SSHTrouble) {
      try put(text)
      try running?.reload([], wanted: wanted)
      return error
    } catch let second {
      return CommandError(
        .configuration,
        "\(SSHStage.path) was taken back, and sshd does not run as before: \(second.message.text)",
        hints: [
          "systemctl restart ssh  # keep this shell open", "sallyport doctor --service sshd",
        ])
    }
  }

  private func filing(_ step: () throws(SystemError) -> Void) throws(SSHTrouble) {
    try rethrow(step) { SSHFile.failed($0) }
  }

  private static func failed(_ error: SystemError) -> SSHTrouble {
    SSHTrouble(.inputOutput, "\(SSHStage.path): \(errnoText(error.number))")
  }
}
