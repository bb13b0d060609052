import Glibc
import SallyportDoctor
import SallyportFiles

/// Our file among sshd's settings, replaced in one step.
struct SSHFile {
  /// In front of its path; empty on this machine.
  let root: String

  private var path: String { root + SSHStage.path }
  /// sshd reads no file whose name begins with a dot.
  private var temporary: String {
    "\(parentDirectory(of: path))/.00-sallyport.conf.sallyport-new"
  }

  /// nil where there is none.
  func text() throws(SSHTrouble) -> String? {
    do throws(SystemError) {
      let file = try OpenFile(path, O_RDONLY | O_NONBLOCK)
      return String(decoding: try file.bytes(65536), as: UTF8.self)
    } catch {
      if error.number == ENOENT { return nil }
      throw .system(path: SSHStage.path, errno: error.number)
    }
  }

  /// Writes the file, or removes it where `text` is nil; on the disk with its name.
  func put(_ text: String?) throws(SSHTrouble) {
    let old = try self.text()
    guard old != text else { return }
    try filing { () throws(SystemError) in
      if let text {
        if !removeFile(temporary), errno != ENOENT { throw .last }
        try putFile(
          path, through: temporary, isNew: old == nil, Ownership(mode: 0o644), Array(text.utf8))
      } else if !removeFile(path) {
        throw .last
      }
      try syncParent(of: path)
    }
  }

  /// What is told after an error, with the old text in its place. `running`: the sshd that was told
  /// to read another one; `wanted`: what it offered, where that is not what the old text says.
  func takenBack(
    _ text: String?, _ running: RunningSSHD?, wanted: Set<String>? = nil, _ error: CommandError
  ) -> CommandError {
    do throws(SSHTrouble) {
      try put(text)
      try running?.reload([], wanted: wanted)
      return error
    } catch let second {
      return .ssh(.notTakenBack(path: SSHStage.path, second))
    }
  }

  private func filing(_ step: () throws(SystemError) -> Void) throws(SSHTrouble) {
    do throws(SystemError) {
      try step()
    } catch {
      throw .system(path: SSHStage.path, errno: error.number)
    }
  }
}
