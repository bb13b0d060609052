import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `A response` {
  static let sshdDummy = [UInt8]("\u{8}\n\r\u{7f}INCORRECT".utf8)

  private func classify(_ typed: [UInt8], digits: [Digits] = [.six]) throws -> Response {
    let authenticators = try digits.enumerated().map { index, digits in
      try authenticator(
        UInt64(index + 1), "a\(index)", parameters(.totp(period: 30), .sha1, digits))
    }
    let set = try backupCodes(["7KMF2X9QD4TW0HZA"])
    return try Response.classify(
      secret(typed), for: enrollment(authenticators, backupCodes: set))
  }

  @Test(arguments: [
    ("123456", UInt32(123_456)), ("000000", 0), ("999999", 999_999), ("123 456", 123_456),
    ("123-456", 123_456), ("123456 ", 123_456), ("123456   \t ", 123_456), (" 123456", 123_456),
    ("1-2-3-4-5-6", 123_456), ("- 1 - 23456--", 123_456), ("\t123\t456", 123_456),
  ]) func `of six digits is a code, blanks and hyphens aside`(typed: String, wanted: UInt32) throws
  {
    guard case .code(let value, .six) = try classify(Array(typed.utf8)) else {
      Issue.record("\(typed) is no code")
      return
    }
    #expect(value == wanted)
  }

  // shows: digits
  @Test(arguments: [
    ("1234567", [Digits.seven], UInt32?(1_234_567)), ("99999999", [.eight], 99_999_999),
    ("01234567", [.six, .eight], 1_234_567), ("012345", [.six, .eight], 12_345),
    ("123456", [.eight], nil), ("1234567", [.six, .eight], nil), ("12345678", [.six, .seven], nil),
  ]) func `has a length that some authenticator has`(
    typed: String, digits: [Digits], wanted: UInt32?
  )
    throws
  {
    let response = try classify(Array(typed.utf8), digits: digits)
    switch response {
    case .code(let value, let count):
      #expect(value == wanted && Int(count.rawValue) == typed.count)
    case .malformed(let malformation):
      #expect(wanted == nil && malformation == .length)
    case .backupCode, .pass: Issue.record("a backup code or a pass")
    }
  }

  @Test(arguments: [
    ("", Malformation.empty), (" ", .empty), ("-", .empty), ("---- - \t", .empty),
    ("1", .length), ("12345", .length), ("1234567", .length), ("12345678", .length),
    ("123456789", .length), ("1234567890", .length), ("1234567890123456", .length),
    ("1234-5678-9012-3456", .length), ("4294967296", .length), ("99999999999999999999", .length),
    ("12345a", .characters), ("12345\0", .characters), ("\0", .characters),
    ("123456\0", .characters),
    ("123456\n", .characters), ("123456\r\n", .characters), ("+12345", .characters),
    ("-123456.", .characters), ("0x1234", .characters), ("12345\u{7f}", .characters),
    ("12345²", .characters), ("12345Ⅵ", .characters), ("12345六", .characters),
    ("12345①", .characters), ("123\u{2016}456", .characters), ("123\u{a1}456", .characters),
    ("é", .characters), ("password", .characters), ("\u{a0}\u{2013}\r", .empty),
    ("\u{661}\u{662}\u{663}", .length),
    ("7KMF-2X9Q-D4TW-0HZ", .characters), ("7KMF-2X9Q-D4TW-0HZAA", .characters),
    ("7KMF-2X9Q-D4TW-0HZU", .characters), ("7KMF-2X9Q-D4TW-0HZu", .characters),
    ("7KMF-2X9Q-D4TW-0HZ*", .characters), ("7KMF_2X9Q_D4TW_0HZA", .characters),
  ]) func `that cannot be right says why`(typed: String, wanted: Malformation) throws {
    #expect(try classify(Array(typed.utf8)).malformation == wanted)
  }

  @Test func `in digits, blanks and dashes of other writings is what they mean`() throws {
    for line in try vectorLines("typed.txt") {
      let columns = line.split(separator: " | ")
      let (typed, wanted) = (unescaped(columns[0]), Array(columns[1].utf8))
      let digits: [Digits] = [.six, .eight]
      #expect(
        try classify(typed, digits: digits).facts == classify(wanted, digits: digits).facts,
        "\(line)")
    }
  }

  /// By the standard library's tables of Unicode.
  @Test func `has every decimal digit for what it means, and no other character`() throws {
    for scalar in (0x80...0x1ffff).compactMap(Unicode.Scalar.init) {
      let typed = Array("12345\(Character(scalar))".utf8)
      let isDigit = scalar.properties.numericType == .decimal
      let value = isDigit ? Character(scalar).wholeNumberValue : nil
      let found = try classify(typed)
      if case .code(let code, .six) = found {
        // Of a later Unicode than the library's.
        let isNew = scalar.properties.generalCategory == .unassigned
        #expect(value.map { UInt32($0) + 123_450 } == code || isNew, "\(scalar.value)")
      } else {
        #expect(value == nil, "\(String(scalar.value, radix: 16))")
      }
    }
  }

  @Test func `that is no UTF-8 has no digits`() throws {
    let bad: [[UInt8]] = [
      [0xd9], [0xd9, 0x21], [0xd9, 0xd9], [0xa0], [0xc2], [0xe2, 0x80], [0xe0, 0x99, 0xa1],
      [0xed, 0xa0, 0x80], [0xf0, 0x9d, 0x9f], [0xf8, 0x80, 0x80, 0x80, 0x80], [0xff],
    ]
    for bytes in bad {
      for typed in [Array("12345".utf8) + bytes, bytes + Array("12345".utf8)] {
        #expect(try classify(typed).malformation == .characters, "\(bytes)")
      }
    }
  }

  // shows: odd-response
  @Test(arguments: [513, 4096, 65536])
  func `beyond 512 bytes is too long, whatever it consists of`(count: Int) throws {
    #expect(try classify([UInt8](repeating: 0x31, count: count)).malformation == .tooLong)
    #expect(try classify([UInt8](repeating: 0x20, count: count)).malformation == .tooLong)
  }

  /// Also 262 and 512, which are 6 and 0 where only one byte of the count is looked at.
  @Test func `of any other number of digits up to 512 is malformed`() throws {
    for count in 1...512 where count != 6 {
      let typed = [UInt8](repeating: 0x30, count: count)
      #expect(try classify(typed).malformation == .length, "\(count)")
    }
  }

  @Test func `that sshd makes up for a forbidden user is told at any length`() throws {
    for count in 1...512 {
      let typed = (0..<count).map { Self.sshdDummy[$0 % Self.sshdDummy.count] }
      #expect(try classify(typed).malformation == .sshdDummy)
    }
    #expect(try classify(Array(Self.sshdDummy.dropFirst())).malformation == .characters)
  }

  @Test(arguments: [
    "7KMF-2X9Q-D4TW-0HZA", "7kmf2x9qd4tw0hza", " 7KMF 2X9Q D4TW 0HZA ", "7KMF-2X9Q-D4TW-OHZA",
    "7kmf-2x9q-d4tw-ohza", "7-K-M-F-2-X-9-Q-D-4-T-W-0-H-Z-A", "7KMF-2X9Q-D4TW-0HZA\t",
  ]) func `that spells a backup code has its digest`(typed: String) throws {
    guard case .backupCode(let digest) = try classify(Array(typed.utf8)) else {
      Issue.record("\(typed) is no backup code")
      return
    }
    #expect(try digest == backupCodes(["7KMF2X9QD4TW0HZA"]).digests[0])
  }

  @Test(arguments: ["1111-1111-1111-111A", "iiii-llll-IIII-LLLA", "1iLl-1IlL-1111-illa"])
  func `may spell 1 as I or L`(typed: String) throws {
    guard case .backupCode(let digest) = try classify(Array(typed.utf8)) else {
      Issue.record("\(typed) is no backup code")
      return
    }
    #expect(try digest == backupCodes(["111111111111111A"]).digests[0])
  }

  // shows: odd-response
  @Test func `of any bytes is classified`() throws {
    var random = Seeded(4)
    let likely = [UInt8]("0123456789 -\tABCU\u{8}\n\r\u{7f}INCORRECT".utf8)
    for _ in 0..<5000 {
      let count = random.pick([1, 6, 7, 8, 16, 19, 600])
      let isNearly = random.flip()
      let typed = (0..<count).map { _ in isNearly ? random.pick(likely) : random.byte() }
      _ = try classify(typed, digits: [.six, .eight])
    }
  }
}

