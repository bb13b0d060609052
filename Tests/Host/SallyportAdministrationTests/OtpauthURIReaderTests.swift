import OneTimePassword
import SallyportAdministration
import TestSupport
import Testing

private typealias Failure = OtpauthURI.Error

private func names(_ uri: OtpauthURI) -> [String] {
  [uri.issuer, uri.account].map { String(decoding: $0, as: UTF8.self) }
}

@Suite struct `An otpauth URI of ours` {
  // shows: hostile-uri
  @Test func `is read back as it was, for any bytes`() throws {
    var random = Seeded(3)
    let likely = Array(":: %%/?#&=+@aA3~".utf8) + [0, 0x7f, 0x80, 0xff]
    for round in 0..<10_000 {
      let name = { (random: inout Seeded) in
        round % 2 == 0
          ? random.bytes(0...12)
          : (0..<Int.random(in: 0...6, using: &random)).map { _ in random.pick(likely) }
      }
      let type = random.pick([
        AuthenticatorType.hotp, .totp(period: 30),
        .totp(period: .random(in: 15...300, using: &random)),
      ])
      let uri = OtpauthURI(
        issuer: name(&random), account: name(&random), secret: try secret(random.bytes(1...40)),
        parameters: try parameters(
          type, random.pick(HashAlgorithm.allCases), random.pick(Digits.allCases)),
        counter: .random(in: 0...(.max), using: &random))
      for short in [false, true] {
        let written = try #require(uri.text(omittingDefaults: short))
        try expect(OtpauthURI(written), equals: uri)
        #expect(bytes(written).allSatisfy { $0 > 0x20 && $0 < 0x7f })
      }
    }
  }

  private func expect(_ read: OtpauthURI, equals written: OtpauthURI) {
    #expect(read.issuer == written.issuer)
    #expect(read.account == written.account)
    #expect(bytes(read.secret) == bytes(written.secret))
    #expect(read.parameters == written.parameters)
    #expect(read.counter == written.counter)
  }
}

@Suite struct `A foreign otpauth URI` {
  @Test(arguments: [
    ("Example:alice@example.com?", "Example", "alice@example.com"),
    ("Provider1:Alice%20Smith?", "Provider1", "Alice Smith"),
    ("Big%20Corporation%3A%20alice%40bigco.com?", "Big Corporation", "alice@bigco.com"),
    ("Big%20Corporation%3a%20alice?issuer=Big%20Corporation&", "Big Corporation", "alice"),
    ("Example:%20%20alice?", "Example", "alice"), ("Example: alice?", "Example", "alice"),
    ("alice?issuer=ACME&", "ACME", "alice"), ("alice?", "", "alice"),
    ("Old:alice?issuer=New&", "New", "alice"), ("Old%3Aalice?issuer=New&", "New", "alice"),
    ("My:Co:alice?issuer=My:Co&", "My:Co", "alice"),
    ("My%3ACo%3Aalice?issuer=My%3ACo&", "My:Co", "alice"),
    ("a:b:c?", "a", "b:c"), ("a%3Ab:c?", "a:b", "c"), ("a%3Ab%3Ac?", "a", "b:c"),
    ("ACME:alice?issuer=&", "ACME", "alice"), ("ACME:alice?issuer&", "ACME", "alice"),
    (":alice?", "", "alice"), ("%3Aalice?", "", "alice"), ("ACME?issuer=ACME&", "ACME", "ACME"),
    ("a+b:c+d?", "a+b", "c+d"), ("a?issuer=x+y&", "x+y", "a"), ("a%253Ab?", "", "a%3Ab"),
    ("a/b:c/d?", "a/b", "c/d"), ("é:ü?", "é", "ü"), ("?", "", ""),
  ]) func `names issuer and account`(label: String, issuer: String, account: String) throws {
    let read = try OtpauthURI(secret("otpauth://totp/\(label)secret=MZXW6YTBOI"))
    #expect(names(read) == [issuer, account])
  }

