import Foundation
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

/// alice has a key and a password, bob a password, git a key alone.
@Suite struct `Of each account what it has` {
  private let machine: PamBench
  private let sshd: FakeSSHD
  private let keys = SSHStage(
    method: .match, people: SSHPeople(keyUsers: ["alice"], aloneUsers: ["git"]))

  init() throws {
    machine = try PamBench()
    sshd = try FakeSSHD(machine)
    let accounts = try #require(machine.read("/etc/passwd"))
    try machine.write("/etc/passwd", accounts + "bob:x:1002:1002::/home/bob:/bin/sh\n")
    try machine.write("/etc/shadow", "root:!::\nalice:$6$x::\ngit:!::\nbob:$6$x::\n")
    try machine.write("/etc/group", "keys:x:500:alice\n")
  }

  private func match(_ more: String...) -> Bench.Outcome {
    machine.run(words: ["enable", "sshd", "--sshd", "match", "--yes"] + more)
  }

  private func told(_ text: String) -> String {
    text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  // decisive
  @Test func `is written for each by name, and undone`() throws {
    let before = try machine.content()
    let done = match()
    #expect(done.status == 0, "\(done.aside)")
    #expect(sshd.dropIn == keys.text && sshd.read == keys.text)
    #expect(
      sshd.dropIn?.contains(
        """
        AuthenticationMethods keyboard-interactive
        Match User git
            AuthenticationMethods publickey
        Match User alice
            AuthenticationMethods publickey,keyboard-interactive

        """) == true)
    #expect(
      done.answer.contains(
        """
        By a key alone, as now: git
        A key and a code: alice
        The password and a code: bob

        """), "\(done.answer)")
    #expect(sshd.events == ["reload", "reload, PAM asks"])
    #expect(machine.ours("sshd").count == 4, "\(machine.ours("sshd"))")
    #expect(match().answer.contains("Nothing was changed."))
    #expect(machine.run("enable", "sshd", "--yes").answer.contains("--sshd match stays."))
    #expect(machine.run("enable", "su", "--yes").status == 0)
    let both = machine.run("enable", "su", "sshd", "--yes")
    #expect(both.answer.contains("--sshd match stays."), "\(both.answer)\(both.aside)")
    #expect(machine.run("disable", "su", "--yes").status == 0)
    let off = machine.run("disable", "sshd", "--yes")
    #expect(off.status == 0, "\(off.aside)")
    #expect(try machine.content() == before && sshd.dropIn == nil)
  }

  // decisive
  @Test func `is told as a change for each`() throws {
    let shown = told(match("--dry-run").answer)
    #expect(shown.contains("asked for a code alice at sshd before: without a code"), "\(shown)")
    #expect(shown.contains("refused bob at sshd not enrolled"), "\(shown.suffix(900))")
    #expect(!shown.contains("git at sshd"), "\(shown)")
  }

  @Test func `is for a group too, and for those enrolled since`() throws {
    #expect(match("--key-group", "keys").status == 0)
    let people = SSHPeople(keyGroup: "keys", aloneUsers: ["git"])
    #expect(sshd.dropIn == SSHStage(method: .match, people: people).text)
    _ = try machine.bench.enroll("git")
    let again = machine.run("enable", "sshd", "--yes")
    #expect(again.status == 0, "\(again.aside)")
    #expect(
      sshd.dropIn == SSHStage(method: .match, people: SSHPeople(keyGroup: "keys")).text)
    #expect(again.answer.contains("The password and a code: bob\n"))
  }

  @Test func `is taken back to what it was`() throws {
    #expect(match("--key-group", "keys").status == 0)
    let on = try machine.content()
    let text = sshd.dropIn
    try FileManager.default.createDirectory(
      atPath: machine.root + "/etc/security", withIntermediateDirectories: true)
    let done = match("--revert-in", "10m")
    #expect(done.status == 0 && sshd.dropIn == keys.text, "\(done.aside)")
    #expect(machine.run("revert").status == 0)
    #expect(sshd.dropIn == text)
    #expect(try machine.content() == on)
  }

  @Test func `is undone where sshd sets something else for one of them`() throws {
    let before = try machine.content()
    sshd.matches["alice"] = "authenticationmethods publickey"
    let refused = match()
    #expect(
      refused.status == 78 && refused.aside.contains("alice: AuthenticationMethods publickey"))
    #expect(sshd.dropIn == nil)
    #expect(try machine.content() == before)
  }

  @Test func `is refused without passwords, keys or members`() throws {
    let groups = try #require(machine.read("/etc/group"))
    try machine.write("/etc/group", groups + "robots:x:501:git\nempty:x:502:\n")
    for (group, told) in [
      ("none", "the group none does not exist"), ("empty", "the group empty has no members here"),
      ("robots", "the group robots has no members here but git, who have no password"),
    ] {
      let refused = match("--key-group", group)
      #expect(refused.status == 64 && refused.aside.contains(told), "\(refused.aside)")
    }
    try machine.write("/etc/nsswitch.conf", "group: files sss\n")
    let unlisted = match("--key-group", "none")
    #expect(
      unlisted.aside.contains("no source in nsswitch.conf lists members of the group none"),
      "\(unlisted.aside)")
    #expect(match("--key-group", "a,b").status == 64)
    let other = machine.run("enable", "sshd", "--key-group", "keys", "--yes")
    #expect(other.status == 64 && other.aside.contains("--key-group is for --sshd match"))
    sshd.settings = "passwordauthentication no\n" + FakeSSHD.debian
    let refused = match()
    #expect(refused.status == 64 && refused.aside.contains("an sshd that takes a password alone"))
    #expect(sshd.dropIn == nil)
  }

  @Test func `is not guessed where keys come from elsewhere`() throws {
    sshd.settings = "authorizedkeyscommand /usr/bin/keys\n" + FakeSSHD.debian
    let shown = told(match("--dry-run").answer)
    let gap = "(a key: AuthorizedKeysCommand)"
    #expect(
      shown.contains("The password and a code: bob Not known: root \(gap), bob \(gap) "), "\(shown)"
    )
  }

  @Test func `is proposed, ready to paste, where nothing else was asked for`() throws {
    let shown = machine.run("enable", "sshd", "--dry-run").answer
    #expect(
      shown.contains(
        """
        Instead, `sallyport pam enable sshd --sshd match` asks each for what they have:
            Match User git
                AuthenticationMethods publickey
            Match User alice
                AuthenticationMethods publickey,keyboard-interactive
        By a key alone, as now: git
        A key and a code: alice
        The password and a code: bob

        """), "\(shown)")
    let named = machine.run("enable", "sshd", "--sshd", "password+code", "--dry-run")
    #expect(!named.answer.contains("--sshd match"))
  }

  // decisive
  @Test func `is not proposed where nobody is asked, as nothing is told there`() throws {
    let shown = machine.run("enable", "sshd", "--dry-run")
    #expect(told(shown.answer).contains("git at sshd no password"), "\(shown.answer)")
    let done = machine.run("enable", "sshd", "--yes")
    #expect(done.status == 0, "\(done.aside)")
    #expect(!done.answer.contains("--sshd match"), "\(done.answer)")
    #expect(!done.answer.contains("By a key alone"), "\(done.answer)")
    #expect(!done.answer.contains("What changes"), "\(done.answer)")
  }

  // decisive
  // shows: sshd-match
  @Test func `is what each likes only with a word on stolen passwords`() throws {
    let before = try machine.content()
    let done = machine.run("enable", "sshd", "--sshd", "either", "--yes")
    #expect(done.status == 0, "\(done.aside)")
    #expect(
      done.answer.contains(
        "warning: each person chooses: a stolen password then takes the place of the key\n"))
    #expect(
      sshd.dropIn?.contains(
        "\nAuthenticationMethods publickey,keyboard-interactive keyboard-interactive\n") == true)
    #expect(sshd.events == ["reload", "reload, PAM asks"])
    #expect(machine.ours("sshd").count == 4)
    #expect(machine.run("disable", "sshd", "--yes").status == 0)
    #expect(try machine.content() == before && sshd.dropIn == nil)
  }

  // decisive
  @Test func `keeps out whom the other method keeps out, and says so`() throws {
    #expect(machine.run("enable", "sshd", "--sshd", "either", "--yes").status == 0)
    let shown = match("--dry-run").answer
    #expect(
      shown.contains(
        "-  AuthenticationMethods publickey,keyboard-interactive keyboard-interactive\n"),
      "\(shown)")
    #expect(shown.contains("\n   UsePAM yes\n"), "\(shown)")
    #expect(shown.contains("Refused until they are enrolled: git\n"), "\(shown)")
    #expect(!shown.contains("By a key alone"), "\(shown)")
  }

  // decisive
  @Test func `is made for robots alone, beside people with passwords`() throws {
    try machine.write("/etc/shadow", "root:!::\nalice:!::\ngit:!::\nbob:$6$x::\n")
    try machine.write(
      "/etc/passwd",
      "root:x:0:0::/root:/bin/sh\ngit:x:1001:1001::/home/git:/bin/sh\n"
        + "bob:x:1002:1002::/home/bob:/bin/sh\n")
    let shown = machine.run("enable", "sshd", "--dry-run", "--force").answer
    #expect(shown.contains("--sshd match` asks each for what they have:"), "\(shown)")
    let done = match("--force")
    #expect(done.status == 0, "\(done.aside)")
    let people = SSHPeople(aloneUsers: ["git"])
    #expect(sshd.dropIn == SSHStage(method: .match, people: people).text)
    #expect(match("--force").answer.contains("Nothing was changed."))
    #expect(machine.run("disable", "sshd", "--yes").status == 0 && sshd.dropIn == nil)
  }

  // decisive
  @Test func `is not made where nobody has a key`() throws {
    try machine.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\n")
    let refused = match()
    #expect(refused.status == 64, "\(refused.answer)")
    #expect(refused.aside.contains("nobody has a key that sshd takes\n"), "\(refused.aside)")
  }

  // decisive
  @Test func `tells who has no key of the list without one`() {
    let shown = told(
      machine.run("enable", "sshd", "--sshd", "either", "--dry-run").answer)
    #expect(shown.contains("refused bob at sshd not enrolled"), "\(shown)")
  }
}
