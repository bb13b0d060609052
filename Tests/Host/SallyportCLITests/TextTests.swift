import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor
@testable import SallyportSupport

@Suite struct `Texts for people` {
  @Test(arguments: [("ABCD", "ABCD"), ("ABCDE", "ABCD E"), ("ABCDEFGH", "ABCD EFGH")])
  func `A key stands in groups of four`(key: String, shown: String) throws {
    #expect(grouped(try #require(Secret(Array(key.utf8))), after: "Key:") == ["Key: \(shown)"])
  }

  @Test(arguments: [32, 52, 103]) func `No line of a key is wider than a screen`(letters: Int)
    throws
  {
    let key = String((0..<letters).map { Character(Unicode.Scalar(UInt8(65 + $0 % 26))) })
    let lines = grouped(try #require(Secret(Array(key.utf8))), after: "Key to type by hand:")
    #expect(lines.allSatisfy { $0.count <= 80 })
    #expect(lines.joined().replacing("Key to type by hand:", with: "").filter { $0 != " " } == key)
  }

  @Test func `Backup codes stand in two columns`() {
    #expect(columns(ofBackupCodes: ["a", "b", "c"]) == ["    a    b", "    c"])
    #expect(columns(ofBackupCodes: []) == [])
  }

  @Test func `Columns line up and nothing trails`() {
    #expect(
      table([["a", "bb", "c"], ["aaa", "b", "é"], ["x"], ["y", "as wide as it likes"]]) == [
        "a     bb   c", "aaa   b    é", "x", "y     as wide as it likes",
      ])
  }

  @Test(arguments: [(nil, 80), (20, 40), (72, 72), (100, 100), (101, 100), (300, 100)])
  func `Text is as wide as the terminal, 100 columns at most`(columns: Int?, width: Int) {
    let screen = columns.map { Screen(columns: $0, lines: 24, isUTF8: true) }
    #expect(Output(terminal: FakeTerminal(screen: screen), isJSON: false).width == width)
  }

  @Test(arguments: [60, 80, 100])
  func `Many names fill the lines of the terminal, and go no further`(columns: Int) throws {
    let bench = Bench()
    _ = try bench.enroll()
    for name in ["one", "two", "three", "four", "five", "six", "seven"] {
      bench.run(
        "add", "alice", "--name", "the \(name)", "--no-confirm", "--force", "--json")
    }
    let screen = Screen(columns: columns, lines: 24, isUTF8: true)
    let list = bench.run("list", on: FakeTerminal(screen: screen)).answer.split(separator: "\n")
    let lines = list.dropFirst().dropLast().count
    #expect(lines == (columns == 100 ? 2 : columns == 80 ? 4 : 8))
    #expect(list.allSatisfy { $0.count <= columns })
    let people = LevelChange.list("these", list.map(String.init) + ["x"], width: columns)
    #expect(people.allSatisfy { $0.count <= columns })
  }

  @Test func `A long line goes on below`() {
    let parts = ["used today 09:12", "sshd", "192.0.2.7", "clock one step behind"]
    #expect(wrapped(parts, width: 80) == [parts.joined(separator: ", ")])
    #expect(wrapped(parts, width: 36) == ["used today 09:12, sshd, 192.0.2.7,", parts[3]])
    #expect(wrapped(parts, width: 5) == ["used today 09:12,", "sshd,", "192.0.2.7,", parts[3]])
    #expect(wrapped([], width: 5) == [])
  }

