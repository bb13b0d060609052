internal import CSystem
internal import OneTimePassword
internal import SallyportCore

// Creating and wiping files, for enrolling and managing; a login needs none of it.

/// A directory of the store that is being created, under a name that belongs to no user.
final class Unfinished {
  let name: Path
  /// Whether it was created without the lock of all commands: then the directory is locked while
  /// this object exists.
  private let isAlone: Bool
  private var lock: Descriptor?

  init(alone isAlone: Bool = false) throws(StoreTrouble) {
    self.isAlone = isAlone
    name = Leftover.named(
      isAlone ? Leftover.unfinishedAlone : Leftover.unfinished,
      hexadecimal(try Random.identifier()))
  }

  /// Creates the directory and the files in it, and syncs them unless the caller syncs many at
  /// once. If it throws, nothing remains.
  func make(
    in parent: borrowing Descriptor, _ path: Path, enrollment: Secret, state: [UInt8]?,
    synced: Bool = true
  ) throws(StoreTrouble) {
    let path = path / name
    // SAFETY: the C string lives for the call.
    try check(unsafe sys_make_directory(parent.number, name.cString), "mkdir", path)
    do throws(StoreTrouble) {
      let directory = try openDirectory(name, in: parent, path)
      if isAlone { try check(sys_lock_directory(directory.number), "flock", path) }
      try check(sys_set_mode(directory.number, 0o700), "fchmod", path)
      try write(enrollment, as: StoredFile.enrollment, in: directory, path, synced)
      if let state { try write(state, as: StoredFile.state, in: directory, path, synced) }
      if synced { try check(sys_sync(directory.number), "fsync", path) }
      if isAlone { lock = consume directory }
    } catch {
      wipe(name, in: parent)
      throw error
    }
  }
}

/// Opens a directory of the store in which files are created or removed.
func openDirectory(_ name: Path, in parent: borrowing Descriptor, _ path: Path)
  throws(StoreTrouble) -> Descriptor
{
  do throws(Errno) {
    return try Descriptor(name, sys_as_directory, in: parent.number)
  } catch {
    throw directoryTrouble(error, name, in: parent.number, path)
  }
}

@inline(never) func write(
  _ content: Secret, as name: Path, in directory: borrowing Descriptor, _ path: Path,
  _ synced: Bool = true
) throws(StoreTrouble) {
  let file = try newFile(name, in: directory, path / name)
  // SAFETY: the buffer lives for the call.
  let result = unsafe content.withBytes { unsafe put($0, into: file.number, synced) }
  try check(result, "write", path / name)
}

@inline(never) func write(
  _ content: [UInt8], as name: Path, in directory: borrowing Descriptor, _ path: Path,
  _ synced: Bool = true
) throws(StoreTrouble) {
  let file = try newFile(name, in: directory, path / name)
  // SAFETY: the buffer lives for the call.
  let result = unsafe content.withUnsafeBytes { unsafe put($0, into: file.number, synced) }
  try check(result, "write", path / name)
}

/// An empty file that only its owner can open, whatever the umask. On btrfs it will need no free
/// block when it is changed in place; that is best effort, as logins work without it.
func newFile(_ name: Path, in directory: borrowing Descriptor, _ path: Path)
  throws(StoreTrouble) -> Descriptor
{
  let file: Descriptor
  do throws(Errno) {
    file = try Descriptor(name, sys_as_new_file, in: directory.number)
  } catch {
    throw path.trouble("open", error.code)
  }
  try check(sys_set_mode(file.number, 0o600), "fchmod", path)
  _ = sys_no_copy_on_write(file.number)
  return file
}

/// Writes all bytes at the start of a file, and syncs it if `synced`. Returns 0 or a negative
/// errno.
@unsafe private func put(
  _ buffer: UnsafeRawBufferPointer, into file: Int32, _ synced: Bool = true
) -> Int64 {
  guard let base = buffer.baseAddress else { return 0 }
  var count = 0
  while count < buffer.count {
    // SAFETY: count < buffer.count, and at most the rest of the buffer is written.
    let done = unsafe sys_write(file, base + count, buffer.count - count, UInt64(count))
    if done < 0 { return done }
    if done == 0 { return -Int64(EIO) }
    count += Int(done)
  }
  return synced ? Int64(sys_sync(file)) : 0
}

