import Glibc
import PAMStack
import SallyportSupport

/// The lock that lets only one command at a time change the files of PAM and sshd. Only root can
/// open the file, since anyone who can open it could hold its lock.
struct PamLock: ~Copyable {
  static let path = "/run/sallyport-pam.lock"
  /// A command that holds it may wait ten seconds for each of several programs.
  private static let tries = 1200
  private let file: OpenFile

  /// `root` is put in front of the path; empty on this machine. Throws `busy` if another command
  /// holds the lock.
  init(root: String, waiting: Bool) throws(CommandError) {
    do throws(SystemError) {
      let opened = try OpenFile(root + PamLock.path, O_RDWR | O_CREAT | O_NOFOLLOW)
      var tries = waiting ? PamLock.tries : 1
      while flock(opened.number, LOCK_EX | LOCK_NB) != 0 {
        let error = SystemError.last
        tries -= 1
        if error.number != EWOULDBLOCK || tries == 0 { throw error }
        usleep(100_000)
      }
      file = opened
    } catch {
      let isHeld = error.number == EWOULDBLOCK
      throw .stack(
        isHeld
          ? .busy(path: "/etc/pam.d") : .system(path: PamLock.path, errno: error.number))
    }
  }

  /// Keeps the lock until this call.
  consuming func end() {}
}

extension Context {
  /// Takes the lock, and holds back the signals that would end the command between two steps.
  func lockPam(waiting: Bool = false) throws(CommandError) -> PamLock {
    terminal.watchForInterruption()
    return try PamLock(root: stacks.root, waiting: waiting)
  }
}
