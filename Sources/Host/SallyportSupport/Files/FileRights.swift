import CCommand
import Glibc

/// The file access rights of this thread, while it opens files with those of a user.
struct FileRights {
  private let user: UInt32
  private let group: UInt32
  private let groups: [gid_t]

  /// Not a valid ID: setting it changes nothing, and returns the present one.
  private static let unchanged = UInt32.max

  /// From now on, opens files as this user, with the user's groups. If it throws, nothing has
  /// changed. Only root can do this.
  init(_ reader: FileReader) throws(SystemError) {
    self.user = rights_set_user(FileRights.unchanged)
    self.group = rights_set_group(FileRights.unchanged)
    groups = try FileRights.groups()
    let problem = FileRights.setGroups(reader.groups)
    if problem != 0 { throw SystemError(problem) }
    _ = rights_set_group(reader.group)
    _ = rights_set_user(reader.user)
    let isDone =
      rights_set_user(FileRights.unchanged) == reader.user
      && rights_set_group(FileRights.unchanged) == reader.group
    if isDone { return }
    putBack()
    throw SystemError(EPERM)
  }

  /// Ends the process if the rights cannot be restored, as it could do harm with another user's.
  func putBack() {
    _ = rights_set_user(user)
    _ = rights_set_group(group)
    guard rights_set_user(FileRights.unchanged) == user else { abort() }
    if FileRights.setGroups(groups) != 0 { abort() }
  }

  private static func setGroups(_ groups: [gid_t]) -> Int32 {
    // SAFETY: the list lives for the call.
    unsafe groups.withUnsafeBufferPointer { unsafe rights_set_groups($0.count, $0.baseAddress) }
  }

  private static func groups() throws(SystemError) -> [gid_t] {
    let count = getgroups(0, nil)
    var groups = [gid_t](repeating: 0, count: Int(max(count, 0)))
    // SAFETY: the list has as many entries as are passed.
    guard count >= 0, unsafe getgroups(count, &groups) == count else {
      throw .last
    }
    return groups
  }
}
