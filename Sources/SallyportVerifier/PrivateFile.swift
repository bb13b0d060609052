import Glibc
package import OneTimePassword
import SallyportSystem

/// A file of keys: its owner's alone, and never half there.
package enum PrivateFile {
  /// More than any file of keys has.
  package static let longest = 4096

  /// All of it. The file must be the effective user's, and nobody else's to read.
  package static func read(_ path: String) throws(FleetKey.FileFault) -> Secret {
    // SAFETY: the C string lives for the call.
    let file = unsafe Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw .system("open", errno: errno) }
    defer { close(file) }
    var facts = stat()
    // SAFETY: filled within the call.
    guard unsafe fstat(file, &facts) == 0 else { throw .system("fstat", errno: errno) }
    guard facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == geteuid(),
      facts.st_mode & 0o077 == 0, facts.st_size <= longest
    else { throw .unsafe }
    guard let whole = Secret(count: Int(facts.st_size)) else { throw .outOfMemory }
    // SAFETY: the buffer lives for the call.
    let done = unsafe whole.withMutableBytes { unsafe Glibc.read(file, $0.baseAddress, $0.count) }
    guard done == whole.count else { throw .system("read", errno: done < 0 ? errno : EIO) }
    return whole
  }

  /// A new file of mode 0600 with these bytes, on disk with its name before this returns. `exists`
  /// where there is one with others; one with the same is left.
  package static func make(_ path: String, _ bytes: Secret) throws(FleetKey.FileFault) {
    let half = path + ".new"
    // SAFETY: the C strings live for the calls. What is there is left of a crash.
    _ = unsafe unlink(half)
    try write(half, bytes)
    let isMade = unsafe link(half, path) == 0
    let number = errno
    _ = unsafe unlink(half)
    if !isMade {
      guard number == EEXIST else { throw .system("link", errno: number) }
      guard constantTimeEquals(try read(path), bytes) else { throw .exists }
    }
    try syncDirectory(of: path)
  }

  private static func write(_ path: String, _ bytes: Secret) throws(FleetKey.FileFault) {
    // SAFETY: the C string lives for the call.
    let file = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw .system("open", errno: errno) }
    defer { close(file) }
    // SAFETY: the buffer lives for the call.
    let done = unsafe bytes.withBytes { unsafe Glibc.write(file, $0.baseAddress, $0.count) }
    guard done == bytes.count, fsync(file) == 0 else {
      let number = done < 0 || done == bytes.count ? errno : ENOSPC
      // SAFETY: as above.
      _ = unsafe unlink(path)
      throw .system("write", errno: number)
    }
  }

  private static func syncDirectory(of path: String) throws(FleetKey.FileFault) {
    let name = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      .joined(separator: "/")
    // SAFETY: the C string lives for the call.
    let directory = unsafe Glibc.open(
      path.hasPrefix("/") && name.isEmpty ? "/" : name.isEmpty ? "." : name,
      O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { throw .system("open", errno: errno) }
    defer { close(directory) }
    guard fsync(directory) == 0 else { throw .system("fsync", errno: errno) }
  }
}
