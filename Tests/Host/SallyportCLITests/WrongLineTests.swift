import ArgumentParser
import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportCLI
@testable import SallyportSupport

/// Command lines that cannot be taken, and what each is answered with.
@Suite struct `Wrong command lines` {
  static let meant: [(typed: String, meant: String)] = [
    ("enrol --user alice", "enroll --user alice"),
    ("enrol alice", "enroll alice"),
    ("Enroll alice", "enroll alice"),
    ("enrole -u alice --force", "enroll -u alice --force"),
    ("erroll alice", "enroll alice"),
    ("new alice", "enroll alice"),
    ("create --user=alice", "enroll --user=alice"),
    ("register alice phone", "enroll alice phone"),
    ("setup alice", "enroll alice"),
    ("reset alice", "enroll alice --force"),
    ("reset --user alice", "enroll --user alice --force"),
    ("export --user alice", "add --user alice"),
    ("qr alice", "add alice"),
    ("show alice", "status alice"),
    ("stauts alice", "status alice"),
    ("info", "status"),
    ("list --store DIR --jsn", "list --store DIR --json"),
    ("ls", "list"),
    ("users", "list"),
    ("unlok alice", "unlock alice"),
    ("unban --user alice", "unlock --user alice"),
    ("rm alice phone", "remove alice phone"),
    ("delete alice", "unenroll alice"),
    ("unenrol alice", "unenroll alice"),
    ("drop --user alice laptop", "remove --user alice laptop"),
    ("revoke alice", "pass alice --revoke"),
    ("revoke --user alice", "pass --user alice --revoke"),
    ("unblock frank", "block frank --undo"),
    ("unblok frank", "block frank --undo"),
    ("check", "doctor"),
    ("backup alice", "backup-codes alice"),
    ("backupcodes alice", "backup-codes alice"),
    ("regenerate alice", "backup-codes alice --regenerate"),
    ("sync alice phone", "resync alice phone"),
    ("enable sshd", "pam enable sshd"),
    ("disable sudo", "pam disable sudo"),
    ("on sshd", "pam enable sshd"),
    ("pam on sshd", "pam enable sshd"),
    ("pam enabel sshd", "pam enable sshd"),
    ("pam list", "pam status"),
    ("import ga --all-homes", "import google-authenticator --all-homes"),
    ("import pam_oath /etc/users.oath", "import pam-oath /etc/users.oath"),
    ("ga --all-homes", "import google-authenticator --all-homes"),
    ("policy", "config show"),
    ("config view", "config show"),
    ("config chekc", "config check"),
    ("edit", "config edit"),
    ("docter sshd", "doctor sshd"),
    ("exept alice", "exempt alice"),
    ("enforce --user alice", "require --user alice"),
    ("test alice", "verify alice"),
    ("enabel sshd", "pam enable sshd"),
    ("enroll alice --forse", "enroll alice --force"),
    ("status alice --jsn", "status alice --json"),
    ("enroll alice --perod=60", "enroll alice --period=60"),
    ("version", "--version"),
    ("completion zsh", "--generate-completion-script zsh"),
    ("verify alice --code 123456", "verify alice"),
    ("verify --code=123456 --user alice", "verify --user alice"),
    ("verify alice 123456", "verify alice"),
    ("verify alice 123 456", "verify alice"),
    ("unenroll alice 123456", "unenroll alice"),
    ("lost alice", "enroll alice --force"),
    ("new 'O Hara'", "enroll ''\\''O' 'Hara'\\'''"),
  ]

  private func run(_ line: String) -> (status: Int32, aside: String) {
    let terminal = FakeTerminal()
    let context = Context(
      terminal: terminal, effectiveUser: 0, caller: nil, hostName: nil, now: { UnixTime(0) })
    let status = Command.run(line.split(separator: " ").map(String.init), in: context)
    return (status, terminal.aside)
  }

  @Test(arguments: meant) func `One line says which was meant`(typed: String, meant: String) {
    let (status, aside) = run(typed)
    #expect(status == 64)
    #expect(aside.hasSuffix(". Did you mean: sallyport \(meant)\n"), "\(aside)")
    #expect(aside.hasPrefix("sallyport: "))
    #expect(aside.split(separator: "\n").count == 1)
  }

  /// What is proposed for a misspelt line must not be a wrong line itself.
  @Test(arguments: meant.map(\.meant)) func `What is proposed can be parsed`(line: String) throws {
    guard !line.contains("'"), !["--version", "--help"].contains(where: line.hasSuffix),
      !line.hasPrefix("--")
    else { return }
    _ = try Sallyport.parseAsRoot(line.split(separator: " ").map(String.init))
  }

