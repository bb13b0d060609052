import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `A label` {
  @Test(arguments: [
    "a", "phone", "Alice's phone", "é", "電話", "😀", "a=b", "#1", "[x]", "\u{a0}",
    String(repeating: "x", count: 64), String(repeating: "é", count: 32),
  ]) func `is 1 to 64 bytes of what can be shown`(text: String) throws {
    #expect(try label(text).text == text)
  }

  /// Blank ones and those that a terminal may ignore: names look like `phone`, or like nothing.
  @Test(arguments: [
    "\u{3164}", "\u{2800}", "\u{fe0f}", "phone\u{fe0f}", "pho\u{34f}ne", "\u{a0}", "a\u{3000}b",
    "\u{115f}", "\u{ffa0}",
  ]) func `is not clear with what nobody sees, and is read all the same`(text: String) throws {
    #expect(try !label(text).isClear)
  }

  @Test(arguments: ["phone", "my phone", "é", "電話", "😀", "Alice's phone", "Τηλέφωνο"])
  func `is clear with what can be seen`(text: String) throws {
    #expect(try label(text).isClear)
  }

  /// Wanted of Unicode's tables, which the module does not carry.
  @Test func `is not clear with any character that Unicode lets a terminal ignore`() throws {
    for value in UInt32(0x80)...0x10ffff {
      guard let scalar = Unicode.Scalar(value), let one = Label(Array(String(scalar).utf8)) else {
        continue
      }
      let isBlank = scalar.properties.isWhitespace
      if scalar.properties.isDefaultIgnorableCodePoint || isBlank {
        #expect(!one.isClear, "\(value)")
      }
    }
  }

  @Test(arguments: [
    ("phone", "Phone"), ("phone", "ph\u{43e}ne"), ("copy", "\u{441}\u{43e}\u{440}\u{443}"),
    ("phone", "ph0ne"), ("l1", "Il"), ("phone", "\u{ff50}hone"), ("KEY", "\u{39a}\u{395}\u{3a5}"),
    ("x", "\u{445}"), ("j", "\u{458}"), ("d", "\u{501}"), ("q", "\u{51b}"),
  ]) func `looks like another one with letters of the same form`(one: String, other: String) throws
  {
    #expect(try label(one).looksLike(try label(other)))
    #expect(try label(other).looksLike(try label(one)))
  }

  @Test(arguments: [
    ("phone", "phone-2"), ("phone", "phones"), ("phone-1", "phone-2"), ("a", "b"), ("é", "e"),
    ("Ω", "O"), ("電話", "電車"),
  ]) func `does not look like another one otherwise`(one: String, other: String) throws {
    #expect(try !label(one).looksLike(try label(other)))
  }

  // shows: hostile-uri
  @Test(arguments: [
    "", " ", " phone", "phone ", "  ", "a\tb", "a\nb", "a\0b", "\u{1b}[31m", "\u{7f}", "\u{85}",
    "a\u{202e}b", "a\u{2066}b", "a\u{200b}b", "a\u{2028}b", "\u{feff}a", "a\u{ad}b", "a\u{fffe}",
    "a\u{e0041}", "a\u{10ffff}", String(repeating: "x", count: 65),
    String(repeating: "é", count: 32) + "x",
  ]) func `deceives nobody`(text: String) {
    #expect(Label(Array(text.utf8)) == nil)
  }

  @Test(
    arguments: [
      [0x80], [0xc3], [0xc3, 0x28], [0xc0, 0x80], [0xc0, 0xaf], [0xc1, 0xbf], [0xe0, 0x80, 0xaf],
      [0xe0, 0x9f, 0xbf], [0xf0, 0x80, 0x80, 0xaf], [0xf0, 0x8f, 0xbf, 0xbf], [0xed, 0xa0, 0x80],
      [0xed, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xfe], [0xff],
      [0xe2, 0x82], [0x61, 0xe2, 0x82], [0xf0, 0x9f, 0x98],
    ] as [[UInt8]]) func `is well-formed UTF-8`(bytes: [UInt8])
  {
    #expect(Label(bytes) == nil)
    #expect(Label([0x61] + bytes + [0x61]) == nil)
  }

  /// Wanted: the categories of the Unicode tables, which the module itself does not carry.
  @Test func `has no character of the categories that show nothing or something else`() {
    for value in UInt32(0)...0x10ffff {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let isShown = Label.isPresentable(Array(String(scalar).utf8))
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator:
        #expect(!isShown, "U+\(String(value, radix: 16))")
      case .unassigned: if value & 0xfffe == 0xfffe { #expect(!isShown) }
      case _:
        // Of the rest only the variation selectors of plane 14 are refused.
        #expect(isShown == !(0xe0100...0xe01ef).contains(value), "U+\(String(value, radix: 16))")
      }
    }
  }

  @Test func `is compared as bytes`() throws {
    #expect(try label("é") != label("e\u{301}"))
  }
}