  @Test(arguments: [
    (Int32(0), nil), (-1, "one step behind"), (1, "one step ahead"), (-3, "3 steps behind"),
    (Int32.min, "2147483648 steps behind"),
  ]) func `Drift in words`(drift: Int32, text: String?) { #expect(driftText(drift) == text) }

  @Test(arguments: [
    (Int32(0), nil), (-1, "30 s behind"), (3, "90 s ahead"), (4, "2 min ahead"),
    (5, "2 min ahead"), (-40, "20 min behind"), (41, "20 min ahead"), (-239, "1 h behind"),
    (Int32.min, "745654 days behind"),
  ]) func `The offset of a clock is rounded down`(drift: Int32, text: String?) {
    #expect(driftText(drift, .totp(period: 30)) == text)
    if drift == 4 { #expect(driftText(drift, .totp(period: 60)) == "4 min ahead") }
    #expect(driftText(drift, .hotp) == nil)
  }

  @Test(arguments: [
    (UInt64(0), "0 s"), (99, "99 s"), (100, "2 min"), (5999, "100 min"), (6000, "2 h"),
    (72000, "20 h"), (172_799, "48 h"), (172_800, "3 days"), (UInt64.max, "213503982334602 days"),
  ]) func `Durations are rounded up`(seconds: UInt64, text: String) {
    #expect(durationText(seconds) == text)
  }

  @Test(arguments: [
    ((2026, 3, 3), "today 09:05"), ((2026, 3, 4), "yesterday 09:05"),
    ((2026, 3, 5), "3 March 09:05"),
    ((2026, 12, 31), "3 March 09:05"), ((2027, 1, 1), "3 March 2026"),
    ((2026, 3, 2), "3 March 09:05"),
  ]) func `Days are named as they are seen from today`(today: (Int, Int, Int), text: String) {
    let then = CalendarDate(year: 2026, month: 3, day: 3, hour: 9, minute: 5)
    let now = CalendarDate(year: today.0, month: today.1, day: today.2, hour: 0, minute: 1)
    #expect(then.text(seenFrom: now) == text)
  }

  @Test(arguments: [
    ((2027, 1, 1), (2026, 12, 31)), ((2028, 3, 1), (2028, 2, 29)), ((2026, 3, 1), (2026, 2, 28)),
  ])
  func `Yesterday may be in another month or year`(
    today: (Int, Int, Int), yesterday: (Int, Int, Int)
  ) {
    let now = CalendarDate(year: today.0, month: today.1, day: today.2)
    let then = CalendarDate(year: yesterday.0, month: yesterday.1, day: yesterday.2)
    #expect(then.text(seenFrom: now) == "yesterday 00:00")
  }

  @Test func `Programs get times in UTC`() throws {
    #expect(CalendarDate(UnixTime(0), inUTC: true)?.internetText == "1970-01-01T00:00:00Z")
    #expect(
      CalendarDate(UnixTime(1_772_530_000), inUTC: true)?.internetText == "2026-03-03T09:26:40Z")
    #expect(CalendarDate(UnixTime(.max), inUTC: true) == nil)
  }

  // decisive
  @Test func `A word with a hyphen is no option in a printed command`() {
    #expect(sallyportCommand("status", on: ["su"], ["--yes"]) == "sallyport status su --yes")
    #expect(
      sallyportCommand("pam enable", on: ["-rf x", "su"], ["--yes"])
        == "sallyport pam enable --yes -- '-rf x' su")
    var typed = Invocation(verb: "pam enable", user: "-x", store: "/s")
    #expect(typed.command("status", "--json") == "sallyport status --store /s --json -- -x")
    typed.typed = ["pam", "enable", "--", "-rf x"]
    #expect(typed.again("--yes") == "sallyport pam enable --yes -- '-rf x'")
    let lost = LostService(service: "-rf x", fact: "", file: "", since: nil)
    #expect(lost.commands[0] == "sallyport pam enable -- '-rf x'")
  }