/// A text with `\\u{…}` for what nobody would see.
private func unescaped(_ text: Substring) -> [UInt8] {
  var (result, rest) = ("", text)
  while let start = rest.firstRange(of: "\\u{") {
    let end = rest[start.upperBound...].firstIndex(of: "}") ?? rest.endIndex
    let scalar = UInt32(rest[start.upperBound..<end], radix: 16).flatMap(Unicode.Scalar.init)
    result += rest[..<start.lowerBound] + (scalar.map { String(Character($0)) } ?? "?")
    rest = rest[end...].dropFirst()
  }
  return Array((result + rest).utf8)
}

extension Response {
  /// To compare.
  fileprivate var facts: String {
    switch self {
    case .code(let value, let digits): "\(value) of \(digits.rawValue)"
    case .backupCode(let digest), .pass(let digest): "\(digest)"
    case .malformed(let malformation): "\(malformation)"
    }
  }
}

@Suite struct `A password and a code in one field` {
  private func split(_ typed: [UInt8], _ lengths: [Digits]) throws -> [[UInt8]]? {
    try Response.split(secret(typed), hasCodes: lengths.contains).map {
      [bytes($0.password), bytes($0.code)]
    }
  }

  @Test(arguments: [
    ("secret123456", [Digits.six], "secret", "123456"),
    ("secret 123456", [.six], "secret ", "123456"),
    ("  secret123456 \t ", [.six], "  secret", "123456"),
    ("123456", [.six], "", "123456"),
    ("secret12123456", [.six], "secret12", "123456"),
    ("secret12345678", [.six, .eight], "secret", "12345678"),
    ("secret12345678", [.eight, .six], "secret", "12345678"),
    ("secret1234567", [.six, .eight], "secret1", "234567"),
    ("secret1234567", [.seven], "secret", "1234567"),
    ("12345678", [.six], "12", "345678"),
    ("se-cret7KMF-2X9Q-D4TW-0HZA", [.six], "se-cret", "7KMF-2X9Q-D4TW-0HZA"),
    ("secret7kmf-2x9q-d4tw-ohza  ", [.six], "secret", "7kmf-2x9q-d4tw-ohza"),
    ("7KMF-2X9Q-D4TW-0HZA", [.six], "", "7KMF-2X9Q-D4TW-0HZA"),
    ("x7KMF-2X9Q-D4TW-0HZA", [], "x", "7KMF-2X9Q-D4TW-0HZA"),
    ("pässwörd123456", [.six], "pässwörd", "123456"),
    ("secret123456\u{a0}\r", [.six], "secret", "123456"),
    (
      "secret\u{661}\u{662}\u{663}\u{664}\u{665}\u{666}\u{200f} ", [.six], "secret",
      "\u{661}\u{662}\u{663}\u{664}\u{665}\u{666}"
    ),
    ("s7KMF-2X9Q-D4TW-0HZA\u{2009}", [.six], "s", "7KMF-2X9Q-D4TW-0HZA"),
    ("secret１２３４５６", [.six], "secret", "１２３４５６"),
    ("٣٤123456", [.six, .eight], "٣٤", "123456"), ("12١٢٣٤٥٦", [.six, .eight], "12", "١٢٣٤٥٦"),
    ("٣٤١٢٣٤٥٦", [.six, .eight], "", "٣٤١٢٣٤٥٦"), ("٣٤١٢٣٤٥٦ ", [.six], "٣٤", "١٢٣٤٥٦"),
    (
      "a\u{1d7ce}\u{1d7d0}\u{1d7d1}\u{1d7d2}\u{1d7d3}\u{1d7d4}", [.six], "a",
      "\u{1d7ce}\u{1d7d0}\u{1d7d1}\u{1d7d2}\u{1d7d3}\u{1d7d4}"
    ),
    ("a\0b123456", [.six], "a\0b", "123456"),
  ]) func `are parted before the longest code`(
    typed: String, lengths: [Digits], password: String, code: String
  ) throws {
    #expect(try split(Array(typed.utf8), lengths) == [Array(password.utf8), Array(code.utf8)])
  }