  @Test(arguments: [
    "verify alice --xode", "unlock alice --dorce", "user add alice", "list --frob x",
    "status --cons", "enrol alice --forse", "list alice", "pam confirm sshd",
  ]) func `What would not help is not proposed`(line: String) {
    let (status, aside) = run(line)
    #expect(status == 64)
    #expect(!aside.contains("Did you mean") && aside.hasSuffix("--help\n"), "\(aside)")
  }

  @Test func `What only lacks something is proposed`() {
    for (line, meant) in [("import ga", "import google-authenticator"), ("enable", "pam enable")] {
      let aside = run(line).aside
      #expect(aside.hasSuffix(". Did you mean: sallyport \(meant)\n"), "\(aside)")
    }
  }

  @Test func `A code on the command line is not repeated, and why it is not taken is said`() {
    for line in ["verify alice --code 123456", "verify alice 123456", "verify alice --code=123456"]
    {
      let aside = run(line).aside
      #expect(
        aside.hasPrefix(
          "sallyport: a code is not taken from the command line, which others can read"))
      #expect(!aside.contains("123456"))
    }
  }

  @Test func `The first screen's lines can be typed`() throws {
    let terminal = FakeTerminal()
    let context = Context(
      terminal: terminal, effectiveUser: 0, caller: nil, hostName: nil, now: { UnixTime(0) })
    #expect(Command.run([], in: context) == 0)
    let lines = terminal.answer.split(separator: "\n").compactMap { line in
      line.components(separatedBy: "  sallyport ").dropFirst().first
    }
    #expect(lines.count == 5)
    #expect(lines.contains("enroll alice --force") && !lines.contains { $0.hasPrefix("remove") })
    for line in lines { _ = try Sallyport.parseAsRoot(line.split(separator: " ").map(String.init)) }
  }

  @Test(arguments: ["frobnicate", "xyzzy alice", "pam frobnicate sshd", "config xyzzy"])
  func `What is like nothing gets the help`(line: String) {
    let (status, aside) = run(line)
    #expect(status == 64)
    #expect(aside.contains("no command '"), "\(aside)")
    #expect(aside.contains("\nhint: sallyport ") && aside.hasSuffix("--help\n"), "\(aside)")
    #expect(!aside.contains("Did you mean"))
  }

  @Test(arguments: [
    ("require alice --by 01.12.2026", "expected YYYY-MM-DD, such as 2026-12-01"),
    ("require alice --by tomorrow", "expected YYYY-MM-DD, such as 2026-12-01"),
    ("unlock alice bob", "unexpected argument 'bob'"),
    ("enroll \u{1b}[31m", "is not a valid user name"),
  ]) func `The reason is named`(typed: String, reason: String) {
    let (status, aside) = run(typed)
    #expect(status == 64 || status == 67, "\(status)")
    #expect(aside.contains(reason), "\(aside)")
    #expect(!aside.contains("\u{1b}"))
  }
}

@Suite struct `Words like others` {
  @Test(arguments: [
    ("ssh", "sshd"), ("sshdd", "sshd"), ("SU", "su"), ("sudoo", "sudo"), ("openssh", "sshd"),
    ("console", "login"), ("frobnicate", nil), ("s", nil),
  ]) func `A service`(typed: String, meant: String?) {
    #expect(Likeness.service(typed, among: ["login", "su", "sudo", "sshd"]) == meant)
  }

  @Test(arguments: [
    ("", "", 0), ("a", "", 1), ("enrol", "enroll", 1), ("sttaus", "status", 1),
    ("kitten", "sitting", 3), ("abc", "cab", 2),
  ]) func `Slips`(first: String, second: String, count: Int) {
    #expect(Likeness.slips(between: first, and: second) == count)
    #expect(Likeness.slips(between: second, and: first) == count)
  }

  /// Bash expands the words that it is proposed.
  @Test(arguments: ["$(id)", "`id`", "a b", "a;b", "a'b", "a\\b", "~", "*", "$HOME", ""])
  func `What a shell would not take as it is is not proposed`(name: String) {
    #expect(
      Completions.safe([name, "work-phone", "alice@example.org"]) == [
        "work-phone", "alice@example.org",
      ])
  }

  @Test func `What is too long to be a slip is not compared`() {
    let long = String(repeating: "a", count: 100_000)
    #expect(Likeness.nearest(to: long, among: ["enroll", long]) == nil)
  }

  @Test(arguments: [
    ("enrolment", "enrollment"), ("look-ahead", "look_ahead"),
    ("adjacent_interval", "adjacent_intervals"),
  ]) func `A key of the policy file`(typed: String, meant: String) throws {
    let bench = Bench()
    try bench.policy("[default]\n\(typed) = 3\n")
    let told = bench.run("config", "check", bench.policyFile).aside
    #expect(
      told.contains(":2: unknown key, found \"\(typed)\". Did you mean: \(meant)\n"), "\(told)")
  }
}

