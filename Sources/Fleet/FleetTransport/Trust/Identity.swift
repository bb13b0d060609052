import CTLS
package import OneTimePassword
package import SallyportSupport

/// The Ed25519 key of a host, or of the verifiers of a fleet, which authenticates it.
@safe package final class Identity: @unchecked Sendable {
  let key: OpaquePointer
  /// Identifies it to the other side.
  package let pin: Pin

  static let longest = 4096

  /// From the text of its file.
  package init(pem: Secret) throws(PrivateFile.Fault) {
    // SAFETY: the buffer lives for the call.
    let found = unsafe pem.withBytes { bytes in
      unsafe bytes.baseAddress.flatMap { unsafe tls_key_read($0, bytes.count) }
    }
    guard let key = unsafe found else { throw .damaged }
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
  package static func newKey() throws(PrivateFile.Fault) -> Secret {
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
  package static func make(at path: String) throws(PrivateFile.Fault) {
    try PrivateFile.make(path, try newKey())
  }

  /// From the file at `path`, which must be the effective user's, and nobody else's to read:
  /// Ed25519 in PEM, as PKCS #8 and without a passphrase.
  package static func read(at path: String) throws(PrivateFile.Fault) -> Identity {
    try Identity(pem: try PrivateFile.read(path, upTo: longest))
  }
}
