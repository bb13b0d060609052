/// The codes of one secret (RFC 4226 §5.3; RFC 6238 §4.2 with time steps for counters). The secret
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
    context = try unsafe HMACContext(Algorithms.fetched.hmac, key: secret, algorithm: algorithm)
    modulus = digits.modulus
  }

  /// The code at any counter or time step, below the modulus of the digits. Throws `failed`.
  package func code(at counter: UInt64) throws(CryptoError) -> UInt32 {
    // SAFETY: the eight bytes of the counter, most significant first, live for the call.
    let truncated = unsafe withUnsafeBytes(of: counter.bigEndian) {
      unsafe context.result(of: $0, { unsafe truncate($0) })
    }
    return try truncated.get() % modulus
  }
}

/// Dynamic truncation (RFC 4226 §5.3): 31 bits from where the last four bits point to.
func truncate(_ mac: UnsafeRawBufferPointer) -> UInt32 {
  // SAFETY: the offset is at most 15, and the guard makes 19 bytes sure.
  guard mac.count >= 20, let last = unsafe mac.last else { return 0 }
  let offset = Int(last & 0x0f)
  let word = unsafe mac.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
  return UInt32(bigEndian: word) & 0x7fff_ffff
}
