import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportCLI

@Suite struct `Verifying` {
  private let bench = Bench()

  private func verify(_ code: String, json: Bool = false) -> Bench.Outcome {
    let terminal = FakeTerminal([.types(code)])
    return json
      ? bench.run("verify", "--user", "alice", "--json", on: terminal)
      : bench.run("verify", "--user", "alice", on: terminal)
  }

  // decisive
  @Test func `A right code is right once`() throws {
    let code = try bench.enroll("alice", "--name", "tablet").code(at: bench.now)
    let first = verify(code)
    #expect(first.status == 0)
    #expect(first.answer == "Correct: a code of \"tablet\". It is used up now.\n")
    #expect(first.terminal.prompts == ["Verification code: (hidden)"])
    let second = verify(code)
    #expect(second.status == 1)
    #expect(second.answer == "")
    #expect(
      second.aside == "sallyport: that code has already been used: wait for the next one\n")
  }

  @Test(arguments: [(Int64(14_400), "4 h ahead"), (-600, "10 min behind"), (90_000, nil)])
  func `A code of a clock that is off by less than a day is wrong, and says by how much`(
    _ offset: Int64, _ told: String?
  ) throws {
    let code = try bench.enroll(secret: "JBSWY3DPEHPK3PXP")
      .code(at: UnixTime(bench.now.seconds + offset))
    let done = verify(code)
    #expect(done.status == 1 && done.answer == "")
    #expect(done.aside.contains("wrong code"))
    #expect(done.aside.contains(told ?? " shows it now") == (told != nil), "\(done.aside)")
  }

  // decisive
  @Test func `A backup code is right once, however it is typed`() throws {
    let codes = try bench.enroll().backupCodes
    #expect(verify(codes[3].lowercased()).answer.contains("9 backup codes left"))
    #expect(verify(codes[3]).status == 1)
    #expect(verify(codes[4].filter { $0 != "-" }).status == 0)
  }

  @Test(arguments: [
    ("000000", "wrong code"), ("", "no code given"), ("12345", "wrong number of digits"),
    ("abc", "neither a code nor a backup code"),
  ]) func `Anything else is refused with its reason`(typed: String, told: String) throws {
    _ = try bench.enroll(secret: "JBSWY3DPEHPK3PXP")
    let done = verify(typed)
    #expect(done.status == 1)
    #expect(done.aside.contains(told), "\(done.aside)")
  }

  @Test func `Programs get an object`() throws {
    struct Verdict: Decodable {
      let accepted: Bool
      let authenticator, reason: String?
      let drift, backupCodesLeft: Int?
    }
    let enrolled = try bench.enroll()
    let late = try verify(enrolled.code(at: bench.now, steps: -2), json: true).json(Verdict.self)
    #expect((late.accepted, late.authenticator, late.drift) == (true, "phone", -2))
    let used = try verify(enrolled.code(at: bench.now, steps: -2), json: true).json(Verdict.self)
    #expect((used.accepted, used.reason) == (false, "replayed"))
    let backup = try verify(enrolled.backupCodes[0], json: true).json(Verdict.self)
    #expect((backup.accepted, backup.backupCodesLeft) == (true, 9))
  }

  /// Codes of eight digits cost a hundredth, so they would be verified again long before.
  @Test func `The wait that is told is that of a code like the typed one`() throws {
    let enrolled = try bench.enroll()
    #expect(
      bench.run(
        "add", "--user", "alice", "--digits", "8", "--force", "--no-confirm"
      ).status == 0)
    for _ in 0..<20 { _ = verify("000000") }
    let refused = verify(try enrolled.code(at: bench.now, steps: 1))
    #expect(
      refused.aside.hasPrefix("sallyport: too many wrong codes; try again in 21 h"),
      "\(refused.aside)")
  }

  @Test func `Too many wrong codes are not verified until they are forgotten`() throws {
    let enrolled = try bench.enroll()
    for _ in 0..<20 { #expect(verify("000000").aside.contains("wrong code")) }
    let right = try enrolled.code(at: bench.now, steps: 1)
    let refused = verify(right)
    #expect(
      refused.aside.hasPrefix("sallyport: too many wrong codes; try again in 21 h"))
    #expect(refused.aside.contains("hint: sallyport unlock alice --store"))
    #expect(
      bench.run("unlock", "--user", "alice").answer == """
        alice is unlocked: the next code is checked at once. Before: next in 21 h from known \
        places, 20 more before a wait from elsewhere.

        """)
    #expect(
      bench.run("unlock", "alice").answer == """
        alice was not locked: 20 more wrong codes before a wait, and 20 from elsewhere. All that \
        were typed are forgotten now.

        """)
    #expect(verify(right).status == 0)
  }

  @Test func `A name without an enrollment and one without an account are told apart`() throws {
    bench.run("prepare")
    #expect(bench.run("verify", "--user", "root").status == 66)
    #expect(bench.run("verify", "--user", "no-such-user-here").status == 67)
    #expect(bench.run("verify", "--user", "no-such-user-here", "--allow-missing").status == 66)
  }

  @Test func `Leaving at the prompt uses nothing up`() throws {
    _ = try bench.enroll()
    let before = try bench.content()
    let done = bench.run("verify", "--user", "alice", on: FakeTerminal([.signals(2)]))
    #expect(done.status == 130)
    #expect(done.aside == "sallyport: nothing was changed\n")
    #expect(try bench.content() == before)
  }
}