@Suite struct `A user name` {
  // shows: hostile-uri, forged-line
  @Test func `may have any byte but NUL, control characters and a slash`() {
    for byte in UInt8.min...UInt8.max {
      let isTaken = byte >= 0x20 && byte != 0x7f && byte != 0x2f
      #expect((UserName([0x61, byte, 0x61]) != nil) == isTaken)
      let isFirst = isTaken && byte != 0x2e && byte != 0x2d && byte != 0x20
      #expect((UserName([byte, 0x61]) != nil) == isFirst)
      #expect((UserName([0x61, byte]) != nil) == (isTaken && byte != 0x20))
    }
  }

  @Test(arguments: [(0, false), (1, true), (255, true), (256, false), (65536, false)])
  func `has 1 to 255 bytes`(count: Int, isTaken: Bool) {
    #expect((UserName([UInt8](repeating: 0x61, count: count)) != nil) == isTaken)
  }

  @Test(arguments: [
    ("alice", "alice"), ("Alice.B_2-x@corp", "Alice.B_2-x@corp"), ("john doe", "john%20doe"),
    ("CORP\\alice", "CORP%5Calice"), ("a%b", "a%25b"), ("%%", "%25%25"), ("a$", "a%24"),
    ("é", "%C3%A9"), ("a.", "a."), ("~", "%7E"), ("a+b", "a%2Bb"), ("..x", nil),
  ]) func `is a file name that says the same`(name: String, wanted: String?) throws {
    let found = UserName(Array(name.utf8))?.fileName
    #expect(found.map { String(decoding: $0, as: UTF8.self) } == wanted)
  }

  @Test func `has a file name of its own`() throws {
    var random = Seeded(50)
    var names: [[UInt8]: [UInt8]] = [:]
    for _ in 0..<5000 {
      let name = random.userName()
      guard let file = name.fileName else { continue }
      #expect(names.updateValue(name.bytes, forKey: file).map { $0 == name.bytes } ?? true)
      #expect(file.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x2f } && file.first != 0x2e)
      #expect(!file.starts(with: Array("%%".utf8)))
    }
  }

  @Test func `of more than 200 bytes as a file name is hashed`() throws {
    let longest = try #require(UserName([UInt8](repeating: 0x61, count: 200)))
    #expect(longest.fileName?.count == 200)
    #expect(UserName([UInt8](repeating: 0x61, count: 201))?.fileName == nil)
    #expect(UserName([UInt8](repeating: 0xff, count: 66))?.fileName?.count == 198)
    #expect(UserName([UInt8](repeating: 0xff, count: 67))?.fileName == nil)
    let hash = UserName.hashedFileName(sha256: try SHA256.digest(Array("abc".utf8)))
    #expect(
      String(decoding: hash, as: UTF8.self)
        == "%%ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }

  @Test func `is shown as printable ASCII`() throws {
    #expect(UserName([0x61, 0xff, 0x20, 0x62])?.text == "a%FF b")
  }
}

/// One field of a log line.
private func logField(_ bytes: [UInt8], limit: Int = 64) -> String {
  String(decoding: escaped(bytes, limit: limit, asField: true), as: UTF8.self)
}

@Suite struct `Small text` {
  @Test func `is printable for any bytes, and no longer than its limit`() {
    for byte in UInt8.min...UInt8.max {
      let plain = printable([byte])
      #expect(plain.utf8.allSatisfy { (0x20...0x7e).contains($0) })
      let field = logField([byte])
      #expect(field.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x3d })
    }
    #expect(printable([UInt8](repeating: 0x61, count: 64)).utf8.count == 64)
    #expect(printable([UInt8](repeating: 0x61, count: 65)).utf8.count == 67)
    #expect(printable([UInt8](repeating: 0, count: 65536), limit: 2) == "%00%00...")
    #expect(logField([UInt8](repeating: 0x20, count: 65536), limit: 2) == "%20%20...")
    #expect(printable([]) == "" && logField([]) == "")
  }

  // shows: forged-line
  @Test(arguments: [
    ("alice", "alice"), ("alice origin=127.0.0.1", "alice%20origin%3D127.0.0.1"),
    ("a\" b=\"", "a%22%20b%3D%22"), ("50%", "50%25"), ("CORP\\bob", "CORP\\bob"),
    ("a\nb", "a%0Ab"), ("é", "%C3%A9"),
  ]) func `in one field of a log line cannot look like another`(text: String, wanted: String) {
    #expect(logField(Array(text.utf8)) == wanted)
  }

  @Test(arguments: [
    ("0", UInt64?.some(0)), ("007", 7), ("18446744073709551615", .max),
    ("18446744073709551616", nil),
    ("99999999999999999999999", nil), ("", nil), ("-1", nil), ("+1", nil), (" 1", nil), ("1 ", nil),
    ("0x1", nil), ("1e3", nil), ("１", nil), ("1\0", nil),
  ]) func `is a decimal number or none`(text: String, wanted: UInt64?) {
    #expect(decimal(Array(text.utf8)) == wanted)
  }

