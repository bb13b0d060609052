import Glibc
import PAMStack
import SallyportFiles

/// One command at a time changes the files of PAM and sshd. The file is root's alone: whoever may
/// open a file may hold its lock.
struct PamLock: ~Copyable {
  static let path = "/run/sallyport-pam.lock"
  private let file: OpenFile

  /// `root`: in front of the path; empty on this machine.
  init(root: String) throws(CommandError) {
    do throws(SystemError) {
      let opened = try OpenFile(root + PamLock.path, O_RDWR | O_CREAT | O_NOFOLLOW)
      if flock(opened.number, LOCK_EX | LOCK_NB) != 0 { throw .last }
      file = opened
    } catch {
      let isHeld = error.number == EWOULDBLOCK
      throw .stack(
        isHeld
          ? .busy(path: "/etc/pam.d") : .system(path: PamLock.path, errno: error.number))
    }
  }

  /// Holds the lock until here.
  consuming func end() {}
}

extension Context {
  /// Until the lock ends no other command changes the same files, and no signal that can be held
  /// back ends this one between two steps.
  func lockPam() throws(CommandError) -> PamLock {
    terminal.watchForInterruption()
    return try PamLock(root: stacks.root)
  }
}