@Suite struct `Words that name` {
  let bench = Bench()

  @Test func `The first plain word is the user, the second the authenticator`() throws {
    _ = try bench.enroll()
    #expect(bench.run("status", "alice").status == 0)
    #expect(bench.run("status", "-u", "alice").status == 0)
    #expect(bench.run("unlock", "alice").status == 0)
    #expect(bench.run("rename", "alice", "phone", "tablet").status == 0)
    #expect(bench.run("rename", "--user", "alice", "tablet", "slate").status == 0)
    #expect(bench.run("rename", "alice", "--name", "slate", "tablet").status == 0)
    #expect(bench.run("rename", "alice", "tablet", "--to", "phone").status == 0)
    let added = bench.run("add", "alice", "laptop", "--force", "--no-confirm")
    #expect(added.answer.contains("Added \"laptop\""), "\(added.answer)")
    #expect(bench.run("remove", "--user", "alice", "laptop", "--force").status == 0)
    #expect(bench.run("status", "alice").answer.contains("phone"))
  }

  // decisive
  @Test(arguments: [
    ["alice", "alice"], ["--user", "alice", "alice"], ["alice", "--user", "alice"],
  ]) func `The user twice is the user, and no authenticator`(words: [String]) throws {
    let done = bench.run(
      arguments: ["enroll"] + words + ["--allow-missing", "--force", "--no-confirm"])
    #expect(done.status == 0, "\(done.aside)")
    let told =
      "alice is taken for the user, twice; an authenticator has that name with --name alice"
    #expect(done.aside.contains("warning: \(told)\n"), "\(done.aside)")
    let added = bench.run(arguments: ["add"] + words + ["--force", "--no-confirm"])
    #expect(added.status == 0 && added.aside.contains(told), "\(added.aside)")
    #expect(try bench.names() == ["phone", "phone-2"])
    let named = bench.run("add", "alice", "--name", "alice", "--force", "--no-confirm")
    #expect(named.status == 0 && !named.aside.contains(told), "\(named.aside)")
    #expect(try bench.names() == ["phone", "phone-2", "alice"])
  }

  @Test func `A word too many is refused and changes nothing`() throws {
    _ = try bench.enroll()
    let before = try bench.content()
    for words in [
      ["unlock", "--user", "alice", "bob"], ["remove", "alice", "phone", "laptop", "--force"],
      ["remove", "alice", "phone", "--name", "laptop", "--force"],
      ["rename", "alice", "a", "b", "c"],
    ] {
      #expect(bench.run(arguments: words).status == 64, "\(words)")
    }
    #expect(bench.run("remove", "alice").aside.contains("no authenticator given"))
    #expect(bench.run("rename", "alice", "phone").aside.contains("no new name given"))
    #expect(try bench.content() == before)
  }

  @Test func `Who called sudo is asked for at a terminal only`() throws {
    _ = try bench.enroll()
    let asked = FakeTerminal([.types(""), .types("000000")])
    let verified = bench.run("verify", on: asked, caller: "alice")
    #expect(asked.prompts.first == "For alice? [Y/n]: ")
    #expect(verified.status == 1, "\(verified.aside)")
    let declined = bench.run("verify", on: FakeTerminal([.types("n")]), caller: "alice")
    #expect(declined.aside == "sallyport: nothing was changed\n")
    let piped = FakeTerminal(isInteractive: false)
    #expect(bench.run("verify", on: piped, caller: "alice").status == 64)
  }

  @Test(arguments: [
    (["prepare", "--empty"], "--yes"), (["adopt", "--all", "FILE"], "--yes"),
    (["enroll", "alice", "--allow-missing", "--force"], "--no-confirm"),
  ])
  func `What asks names the option that does not ask where there is no terminal`(
    words: [String], option: String
  ) throws {
    _ = try bench.enroll()
    let before = try bench.content()
    let words = words.map { $0 == "FILE" ? bench.policyFile : $0 }
    let done = bench.run(arguments: words, on: FakeTerminal([.ends], isInteractive: false))
    let line = (["sallyport"] + words + ["--store", bench.directory, option])
      .joined(separator: " ")
    #expect(done.status == 1)
    #expect(done.aside.hasPrefix("sallyport: there is no terminal to ask on: "), "\(done.aside)")
    #expect(
      done.aside.hasSuffix("nothing was changed\nhint: \(line)  # does not ask\n"),
      "\(done.aside)")
    #expect(try bench.content() == before)
  }
}
