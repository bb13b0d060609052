import Foundation
import Synchronization
import TestSupport
import Testing

@testable import OneTimePassword

private final class Tally: Sendable {
  let count = Mutex(0)
}

/// Runs `body` on this number of threads of its own at once, and waits for all.
private func onThreads(_ threads: Int, _ body: @escaping @Sendable () -> Void) {
  let group = DispatchGroup()
  for _ in 0..<threads {
    group.enter()
    Thread.detachNewThread {
      body()
      group.leave()
    }
  }
  group.wait()
}

@Suite struct `Codes` {
  @Test func `are those of RFC 4226 appendix D, with its intermediate values`() throws {
    let rows = try vectors("rfc4226-appendix-d.txt")
    #expect(rows.count == 10)
    let generator = try CodeGenerator(secret: example(20), algorithm: .sha1, digits: .six)
    let context = try unsafe HMACContext(
      Algorithms.fetched().hmac, key: example(20), algorithm: .sha1)
    for row in rows {
      let counter = try #require(UInt64(row[0]))
      let done = unsafe withUnsafeBytes(of: counter.bigEndian) { unsafe context.authenticate($0) }
      #expect(done)
      #expect(try bytes(context.code) == bytes(hex: row[1]))
      #expect(truncate(context.code) == UInt32(row[2]))
      #expect(padded(try generator.code(at: counter), .six) == row[3])
    }
  }

  @Test func `are those of RFC 6238 appendix B under all three algorithms`() throws {
    let rows = try vectors("rfc6238-appendix-b.txt")
    #expect(rows.count == 18)
    for row in rows {
      let algorithm = try #require(HashAlgorithm(name: row[1].utf8))
      let generator = try CodeGenerator(
        secret: example(algorithm.secretLength), algorithm: algorithm, digits: .eight)
      let step = timeStep(at: try #require(Int64(row[0])), period: 30)
      #expect(padded(try generator.code(at: step), .eight) == row[2], "\(row)")
    }
  }

  /// Wanted: as an independent implementation (Python's hmac) gives them.
  @Test(arguments: [
    (UInt64(1) << 32, "55999456"), (UInt64(1) << 63, "17959616"), (UInt64.max, "63094451"),
  ]) func `reach to the last counter`(counter: UInt64, wanted: String) throws {
    let generator = try CodeGenerator(secret: example(20), algorithm: .sha1, digits: .eight)
    #expect(padded(try generator.code(at: counter), .eight) == wanted)
  }

  @Test func `do not depend on what was computed before`() throws {
    let reused = try CodeGenerator(secret: example(32), algorithm: .sha256, digits: .seven)
    for counter: UInt64 in [7, 0, 7, .max, 0, 1, 7] {
      let fresh = try CodeGenerator(secret: example(32), algorithm: .sha256, digits: .seven)
      #expect(try reused.code(at: counter) == fresh.code(at: counter))
    }
  }

  // decisive
  @Test func `do not depend on the secret after it was keyed`() throws {
    let secret = try example(20)
    let generator = try CodeGenerator(secret: secret, algorithm: .sha1, digits: .six)
    secret.wipe()
    #expect(try generator.code(at: 0) == 755_224)
  }

  // decisive
  @Test(arguments: [0, 1025, 4096])
  func `are refused for a secret of a length out of range`(count: Int) throws {
    let secret = try #require(Secret(count: count))
    #expect(throws: CryptoError.failed) {
      _ = try CodeGenerator(secret: secret, algorithm: .sha1, digits: .six)
    }
  }

  // decisive
  @Test(arguments: HashAlgorithm.allCases)
  func `are given for secrets of 1 to 1024 bytes`(algorithm: HashAlgorithm) throws {
    for count in [1, 2, 19, 63, 64, 65, 127, 128, 129, 1023, 1024] {
      let generator = try CodeGenerator(
        secret: example(count), algorithm: algorithm, digits: .six)
      #expect(try generator.code(at: 1) < Digits.six.modulus)
    }
  }

  @Test func `are the same from 8 threads at once`() throws {
    let secret = try example(20)
    let wanted = try codes(of: secret)
    let agreeing = Tally()
    onThreads(8) {
      if (try? codes(of: secret)) == wanted { agreeing.count.withLock { $0 += 1 } }
    }
    #expect(agreeing.count.withLock { $0 } == 8)
  }

  private func codes(of secret: Secret) throws -> [UInt32] {
    try (UInt64(0)..<2000).map { counter in
      let generator = try CodeGenerator(secret: secret, algorithm: .sha1, digits: .eight)
      return try generator.code(at: counter)
    }
  }
}

@Suite struct `Time steps` {
  @Test(arguments: [
    (Int64(0), UInt32(30), UInt64(0)), (29, 30, 0), (30, 30, 1), (59, 30, 1),
    (20_000_000_000, 30, 666_666_666), (-1, 30, 0), (.min, 30, 0), (100, 0, 0), (0, 0, 0),
    (.max, 1, UInt64(Int64.max)), (.max, .max, 2_147_483_648), (299, 300, 0), (300, 300, 1),
  ]) func `count whole periods since 1970`(seconds: Int64, period: UInt32, step: UInt64) {
    #expect(timeStep(at: seconds, period: period) == step)
  }
}

@Suite struct `Parameters` {
  @Test(arguments: [
    (UInt32(0), false), (14, false), (15, true), (30, true), (300, true), (301, false),
    (.max, false),
  ]) func `take periods from 15 to 300 seconds`(period: UInt32, taken: Bool) {
    let parameters = CodeParameters(type: .totp(period: period), algorithm: .sha1, digits: .six)
    #expect((parameters != nil) == taken)
  }

  @Test func `have a standard that every app can do`() {
    let standard = CodeParameters(type: .totp(period: 30), algorithm: .sha1, digits: .six)
    #expect(CodeParameters.standard == standard)
  }

  @Test(arguments: [
    ("SHA1", HashAlgorithm.sha1), ("sha1", .sha1), ("Sha-1", .sha1), ("SHA256", .sha256),
    ("sha-256", .sha256), ("sHa512", .sha512), ("SHA-512", .sha512),
  ]) func `name algorithms in any case and with a hyphen`(name: String, wanted: HashAlgorithm) {
    #expect(HashAlgorithm(name: name.utf8) == wanted)
  }

  @Test(arguments: [
    "", "S", "SHA", "SHA-", "SHA--1", "-SHA1", "S-HA1", "SHA1-", "SHA2", "SHA11", "SHA384",
    "SHA 1", "MD5", "SHA1\0", "ŞHA1",
  ]) func `refuse every other name`(name: String) {
    #expect(HashAlgorithm(name: name.utf8) == nil)
  }

  @Test(arguments: HashAlgorithm.allCases)
  func `read every name they write`(algorithm: HashAlgorithm) {
    #expect(HashAlgorithm(name: bytes(of: algorithm.name)) == algorithm)
  }

  @Test(arguments: Digits.allCases) func `know how many codes there are`(digits: Digits) {
    #expect(String(digits.modulus) == "1" + String(repeating: "0", count: Int(digits.rawValue)))
  }
}
