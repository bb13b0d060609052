import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@testable import SallyportImport
@testable import SallyportSupport

@Suite struct `A google-authenticator file` {
  private func parse(_ text: String) throws(LineProblem) -> GoogleAuthenticatorFile {
    guard let bytes = Secret(Array(text.utf8)) else { throw LineProblem(0, .outOfMemory) }
    return try GoogleAuthenticatorFile.parse(bytes)
  }

  private func problem(_ text: String) -> LineProblem? {
    do throws(LineProblem) {
      _ = try parse(text)
      return nil
    } catch {
      return error
    }
  }

  @Test func `is read whole, whatever the order and the line ends`() throws {
    for end in ["\n", "\r\n"] {
      let file = try parse(
        [
          "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "12345678", "\" RATE_LIMIT 3 30 1700000000", "",
          "\" WINDOW_SIZE 17", "  87654321", "\" DISALLOW_REUSE 59084280 59084283 59084281",
          "\" TIME_SKEW -2", "\" STEP_SIZE 60", "\" LAST0 host 1700000000", "\" TOTP_AUTH", "",
        ].joined(separator: end))
      #expect(text(file.secret) == "12345678901234567890")
      #expect(file.kind == .totp(period: 60))
      #expect(file.usedSteps == [59_084_280, 59_084_283, 59_084_281])
      #expect(file.window == 17 && file.skew == -2)
      #expect(file.scratchCodes.map(text) == ["12345678", "87654321"])
      #expect(file.deadScratchCodes == 0)
    }
  }

  // decisive
  @Test(arguments: [
    ("GEZDGNBVGY3TQOJQ", "31323334353637383930"), ("gezd gnbv-gy3t\tqojq", "31323334353637383930"),
    // 0, 1 and 8 stand for O, L and B; bits that fill no byte are dropped.
    ("GEZDGNBVGY3TQ0JQ", "31323334353637383930"), ("1B", "58"), ("LB", "58"), ("L8", "58"),
    ("GEZDGNBVGY3TQOJQG", "31323334353637383930"), ("77", "ff"), ("777", "ff"),
  ]) func `has its secret on the first line`(line: String, wanted: String) throws {
    let file = try parse("\(line)\n\" TOTP_AUTH\n")
    #expect(String(decoding: hexadecimal(bytes(file.secret)), as: UTF8.self) == wanted)
  }

  @Test(arguments: [
    ("\" TOTP_AUTH", GoogleAuthenticatorFile.Kind.totp(period: 30)),
    ("\" TOTP_AUTH_X", .totp(period: 30)), ("junk \" TOTP_AUTH", .totp(period: 30)),
    ("\" HOTP_COUNTER 1", .hotp(next: 1)), ("\" HOTP_COUNTER 77", .hotp(next: 77)),
    ("\" HOTP_COUNTER 5\n\" TOTP_AUTH", .hotp(next: 5)),
    ("\" HOTP_COUNTER 0\n\" TOTP_AUTH", .totp(period: 30)),
    ("\" HOTP_COUNTER x\n\" TOTP_AUTH", .totp(period: 30)),
    ("\" TOTP_AUTH\n\" STEP_SIZE 60\n\" STEP_SIZE 20", .totp(period: 60)),
    ("\" HOTP_COUNTER 9223372036854775807", .hotp(next: 9_223_372_036_854_775_807)),
  ]) func `is by counter where there is one, else by time`(
    lines: String, wanted: GoogleAuthenticatorFile.Kind
  ) throws {
    #expect(try parse("GEZDGNBVGY3TQOJQ\n\(lines)\n").kind == wanted)
  }