  private func echoed(_ quoted: String, by shell: String) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: shell)
    process.arguments = ["-c", "printf %s \(quoted)"]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let printed = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: printed, as: UTF8.self)
  }

  @Test func `A shell takes a quoted word for itself`() throws {
    for word in ["", "plain", "two words", "it's", "$(id)", "a\nb", "-x", "é", "`id`;\"\\"] {
      #expect(try echoed(quotedForPOSIX(word), by: "/bin/sh") == word)
      #expect(try echoed(shellQuoted(word), by: "/bin/bash") == word)
    }
  }

  @Test func `A word to type is what it is, and hides nothing`() throws {
    #expect(shellQuoted("jürgen") == "'jürgen'")
    #expect(shellQuoted("a\nb'\\") == "$'a\\012b\\047\\134'")
    for word in ["\u{1b}[2Jx", "\u{202e}lena", "\u{9b}", "a\u{a0}b", "l\u{200b}ena", "\u{e000}é"] {
      let quoted = shellQuoted(word)
      #expect(quoted.utf8.allSatisfy { (0x20...0x7e).contains($0) }, "\(quoted)")
      let said = try echoed(quoted, by: "/bin/bash")
      #expect(said.utf8.elementsEqual(word.utf8))
    }
  }

  @Test func `A command to type again names the user as he is typed`() {
    var invocation = Invocation(verb: "exempt", user: "Jürgen", store: nil)
    invocation.typed = ["exempt", "Jürgen"]
    #expect(invocation.again("--undo") == "sallyport exempt 'Jürgen' --undo")
    #expect(invocation.command("status") == "sallyport status 'Jürgen'")
    #expect(Invocation(verb: "status", user: "-x").lookup == "getent passwd -- -x")
  }

  @Test func `A name is typed as it is, where it can be`() {
    #expect(UserName(Array("jürgen".utf8))?.typed == "jürgen")
    #expect(UserName([0x6a, 0xfc])?.typed == nil)
    #expect(UserName([0x6a, 0xfc])?.typedOrShown == "j%FC")
  }
}

@Suite struct `JSON is written so that others can read it` {
  @Test(arguments: [
    "", "plain", "\"\\/", "\n\r\t\u{0}\u{1f}\u{7f}", "é \u{1f600} e\u{301}\r\n", "\u{2028}",
  ])
  func `Texts`(text: String) throws {
    let read = try JSONDecoder().decode([String].self, from: Data(written([text])))
    #expect(read.first?.utf8.elementsEqual(text.utf8) == true)
    #expect(!written([text]).contains(0x7f))
  }

  private struct Everything: Encodable {
    @OrNull var none: String?
    var left: String?
    let least = Int64.min
    let most = UInt64.max
    let path = "/etc"
  }

  @Test func `Members that are null, left out and joined`() {
    let both = Joined(Everything(), ["more": [[1], []]])
    let text = String(decoding: written(both), as: UTF8.self)
    let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(
      words == """
        { "least" : -9223372036854775808, "more" : [ [ 1 ], [ ] ], \
        "most" : 18446744073709551615, "none" : null, "path" : "/etc" }
        """)
  }
}

@Suite struct `Messages` {
  private static var user: UserName {
    guard let bob = UserName(Array("bob".utf8)) else { fatalError("bob is a user name") }
    return bob
  }

  static let troubles: [(StoreTrouble, Sysexit)] = [
    (.system("open", path: "/s/x", errno: 13), .notPermitted),
    (.system("open", path: "/s/x", errno: 1), .notPermitted),
    (.system("pwrite", path: "/s/x", errno: 28), .inputOutput),
    (.system("pwrite", path: "/s/x", errno: 122), .inputOutput),
    (.system("pwrite", path: "/s/x", errno: 30), .inputOutput),
    (.system("getrandom", path: "", errno: 5), .inputOutput),
    (.noStore(path: "/s"), .noInput),
    (.unsafe(path: "/s", .symbolicLink), .configuration),
    (.unsafe(path: "/s", .notADirectory), .configuration),
    (.unsafe(path: "/s", .notRegular), .configuration),
    (.unsafe(path: "/s", .owner(1000, wanted: 0)), .configuration),
    (.unsafe(path: "/s", .owner(0, wanted: 1000)), .notPermitted),
    (.unsafe(path: "/s", .mode(0o644)), .configuration),
    (.unsafe(path: "/s", .links(2)), .configuration),
    (.unsafe(path: "/s", .tooLong), .badData),
    (.incomplete(path: "/s/users/a"), .badData),
    (.malformed(path: "/s/e", SettingsError(line: 3, .unknownKey)), .badData),
    (.state(path: "/s/e", .bothSlotsBroken), .badData),
    (.state(path: "/s/e", .crypto(.failed)), .inputOutput),
    (.foreignState(path: "/s/e"), .badData),
    (.otherUser(path: "/s/e", found: user), .badData),
    (.otherUID(path: "/s/e", recorded: 1000, found: nil), .badData),
    (.otherUID(path: "/s/e", recorded: 1000, found: 1001), .badData),
    (.busy(path: "/s/e"), .busy), (.unsettled(path: "/s/e"), .busy),
    (.exists(path: "/s/e"), .exists),
    (.service(path: "/s", .notASocket), .configuration),
    (.service(path: "/s", .notRoot(1000)), .configuration), (.service(path: "/s", .busy), .busy),
    (.service(path: "/s", .silent), .busy), (.service(path: "/s", .garbage), .inputOutput),
    (.service(path: "/s", .trouble(mayBeTheCallers: false)), .busy),
    (.crypto(.unavailable), .inputOutput), (.outOfMemory, .busy),
  ]

