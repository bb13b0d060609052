/// The codes of one secret (RFC 4226 §5.3; RFC 6238 §4.2, with time steps for counters). The secret
/// is keyed into libcrypto once, which keeps its own copy and wipes it when this value goes.
/// Not for two threads at once: each makes its own.
package final class CodeGenerator {
  private let context: HMACContext
  private let modulus: UInt32

  /// `secret` has 1 to 1024 bytes. Throws `unavailable`, `failed` (also for a length out of range)
  /// or `outOfMemory`.
  package init(
    secret: Secret, algorithm: HashAlgorithm, digits: Digits
  ) throws(CryptoError) {
    try prepareCrypto()
    // SAFETY: the pointer is that of the fetched HMAC.
    context = try unsafe HMACContext(Algorithms.fetched().hmac, key: secret, algorithm: algorithm)
    modulus = digits.modulus
  }

  /// The code at any counter or time step, below the modulus of the digits. Throws `failed`.
  package func code(at counter: UInt64) throws(CryptoError) -> UInt32 {
    // SAFETY: the eight bytes of the counter, most significant first, live for the call.
    let done = unsafe withUnsafeBytes(of: counter.bigEndian) { unsafe context.authenticate($0) }
    defer { context.code.wipe() }
    guard done else { throw .failed }
    return truncate(context.code) % modulus
  }
}

/// Dynamic truncation (RFC 4226 §5.3): 31 bits from where the last four bits point to.
func truncate(_ mac: Secret) -> UInt32 {
  let offset = Int(mac[mac.count - 1] & 0x0f)
  let word = (0..<4).reduce(UInt32(0)) { word, index in word << 8 | UInt32(mac[offset + index]) }
  return word & 0x7fff_ffff
}