  @Test(arguments: [
    ("", LineProblem(1, .empty)), ("\n", LineProblem(1, .base32)),
    ("GEZ=\n\" TOTP_AUTH\n", LineProblem(1, .base32)),
    ("A\n\" TOTP_AUTH\n", LineProblem(1, .base32)),
    ("GEZDGNB9\n\" TOTP_AUTH\n", LineProblem(1, .base32)),
    ("\" TOTP_AUTH\nGEZDGNBVGY3TQOJQ\n", LineProblem(1, .base32)),
    ("GEZDGNBVGY3TQOJQ\n", LineProblem(1, .noType)),
    ("GEZDGNBVGY3TQOJQ\n12345678\n", LineProblem(1, .noType)),
    ("GEZDGNBVGY3TQOJQ\n\" HOTP_COUNTER 0\n", LineProblem(1, .noType)),
    ("GEZDGNBVGY3TQOJQ\n\" HOTP_COUNTER -1\n", LineProblem(1, .noType)),
    ("GEZDGNBVGY3TQOJQ\n\n\" STEP_SIZE 10\n\" TOTP_AUTH\n", LineProblem(3, .period(10))),
    ("GEZDGNBVGY3TQOJQ\0\n\" TOTP_AUTH\n", LineProblem(1, .notText)),
    (
      "GEZDGNBVGY3TQOJQ\n\" TOTP_AUTH\n\" STEP_SIZE 61\n",
      LineProblem(3, .option("STEP_SIZE"))
    ),
    (
      "GEZDGNBVGY3TQOJQ\n\" TOTP_AUTH\n\" WINDOW_SIZE 0\n",
      LineProblem(3, .option("WINDOW_SIZE"))
    ),
    (
      "GEZDGNBVGY3TQOJQ\n\" TOTP_AUTH\n\" WINDOW_SIZE 3x\n",
      LineProblem(3, .option("WINDOW_SIZE"))
    ),
  ]) func `is refused with its line`(text: String, wanted: LineProblem) {
    #expect(problem(text) == wanted)
  }

  @Test func `may be as long as the other module reads, and no longer`() throws {
    let start = "GEZDGNBVGY3TQOJQ\n\" TOTP_AUTH\n"
    let most = start + String(repeating: "\n", count: 65536 - start.utf8.count)
    #expect(problem(most) == nil)
    #expect(problem(most + "\n") == LineProblem(1, .tooLong))
  }

  @Test(
    arguments: [
      ("12345678\n87654321\n", ["12345678", "87654321"], 0),
      ("12345678", ["12345678"], 0), ("12345678\r\n87654321", ["12345678", "87654321"], 0),
      ("\n  12345678\n\n\" X\n\t87654321\n", ["12345678", "87654321"], 0),
      ("012345678\n", ["12345678"], 0), ("12345678\n12345678\n", ["12345678"], 0),
      // The other module stops for good at the first line that is none of these.
      ("12345678\nnote\n87654321\n", ["12345678"], 1), ("1234567\n87654321\n", [], 1),
      ("01234567\n87654321\n", [], 1), ("12345678 \n87654321\n", [], 1),
      ("12345678 87654321\n", [], 0), ("123456789\n", [], 0), ("# 12345678\n", [], 0),
    ] as [(String, [String], Int)])
  func `has scratch codes of eight digits`(lines: String, wanted: [String], dead: Int) throws {
    let file = try parse("GEZDGNBVGY3TQOJQ\n\" TOTP_AUTH\n\(lines)")
    #expect(file.scratchCodes.map(text) == wanted)
    #expect(file.deadScratchCodes == dead)
  }

  @Test(
    arguments: [
      ("\" DISALLOW_REUSE", [UInt64]()), ("\" DISALLOW_REUSE 5 x 7", nil),
      ("\" DISALLOW_REUSE\t18446744073709551616 9", nil),
      ("\" DISALLOW_REUSE\t5\t9", [5, 9]), ("\" DISALLOW_REUSEX 5", nil), ("", nil),
      ("\"DISALLOW_REUSE 5", nil), (" \" DISALLOW_REUSE 5", nil),
      ("\" DISALLOW_REUSE 3\n\" DISALLOW_REUSE 8", [3]),
    ] as [(String, [UInt64]?)])
  func `names the steps that were used`(line: String, wanted: [UInt64]?) throws {
    #expect(try parse("GEZDGNBVGY3TQOJQ\n\" TOTP_AUTH\n\(line)\n").usedSteps == wanted)
  }