  /// What several verbs throw; `Bench.run` looks at the form of the others.
  static let others: [(CommandError, Sysexit)] = [
    (.notRoot, .notPermitted), (.nobodyNamed, .usage), (.noSuchUser, .noUser),
    (.notEnrolled, .noInput), (.enrolledAlready(authenticators: 2), .exists),
    (.secretFile("/p", errno: SystemError.notRegular.number), .badData),
    (.secretFile("/p", errno: 2), .noInput), (.secretFile("/p", errno: 13), .notPermitted),
    (.secretFile("/p", errno: 40), .badData), (.secretFile("/p", errno: 5), .inputOutput),
    (.code(CodeRefused(refusal: .wrongCode(nil), wait: 0)), .refused),
    (.code(CodeRefused(refusal: .replayed(until: UnixTime(0)), wait: 0)), .refused),
    (.code(CodeRefused(refusal: .throttled, wait: 4000)), .refused),
    (.code(CodeRefused(refusal: .throttled, wait: nil)), .refused),
    (.code(CodeRefused(refusal: .clock(until: UnixTime(0)), wait: 0)), .refused),
    (.code(CodeRefused(refusal: .malformed(.empty), wait: 0)), .refused),
    (.noRightCode(.notEnrolled), .refused), (.declined(.nothingChanged), .refused),
    (.stopped(.endOfInput, .notEnrolled), .refused), (.stopped(.signal(2), .notEnrolled), .refused),
    (.stopped(.failure(5), .notEnrolled), .inputOutput), (.output(errno: 28), .inputOutput),
    (.noRightCode(.nothingChanged), .refused),
    (.noSuchAuthenticator("tablet"), .noInput), (.nameTaken("tablet"), .exists),
    (.secretTaken("tablet"), .exists),
    (.tooManyAuthenticators, .exists), (.lastAuthenticator, .refused),
    (.resync(.clockOff(name: Label("phone"), drift: -120, period: 30, accepted: 5)), .refused),
    (.resync(.replayed(name: Label("phone"))), .refused), (.resync(.notFound), .refused),
    (.resync(.waits(name: Label("phone"), until: UnixTime(0))), .refused),
    (.backupCodesUnseen(errno: 28), .inputOutput), (.policyFile(path: "/p", errno: 2), .noInput),
    (.policyFile(path: "/p", errno: 40), .configuration),
  ]

  private let invocation = Invocation(verb: "status", user: "al ice", store: "/tmp/a store")

  @Test func `Every trouble has its exit status, a sentence and commands that exist`() {
    let all = Messages.troubles.map { (CommandError.store($0), $1) } + Messages.others
    for (error, status) in all {
      let message = error.message(invocation)
      #expect(message.status == status, "\(error)")
      check(message.text)
      for hint in message.hints { check(hint: hint) }
    }
  }

  private func check(_ text: String) {
    #expect(!text.isEmpty)
    #expect(!text.contains("\n"))
    #expect(!text.hasSuffix("."), "\(text)")
    #expect(text.first?.isUppercase == false, "\(text)")
  }

  private func check(hint: String) {
    #expect(Bench.isCommand(hint), "\(hint)")
    let words = hint.split(separator: " ").map(String.init)
    guard let name = words.firstIndex(of: "sallyport") else { return }
    #expect(Command.verbs(of: Sallyport.self)[words[name + 1]] != nil, "\(hint)")
    #expect(hint.contains("--store '/tmp/a store'"), "\(hint)")
  }

