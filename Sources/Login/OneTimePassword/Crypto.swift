import CLibcrypto

/// libcrypto refused to work.
package enum CryptoError: Error, Equatable {
  /// HMAC or SHA-256 cannot be had in this process, or HMAC failed its self-test.
  case unavailable
  /// One computation failed, or its arguments are out of range.
  case failed
  /// No memory for the computation.
  case outOfMemory
}

/// Loads libcrypto and fetches HMAC and SHA-256, once per process for all later calls: some
/// milliseconds in a host that does not have it, so it is done ahead of the lock. Throws
/// `unavailable`.
package func prepareCrypto() throws(CryptoError) {
  guard try Algorithms.fetched().work else { throw .unavailable }
}

/// The fetched algorithms. libcrypto allows all threads to use them at once. They are never freed:
/// they serve for as long as the process lives.
@safe struct Algorithms: @unchecked Sendable {
  let hmac: OpaquePointer?
  let sha256: OpaquePointer?
  let work: Bool

  private static let all = Algorithms()

  /// A libcrypto that cannot be loaded is tried again by the next call.
  static func fetched() throws(CryptoError) -> Algorithms {
    guard otp_load() == 1 else { throw .unavailable }
    return all
  }

  private init() {
    // SAFETY: both shims may return NULL, which is nil here.
    unsafe hmac = otp_hmac_fetch()
    unsafe sha256 = otp_sha256_fetch()
    work = unsafe sha256 != nil && Self.passesSelfTest(hmac)
  }

  /// One known answer (RFC 4231 §4.2) twice from one context: the second shows that the provider
  /// of this host starts over with the key kept, on which every code after the first depends.
  private static func passesSelfTest(_ hmac: OpaquePointer?) -> Bool {
    guard let key = Secret([UInt8](repeating: 0x0b, count: 20)),
      let message = Secret(bytes(of: "Hi There"))
    else { return false }
    let answer = knownAnswer
    do throws(CryptoError) {
      // SAFETY: the pointer is what otp_hmac_fetch gave.
      let context = try unsafe HMACContext(hmac, key: key, algorithm: .sha256)
      for _ in 1...2 {
        let done = unsafe message.withBytes { unsafe context.authenticate($0) }
        guard done, (0..<32).allSatisfy({ context.code[$0] == answer[$0] }) else {
          return false
        }
        context.code.wipe()
      }
      return true
    } catch {
      return false
    }
  }

  private static var knownAnswer: [UInt8] {
    [
      0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1,
      0x2b, 0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83, 0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32,
      0xcf, 0xf7,
    ]
  }
}

/// SHA-256 (FIPS 180-4).
package enum SHA256 {
  /// The 32 bytes of the digest. Throws `unavailable` or `failed`.
  package static func digest(_ bytes: [UInt8]) throws(CryptoError) -> [UInt8] {
    try digest(bytes, in: 0..<bytes.count)
  }

  /// The same of the bytes in `range`.
  package static func digest(_ bytes: [UInt8], in range: Range<Int>) throws(CryptoError) -> [UInt8]
  {
    let range = range.clamped(to: 0..<bytes.count)
    // SAFETY: the buffer lives for the call. Closures do not carry typed throws: a Result does.
    let sha256 = try unsafe Algorithms.fetched().sha256
    return try unsafe bytes.withUnsafeBytes {
      unsafe result(UnsafeRawBufferPointer(rebasing: $0[range]), sha256)
    }.get()
  }

  /// The same of a secret.
  package static func digest(_ secret: Secret) throws(CryptoError) -> [UInt8] {
    let sha256 = try unsafe Algorithms.fetched().sha256
    // SAFETY: as above.
    return try unsafe secret.withBytes { unsafe result($0, sha256) }.get()
  }

  @unsafe private static func result(_ bytes: UnsafeRawBufferPointer, _ sha256: OpaquePointer?)
    -> Result<[UInt8], CryptoError>
  {
    // SAFETY: the shim reads `bytes.count` bytes and writes 32.
    guard let sha256 = unsafe sha256 else { return .failure(.unavailable) }
    var digest = [UInt8](repeating: 0, count: 32)
    let done = unsafe digest.withUnsafeMutableBytes { output in
      guard let output = output.baseAddress else { return false }
      return unsafe otp_sha256(sha256, bytes.baseAddress, bytes.count, output) == 1
    }
    return done ? .success(digest) : .failure(.failed)
  }
}

/// HMAC-SHA-256 (RFC 2104) of `message`, 32 bytes. `key` has 1 to 1024 bytes.
/// Throws `unavailable`, `failed` (also for a key out of range) or `outOfMemory`.
package func hmacSHA256(key: [UInt8], message: Secret) throws(CryptoError) -> [UInt8] {
  guard let key = Secret(key) else { throw .outOfMemory }
  let code = try hmac(.sha256, key: key, message: message)
  return code.bytes(in: 0..<code.count)
}

/// The same with any hash.
package func hmac(_ algorithm: HashAlgorithm, key: Secret, message: Secret) throws(CryptoError)
  -> Secret
{
  try prepareCrypto()
  // SAFETY: the pointer is that of the fetched HMAC.
  let context = try unsafe HMACContext(Algorithms.fetched().hmac, key: key, algorithm: algorithm)
  // SAFETY: the buffer lives for the call.
  let done = unsafe message.withBytes { unsafe context.authenticate($0) }
  guard done else { throw .failed }
  return context.code
}

/// Compares in a time that does not depend on the values.
package func constantTimeEquals(_ a: UInt32, _ b: UInt32) -> Bool {
  // SAFETY: both buffers have the four bytes of a UInt32.
  unsafe withUnsafeBytes(of: a) { a in
    unsafe withUnsafeBytes(of: b) { b in
      unsafe otp_equal(a.baseAddress, b.baseAddress, 4) == 1
    }
  }
}

/// Compares in a time that depends on the lengths alone; false when they differ.
package func constantTimeEquals(_ a: Secret, _ b: Secret) -> Bool {
  guard a.count == b.count else { return false }
  // SAFETY: both have a.count bytes.
  return unsafe a.withBytes { left in
    unsafe b.withBytes { unsafe otp_equal(left.baseAddress, $0.baseAddress, left.count) == 1 }
  }
}

/// Compares in a time that depends on the lengths alone; false when they differ.
package func constantTimeEquals(_ a: [UInt8], _ b: [UInt8]) -> Bool {
  guard a.count == b.count else { return false }
  // SAFETY: both buffers have a.count bytes.
  return unsafe a.withUnsafeBytes { a in
    unsafe b.withUnsafeBytes { b in
      unsafe otp_equal(a.baseAddress, b.baseAddress, a.count) == 1
    }
  }
}
