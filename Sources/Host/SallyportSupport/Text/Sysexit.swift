import Glibc

/// The exit status of the command (sysexits.h).
package enum Sysexit: Int32, Equatable, CaseIterable {
  case done = 0
  /// A code was wrong, or the user answered no.
  case refused = 1
  case usage = 64
  case badData = 65
  /// No such enrollment, store or file.
  case noInput = 66
  case noUser = 67
  case exists = 73
  case inputOutput = 74
  case busy = 75
  case notPermitted = 77
  case configuration = 78
}

extension Sysexit {
  /// Of a file on which a system call failed.
  package init(errno number: Int32) {
    self =
      switch number {
      case EEXIST: .exists
      case ENOENT, ENOTDIR: .noInput
      case EACCES, EPERM: .notPermitted
      case _: .inputOutput
      }
  }
}