@Suite struct `Looking` {
  private let bench = Bench()

  struct Report: Decodable {
    struct Use: Decodable, Equatable {
      let time: String
      let service, origin: String?
    }
    struct Authenticator: Decodable {
      let name, type: String
      let drift: Int
      let lastUse: Use?
    }
    struct Codes: Decodable {
      let left, total: Int
    }
    struct Allowance: Decodable {
      let left, wait: Int
    }
    struct Wrong: Decodable {
      let known, other: Allowance
    }
    let user, enrolled: String
    let uid: Int?
    let authenticators: [Authenticator]
    let backupCodes: Codes
    let wrongCodes: Wrong
  }

  @Test func `The status has the facts`() throws {
    let enrolled = try bench.enroll()
    let code = try enrolled.code(at: bench.now, steps: -1)
    for typed in [code, "000000", enrolled.backupCodes[0]] {
      bench.run("verify", "--user", "alice", on: FakeTerminal([.types(typed)]))
    }
    let report = try bench.run("status", "--user", "alice", "--json").json(Report.self)
    #expect((report.user, report.enrolled, report.uid) == ("alice", "2026-03-03T09:26:40Z", nil))
    let first = try #require(report.authenticators.first)
    #expect((first.name, first.type, first.drift) == ("phone", "totp", -1))
    #expect(
      first.lastUse
        == Report.Use(time: "2026-03-03T09:26:40Z", service: "sallyport", origin: "this machine"))
    #expect((report.backupCodes.left, report.backupCodes.total) == (9, 10))
    #expect((report.wrongCodes.known.left, report.wrongCodes.other.left) == (19, 20))
  }

  // decisive
  @Test func `The status reads well and never shows a secret`() throws {
    let enrolled = try bench.enroll()
    let done = bench.run("status", "--user", "alice")
    #expect(
      done.answer == """
        alice, enrolled 3 March 2026

          phone          TOTP, 6 digits, 30 s   never used
          backup codes   10 of 10 left
          wrong codes    20 more before a wait from known places, 20 from elsewhere

        """)
    #expect(!done.answer.contains(enrolled.secret))
    #expect(done.answer.split(separator: "\n").allSatisfy { $0.count <= 80 })
    #expect(!bench.run("status", "--user", "alice", "--json").answer.contains(enrolled.secret))
  }

  @Test func `Verbs that read take the user from sudo, the others do not`() throws {
    _ = try bench.enroll()
    #expect(bench.run("status", caller: "alice").status == 0)
    #expect(bench.run("backup-codes", caller: "alice").answer == "10 of 10 backup codes left\n")
    #expect(bench.run("status").status == 64)
    for verb in ["remove", "rename", "unlock", "unenroll", "forget", "require", "exempt"] {
      #expect(bench.run(verb, caller: "alice").status == 64, "\(verb)")
    }
    #expect(bench.run("backup-codes", "--regenerate", caller: "alice").status == 64)
  }

  @Test func `The list has everybody in order`() throws {
    #expect(bench.run("list").status == 66)
    _ = try bench.enroll("bob")
    let alice = try bench.enroll("alice", "--name", "tablet", "--backup-codes", "0")
    let code = try alice.code(at: bench.now)
    bench.run("verify", "--user", "alice", on: FakeTerminal([.types(code)]))
    let lines = bench.run("list").answer.split(separator: "\n").map(String.init)
    #expect(lines.count == 4)
    #expect(lines[0] == "USER    AUTHENTICATORS   BACKUP CODES   LAST CODE")
    #expect(lines[1].hasPrefix("alice   tablet           0              today "))
    #expect(lines[2] == "bob     phone            10             never")
    #expect(lines[3] == "2 enrolled")
    struct Everybody: Decodable {
      struct One: Decodable {
        let user: String
        let authenticators: [String]
        let backupCodesLeft: Int
        let lastLogin: Report.Use?
      }
      let users: [One]
      let unreadable: Int
    }
    let everybody = try bench.run("list", "--json").json(Everybody.self)
    #expect(everybody.users.map(\.user) == ["alice", "bob"])
    #expect(everybody.users.map { $0.lastLogin == nil } == [false, true])
    #expect(everybody.unreadable == 0)
  }

  @Test func `One broken enrollment does not hide the others`() throws {
    _ = try bench.enroll("bob")
    _ = try bench.enroll("alice")
    try Data("version = 1\n".utf8).write(
      to: URL(fileURLWithPath: "\(bench.directory)/users/alice/enrollment"))
    let done = bench.run("list")
    #expect(done.status == 65)
    #expect(done.answer.contains("bob "))
    #expect(done.answer.hasSuffix("1 enrolled, 1 cannot be read\n"))
    #expect(done.aside.contains("users/alice/enrollment:1: "))
  }
}

