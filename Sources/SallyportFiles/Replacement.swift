package import Glibc

/// Makes a file of these bytes where nothing has that name; on the disk, with its name, when this
/// returns. Where it throws there is no such file.
package func createFile(_ path: String, _ bytes: some Content)
  throws(SystemError)
{
  try fill(path, bytes, Ownership(mode: 0o600))
  do throws(SystemError) {
    try syncParent(of: path)
  } catch {
    removeFile(path)
    throw error
  }
}

/// Whose a file is, and who may do what with it.
package struct Ownership {
  /// nil: whoever makes it.
  package var owner: (user: uid_t, group: gid_t)?
  package var mode: mode_t

  package init(owner: (user: uid_t, group: gid_t)? = nil, mode: mode_t) {
    (self.owner, self.mode) = (owner, mode)
  }

  package init(like facts: stat, mode: mode_t) {
    self.init(owner: (facts.st_uid, facts.st_gid), mode: mode)
  }
}

/// Puts a file of these bytes in the place of `path` in one step, through `temporary`, which is
/// beside it and not there: over what has that name, or, with `isNew`, only where nothing does
/// (EEXIST). The directory has yet to be synced.
package func putFile(
  _ path: String, through temporary: String, isNew: Bool, _ ownership: Ownership,
  _ bytes: some Content
) throws(SystemError) {
  try fill(temporary, bytes, ownership)
  // SAFETY: the C strings live for the calls.
  let result = unsafe isNew ? link(temporary, path) : rename(temporary, path)
  let error = SystemError.last
  if isNew || result != 0 { removeFile(temporary) }
  if result != 0 { throw error }
}

/// A new file with this content, on the disk; its name is not yet.
private func fill(
  _ path: String, _ bytes: some Content, _ ownership: Ownership
) throws(SystemError) {
  let file = try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
  do throws(SystemError) {
    let number = file.number
    // SAFETY: the bytes live for the call.
    try unsafe bytes.withBytes { unsafe writeAll($0, to: number) }.get()
    if let owner = ownership.owner, fchown(file.number, owner.user, owner.group) != 0 {
      throw .last
    }
    if fchmod(file.number, ownership.mode) != 0 { throw .last }
    try file.sync()
    try file.finish()
  } catch {
    removeFile(path)
    throw error
  }
}

/// The names in the directory of `path` outlive a power cut.
package func syncParent(of path: String) throws(SystemError) {
  try OpenFile(parentDirectory(of: path), O_RDONLY | O_DIRECTORY).sync()
}

/// As dirname(1).
package func parentDirectory(of path: String) -> String {
  guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
  return slash == path.startIndex ? "/" : String(path[..<slash])
}

/// Whether there was one that is gone.
@discardableResult
package func removeFile(_ path: String) -> Bool {
  // SAFETY: the C string lives for the call.
  unsafe unlink(path) == 0
}
