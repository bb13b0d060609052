import CSealing
import Glibc
package import OneTimePassword
import SallyportSystem

/// The key of a fleet, from which the key of each user's columns is derived (docs/fleet-format.md).
package final class FleetKey: Sendable {
  /// Stands in front of what is sealed with it.
  package let id: UInt32
  private let secret: Secret

  package static let length = 32
  private static let fileLength = 4 + length

  /// `secret` has `length` bytes.
  package init(id: UInt32, _ secret: Secret) { (self.id, self.secret) = (id, secret) }

  /// HMAC-SHA-256 of the text under the fleet's key.
  func derive(_ text: [UInt8]) throws(CryptoError) -> Secret {
    guard let derived = Secret(count: 32) else { throw .outOfMemory }
    // SAFETY: the buffers live for the call, and the last has the 32 bytes that are written.
    let done = unsafe secret.withBytes { key in
      unsafe text.withUnsafeBytes { text in
        unsafe derived.withMutableBytes { code in
          guard let key = unsafe (key.baseAddress.map { unsafe ($0, key.count) }),
            let text = unsafe (text.baseAddress.map { unsafe ($0, text.count) }),
            let code = code.baseAddress
          else { return false }
          return unsafe otp_hmac_sha256(key.0, key.1, text.0, text.1, code) == 1
        }
      }
    }
    guard done else { throw .failed }
    return derived
  }
}

// MARK: the file

extension FleetKey {
  /// Why there is no key.
  package enum FileFault: Error, Equatable {
    case system(String, errno: Int32)
    /// Not a file of the effective user's alone, or not of 36 bytes.
    case unsafe
    case exists
    case outOfMemory
  }

  /// From the file at `path`: the id, little-endian, and the key. The file must be the effective
  /// user's, and nobody else's to read.
  package static func read(at path: String) throws(FileFault) -> FleetKey {
    // SAFETY: the C string lives for the call.
    let file = unsafe Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard file >= 0 else { throw .system("open", errno: errno) }
    defer { close(file) }
    var facts = stat()
    // SAFETY: filled within the call.
    guard unsafe fstat(file, &facts) == 0 else { throw .system("fstat", errno: errno) }
    guard facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == geteuid(),
      facts.st_mode & 0o077 == 0, facts.st_size == fileLength
    else { throw .unsafe }
    guard let whole = Secret(count: fileLength) else { throw .outOfMemory }
    // SAFETY: the buffer lives for the call.
    let done = unsafe whole.withMutableBytes { unsafe Glibc.read(file, $0.baseAddress, $0.count) }
    guard done == fileLength else { throw .system("read", errno: done < 0 ? errno : EIO) }
    guard let key = whole.slice(4..<fileLength) else { throw .outOfMemory }
    let id = (0..<4).reduce(UInt32(0)) { $0 | UInt32(whole[$1]) << UInt32(8 * $1) }
    return FleetKey(id: id, key)
  }

  /// A new key, in a new file of mode 0600 at `path`, on disk before this returns.
  package static func make(at path: String) throws(FileFault) {
    let whole: Secret
    do throws(StoreTrouble) {
      whole = try Random.secret(count: fileLength)
    } catch {
      throw .outOfMemory
    }
    // SAFETY: the C string lives for the call.
    let file = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    if file < 0, errno == EEXIST { throw .exists }
    guard file >= 0 else { throw .system("open", errno: errno) }
    defer { close(file) }
    // SAFETY: the buffer lives for the call.
    let done = unsafe whole.withBytes { unsafe write(file, $0.baseAddress, $0.count) }
    guard done == fileLength, fsync(file) == 0, syncDirectory(of: path) else {
      let number = errno
      // SAFETY: as above.
      _ = unsafe unlink(path)
      throw .system("write", errno: number)
    }
  }

  /// The directory of `path`, and the one that it is in: both may be new.
  private static func syncDirectory(of path: String) -> Bool {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    let here = parts.isEmpty ? "." : parts.joined(separator: "/") + "/"
    for one in [here, here + "/.."] where !sync(one) { return false }
    return true
  }

  private static func sync(_ path: String) -> Bool {
    // SAFETY: the C string lives for the call.
    let directory = unsafe Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return false }
    defer { close(directory) }
    return fsync(directory) == 0
  }
}
