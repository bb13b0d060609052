import CCommand
import Glibc

extension OpenFile {
  /// Opens a regular file to read it; anything else is not opened, as opening a device or a FIFO
  /// may already have an effect. With `reader`, in the caller's place, opens what that user may
  /// read. Throws `notRegular`, or ELOOP for a link that is not followed.
  package static func regular(
    _ path: String, following: Bool = true, as reader: FileReader? = nil
  ) throws(SystemError) -> OpenFile {
    let rights: FileRights? =
      if let reader, geteuid() == 0, reader.user != 0 { try FileRights(reader) } else { nil }
    defer { rights?.putBack() }
    let last = following ? 0 : O_NOFOLLOW
    let found = try OpenFile(path, open_path_only | last)
    let facts = try found.facts()
    if facts.st_mode & S_IFMT == S_IFLNK { throw SystemError(ELOOP) }
    guard facts.isRegular else { throw .notRegular }
    do throws(SystemError) {
      // The very file that was looked at.
      return try OpenFile("/proc/self/fd/\(found.number)", O_RDONLY | O_NONBLOCK)
    } catch {
      // In a root directory without /proc.
      guard error.number == ENOENT else { throw error }
    }
    let file = try OpenFile(path, O_RDONLY | O_NONBLOCK | last)
    let now = try file.facts()
    guard now.st_ino == facts.st_ino, now.st_dev == facts.st_dev else { throw .notRegular }
    return file
  }
}

/// A user with whose rights a file is opened, as sshd does before it opens a file in a home.
package struct FileReader: Equatable, Sendable {
  package let user: UInt32
  package let group: UInt32
  package var groups: [UInt32]

  package init(user: UInt32, group: UInt32, groups: [UInt32] = []) {
    (self.user, self.group, self.groups) = (user, group, groups)
  }
}