  @Test(arguments: [
    ("", [Digits.six]), ("secret", [.six]), ("secret12345", [.six]), ("123456", [.eight]),
    ("123456", []), ("secret123 456", [.six]), ("secret123456\n", [.six]), ("      ", [.six]),
    ("7KMF2X9QD4TW0HZA", [.six]), ("KMF-2X9Q-D4TW-0HZA", [.six]), ("7KMF-2X9Q-D4TW-0HZU", [.six]),
    ("secret123456-", [.six]), ("secret123456\u{2013}", [.six]),
    // Digits of two writings are no run.
    ("secret１２３456", [.six]), ("secret²²²²²²", [.six]), ("secret12345\u{661}", [.six]),
  ]) func `without a code at the end are not parted`(typed: String, lengths: [Digits]) throws {
    #expect(try split(Array(typed.utf8), lengths) == nil)
  }

  @Test func `of any bytes lose nothing but blanks at the end`() throws {
    var random = Seeded(5)
    let likely = [UInt8]("0123456789-AZ \t".utf8)
    for _ in 0..<5000 {
      let typed = (0..<random.number(0...40)).map { _ in random.pick(likely) }
      guard let parts = try split(typed, [.six, .eight]) else { continue }
      let whole = parts[0] + parts[1]
      #expect(typed.starts(with: whole))
      #expect(typed.dropFirst(whole.count).allSatisfy { $0 == 0x20 || $0 == 0x09 })
    }
  }
}