  @Test func `What to do next can be copied`() {
    #expect(
      CommandError.enrolledAlready(authenticators: 2)
        .message(Invocation(verb: "enroll", user: "alice")).written
          == """
          sallyport: alice is already enrolled (2 authenticators)
          hint: sallyport status alice  # shows it
          hint: sallyport add alice  # adds another one
          hint: sallyport enroll alice --force  # replaces everything

          """)
  }

  @Test func `A name cannot play tricks on the terminal`() {
    let invocation = Invocation(verb: "status", user: "a\u{1b}[2Jb", store: nil)
    #expect(CommandError.noSuchUser.message(invocation).text == "there is no user a%1B[2Jb")
  }

  @Test func `Exit statuses are those of sysexits`() {
    #expect(Sysexit.allCases.map(\.rawValue) == [0, 1, 64, 65, 66, 67, 73, 74, 75, 77, 78])
  }
}

@Suite struct `Arguments` {
  private let bench = Bench()

  @Test(arguments: [
    ["frobnicate"], ["status", "--frobnicate"],
    ["enroll", "--user", "a", "--digits", "9"], ["enroll", "--user", "a", "--period", "14"],
    ["enroll", "--user", "a", "--period", "301"], ["enroll", "--user", "a", "--type", "motp"],
    ["enroll", "--user", "a", "--type", "hotp", "--period", "30"],
    ["enroll", "--user", "a", "--algorithm", "md5"], ["enroll", "--user", "a", "--name", ""],
    ["enroll", "--user", "a", "--issuer", "a\nb"],
    ["enroll", "--user", "a", "--backup-codes", "33"],
    ["enroll", "--user", "a", "--backup-codes", "-1"], ["enroll", "--user", "a", "--qr", "svg"],
    ["unlock", "a", "b"], ["remove", "a", "b", "c"],
    ["add", "--user", "a", "--backup-codes", "3"],
    ["enroll", "--user", "a", "--account", String(repeating: "x", count: 65)],
  ]) func `Wrong ones are a usage error of two lines`(arguments: [String]) throws {
    let terminal = FakeTerminal()
    let context = Context(
      terminal: terminal, effectiveUser: 0, caller: nil, hostName: nil, now: { UnixTime(0) })
    #expect(Command.run(arguments + ["--store", bench.directory], in: context) == 64)
    let lines = terminal.aside.split(separator: "\n")
    try #require(lines.count == 2, "\(terminal.aside)")
    #expect(lines[0].hasPrefix("sallyport: "))
    #expect(lines[0].dropFirst(11).first?.isUppercase == false)
    #expect(lines[1].hasSuffix(" --help"))
    #expect(terminal.answer == "")
    #expect(try bench.content().isEmpty)
  }

  @Test(arguments: [
    ["enroll"], ["verify"], ["unlock"], ["unenroll"], ["add"], ["remove", "--name", "b"],
    ["resync"], ["require"], ["remove", "--user", "a"], ["rename", "--user", "a", "--name", "b"],
  ]) func `What is missing is named with the line to type`(arguments: [String]) throws {
    let terminal = FakeTerminal()
    let context = Context(
      terminal: terminal, effectiveUser: 0, caller: nil, hostName: nil, now: { UnixTime(0) })
    #expect(Command.run(arguments + ["--store", bench.directory], in: context) == 64)
    let lines = terminal.aside.split(separator: "\n")
    try #require(lines.count == 2, "\(terminal.aside)")
    #expect(lines[0].hasPrefix("sallyport: no ") && lines[0].hasSuffix(" given"), "\(lines)")
    #expect(lines[1].hasPrefix("hint: sallyport "), "\(lines)")
    #expect(lines[1].contains("NAME") || lines[1].contains("status a"), "\(lines)")
    #expect(try bench.content().isEmpty)
  }

  @Test func `Help and version are answers`() {
    for arguments in [["--help"], ["enroll", "--help"], ["help", "verify"], ["--version"], []] {
      let terminal = FakeTerminal()
      let context = Context(
        terminal: terminal, effectiveUser: 1000, caller: nil, hostName: nil, now: { UnixTime(0) })
      #expect(Command.run(arguments, in: context) == 0)
      #expect(!terminal.answer.isEmpty, "\(arguments)")
      #expect(terminal.aside == "")
    }
  }
}