  @Test(
    arguments: [
      ("totp/a?secret=MZXW6YTBOI", .totp(period: 30), .sha1, .six, 0),
      ("TOTP/a?secret=MZXW6YTBOI", .totp(period: 30), .sha1, .six, 0),
      ("totp?secret=MZXW6YTBOI", .totp(period: 30), .sha1, .six, 0),
      ("totp/a?secret=mzxw%206ytb-oi%3D%3d====", .totp(period: 30), .sha1, .six, 0),
      ("totp/a?secret=mzxw 6ytb oi======", .totp(period: 30), .sha1, .six, 0),
      (
        "totp/a?period=45&digits=8&algorithm=sha-256&secret=MZXW6YTBOI", .totp(period: 45), .sha256,
        .eight, 0
      ),
      ("totp/a?SECRET=MZXW6YTBOI&Digits=7&PERIOD=015", .totp(period: 15), .sha1, .seven, 0),
      ("totp/a?&&secret=MZXW6YTBOI&", .totp(period: 30), .sha1, .six, 0),
      (
        "totp/a?image=x&image=y&&secret=MZXW6YTBOI&lock=1&secrets=2&=3", .totp(period: 30), .sha1,
        .six, 0
      ),
      ("totp/a?secret=MZXW6YTBOI&digits=%36&counter=no", .totp(period: 30), .sha1, .six, 0),
      ("hotp/a?secret=MZXW6YTBOI&counter=0", .hotp, .sha1, .six, 0),
      ("HoTp/a?counter=18446744073709551615&secret=MZXW6YTBOI&period=7", .hotp, .sha1, .six, .max),
    ] as [(String, AuthenticatorType, HashAlgorithm, Digits, UInt64)])
  func `is read forgivingly`(
    rest: String, type: AuthenticatorType, algorithm: HashAlgorithm, digits: Digits,
    counter: UInt64
  ) throws {
    for scheme in ["otpauth://", "OTPauth://"] {
      let read = try OtpauthURI(Array((scheme + rest).utf8))
      #expect(read.parameters == (try parameters(type, algorithm, digits)))
      #expect(read.counter == counter)
      #expect(text(read.secret) == "foobar")
    }
  }