/// Overwrites the files in the directory `name` with zeros, in place if the file system does that,
/// and removes it. Best effort: what remains is a leftover, which the next command removes.
func wipe(_ name: Path, in parent: borrowing Descriptor) {
  do throws(StoreTrouble) {
    let directory = try openDirectory(name, in: parent, name)
    for bytes in try entries(of: directory.number, name) {
      let file = Path(bytes)
      zero(file, in: directory)
      // SAFETY: the C string lives for the call.
      _ = unsafe sys_remove_file(directory.number, file.cString)
    }
    // SAFETY: as above.
    _ = unsafe sys_remove_directory(parent.number, name.cString)
  } catch {
    // Not a directory but a file or link that somebody put there.
    // SAFETY: as above.
    _ = unsafe sys_remove_file(parent.number, name.cString)
  }
}

/// Overwrites a file with zeros as above, and removes it.
func wipe(file: Path, in directory: borrowing Descriptor) {
  zero(file, in: directory)
  // SAFETY: the C string lives for the call.
  _ = unsafe sys_remove_file(directory.number, file.cString)
}

/// Does not overwrite a file that has another name elsewhere, as it may belong to somebody else.
private func zero(_ name: Path, in directory: borrowing Descriptor) {
  do throws(Errno) {
    let file = try Descriptor(name, sys_for_updating, in: directory.number)
    if file.facts.kind == sys_regular, file.facts.links == 1 { zero(file) }
  } catch {
    // A file that cannot be opened for writing is only removed.
  }
}

/// Overwrites an open file with zeros, even if its name is gone.
func zero(_ file: borrowing Descriptor) {
  let size = Int(min(file.facts.size, Checks.longestFile))
  let zeros = [UInt8](repeating: 0, count: size)
  // SAFETY: the buffer lives for the call.
  _ = unsafe zeros.withUnsafeBytes { unsafe put($0, into: file.number) }
}

/// Replaces the user's file by a synced one, and wipes the old one.
///
/// First the name that went is synced: after a power cut btrfs else has both, and a file with two
/// names is refused.
func move(
  _ file: Path, from source: borrowing Descriptor, to directory: borrowing OpenUserDirectory
) throws(StoreTrouble) {
  let target = directory.descriptor.number
  let old = try oldFile(file, in: directory)
  // SAFETY: the C strings live for the call.
  let result = unsafe sys_rename(source.number, file.cString, target, file.cString)
  try check(result, "rename", directory.location.path)
  try check(sys_sync(source.number), "fsync", directory.location.path)
  try check(sys_sync(target), "fsync", directory.location.path)
  if let old { zero(old) }
}

/// Returns nil if there is no file that could be wiped.
private func oldFile(_ name: Path, in directory: borrowing OpenUserDirectory)
  throws(StoreTrouble) -> Descriptor?
{
  do throws(Errno) {
    let file = try Descriptor(name, sys_for_updating, in: directory.descriptor.number)
    guard file.facts.kind == sys_regular, file.facts.links == 1 else { return nil }
    return consume file
  } catch {
    return nil
  }
}

/// All names in an open directory except `.` and `..`.
func entries(of directory: Int32, _ path: Path) throws(StoreTrouble) -> [[UInt8]] {
  var error: Int32 = 0
  // SAFETY: the reader is closed below and not used elsewhere; the buffer has the size that is
  // passed.
  guard let reader = unsafe sys_names_open(directory, &error) else {
    throw path.trouble("open", 0 - error)
  }
  defer { unsafe sys_names_close(reader) }
  var names: [[UInt8]] = []
  var buffer = [UInt8](repeating: 0, count: 256)
  while try check(unsafe sys_names_next(reader, &buffer, buffer.count), "readdir", path) == 1 {
    let name = [UInt8](buffer.prefix { $0 != 0 })
    if !same(".", name), !same("..", name) { names.append(name) }
  }
  return names
}