@Suite struct `Managing` {
  private let bench = Bench()

  @Test func `New backup codes end the old ones and nothing else`() throws {
    struct Fresh: Decodable {
      let user: String
      let backupCodes: [String]
    }
    let enrolled = try bench.enroll("alice", "--backup-codes", "4")
    let used = try enrolled.code(at: bench.now)
    bench.run("verify", "--user", "alice", on: FakeTerminal([.types(used)]))
    let done = bench.run("backup-codes", "--user", "alice", "--regenerate", "--json")
    let fresh = try done.json(Fresh.self)
    #expect(fresh.backupCodes.count == 4)
    for (typed, status) in [
      (enrolled.backupCodes[0], 1), (used, 1), (fresh.backupCodes[0], 0), (fresh.backupCodes[0], 1),
      (try enrolled.code(at: bench.now, steps: 1), 0),
    ] {
      let check = bench.run("verify", "--user", "alice", on: FakeTerminal([.types(typed)]))
      #expect(check.status == Int32(status), "\(check.answer)\(check.aside)")
    }
  }

  @Test func `Leaving after a backup code was accepted says that it is used up`() throws {
    let codes = try bench.enroll().backupCodes
    let told = "nothing was changed, but the backup code is used up\n"
    for act in [Act.signals(2), .ends] {
      let code = act.isEnd ? codes[0] : codes[1]
      let done = bench.run("add", "alice", on: FakeTerminal([.types(code), act]))
      #expect(done.aside == "sallyport: \(told)")
      #expect(bench.verify(code).aside.contains("already been used"))
    }
    let wrong = Array(repeating: wrongCode(at: bench.now), count: 5)
    let tried = bench.run("add", "alice", on: FakeTerminal([.types(codes[2])] + wrong))
    #expect(tried.aside.hasPrefix("sallyport: no correct code: \(told)"))
    let late = FakeTerminal([.types(codes[3])])
    late.lateSignal = 2
    let gone = bench.run("unenroll", "alice", on: late)
    #expect((gone.status, gone.aside) == (130, "sallyport: \(told)"))
  }

  @Test func `Without backup codes there are ten new ones`() throws {
    _ = try bench.enroll("alice", "--backup-codes", "0")
    #expect(bench.run("backup-codes", "--user", "alice").answer == "0 of 0 backup codes left\n")
    bench.run("backup-codes", "--user", "alice", "--regenerate")
    #expect(bench.run("backup-codes", "--user", "alice").answer == "10 of 10 backup codes left\n")
  }

  @Test func `Unenrolling wants a fresh code`() throws {
    let enrolled = try bench.enroll()
    let no = bench.run("unenroll", "--user", "alice", on: FakeTerminal([.types("000000")]))
    #expect((no.status, no.aside) == (1, "sallyport: wrong code\n"))
    #expect(bench.run("status", "--user", "alice").status == 0)
    let code = try enrolled.code(at: bench.now)
    let yes = bench.run("unenroll", "--user", "alice", on: FakeTerminal([.types(code)]))
    #expect((yes.status, yes.answer) == (0, "alice is no longer enrolled.\n"))
    #expect(bench.run("status", "--user", "alice", "--allow-missing").status == 66)
    #expect(!(try bench.content().keys.contains { $0.contains("alice") }))
  }

