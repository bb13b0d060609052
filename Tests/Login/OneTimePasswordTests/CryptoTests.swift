import CLibcrypto
import OneTimePassword
import TestSupport
import Testing

@Suite struct `libcrypto` {
  @Test func `can be prepared any number of times`() throws {
    for _ in 1...3 { try prepareCrypto() }
  }

  /// FIPS 180-4's examples.
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
  ]) func `computes SHA-256`(message: String, wanted: String) throws {
    #expect(try SHA256.digest(Array(message.utf8)) == bytes(hex: wanted))
    let among = Array("before \(message) after".utf8)
    #expect(try SHA256.digest(among, in: 7..<7 + message.utf8.count) == bytes(hex: wanted))
  }

  /// RFC 4231, cases 1, 2 and 6; the last has a key longer than a block. And the empty message.
  @Test(arguments: [
    (
      [UInt8](repeating: 0x0b, count: 20), "Hi There",
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    ),
    (
      Array("Jefe".utf8), "what do ya want for nothing?",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ),
    (
      [UInt8](repeating: 0xaa, count: 131),
      "Test Using Larger Than Block-Size Key - Hash Key First",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    ),
    (
      Array("Jefe".utf8), "", "923598ca6d64af2a5dba79dcd021a8a0fe5c5f557519adaaf0ad532d4506dd30"
    ),
  ]) func `computes HMAC-SHA-256`(key: [UInt8], message: String, wanted: String) throws {
    #expect(try hmacSHA256(key: key, message: secret(message)) == bytes(hex: wanted))
  }

  /// RFC 2202 §3 and RFC 4231 §4.2, the first test case of each.
  @Test func `computes HMAC with any hash`() throws {
    let key = try #require(Secret([UInt8](repeating: 0x0b, count: 20)))
    for (hash, wanted) in [
      (HashAlgorithm.sha1, "b617318655057264e28bc0b6fb378c8ef146be00"),
      (
        .sha512,
        "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
          + "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"
      ),
    ] {
      let code = try hmac(hash, key: key, message: secret("Hi There"))
      #expect(try code.bytes(in: 0..<code.count) == bytes(hex: wanted))
    }
  }

  @Test(arguments: [0, 1025]) func `refuses an HMAC key out of range`(count: Int) throws {
    let key = [UInt8](repeating: 1, count: count)
    #expect(throws: CryptoError.failed) { _ = try hmacSHA256(key: key, message: secret("a")) }
  }

  @Test func `compares numbers and bytes for equality`() {
    #expect(constantTimeEquals(755_224, 755_224))
    #expect(constantTimeEquals(UInt32.max, .max))
    for bit in 0..<32 { #expect(!constantTimeEquals(755_224, 755_224 ^ (1 << UInt32(bit)))) }
    #expect(constantTimeEquals([], []))
    #expect(constantTimeEquals([1, 2, 3], [1, 2, 3]))
    #expect(!constantTimeEquals([1, 2, 3], [1, 2, 4]))
    #expect(!constantTimeEquals([0, 2, 3], [1, 2, 3]))
    #expect(!constantTimeEquals([1, 2, 3], [1, 2]))
    #expect(!constantTimeEquals([], [0]))
  }

  // decisive
  @Test func `compares secrets by all their bytes and their length`() throws {
    let secret = try #require(Secret([1, 2, 3, 0]))
    #expect(constantTimeEquals(secret, try #require(Secret([1, 2, 3, 0]))))
    let others: [[UInt8]] = [
      [0, 2, 3, 0], [1, 0, 3, 0], [1, 2, 3, 1], [1, 2, 3], [1, 2, 3, 0, 0],
    ]
    for other in others {
      let other = try #require(Secret(other))
      #expect(!constantTimeEquals(secret, other) && !constantTimeEquals(other, secret))
    }
  }

  /// sshd would report our errors as its own, or lose its own among ours.
  @Test(arguments: [0, 1, 3]) func `keeps the error queue of the host`(hostErrors: Int) throws {
    drainErrors()
    for _ in 0..<hostErrors { raiseError() }
    let before = drainErrors()
    #expect(before.count >= hostErrors && (hostErrors > 0 || before.isEmpty))
    for _ in 0..<hostErrors { raiseError() }

    try useEverything()
    try failEverything()

    #expect(drainErrors() == before)
  }

  @Test func `leaves no error behind if an algorithm is not available`() async {
    await #expect(processExitsWith: .success) {
      try #require(unsafe EVP_set_default_properties(nil, "provider=none") == 1)
      ERR_clear_error()
      let (mac, digest) = unsafe (otp_hmac_fetch(), otp_sha256_fetch())
      let isNone = unsafe mac == nil && digest == nil
      #expect(isNone && ERR_peek_error() == 0)
    }
  }

  private func useEverything() throws {
    let generator = try CodeGenerator(secret: example(20), algorithm: .sha512, digits: .six)
    _ = try generator.code(at: 1)
    _ = try SHA256.digest([1, 2, 3])
    _ = try hmacSHA256(key: [1], message: example(3))
  }

  private func failEverything() throws {
    #expect(Secret(count: .max) == nil)
    // Without a key the context must refuse to work, and with an unknown digest to be keyed;
    // the third try has no room for the code.
    #expect(useContextWrongly() == [0, 0, 1, 0, 20])
  }

  private func useContextWrongly() -> [Int] {
    // SAFETY: every buffer outlives its call.
    guard let mac = unsafe otp_hmac_fetch(), let context = unsafe otp_hmac_new(mac) else {
      return []
    }
    var code = [UInt8](repeating: 0, count: 64)
    let results = unsafe [
      Int(otp_hmac_code(context, "message", 7, &code, 64)),
      Int(otp_hmac_key(context, 4, "key", 3)),
      Int(otp_hmac_key(context, 1, "key", 3)),
      Int(otp_hmac_code(context, "message", 7, &code, 19)),
      Int(otp_hmac_code(context, "message", 7, &code, 20)),
    ]
    unsafe otp_hmac_free(context)
    unsafe EVP_MAC_free(mac)
    return results
  }

  /// What a host's failed call leaves behind.
  private func raiseError() {
    let digest = unsafe EVP_MD_fetch(nil, "no such digest", nil)
    let found = unsafe digest != nil
    #expect(!found)
  }

  @discardableResult private func drainErrors() -> [UInt] {
    var errors: [UInt] = []
    while case let error = ERR_get_error(), error != 0 { errors.append(error) }
    return errors
  }
}

