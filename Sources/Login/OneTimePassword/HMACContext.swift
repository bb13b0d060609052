import CLibcrypto

/// One EVP_MAC context, keyed once, for any number of messages. Not for two threads at once.
@safe package struct HMACContext: ~Copyable {
  private let context: OpaquePointer

  /// The code of the last message; the user of the code wipes it. Its own memory rather than the
  /// stack's, where copies would stay.
  let code: Secret

  /// The key lengths that are taken. An empty key would give codes that everybody can compute.
  package static let keyLengths = 1...1024

  /// Throws `unavailable` without an HMAC, `outOfMemory`, and `failed` for a key out of range or
  /// for what libcrypto refuses.
  @unsafe init(
    _ hmac: OpaquePointer?, key: Secret, algorithm: HashAlgorithm
  ) throws(CryptoError) {
    guard let hmac = unsafe hmac else { throw .unavailable }
    guard Self.keyLengths.contains(key.count) else { throw .failed }
    guard let code = Secret(count: algorithm.secretLength),
      let context = unsafe otp_hmac_new(hmac)
    else { throw .outOfMemory }
    // SAFETY: libcrypto copies the key; the context is freed here or in deinit, never twice.
    let keyed = unsafe key.withBytes { key in
      guard let bytes = key.baseAddress else { return false }
      return unsafe otp_hmac_key(context, Int32(algorithm.rawValue), bytes, key.count) == 1
    }
    guard keyed else {
      unsafe otp_hmac_free(context)
      throw .failed
    }
    unsafe self.context = context
    self.code = code
  }

  deinit {
    // SAFETY: made in init, owned by this value alone.
    unsafe otp_hmac_free(context)
  }

  /// Puts the code of `message` into `code`. False if libcrypto refused, or wrote another length
  /// than that of the hash.
  @unsafe func authenticate(_ message: UnsafeRawBufferPointer) -> Bool {
    // SAFETY: the shim writes at most code.count bytes, to memory that outlives the call.
    let written = unsafe code.withMutableBytes { code in
      guard let output = code.baseAddress else { return 0 }
      return unsafe otp_hmac_code(
        context, message.baseAddress, message.count, output, code.count)
    }
    return written == code.count
  }
}