  @Test(arguments: [0, 9, 10, 1_000_000, UInt64.max - 1, UInt64.max])
  func `of a number is read as that number`(number: UInt64) {
    #expect(decimalText(number) == Array(String(number).utf8))
    #expect(decimal(decimalText(number)) == number)
    let hex = hexadecimal(number)
    #expect(hex.count == 16 && UInt64(String(decoding: hex, as: UTF8.self), radix: 16) == number)
  }

  private func octets(_ text: [UInt8]) throws -> [UInt8]? {
    try secret(text).octets(text.count / 2, spelledIn: 0..<text.count)
  }

  @Test(arguments: [
    ("", [UInt8]?.some([])), ("00ff", [0, 255]), ("ABcd", [0xab, 0xcd]), ("0", nil), ("0g", nil),
    ("0x", nil), ("00 ", nil), (" 00 ", nil), ("-1", nil), ("é", nil),
  ]) func `in hexadecimal is bytes or nothing`(text: String, wanted: [UInt8]?) throws {
    #expect(try octets(Array(text.utf8)) == wanted)
  }

  @Test(arguments: UInt8.min...UInt8.max)
  func `has the hexadecimal digits that Swift has`(character: UInt8) throws {
    let wanted = Character(UnicodeScalar(character)).hexDigitValue.map { UInt8($0) }
    for text in [[character, UInt8(ascii: "1")], [UInt8(ascii: "1"), character]] {
      let read = try octets(text)
      #expect((read == nil) == (wanted == nil))
      #expect(try secret([0] + text + [0]).octets(1, spelledIn: 1..<3) == read)
    }
    #expect(try octets([UInt8(ascii: "0"), character])?.first == wanted)
  }

  @Test(arguments: [-1..<3, 3..<7, 0..<3, 0..<6, 4..<4])
  func `is read from hexadecimal inside the text alone`(range: Range<Int>) throws {
    #expect(try secret("000000").octets(2, spelledIn: range) == nil)
  }

  @Test func `of any bytes is read back from hexadecimal`() throws {
    var random = Seeded(51)
    for count in 0..<200 {
      let some = random.bytes(count)
      #expect(try octets(hexadecimal(some)) == some)
    }
  }
}

@Suite struct `An address` {
  @Test(arguments: [
    ("192.0.2.7", "::ffff:192.0.2.7"), ("2001:db8::1", "2001:db8::ffff:0:0:1"), ("::1", "::2"),
    ("fe80::1", "fe80::2"),
  ]) func `is the same origin in another spelling, or in the same /64`(one: String, two: String)
    throws
  {
    #expect(try #require(NetworkAddress(text: one)) == #require(NetworkAddress(text: two)))
  }

  @Test(arguments: [
    ("192.0.2.7", "192.0.2.8"), ("2001:db8::1", "2001:db8:0:1::1"), ("0.0.0.0", "::"),
    ("::192.0.2.7", "192.0.2.7"), ("::ffff:0:c000:207", "192.0.2.7"),
  ]) func `is another origin`(one: String, two: String) throws {
    #expect(try #require(NetworkAddress(text: one)) != #require(NetworkAddress(text: two)))
  }

  @Test func `has 4 or 16 bytes`() {
    for count in 0...64 {
      let found = NetworkAddress([UInt8](repeating: 1, count: count))
      #expect((found != nil) == (count == 4 || count == 16))
    }
    #expect(NetworkAddress([192, 0, 2, 7])?.ipv4 == 0xc000_0207)
    #expect(NetworkAddress([UInt8](repeating: 1, count: 16))?.ipv4 == nil)
  }
}

@Suite struct `The built-in policy` {
  @Test func `has the documented defaults`() {
    let policy = Policy()
    #expect(policy.adjacentIntervals == 5 && policy.lookAhead == 10)
    #expect(policy.guessBudget == .percent && policy.enrollment == .refuse)
    #expect(Policy.strict.adjacentIntervals == 1 && Policy.strict.enrollment == .refuse)
    #expect(Policy.strict.guessBudget == .percent)
    // Not even who is exempt by name is let in without a code.
    #expect(Policy.strict.level(of: .exempt(until: nil), at: UnixTime(0)) == .refuse)
    #expect(Policy.strict.level(of: .required(from: nil), at: UnixTime(0)) == .refuse)
  }

  @Test(arguments: ["sudo", "sudo-i", "su", "su-l", "login", "polkit-1", "doas", "gdm-password"])
  func `takes these services for local`(service: String) {
    #expect(Policy().isLocal(service: Array(service.utf8)))
  }

  @Test(arguments: ["sshd", "", "sud", "sudo\0", "sudo ", "SUDO", "sudoo", "vsftpd", "cron"])
  func `takes no other service for local`(service: String) {
    #expect(!Policy().isLocal(service: Array(service.utf8)))
  }
}