@Suite struct `A secret` {
  @Test func `begins as zeros and keeps its count`() throws {
    let fresh = try #require(Secret(count: 3))
    #expect(bytes(fresh) == [0, 0, 0])
    let empty = try #require(Secret(count: 0))
    #expect(empty.count == 0)
    let lent = unsafe empty.withBytes { $0.count }
    #expect(lent == 0)
  }

  @Test(arguments: [-1, .min, .max]) func `of an impossible count is none`(count: Int) {
    #expect(Secret(count: count) == nil)
  }

  @Test func `copies what it is made of`() throws {
    #expect(bytes(try #require(Secret([1, 2, 3]))) == [1, 2, 3])
    #expect(bytes(try #require(Secret("abc".utf8))) == [97, 98, 99])
    #expect(bytes(try #require(Secret([1, 2, 3, 4][1..<3]))) == [2, 3])
  }

  @Test(arguments: [-1, 3, .min, .max]) func `reads as 0 out of range`(index: Int) throws {
    #expect(try secret([7, 8, 9])[index] == 0)
  }

  @Test func `is written in place`() throws {
    let secret = try secret([1, 2, 3])
    unsafe secret.withMutableBytes { bytes in unsafe bytes[1] = 9 }
    let lent = unsafe secret.withBytes { unsafe Array($0) }
    #expect(lent == [1, 9, 3])
  }

  @Test(
    arguments: [
      (0..<3, [1, 2, 3]), (1..<2, [2]), (3..<3, []), (0..<0, []), (0..<4, nil), (-1..<2, nil),
      (4..<4, nil), (.min..<(.max), nil),
    ] as [(Range<Int>, [UInt8]?)])
  func `gives slices of itself and no more`(range: Range<Int>, wanted: [UInt8]?) throws {
    #expect(try secret([1, 2, 3]).slice(range).map(bytes) == wanted)
  }

  @Test func `is not changed by its slice`() throws {
    let whole = try secret([1, 2, 3])
    whole.slice(0..<3)?.wipe()
    #expect(bytes(whole) == [1, 2, 3])
  }

  // decisive
  @Test func `is zeros once wiped, of the same count`() throws {
    let secret = try secret([1, 2, 3])
    secret.wipe()
    #expect(bytes(secret) == [0, 0, 0])
  }
}