  /// Every file that one byte, or the end, is lost of, and many that are mangled at random.
  // decisive
  @Test func `never brings the reader down`() throws {
    let whole = Array(
      "GEZDGNBVGY3TQOJQ\n\" HOTP_COUNTER 5\n\" DISALLOW_REUSE 5 6\n12345678\n\" TOTP_AUTH\n".utf8)
    var texts = whole.indices.map { Array(whole[..<$0]) }
    var random = SystemRandomNumberGenerator()
    for _ in 0..<3000 {
      var text = whole
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        text[Int.random(in: 0..<text.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      texts.append(text)
    }
    for text in texts {
      let bytes = try #require(Secret(text))
      _ = try? GoogleAuthenticatorFile.parse(bytes)
      _ = UsersOath(bytes)
      _ = URIList(bytes, isOneUsers: true)
    }
  }

  // decisive
  @Test(arguments: [
    ("~/x", "/h/x"), ("${HOME}/x", "/h/x"), ("/v/${USER}/x", "/v/bob/x"), ("/v/%u%h", "/v/bob/h"),
    ("/v/~", "/v/~"), ("/a/$USER", "/a/$USER"),
  ]) func `knows the words of secret=`(template: String, wanted: String) throws {
    let bob = try #require(UserName(Array("bob".utf8)))
    #expect(HomePath(template).path(for: bob, home: "/h") == wanted)
  }
}

@Suite struct `A line of a users file` {
  private func line(_ text: String) throws -> UsersOathLine {
    try #require(UsersOath(try secret(text)).lines.first)
  }

  private func token(_ text: String) throws -> UsersOathToken { try line(text).token.get() }

  static let key = "3132333435363738393031323334353637383930"

  @Test(arguments: [
    ("HOTP", AuthenticatorType.hotp, Digits.six, false), ("HOTP/E", .hotp, .six, false),
    ("HOTP/E/6", .hotp, .six, true), ("HOTP/E/8", .hotp, .eight, true),
    ("HOTP/T30", .totp(period: 30), .six, false), ("HOTP/T30/7", .totp(period: 30), .seven, true),
    ("HOTP/T60/8", .totp(period: 60), .eight, true), ("HOTP/T60", .totp(period: 60), .six, false),
  ]) func `says type, period and digits`(
    type: String, wanted: AuthenticatorType, digits: Digits, says: Bool
  ) throws {
    let token = try token("\(type) alice - \(Self.key)")
    #expect(token.type == wanted && token.digits == digits && token.saysDigits == says)
    #expect(text(token.key) == "12345678901234567890")
  }

  @Test(arguments: [
    "TOTP alice - 00", "HOTP/T45 alice - 00", "hotp alice - 00", "HOTP/E/5 alice - 00",
    "HOTP/E/9 alice - 00", "HOTP/T30/6/ alice - 00", "HOTP/ alice - 00", "HOTPX alice - 00",
    "MOTP alice - 00",
  ]) func `of no type that pam_oath knows is refused`(text: String) throws {
    let line = try line(text)
    #expect(throws: SourceProblem.unknownType) { try line.token.get() }
    #expect(line.user == Array("alice".utf8))
  }

  @Test func `is passed over where pam_oath would and nobody meant a token`() throws {
    let list = UsersOath(
      try secret("# HOTP alice - 00\n\n   \n\t\nnote\nHOT\nHOTP/E bob - \(Self.key)"))
    #expect(list.lines.map(\.number) == [7])
    #expect(list.lines.map(\.user) == [Array("bob".utf8)])
  }

  @Test(
    arguments: [
      ("00ff", "00ff"), ("AbCd", "abcd"), (String(repeating: "5a", count: 32), nil),
    ] as [(String, String?)])
  func `has its key in hexadecimal`(key: String, wanted: String?) throws {
    let token = try token("  HOTP\talice  -\t\(key)\r")
    #expect(String(decoding: hexadecimal(bytes(token.key)), as: UTF8.self) == wanted ?? key)
  }

  @Test(arguments: [
    ("HOTP alice -", SourceProblem.tooFewWords), ("HOTP alice", .tooFewWords),
    ("HOTP", .tooFewWords), ("HOTP alice - 123", .hexadecimal), ("HOTP alice - 12g4", .hexadecimal),
    ("HOTP alice - 0x12", .hexadecimal),
    ("HOTP alice - " + String(repeating: "5a", count: 33), .keyTooLong),
    ("HOTP alice - 3132 5x", .counter), ("HOTP alice - 3132 0x5", .counter),
    ("HOTP alice - 3132 -1", .counter), ("HOTP alice - 3132 18446744073709551616", .counter),
    ("HOTP alice - 3132 5 123456 yesterday", .date),
    ("HOTP alice - 3132 5 123456 2026-03-03T09:12:00", .date),
    ("HOTP alice - 3132 5 123456 2026-13-03T09:12:00L", .date),
    ("HOTP alice - 3132 5 123456 2026-03-03T24:12:00L", .date),
  ]) func `is refused with the reason`(text: String, wanted: SourceProblem) throws {
    let line = try line(text)
    #expect(throws: wanted) { try line.token.get() }
  }

  @Test(arguments: [("-", false), ("+", false), ("secret", true), ("--", true), ("-+", true)])
  func `may hold a clear-text password`(password: String, wanted: Bool) throws {
    #expect(try token("HOTP alice \(password) \(Self.key)").hasPassword == wanted)
  }

  @Test func `goes on with counter, last code and time`() throws {
    let token = try token("HOTP/T30 alice - \(Self.key) 7 012345 2026-03-03T09:12:01L and more")
    #expect(token.counter == 7)
    #expect(token.lastCode == UsersOathToken.UsedCode(value: 12345, digits: .six))
    #expect(
      token.lastUse
        == CalendarDate(year: 2026, month: 3, day: 3, hour: 9, minute: 12, second: 1))
    #expect(try self.token("HOTP alice - \(Self.key) 7 -").lastCode == nil)
    #expect(
      try self.token("HOTP alice - \(Self.key) 7 abc").lastCode
        == UsersOathToken.UsedCode(value: 0, digits: nil))
    #expect(try self.token("HOTP alice - \(Self.key)").counter == 0)
  }
}

