import Foundation
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `The log of logins` {
  private let bench = Bench()
  private static let sshd = "/usr/sbin/sshd"

  private struct Shown: Decodable {
    struct Login: Decodable, Equatable {
      let user, service, result: String
      let authenticator, reason, origin: String?
      let trusted: Bool
    }
    struct Act: Decodable { let act, by, `for`, via: String }
    let acts: [Act]
    let logins: [Login]
    let warnings: [String]
  }

  private func write(_ path: String, _ text: String = "") throws {
    let whole = bench.root + path
    let above = (whole as NSString).deletingLastPathComponent
    try FileManager.default.createDirectory(atPath: above, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(fileURLWithPath: whole))
  }

  /// A line of the journal, `ago` seconds before now.
  private func entry(
    _ message: String, of program: String? = sshd, user: String = "0", ago: Int64 = 60,
    more: [String: Any] = [:]
  ) throws -> String {
    var fields: [String: Any] = [
      "MESSAGE": message, "_UID": user,
      "__REALTIME_TIMESTAMP": "\((bench.now.seconds - ago) * 1_000_000)",
    ]
    fields["_EXE"] = program
    fields.merge(more) { _, new in new }
    return String(decoding: try JSONSerialization.data(withJSONObject: fields), as: UTF8.self)
  }

  /// Newest first, as journalctl gives them.
  private func journal(_ lines: [String]) throws {
    try write("/var/log/journal/0/system.journal")
    bench.machine = Machine(
      root: bench.root,
      run: { words in
        guard words.first == "journalctl" else { return .absent }
        guard words[1] != "--version" else { return .seen(.init(status: 0, output: "+PCRE2")) }
        let found = Self.matching(words, lines)
        return .seen(
          CommandOutput(
            status: found.isEmpty ? 1 : 0, output: found.map { $0 + "\n" }.joined()))
      })
  }

  /// What journalctl does with a pattern and a number of lines.
  private static func matching(_ words: [String], _ lines: [String]) -> [String] {
    func value(_ option: String) -> String? {
      words.first { $0.hasPrefix(option) }.map { String($0.dropFirst(option.count)) }
    }
    let found = lines.filter { line in
      guard let pattern = value("--grep="),
        let fields = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
        let message = fields["MESSAGE"] as? String
      else { return true }
      return message.range(of: pattern, options: .regularExpression) != nil
    }
    return Array(found.prefix(value("--lines=").flatMap { Int($0) } ?? found.count))
  }

  private func run(_ words: String...) -> Bench.Outcome {
    let terminal = FakeTerminal()
    var context = bench.context(terminal, as: 0)
    try? FileManager.default.createDirectory(
      atPath: bench.directory, withIntermediateDirectories: true)
    _ = unsafe chmod(bench.directory, 0o700)
    context.usualStore = Store(root: bench.directory, owner: .effectiveUser)
    return Bench.Outcome(status: Command.run(words, in: context), terminal: terminal)
  }

  private func lines(_ words: String...) -> [String] {
    run(words.first ?? "log").answer.split(separator: "\n").map { String($0.dropFirst(13)) }
  }

  private static let accepted =
    "pam_sallyport(sshd:auth): code accepted: user=alice authenticator=\"old%20phone\" drift=1 "
    + "origin=192.0.2.7"

  @Test func `Tells what came of each`() throws {
    let texts = [
      Self.accepted,
      "pam_sallyport(sshd:auth): backup code accepted: user=bob left=9 origin=2001:db8::1",
      "pam_sallyport(login:auth): pass accepted: user=bob left=0 origin=local",
      "pam_sallyport(su:auth): refused: reason=wrong-code try=2 user=bob "
        + "origin=local(another user) budget=known:3,other:20",
      "pam_sallyport(sshd:auth): refused: reason=malformed user=bob origin=::1: no code given",
      "pam_sallyport(sshd:auth): not asked: this origin is remembered: user=bob origin=192.0.2.9",
      "pam_sallyport(sshd:account): denied: reason=not-enrolled user=carol",
    ]
    let entries = try texts.enumerated().map { try entry($1, ago: 60 - Int64($0)) }
    try journal(entries.reversed())
    #expect(
      lines() == [
        "alice at sshd from 192.0.2.7: a code of \"old phone\" was accepted",
        "bob at sshd from 2001:db8::1: a backup code was accepted",
        "bob at login, on this machine: a pass was accepted",
        "bob at su, on this machine, by another user: refused (wrong-code)",
        "bob at sshd from ::1: refused (malformed)",
        "bob at sshd from 192.0.2.9: not asked, since the place is remembered",
        "carol at sshd: refused (not-enrolled)",
      ])
    let shown = try run("log", "alice", "--json", "--logins").json(Shown.self)
    #expect(
      shown.logins == [
        .init(
          user: "alice", service: "sshd", result: "code", authenticator: "old phone", reason: nil,
          origin: "192.0.2.7", trusted: true)
      ])
    #expect(shown.warnings == [])
    #expect(run("log", "--acts").answer.hasPrefix("Nothing since "))
    #expect(run("log", "--acts", "--logins").status == 64)
  }

  /// With a name that is no text, the journal gives it as numbers: anybody can call his sudo so.
  @Test func `Shows the line of a host that has an odd name for itself`() throws {
    let odd: [Any] = [[1], [1, 255], 7, NSNull(), ["x": 1], true, [["sshd", "sudo"]]]
    try journal(
      try odd.map {
        try entry(Self.accepted, of: "/usr/bin/sudo", more: ["SYSLOG_IDENTIFIER": $0])
      })
    let shown = try run("log", "--json").json(Shown.self)
    #expect(shown.logins.map(\.trusted) == odd.map { _ in true } && shown.warnings == [])
  }

  /// As a child of sshd that ends with the login may have.
  @Test func `Shows lines of root that had ended, by the name that they gave`() throws {
    try journal([
      try entry(Self.accepted, of: nil, more: ["SYSLOG_IDENTIFIER": "sshd"]),
      try entry(Self.accepted, of: nil, user: "1000", more: ["SYSLOG_IDENTIFIER": "sshd"]),
      try entry(Self.accepted, of: nil, more: ["SYSLOG_IDENTIFIER": "logger"]),
      try entry(Self.accepted, of: nil),
    ])
    let shown = try run("log", "--json").json(Shown.self)
    #expect(shown.logins.map(\.trusted) == [false])
    #expect(lines("log").last?.hasSuffix("was accepted, as a program said that had ended") == true)
    let late = "of programs of root that had ended before the journal looked which they were"
    #expect(
      shown.warnings == [
        "not shown: 2 lines \(late)",
        "1 line \(late): shown by the name that they gave themselves",
      ])
  }

  @Test func `A name without an account and without a line is said to have none`() throws {
    try journal([try entry(Self.accepted)])
    #expect(run("log", "nobody-here").answer.contains("; there is no account nobody-here."))
    #expect(run("log", "alice").answer.contains("was accepted"))
  }

  // decisive
  // shows: true-log
  @Test func `Shows no line that anybody but a host of root's wrote`() throws {
    let forged = [
      try entry(Self.accepted, user: "1000"), try entry(Self.accepted, of: "/usr/bin/logger"),
      try entry(Self.accepted, of: "/usr/bin/dockerd"), try entry(Self.accepted, of: nil),
      try entry(Self.accepted, of: "sshd"), try entry("x " + Self.accepted),
      try entry("Invalid user \(Self.accepted) from 192.0.2.66"),
      try entry("code accepted: user=alice authenticator=\"phone\" origin=192.0.2.7 service=sshd"),
      try entry("act=remove by=root for=alice via=command stage=done"),
      try entry("act=remove by=root for=alice via=command stage=done", user: "1000"),
      try entry(
        "x", user: "1000",
        more: ["SALLYPORT_ACT": "act=remove by=root for=alice via=command stage=done"]),
      try entry("x", more: ["MESSAGE": Array(Self.accepted.utf8).map { Int($0) }]),
      try entry("x", more: ["MESSAGE": [Self.accepted, Self.accepted]]),
      "", "{", "null", "[]", "{\"MESSAGE\":null}", String(repeating: "[", count: 5000),
    ]
    try journal(forged)
    let shown = try run("log", "--json").json(Shown.self)
    #expect(shown.logins == [] && shown.acts.isEmpty)
    let ended =
      "not shown: 1 line of programs of root that had ended before the journal looked which they "
      + "were"
    #expect(
      shown.warnings
        == [ended]
        + ["/usr/bin/dockerd", "/usr/bin/logger", "sshd"].map {
          "not shown: lines of \($0), which is no known host of PAM"
        })
  }

  @Test func `Shows nothing of a hostile value as it is`() throws {
    try journal([
      try entry(
        "pam_sallyport(sshd:auth): refused: reason=unknown-user user=a%0Ab%1B[2J "
          + "origin=unknown(x%20user%3Droot)")
    ])
    let answer = run("log").answer
    #expect(
      answer.contains("a%0Ab%1B[2J at sshd from unknown(x user=root): refused (unknown-user)"))
    #expect(!answer.utf8.contains(0x1b))
  }

  @Test func `Tells once what the module and the service both say of su`() throws {
    try journal([
      try entry(
        "code accepted: user=alice authenticator=\"phone\" origin=local service=su uid=0",
        of: "/usr/sbin/sallyportd (deleted)"),
      try entry(
        "pam_sallyport(su:auth): code accepted: user=alice authenticator=\"phone\" origin=local",
        of: "/usr/bin/su"),
      try entry(
        "refused: reason=replayed user=bob origin=local service=xscreensaver uid=1000",
        of: "/usr/sbin/sallyportd"),
    ])
    #expect(
      lines() == [
        "bob at xscreensaver, on this machine: refused (replayed)",
        "alice at su, on this machine: a code of \"phone\" was accepted",
      ])
  }

  @Test func `Tells as acts what logins changed of an enrollment`() throws {
    let line = "pam_sallyport(sshd:account): enrollment changed in the login: action="
    try journal([
      try entry(line + "added user=bob authenticator=\"fob\" backup-codes=0 origin=local", ago: 5),
      try entry(line + "enrolled user=bob authenticator=\"phone\" backup-codes=10 origin=local"),
      try entry(line + "enrolled user=eve authenticator=\"phone\" origin=local", user: "1000"),
    ])
    #expect(
      lines() == [
        "bob enrolled bob with \"phone\", origin local [login]",
        "bob added \"fob\" for bob, origin local [login]",
      ])
    let shown = try run("log", "--json", "--acts").json(Shown.self)
    #expect(
      shown.acts.map(\.act) == ["enroll", "add"] && shown.acts.allSatisfy { $0.via == "login" })
  }

  @Test func `Says that there are more than it reads, and reads on without patterns`() throws {
    try journal(try (0..<2000).map { _ in try entry(Self.accepted) })
    #expect(run("log").aside.contains("only the newest logins and enrollments are shown"))
    var asked: [[String]] = []
    let line = try entry(Self.accepted)
    bench.machine = Machine(
      root: bench.root,
      run: { words in
        asked.append(words)
        let isVersion = words == ["journalctl", "--version"]
        return .seen(CommandOutput(status: 0, output: isVersion ? "+PAM -PCRE2 +ZSTD\n" : line))
      })
    #expect(lines().count == 1)
    #expect(asked.count == 2 && asked.last?.contains("_UID=0") == true)
    #expect(!asked.joined().contains { $0.hasPrefix("--grep") })
  }

  // decisive
  // shows: log-flood
  @Test func `Loses no login of a user to what others, or her refusals, write`() throws {
    let others = "pam_sallyport(sshd:auth): code accepted: user=alice2 authenticator=\"phone\" "
    let wrong = "pam_sallyport(sshd:auth): refused: reason=wrong-code user=a.lice+x origin=local"
    let near = "pam_sallyport(sshd:auth): code accepted: user=aXlice+x authenticator=\"phone\""
    let own = "pam_sallyport(sshd:auth): backup code accepted: user=a.lice+x left=9 origin=local"
    let flood = try (0..<3000).flatMap { _ in
      [try entry(others, ago: 10), try entry(wrong, ago: 10), try entry(near, ago: 10)]
    }
    try journal(flood + [try entry(own)])
    let name = try #require(UserName(Array("a.lice+x".utf8)))
    let found = FoundLogins(
      on: bench.machine, since: UnixTime(bench.now.seconds - 3600), now: bench.now, of: [name])
    #expect(found.told.first?.text.hasSuffix("a backup code was accepted") == true)
    #expect(found.told.count == 2001 && found.told.dropFirst().allSatisfy(\.isRefusal))
    #expect(
      found.warnings == ["the journal has more than is read: only the newest refusals are shown"])
  }

  @Test func `Tells refusals that follow each other and are the same in one line`() throws {
    let wrong = "pam_sallyport(sshd:auth): refused: reason=wrong-code user=bob origin=::1 try="
    try journal(
      [try entry(Self.accepted, ago: 1)] + (1...3).map { try entry("\(wrong)\($0)", ago: 60) }
        + [try entry(Self.accepted, ago: 64), try entry(wrong + "1", ago: 65)])
    #expect(
      lines().map { String($0.prefix(52)) } == [
        "bob at sshd from ::1: refused (wrong-code)",
        "alice at sshd from 192.0.2.7: a code of \"old phone\" ",
        "bob at sshd from ::1: refused (wrong-code), 3 times,",
        "alice at sshd from 192.0.2.7: a code of \"old phone\" ",
      ])
    #expect(try run("log", "--json").json(Shown.self).logins.count == 6)
  }

  @Test func `Tells of a phone that a login with a pass enrolled in place of all`() throws {
    let line = "pam_sallyport(sshd:account): enrollment changed in the login: action="
    try journal([
      try entry(
        line + "replaced-by-pass user=bob authenticator=\"phone\" backup-codes=10 origin=::1"),
      try entry(line + "melted user=bob authenticator=\"phone\" backup-codes=10 origin=::1"),
      try entry("pam_sallyport(sshd:auth): pass accepted: user=bob left=2 origin=::1"),
    ])
    // As the lines came, also within a second.
    #expect(
      lines() == [
        "bob at sshd from ::1: a pass was accepted",
        "bob enrolled bob with \"phone\", by a pass, in place of all before, origin ::1 [login]",
      ])
  }

  @Test func `Comes from files where there is no journal, which anybody writes`() throws {
    bench.machine = Machine(root: bench.root, run: { _ in .absent })
    #expect(run("log").aside.contains("there is no journal, no /var/log/auth.log"))
    let date = try #require(CalendarDate(UnixTime(bench.now.seconds - 90)))
    let clock = String(date.internetText.dropFirst(11).dropLast())
    try write(
      "/var/log/auth.log",
      """
      Mar  3 \(clock) web1 sshd[12]: \(Self.accepted)
      Mar  3 \(clock) web1 eve: x: \(Self.accepted)
      2026-03-03T10:20:00.123456+01:00 web1 sshd[12]: \(Self.accepted)
      2026-03-03T09:20:00Z web1 sallyportd[9]: pass accepted: user=bob left=0 origin=local \
      service=i3lock uid=1000
      2025-03-03T09:20:00Z web1 sshd[12]: \(Self.accepted)
      2026-13-03T09:20:00Z web1 sshd[12]: \(Self.accepted)
      Mar 33 09:20:00 web1 sshd[12]: \(Self.accepted)
      Mar 3
      \("\u{0}\u{ff}")
      2026-03-03T09:20:00Z web1 sshd[1]: pam_sallyport(sshd:account): enrollment changed in the \
      login: action=enrolled user=eve authenticator="phone" origin=local
      """)
    let done = run("log", "--json")
    let shown = try done.json(Shown.self)
    #expect(shown.logins.map(\.user) == ["alice", "bob", "alice"])
    #expect(shown.logins.allSatisfy { !$0.trusted } && shown.acts.isEmpty)
    let told = "logins are from /var/log/auth.log: anybody on this machine can write such lines"
    #expect(shown.warnings == [told] && done.aside.contains("warning: \(told)"))
  }
}
