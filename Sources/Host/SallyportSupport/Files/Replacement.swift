package import Glibc

/// Creates a file with these bytes, synced with its name. Throws EEXIST if the name is taken; if it
/// throws, no file remains.
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

/// Makes a file that nothing may write over, such as a key: only its owner's until it is whole, in
/// its place in one step, and on the disk with its name when this returns. Throws EEXIST where
/// there is one; what a crash left of an earlier try goes. If it throws, it has made none.
package func makeFile(_ path: String, mode: mode_t = 0o600, _ bytes: some Content)
  throws(SystemError)
{
  let half = path + ".new"
  let file = try lockedFile(half)
  defer { removeFile(half) }
  let directory = try OpenFile(parentDirectory(of: path), O_RDONLY | O_DIRECTORY)
  guard (try? facts(of: path)) == nil else {
    // Its name may be as new as a crash.
    try directory.sync()
    throw SystemError(EEXIST)
  }
  if ftruncate(file.number, 0) != 0 { throw .last }
  try write(bytes, to: file, Ownership(mode: mode))
  // SAFETY: the C strings live for the call.
  if unsafe link(half, path) != 0 { throw .last }
  do throws(SystemError) {
    try directory.sync()
  } catch {
    removeFile(path)
    throw error
  }
}

/// A file that one at a time writes, and removes before it unlocks it: a process that waited for
/// it may find that it is gone, and tries again. In a directory that others can read, they could
/// hold a lock on that, but not on a file of its owner's alone. Throws EAGAIN if another has it and
/// this one is not `waiting`.
package func lockedFile(_ path: String, waiting: Bool = true) throws(SystemError) -> OpenFile {
  while true {
    let file = try OpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK)
    if waiting {
      // Where the file system has no locks there is no waiting.
      while flock(file.number, LOCK_EX) != 0, errno == EINTR {}
    } else if flock(file.number, LOCK_EX | LOCK_NB) != 0 {
      throw .last
    }
    let own = try file.facts()
    guard own.isRegular else { throw .notRegular }
    if let named = try? facts(of: path), named.st_ino == own.st_ino, named.st_dev == own.st_dev {
      return file
    }
  }
}

/// The owner and the mode of a file.
package struct Ownership {
  /// nil for the user who creates it.
  package var owner: (user: uid_t, group: gid_t)?
  package var mode: mode_t

  package init(owner: (user: uid_t, group: gid_t)? = nil, mode: mode_t) {
    (self.owner, self.mode) = (owner, mode)
  }

  package init(like facts: stat, mode: mode_t) {
    self.init(owner: (facts.st_uid, facts.st_gid), mode: mode)
  }
}

/// Puts a file with these bytes at `path` in one step, through `temporary`, a name in the same
/// directory that must not exist. Replaces what is there, unless `isNew`: then it throws EEXIST.
/// The caller syncs the directory.
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

/// The hidden name beside a file for what is to take its place; what a kill left there goes.
package func freedName(beside path: String) throws(SystemError) -> String {
  let name = path.split(separator: "/").last ?? ""
  let temporary = "\(parentDirectory(of: path))/.\(name).sallyport-new"
  if !removeFile(temporary), errno != ENOENT { throw .last }
  return temporary
}

/// As `putFile`, through that name, and with the directory synced. The caller has a lock.
package func replaceFile(
  _ path: String, isNew: Bool = false, mode: mode_t = 0o600, _ bytes: some Content
) throws(SystemError) {
  try putFile(
    path, through: try freedName(beside: path), isNew: isNew, Ownership(mode: mode), bytes)
  try syncParent(of: path)
}

/// Removes a file, which need not be there, and syncs the directory.
package func removeFileForGood(_ path: String) throws(SystemError) {
  if !removeFile(path), errno != ENOENT { throw .last }
  try syncParent(of: path)
}

/// Creates a file with this content and syncs it, but not its name.
private func fill(
  _ path: String, _ bytes: some Content, _ ownership: Ownership
) throws(SystemError) {
  let file = try OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
  do throws(SystemError) {
    try write(bytes, to: file, ownership)
    try file.finish()
  } catch {
    removeFile(path)
    throw error
  }
}

/// Writes the content and syncs it.
private func write(_ bytes: some Content, to file: borrowing OpenFile, _ ownership: Ownership)
  throws(SystemError)
{
  let number = file.number
  // SAFETY: the bytes live for the call.
  try unsafe bytes.withBytes { unsafe writeAll($0, to: number) }.get()
  if let owner = ownership.owner, fchown(number, owner.user, owner.group) != 0 { throw .last }
  if fchmod(number, ownership.mode) != 0 { throw .last }
  try file.sync()
}

/// Syncs the names in the directory of `path`.
package func syncParent(of path: String) throws(SystemError) {
  try OpenFile(parentDirectory(of: path), O_RDONLY | O_DIRECTORY).sync()
}

/// The directory of a path, as dirname(1) prints it.
package func parentDirectory(of path: String) -> String {
  guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
  return slash == path.startIndex ? "/" : String(path[..<slash])
}

/// Returns whether the file existed and was removed; errno is set otherwise.
@discardableResult
package func removeFile(_ path: String) -> Bool {
  // SAFETY: the C string lives for the call.
  unsafe unlink(path) == 0
}
