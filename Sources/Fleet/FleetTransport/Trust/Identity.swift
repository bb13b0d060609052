import CTLS
import Glibc
package import OneTimePassword
import SallyportSupport

/// Why an identity cannot be used.
package enum IdentityFault: Error, Equatable {
  case system(String, errno: Int32)
  /// Not a file of the effective user's alone.
  case unsafe
  /// There is a file already.
  case exists
  /// No Ed25519 key in PEM, as PKCS #8 and without a passphrase.
  case notAKey
  case outOfMemory

  /// For people; `path` is the file.
  package func text(_ path: String) -> String {
    switch self {
    case .system(let call, let number):
      // SAFETY: a C string for any number, copied at once.
      unsafe "\(path): \(call): \(String(cString: strerror(number)))"
    case .unsafe: "\(path): not a file that only its owner can read (chmod 600)"
    case .exists: "\(path): exists"
    case .notAKey: "\(path): damaged, or not an Ed25519 key (PEM, PKCS #8)"
    case .outOfMemory: "out of memory"
    }
  }
}

/// The Ed25519 key of a host, or of the verifiers of a fleet, which authenticates it.
@safe package final class Identity: @unchecked Sendable {
  let key: OpaquePointer
  /// Identifies it to the other side.
  package let pin: Pin

  static let longest = 4096

  /// From the text of its file.
  package init(pem: Secret) throws(IdentityFault) {
    // SAFETY: the buffer lives for the call.
    let found = unsafe pem.withBytes { bytes in
      unsafe bytes.baseAddress.flatMap { unsafe tls_key_read($0, bytes.count) }
    }
    guard let key = unsafe found else { throw .notAKey }
    var pin = [UInt8](repeating: 0, count: Pin.length)
    // SAFETY: a key, and room for its pin.
    guard unsafe tls_key_pin(key, &pin) == 1, let pin = Pin(pin) else {
      unsafe tls_key_free(key)
      throw .outOfMemory
    }
    unsafe self.key = key
    self.pin = pin
  }

  deinit {
    // SAFETY: nobody else has it; libssl counts its own references.
    unsafe tls_key_free(key)
  }

  /// A new key's text.
  package static func newKey() throws(IdentityFault) -> Secret {
    // SAFETY: it is freed here.
    guard let key = unsafe tls_key_new(), let text = Secret(count: longest) else {
      throw .outOfMemory
    }
    defer { unsafe tls_key_free(key) }
    // SAFETY: the buffer lives for the call.
    let count = unsafe text.withMutableBytes { room in
      unsafe room.baseAddress.map { unsafe tls_key_write(key, $0, room.count) } ?? 0
    }
    guard count > 0, let cut = text.slice(0..<count) else { throw .outOfMemory }
    return cut
  }

  /// A new key, in a new file of mode 0600 at `path`, on disk before this returns.
  package static func make(at path: String) throws(IdentityFault) {
    let pem = try newKey()
    do throws(SystemError) {
      try makeFile(path, pem)
    } catch {
      if error.number == EEXIST { throw .exists }
      throw .system("write", errno: error.number)
    }
  }

  /// From the file at `path`, which must be the effective user's, and nobody else's to read.
  package static func read(at path: String) throws(IdentityFault) -> Identity {
    // SAFETY: the C string lives for the call.
    let file = unsafe Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else { throw .system("open", errno: errno) }
    defer { close(file) }
    var facts = stat()
    // SAFETY: filled within the call.
    guard unsafe fstat(file, &facts) == 0 else { throw .system("fstat", errno: errno) }
    guard facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == geteuid(), facts.st_mode & 0o077 == 0
    else { throw .unsafe }
    guard (1...longest).contains(Int(facts.st_size)) else { throw .notAKey }
    guard let pem = Secret(count: Int(facts.st_size)) else { throw .outOfMemory }
    // SAFETY: the buffer lives for the call.
    let done = unsafe pem.withMutableBytes { unsafe Glibc.read(file, $0.baseAddress, $0.count) }
    guard done == pem.count else { throw .system("read", errno: done < 0 ? errno : EIO) }
    return try Identity(pem: pem)
  }
}
