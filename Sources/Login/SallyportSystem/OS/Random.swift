internal import CSystem
package import OneTimePassword

/// Random bytes from the kernel, as a login must not start libcrypto's generator in the
/// application.
package enum Random {
  /// `count` random bytes. Throws `outOfMemory`, or `system` if the kernel cannot provide them.
  package static func secret(count: Int) throws(StoreTrouble) -> Secret {
    guard let secret = Secret(count: count) else { throw .outOfMemory }
    // SAFETY: the buffer lives for the call.
    let result = unsafe secret.withMutableBytes { unsafe fill($0) }
    try check(result, "getrandom", .none)
    return secret
  }

  /// A random number, never 0, as the id of an enrollment, an authenticator or a set of codes.
  package static func identifier() throws(StoreTrouble) -> UInt64 {
    while true {
      let bytes = try secret(count: 8)
      let number = (0..<8).reduce(UInt64(0)) { $0 << 8 | UInt64(bytes[$1]) }
      if number != 0 { return number }
    }
  }

  /// Returns 0 or a negative errno.
  @unsafe private static func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int64 {
    guard let base = buffer.baseAddress else { return 0 }
    var count = 0
    while count < buffer.count {
      // SAFETY: count < buffer.count, and at most the rest of the buffer is filled.
      let done = unsafe sys_random(base + count, buffer.count - count)
      if done < 0, done != -Int64(EINTR) { return done }
      count += Int(max(done, 0))
    }
    return 0
  }
}
