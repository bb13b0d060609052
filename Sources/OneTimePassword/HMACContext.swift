import CLibcrypto

/// One EVP_MAC context, keyed once, for any number of messages. Not for two threads at once.
@safe struct HMACContext: ~Copyable {
  private let context: OpaquePointer
  private let length: Int

  /// The key lengths that are taken. An empty key would give codes that everybody can compute.
  static let keyLengths = 1...1024

  /// Throws `failed` for a key out of range and for what libcrypto refuses.
  @unsafe init(
    _ hmac: OpaquePointer?, key: Secret, algorithm: HashAlgorithm
  ) throws(CryptoError) {
    guard let hmac = unsafe hmac else { throw .unavailable }
    guard Self.keyLengths.contains(key.count) else { throw .failed }
    guard let context = unsafe otp_hmac_new(hmac) else { throw .outOfMemory }
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
    length = algorithm.secretLength
  }

  deinit {
    // SAFETY: made in init, owned by this value alone.
    unsafe otp_hmac_free(context)
  }

  /// Lends the code of `message` to `body` and wipes it afterwards. A Result, because the closures
  /// of the standard library do not carry typed throws.
  @unsafe func result<R>(
    of message: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> R
  ) -> Result<R, CryptoError> {
    // SAFETY: the shim writes at most 64 bytes, the longest output of the three hashes.
    unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { code in
      guard let output = code.baseAddress else { return .failure(.outOfMemory) }
      defer { unsafe OPENSSL_cleanse(output, 64) }
      let written = unsafe otp_hmac_code(context, message.baseAddress, message.count, output, 64)
      guard written == length else { return .failure(.failed) }
      return .success(unsafe body(UnsafeRawBufferPointer(start: output, count: length)))
    }
  }

  /// The code of `message`, not wiped: for what is no secret.
  func code(of message: [UInt8]) throws(CryptoError) -> [UInt8] {
    // SAFETY: the buffers live for the calls.
    try unsafe message.withUnsafeBytes { unsafe result(of: $0) { unsafe Array($0) } }.get()
  }
}
