import Glibc
package import OneTimePassword
import SallyportSupport
import SallyportSystem

/// A file of keys: only its owner can read it, and it is written atomically.
package enum PrivateFile {
  /// More than any file of keys has.
  package static let longest = 4096

  /// The whole content. Only the effective user may own and read the file.
  package static func read(_ path: String) throws(FleetKey.FileFault) -> Secret {
    // SAFETY: the C string lives for the call.
    let file = unsafe Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw .system("open", errno: errno) }
    defer { close(file) }
    var facts = stat()
    // SAFETY: filled within the call.
    guard unsafe fstat(file, &facts) == 0 else { throw .system("fstat", errno: errno) }
    guard facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == geteuid(),
      facts.st_mode & 0o077 == 0
    else { throw .unsafe }
    guard facts.st_size <= longest else { throw .damaged }
    guard let whole = Secret(count: Int(facts.st_size)) else { throw .outOfMemory }
    // SAFETY: the buffer lives for the call.
    let done = unsafe whole.withMutableBytes { unsafe Glibc.read(file, $0.baseAddress, $0.count) }
    guard done == whole.count else { throw .system("read", errno: done < 0 ? errno : EIO) }
    return whole
  }

  /// A new file of mode 0600 with these bytes, on disk with its name before this returns. `exists`
  /// where there is one with others; one with the same is left.
  package static func make(_ path: String, _ bytes: Secret) throws(FleetKey.FileFault) {
    do throws(SystemError) {
      try makeFile(path, bytes)
    } catch {
      guard error.number == EEXIST else { throw .system("write", errno: error.number) }
      guard constantTimeEquals(try read(path), bytes) else { throw .exists }
    }
  }
}