@Suite struct `A backup code` {
  /// Wanted: base32 of the 80 bits in Crockford's alphabet, by another program (Python).
  // shows: long-codes
  @Test(arguments: [
    ([UInt8](0..<10), "000G40R40M30E209"),
    ([UInt8](repeating: 0xff, count: 10), "ZZZZZZZZZZZZZZZZ"),
    ([0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0x1f], "G00000000000000Z"),
  ]) func `spells ten random bytes`(random: [UInt8], wanted: String) throws {
    let code = try #require(BackupCode.make(from: secret(random)))
    #expect(text(code) == wanted)
  }

  // decisive
  @Test func `is never all digits, and never made of another number of bytes`() throws {
    #expect(try BackupCode.make(from: secret([UInt8](repeating: 0, count: 10))) == nil)
    for count in [0, 1, 9, 11, 100] {
      #expect(try BackupCode.make(from: secret([UInt8](repeating: 0xff, count: count))) == nil)
    }
  }

  @Test func `is shown in four groups`() throws {
    #expect(try BackupCode.grouped(secret("7KMF2X9QD4TW0HZA")) == "7KMF-2X9Q-D4TW-0HZA")
  }

  @Test func `is recognised as it is shown, whatever its bytes`() throws {
    var random = Seeded(6)
    for _ in 0..<500 {
      guard let code = try BackupCode.make(from: secret(random.bytes(10))) else { continue }
      let set = try backupCodes([text(code)])
      let enrollment = try enrollment([authenticator()], backupCodes: set)
      let typed = try secret(BackupCode.grouped(code))
      guard case .backupCode(let digest) = try Response.classify(typed, for: enrollment) else {
        Issue.record("\(text(code)) is not recognised")
        continue
      }
      #expect(digest == set.digests[0])
      let parted = try #require(
        Response.split(try secret("pw1" + BackupCode.grouped(code)), hasCodes: { $0 == .six }))
      #expect(text(parted.password) == "pw1")
    }
  }

  @Test func `is counted as left until it is used, in its own set`() throws {
    let set = try backupCodes(["AAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBB", "CCCCCCCCCCCCCCCC"], id: 7)
    #expect(set.left(nil) == 3)
    #expect(set.left(BackupCodeState(setID: 7, used: 0b101)) == 1)
    #expect(set.left(BackupCodeState(setID: 7, used: .max)) == 0)
    #expect(set.left(BackupCodeState(setID: 7, used: 0b1000)) == 3)
    #expect(set.left(BackupCodeState(setID: 8, used: .max)) == 3)
  }
}

extension Response {
  var malformation: Malformation? {
    switch self {
    case .malformed(let malformation): malformation
    case .code, .backupCode, .pass: nil
    }
  }
}