  @Test(
    arguments: [
      ("", .scheme), ("otpauth:/", .scheme), ("otpauth:totp/a?secret=MY", .scheme),
      ("https://totp/a?secret=MY", .scheme), (" otpauth://totp/a?secret=MY", .scheme),
      ("otpauth://", .type), ("otpauth:///a?secret=MY", .type),
      ("otpauth://motp/a?secret=MY", .type),
      ("otpauth://totp%2Fa?secret=MY", .type), ("otpauth://totpx/a?secret=MY", .type),
      ("otpauth://totp", .missing(.secret)), ("otpauth://totp/", .missing(.secret)),
      ("otpauth://totp/a?", .missing(.secret)), ("otpauth://totp/a?secre=MY", .missing(.secret)),
      ("otpauth://totp/a&secret=MY", .missing(.secret)),
      ("otpauth://totp/a?%73ecret=MY", .missing(.secret)),
      ("otpauth://totp/a?secret", .secretLength(0)), ("otpauth://totp/a?secret=", .secretLength(0)),
      ("otpauth://totp/a?secret=%20", .secretLength(0)),
      ("otpauth://totp/a?secret=MY1", .secret(Base32.Error(.character, at: 2))),
      ("otpauth://totp/a?secret=M+Y", .secret(Base32.Error(.character, at: 1))),
      ("otpauth://totp/a?secret=MY#b", .secret(Base32.Error(.character, at: 2))),
      ("otpauth://totp/a?secret=MZX", .secret(Base32.Error(.length, at: 3))),
      ("otpauth://totp/a?secret=MY=", .secret(Base32.Error(.padding, at: 3))),
      ("otpauth://totp/%?secret=MY", .percentEncoding(offset: 15)),
      ("otpauth://totp/a%4?secret=MY", .percentEncoding(offset: 16)),
      ("otpauth://totp/a%4g?secret=MY", .percentEncoding(offset: 16)),
      ("otpauth://totp/a%-1?secret=MY", .percentEncoding(offset: 16)),
      ("otpauth://totp/a?secret=MY&issuer=100%", .percentEncoding(offset: 37)),
      ("otpauth://totp/a?secret=M%", .percentEncoding(offset: 25)),
      ("otpauth://totp/a?secret=MY&secret=MY", .duplicate(.secret)),
      ("otpauth://totp/a?secret=MY&SECRET=MY", .duplicate(.secret)),
      ("otpauth://totp/a?secret=MY&issuer=a&issuer=a", .duplicate(.issuer)),
      ("otpauth://totp/a?secret=MY&counter=1&counter", .duplicate(.counter)),
      ("otpauth://totp/a?secret=MY&digits=6&digits=8", .duplicate(.digits)),
      ("otpauth://hotp/a?secret=MY&counter=1&period=30&period=30", .duplicate(.period)),
      ("otpauth://totp/a?secret=MY&algorithm=SHA1&algorithm=MD5", .duplicate(.algorithm)),
      ("otpauth://totp/a?secret=MY&algorithm=MD5", .algorithm),
      ("otpauth://totp/a?secret=MY&algorithm=", .algorithm),
      ("otpauth://totp/a?secret=MY&digits=5", .range(.digits, found: 5)),
      ("otpauth://totp/a?secret=MY&digits=9", .range(.digits, found: 9)),
      ("otpauth://totp/a?secret=MY&digits=262", .range(.digits, found: 262)),
      ("otpauth://totp/a?secret=MY&digits=", .number(.digits)),
      ("otpauth://totp/a?secret=MY&digits=+6", .number(.digits)),
      ("otpauth://totp/a?secret=MY&digits=6.0", .number(.digits)),
      ("otpauth://totp/a?secret=MY&digits=%D9%A6", .number(.digits)),
      ("otpauth://totp/a?secret=MY&period=0", .range(.period, found: 0)),
      ("otpauth://totp/a?secret=MY&period=14", .range(.period, found: 14)),
      ("otpauth://totp/a?secret=MY&period=301", .range(.period, found: 301)),
      ("otpauth://totp/a?secret=MY&period=4294967326", .range(.period, found: 4_294_967_326)),
      ("otpauth://totp/a?secret=MY&period=18446744073709551646", .number(.period)),
      ("otpauth://totp/a?secret=MY&period=-30", .number(.period)),
      ("otpauth://totp/a?secret=MY&period=30\n", .number(.period)),
      ("otpauth://hotp/a?secret=MY", .missing(.counter)),
      ("otpauth://hotp/a?secret=MY&counter=", .number(.counter)),
      ("otpauth://hotp/a?secret=MY&counter=18446744073709551616", .number(.counter)),
      ("otpauth://hotp/a?secret=MY&counter=1 ", .number(.counter)),
    ] as [(String, Failure)])
  func `is refused with the fact that is wrong`(text: String, wanted: OtpauthURI.Error) throws {
    #expect(throws: wanted) { _ = try OtpauthURI(secret(text)) }
    #expect(throws: wanted) { _ = try OtpauthURI(Array(text.utf8)) }
  }

  // decisive
  @Test(arguments: [(1024, true), (1025, false)])
  func `may hold a secret of 1024 bytes and no more`(count: Int, taken: Bool) throws {
    let uri = OtpauthURI(
      issuer: [], account: [], secret: try example(count), parameters: .standard)
    if taken {
      #expect(try OtpauthURI(try #require(uri.text())).secret.count == count)
    } else {
      #expect(throws: Failure.secretLength(count)) { _ = try OtpauthURI(try #require(uri.text())) }
    }
  }

  /// Mutations of good URIs, and every prefix of one: an answer each time, never a trap.
  // shows: hostile-uri
  @Test func `of any bytes is read or refused`() throws {
    var random = Seeded(4)
    let good = Array(
      "otpauth://hotp/A%3AB:c?secret=MZXW6YTBOI&issuer=A%3AB&counter=7&digits=8".utf8)
    for end in 0...good.count { _ = try? OtpauthURI(Array(good[..<end])) }
    var taken = 0
    for _ in 0..<20_000 {
      var hostile = good
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<hostile.count, using: &random)
        switch Int.random(in: 0...2, using: &random) {
        case 0: hostile[place] = UInt8.random(in: 0...255, using: &random)
        case 1: hostile.remove(at: place)
        default: hostile.insert(random.pick(Array("%:?&=/3A9".utf8)), at: place)
        }
      }
      guard let read = try? OtpauthURI(hostile) else { continue }
      taken += 1
      let again = try OtpauthURI(try #require(read.text()))
      #expect(again.issuer == read.issuer && again.account == read.account)
    }
    #expect(taken > 1000)
  }
}
