import Foundation
import Testing

@testable import SallyportCLI

/// alice and bob have passwords; both may use sudo.
@Suite struct `Whom pam enable would lock out` {
  private let machine: PamBench

  init() throws {
    machine = try PamBench(enrolled: false)
    try machine.people("alice", "bob")
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) ALL\n")
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/security", withIntermediateDirectories: true)
  }

  private func policy(_ text: String) throws {
    try machine.write("/etc/security/sallyport.conf", text)
  }

  private func isRefused(_ service: String, naming people: String) throws -> Bool {
    let before = try machine.content()
    let done = machine.run("enable", service, "--yes")
    let told = "sallyport: nobody could log in to \(service) after this: \(people)\n"
    return try done.status == 78 && done.aside.hasPrefix(told) && machine.content() == before
  }

  private func names(_ service: String) throws -> [String] {
    struct Answer: Decodable { let lockedOut: [String] }
    let shown = machine.run("enable", service, "--dry-run", "--json", "--force")
    return try shown.json(Answer.self).lockedOut
  }

  // shows: enable-locks-out
  @Test func `is named before the question`() throws {
    _ = try machine.bench.enroll("alice")
    let dry = machine.run("enable", "sudo", "--dry-run")
    let words = dry.answer.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(words.contains("refused bob at sudo, sudo -u not enrolled"), "\(words)")
    #expect(try names("sudo") == ["bob (not enrolled)"])
    _ = try machine.bench.enroll("bob")
    #expect(try names("sudo") == [])
  }

  @Test func `is root too where su asks for root's code`() throws {
    _ = try machine.bench.enroll("alice")
    #expect(try names("su") == ["bob (not enrolled)"])
    try machine.write("/etc/shadow", "root:$6$x::\nalice:$6$x::\nbob:$6$x::\n")
    #expect(try names("su") == ["root (not enrolled)", "bob (not enrolled)"])
  }

  // shows: enable-locks-out
  @Test func `is everybody where nobody is enrolled, unless it is forced`() throws {
    let unread = "the enrollment or the note cannot be read"
    #expect(try isRefused("sudo", naming: "alice (\(unread)), bob (\(unread))"), "no store yet")
    #expect(machine.prepare().status == 0)
    let both = "alice (not enrolled), bob (not enrolled)"
    #expect(try isRefused("sudo", naming: both))
    #expect(machine.run("enable", "sudo", "--yes", "--force").status == 0)
    #expect(!machine.ours("sudo").isEmpty)
  }

  // shows: enable-locks-out
  @Test func `is everybody where who is enrolled may not use sudo`() throws {
    _ = try machine.bench.enroll("alice")
    try machine.write("/etc/sudoers", "bob ALL=(ALL) ALL\n")
    #expect(try isRefused("sudo", naming: "bob (not enrolled)"))
    #expect(machine.run("enable", "su", "--dry-run").status == 0)
  }

  // decisive; shows: enable-locks-out
  @Test func `are those whom a fleet is to verify that this machine has not joined`() throws {
    _ = try machine.bench.enroll("alice")
    _ = try machine.bench.enroll("bob")
    try policy("[default]\nverification = fleet\n")
    let before = try machine.content()
    let done = machine.run("enable", "sudo", "--yes")
    #expect(done.status == 78 && done.aside.contains("sudo, and this machine is in no fleet"))
    #expect(try machine.content() == before)
    // If only for somebody, who would be refused: until it is forced.
    try policy("[rule alice]\nmatch_user = alice\nverification = fleet\n")
    #expect(machine.run("enable", "sudo", "--yes").status == 78)
    #expect(machine.run("enable", "sudo", "--yes", "--force").status == 0)
  }

  @Test func `is everybody where who is enrolled has no account`() throws {
    _ = try machine.bench.enroll("carol")
    #expect(try isRefused("sudo", naming: "alice (not enrolled), bob (not enrolled)"))
  }

  // decisive
  @Test func `by a wrong value of a factor is told of before the question, and by doctor`() throws {
    _ = try machine.bench.enroll("alice")
    try policy("[default]\nfactor_totp = On\n")
    let shown = machine.run("enable", "sudo", "--dry-run").answer
    #expect(shown.contains("warning: /etc/security/sallyport.conf:2: factor_totp"), "\(shown)")
    #expect(shown.contains("as if factor_totp were off"), "\(shown)")
    #expect(machine.run("enable", "sudo", "--yes", "--force").status == 0)
    #expect(machine.doctor().answer.contains("as if factor_totp were off"))
    try policy("[default]\nfactor_totp = on\n")
    #expect(!machine.run("enable", "su", "--dry-run").answer.contains("warning: /etc/security"))
  }

  @Test func `is everybody where the policy turns off all factors`() throws {
    _ = try machine.bench.enroll("alice")
    try policy("[default]\nfactor_totp = off\nfactor_backup_code = off\n")
    let alice = "alice (enrolled only with factors that the policy turns off)"
    #expect(try isRefused("sudo", naming: "\(alice), bob (not enrolled)"))
  }

  @Test func `is everybody where the enrollment is damaged`() throws {
    _ = try machine.bench.enroll("alice")
    try Data("broken\n".utf8).write(
      to: URL(fileURLWithPath: "\(machine.bench.directory)/users/alice/enrollment"))
    let alice = "alice (the enrollment or the note cannot be read)"
    #expect(try isRefused("sudo", naming: "\(alice), bob (not enrolled)"))
  }

  @Test func `is not who is exempt, by a note or by a rule`() throws {
    // A note is for the account of its uid; of the machine's own there is this one.
    try machine.people("alice", "bob", "daemon")
    let accounts = try #require(machine.read("/etc/passwd"))
    try machine.write("/etc/passwd", accounts.replacing("daemon:x:1002:", with: "daemon:x:1:"))
    try machine.write(
      "/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) ALL\ndaemon ALL=(ALL) ALL\n")
    #expect(machine.bench.run("exempt", "daemon").status == 0)
    #expect(try names("sudo") == ["alice (not enrolled)", "bob (not enrolled)"])
    #expect(machine.bench.run("exempt", "daemon", "--undo").status == 0)
    try machine.people("alice", "bob")
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) ALL\n")
    try policy("[rule bob]\nmatch_user = bob\nenrollment = voluntary\n")
    #expect(try names("sudo") == ["alice (not enrolled)"])
  }

  @Test func `is who has no password for sshd's prompts`() throws {
    let sshd = try FakeSSHD(machine)
    _ = try machine.bench.enroll("git")
    let refused = machine.run("enable", "sshd", "--yes")
    #expect(refused.status == 78)
    let told =
      "nobody could log in to sshd after this: alice (not enrolled), "
      + "git (no password, and sshd does not take its key alone)\n"
    #expect(refused.aside.contains(told), "\(refused.aside)")
    #expect(sshd.dropIn == nil)
    _ = try machine.bench.enroll("alice")
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
  }

  // decisive
  @Test func `is told where nobody but a robot stays, who is asked for no code`() throws {
    #expect(machine.prepare().status == 0)
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) NOPASSWD: ALL\n")
    let before = try machine.content()
    let refused = machine.run("enable", "sudo", "--yes")
    let told = "nobody could log in to sudo with a code after this: alice (not enrolled)\n"
    #expect(refused.status == 78 && refused.aside.contains(told), "\(refused.aside)")
    #expect(try machine.content() == before)
    #expect(machine.run("enable", "sudo", "--yes", "--force").status == 0)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    _ = try machine.bench.enroll("alice")
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
  }

  // decisive
  @Test(arguments: ["match", "none"])
  func `is told where nobody but a key alone stays`(method: String) throws {
    #expect(machine.prepare().status == 0)
    let sshd = try FakeSSHD(machine)
    let accounts = try #require(machine.read("/etc/passwd"))
    try machine.write("/etc/passwd", accounts + "bob:x:1002:1002::/home/bob:/bin/sh\n")
    try machine.write("/etc/shadow", "root:!::\nalice:$6$x::\ngit:!::\nbob:$6$x::\n")
    sshd.settings = "kbdinteractiveauthentication yes\n" + FakeSSHD.debian
    let refused = machine.run("enable", "sshd", "--sshd", method, "--yes")
    #expect(refused.status == 78, "\(refused.answer)")
    #expect(refused.aside.contains("bob (not enrolled)"), "\(refused.aside)")
    #expect(refused.aside.contains("--force\n"), "\(refused.aside)")
    #expect(sshd.dropIn == nil && machine.ours("sshd").isEmpty)
    _ = try machine.bench.enroll("bob")
    #expect(machine.run("enable", "sshd", "--sshd", method, "--yes").status == 0)
  }

  // decisive
  @Test func `is everybody where rules are elsewhere and nobody is enrolled`() throws {
    #expect(machine.prepare().status == 0)
    try machine.write("/etc/nsswitch.conf", "sudoers: files ldap\n")
    #expect(try isRefused("sudo", naming: "nobody is enrolled"))
    _ = try machine.bench.enroll("alice")
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
  }

  // decisive
  @Test func `is who has a rule where another one may have one, and neither is enrolled`() throws {
    #expect(machine.prepare().status == 0)
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\n+people ALL=(ALL) ALL\n")
    #expect(try isRefused("sudo", naming: "alice (not enrolled)"))
  }

  @Test func `is nobody where all may enroll or get in unenrolled`() throws {
    #expect(machine.prepare().status == 0)
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) NOPASSWD: ALL\n")
    try policy("[default]\nenrollment = required\n")
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(machine.run("enable", "sudo", "--nullok", "--yes").status == 0)
  }
}