@Suite struct `A list of URIs` {
  static let uri = "otpauth://hotp/Corp:al%20ice?secret=JBSWY3DPEHPK3PXP&counter=7&digits=8"

  @Test func `has a user and a URI on each line`() throws {
    let list = URIList(
      try secret("# exported\n\nalice  \(Self.uri)\n\tbob\t\(Self.uri)&issuer=My Corp\r\n"),
      isOneUsers: false)
    #expect(list.lines.map(\.number) == [3, 4])
    #expect(list.lines.map { String(decoding: $0.user, as: UTF8.self) } == ["alice", "bob"])
    for line in list.lines {
      let uri = try line.uri.get()
      #expect(uri.counter == 7 && uri.parameters.digits == .eight && uri.secret.count == 10)
    }
  }

  @Test(arguments: [
    ("\"john doe\" ", "john doe"), ("\"doe, john\"\t", "doe, john"), ("EX\\john ", "EX\\john"),
    ("john,doe ", "john,doe"), ("\"alice\"", "alice"),
  ]) func `takes a name in quotes with its spaces`(start: String, wanted: String) throws {
    let list = URIList(try secret(start + Self.uri), isOneUsers: false)
    #expect(list.lines.map { String(decoding: $0.user, as: UTF8.self) } == [wanted])
    #expect(try list.lines.map { try $0.uri.get().counter } == [7])
  }

  @Test func `of one user has URIs alone`() throws {
    let list = URIList(try secret("\(Self.uri)\n\(Self.uri)"), isOneUsers: true)
    #expect(list.lines.map(\.number) == [1, 2])
    #expect(list.lines.allSatisfy { (try? $0.uri.get()) != nil })
  }

  @Test(arguments: [
    ("alice", SourceProblem.tooFewWords), ("alice https://x", .uri(.scheme)),
    ("\"john doe \(uri)", .quote), ("\"\(uri)", .quote), ("\"\" \(uri)", .quote),
    ("john doe \(uri)", .quote), ("john van doe \(uri)", .quote),
    ("otpauth://totp/x?secret=JBSWY3DP alice", .uri(.scheme)),
    ("alice otpauth://totp/x", .uri(.missing(.secret))),
    ("alice otpauth://totp/x?secret=JBSWY3DP&digits=5", .uri(.range(.digits, found: 5))),
  ]) func `tells what is wrong with a line`(text: String, wanted: SourceProblem) throws {
    let line = try #require(URIList(try secret(text), isOneUsers: false).lines.first)
    #expect(throws: wanted) { try line.uri.get() }
  }
}
