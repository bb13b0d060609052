import CService
import Glibc
import SallyportSupport

extension PrivateFile {
  /// While no other process of a verifier changes files beside this one: a service and a command
  /// may want to at once. `flock` where another one does not let go within a second.
  static func alone<R>(
    beside path: String, _ body: () throws(Fault) -> R
  ) throws(Fault) -> R {
    let directory: OpenFile
    do throws(SystemError) {
      directory = try OpenFile(parentDirectory(of: path), O_RDONLY | O_DIRECTORY)
    } catch {
      throw .system("open", errno: error.number)
    }
    for _ in 0..<100 {
      // It is let go with the descriptor.
      if flock(directory.number, LOCK_EX | LOCK_NB) == 0 { return try body() }
      guard errno == EWOULDBLOCK || errno == EINTR else { break }
      _ = poll(nil, 0, 10)
    }
    throw .system("flock", errno: errno)
  }
}