  @Test func `Unenrolling with force wants none`() throws {
    _ = try bench.enroll()
    #expect(bench.run("unenroll", "--user", "alice", "--force").status == 0)
    #expect(bench.run("unenroll", "--user", "alice", "--force").status == 67)
  }

  @Test(arguments: [
    "version = 1\n", "", "version = 1\nuser = bob\n",
  ]) func `A broken enrollment can be replaced or removed, by force alone`(text: String) throws {
    for fix in [["enroll", "--no-confirm", "--allow-missing"], ["unenroll"]] {
      _ = try bench.enroll("daemon", "--force")
      let file = URL(fileURLWithPath: "\(bench.directory)/users/daemon/enrollment")
      try Data(text.utf8).write(to: file)
      let told = bench.run("status", "--user", "daemon")
      #expect(told.status == 65)
      #expect(told.aside.contains("hint: sallyport \(fix[0]) daemon"))
      let arguments = fix + ["--user", "daemon"]
      #expect(run(arguments).status == 65)
      #expect(run(arguments + ["--force"]).status == 0)
    }
    #expect(bench.run("list").answer == "0 enrolled\n")
  }

  // decisive
  @Test func `Preparing twice is as good as once`() throws {
    #expect(bench.run("prepare").answer == "The store \(bench.directory) is ready.\n")
    let before = try bench.content()
    #expect(bench.run("prepare").status == 0)
    #expect(try bench.content() == before)
    #expect(bench.run("list").answer == "0 enrolled\n")
  }

  private func run(_ arguments: [String]) -> Bench.Outcome {
    let terminal = FakeTerminal()
    let context = Context(
      terminal: terminal, effectiveUser: geteuid(), caller: nil, hostName: nil,
      now: { [bench] in bench.now })
    let status = Command.run(arguments + ["--store", bench.directory], in: context)
    return Bench.Outcome(status: status, terminal: terminal)
  }
}

@Suite struct `Permission` {
  @Test(arguments: [
    ["enroll", "--user", "root"], ["list"], ["prepare"],
    ["verify", "--user", "root"], ["backup-codes", "--user", "root"],
    ["unenroll", "--user", "root", "--force"], ["add", "--user", "root"],
    ["resync", "--user", "root"], ["import", "uri", "--user", "root"],
  ]) func `The usual store is root's alone`(arguments: [String]) {
    let terminal = FakeTerminal()
    let context = Context(
      terminal: terminal, effectiveUser: 1000, caller: nil, hostName: nil, now: { UnixTime(0) })
    #expect(Command.run(arguments, in: context) == 77)
    let isImport = arguments[0] == "import"
    let verb = isImport ? "import uri" : arguments[0]
    #expect(
      terminal.aside == "sallyport: only root can run sallyport \(verb)\n"
        + "hint: sudo sallyport \(arguments.joined(separator: " "))\n")
  }

  private func alone(_ line: String) -> FakeTerminal {
    let terminal = FakeTerminal()
    var context = Context(
      terminal: terminal, effectiveUser: 1000, caller: nil, hostName: nil, now: { UnixTime(0) })
    context.sessions = "/no/such/socket"
    #expect(Command.run(line.split(separator: " ").map(String.init), in: context) == 77)
    return terminal
  }

  @Test(arguments: ["status", "add", "add laptop", "remove laptop", "enroll --digits 8"])
  func `Without its service a user is told of it, and the whole line for root`(line: String) {
    #expect(
      alone(line).aside == """
        sallyport: you are not root, and the service for your own enrollment does not run
        hint: sudo sallyport \(line)
        hint: sudo systemctl enable --now sallyport-session.socket  # and self_service = yes

        """)
  }

  @Test(arguments: [
    ("add --force", "--force"), ("enroll laptop --no-confirm", "--no-confirm"),
    ("add --json", "--json"), ("remove phone --force", "--force"), ("status --conf x", "--conf"),
    ("backup-codes --json", "--json"), ("enroll --handout x.txt", "--handout"),
  ]) func `An option for root alone is named`(line: String, option: String) {
    #expect(
      alone(line).aside
        == "sallyport: only root can use \(option) here\nhint: sudo sallyport \(line)\n")
  }
}
