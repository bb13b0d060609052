import CSealing
package import OneTimePassword
package import SallyportSupport
import SallyportSystem

/// The key of a fleet, from which the key of each user's columns is derived (docs/fleet-format.md).
package final class FleetKey: Sendable {
  /// Precedes everything that is sealed with it.
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
  /// From the file at `path`: the id, little-endian, and the key. The file must be the effective
  /// user's, and nobody else's to read.
  package static func read(at path: String) throws(PrivateFile.Fault) -> FleetKey {
    let whole = try PrivateFile.read(path)
    guard whole.count == fileLength else { throw .damaged }
    guard let key = whole.slice(4..<fileLength) else { throw .outOfMemory }
    let id = (0..<4).reduce(UInt32(0)) { $0 | UInt32(whole[$1]) << UInt32(8 * $1) }
    return FleetKey(id: id, key)
  }

  /// A new key, in a new file of mode 0600 at `path`, on disk before this returns.
  package static func make(at path: String) throws(PrivateFile.Fault) {
    guard let whole = try? Random.secret(count: fileLength) else { throw .outOfMemory }
    try PrivateFile.make(path, whole)
  }
}
