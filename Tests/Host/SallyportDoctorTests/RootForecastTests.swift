import Foundation
import PAMStack
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportDoctor

/// The cells of sudo, by sudoers and by what the stacks say.
@Suite struct `Who becomes another account` {
  private let fake = FakeMachine()
  private let asks =
    "auth required pam_unix.so\nauth required pam_sallyport.so\naccount required pam_unix.so\n"
    + "session required pam_permit.so\n"
  private let open =
    "auth required pam_unix.so\naccount required pam_unix.so\nsession required pam_permit.so\n"
  private let shut =
    "auth required pam_unix.so\naccount required pam_deny.so\nsession required pam_permit.so\n"

  init() throws {
    try fake.write("/etc/debian_version", "12\n")
    try fake.write("/etc/pam.d/other", "auth required pam_deny.so\n")
    for service in ["sudo", "sudo-i"] { try fake.write("/etc/pam.d/\(service)", asks) }
    try fake.write("/etc/pam.d/corp", open)
    try fake.write("/etc/pam.d/shut", shut)
    try people()
    try fake.write("/bin/sh", "")
    try fake.change("/bin/sh", mode: 0o755)
    try fake.write("/etc/group", "root:x:0:\nalice:x:1000:\nbob:x:1001:\ngit:x:999:\n")
    try shadow()
  }

  private func people(gitsShell shell: String = "/bin/sh", more: String = "") throws {
    let others = ["root:x:0:0", "alice:x:1000:1000", "bob:x:1001:1001"].map { "\($0)::/:/bin/sh\n" }
    try fake.write("/etc/passwd", others.joined() + "git:x:999:999::/:\(shell)\n" + more)
  }

  private func shadow(root: String = "::", alice: String = "$6$x$y") throws {
    try fake.write(
      "/etc/shadow",
      """
      root:$6$x$y:19000:0:99999:7:\(root)
      alice:\(alice):19000:0:99999:7:::
      bob:$6$x$y:19000:0:99999:7:::
      git:*:19000:0:99999:7:::

      """)
  }

  private func table(_ sudoers: String, enrolled: [String] = ["root", "alice", "bob"]) throws
    -> AccessTable
  {
    try fake.write("/etc/sudoers", sudoers + "\n")
    let store = Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser)
    var facts = AccessFacts(of: fake.machine, store, at: Healthy.now)
    facts.isStoreBroken = false
    for name in enrolled { facts.enrollments[name] = .enrolled([.totp]) }
    return AccessTable(facts)
  }

  /// Of alice, by the name of the way.
  private func cells(_ sudoers: String, enrolled: [String] = ["root", "alice", "bob"]) throws
    -> [String: Cell]
  {
    let row = try table(sudoers, enrolled: enrolled).rows.first { $0.user == "alice" }
    let cells = (row?.cells ?? []).filter { $0.way.kind.family == .sudo }
    return Dictionary(cells.map { ($0.way.name, $0) }) { first, _ in first }
  }

  private func verdicts(_ sudoers: String, enrolled: [String] = ["root", "alice", "bob"]) throws
    -> [String: Verdict]
  {
    try cells(sudoers, enrolled: enrolled).mapValues(\.verdict)
  }

  @Test func `of several commands that lines name, the one that lets in most is told`() throws {
    let lines = "Defaults!/bin/a rootpw\nDefaults!/bin/b pam_service=corp\nalice ALL=(root) "
    let some = "sudo, some commands"
    #expect(try verdicts(lines + "/bin/a")[some] == .asked(.codeOfAnother))
    #expect(try verdicts(lines + "/bin/a", enrolled: ["alice"])[some] == nil)
    #expect(try verdicts(lines + "/bin/a, /bin/b")[some] == .withoutCode(.noLine))
    #expect(try verdicts(lines + "/bin/c, /bin/a", enrolled: ["alice"])[some] == .asked(.code))
    #expect(try verdicts(lines + "ALL")[some] == .withoutCode(.noLine))
  }

  @Test(arguments: [
    "alice ALL=(git) NOPASSWD: ALL", "Runas_Alias G = git\nalice ALL=(G) NOPASSWD: ALL",
    "alice ALL=(#999) NOPASSWD: ALL", "alice ALL=(%git) NOPASSWD: ALL",
    "alice ALL=(%#999) NOPASSWD: ALL", "alice ALL=(ALL, !root, !bob) NOPASSWD: ALL",
    "Defaults>git !authenticate\nalice ALL=(ALL) ALL",
    "Defaults runas_default=git\nalice ALL=NOPASSWD: ALL",
  ]) func `who is meant is found by name, number, group and alias`(lines: String) throws {
    let cell = try cells(lines)["sudo -u"]
    #expect(cell?.verdict.name == "withoutCode" && cell?.detail == "as git")
  }

  @Test func `who becomes another account by some commands alone has a row`() throws {
    try shadow(alice: "*")
    let lines = "alice ALL=(git) NOPASSWD: /bin/a"
    #expect(try verdicts(lines)["sudo -u, some commands"] == .withoutCode(.noPasswd))
    #expect(try verdicts(lines)["sudo -u"] == .refused(.noRule))
    #expect(try verdicts("alice ALL=(git) !ALL", enrolled: []).isEmpty)
  }

  /// As bad as the finding about the same line.
  @Test(arguments: [
    ("alice ALL=(ALL) NOPASSWD: ALL", "sudo", Severity.error),
    ("alice ALL=(git) NOPASSWD: ALL", "sudo -u", .warning),
    ("alice ALL=(root) NOPASSWD: /bin/a", "sudo, some commands", .warning),
    ("Defaults!/bin/a !authenticate\nalice ALL=(ALL) ALL", "sudo, some commands", .warning),
    ("Defaults>git !authenticate\nalice ALL=(ALL) ALL", "sudo -u", .warning),
  ]) func `no code for another account or some commands is a warning`(
    rule: String, way: String, severity: Severity
  ) throws {
    #expect(try cells("alice ALL=(ALL) ALL\n" + rule)[way]?.severity == severity)
    let stack = ServiceStack(of: fake.machine, "sudo")
    let findings = SudoFindings(
      sudoers: Sudoers(of: fake.machine), lines: ModuleLines(of: stack), enrolled: ["alice"])
    let found = findings.all.filter { $0.severity != .ok }
    #expect(found.map(\.severity) == [severity])
  }

  @Test func `each account counts where sudo asks for the code of the target`() throws {
    let lines = "Defaults targetpw\nalice ALL=(ALL, !root) ALL"
    let corp = "[rule bob]\nmatch_user = bob\nstate = disabled\n"
    #expect(try cells(lines)["sudo -u"]?.verdict == .asked(.codeOfAnother))
    try fake.write("/etc/security/sallyport.conf", corp)
    let cell = try cells(lines)["sudo -u"]
    #expect(cell?.verdict == .withoutCode(.disabled) && cell?.detail == "bob")
  }

  @Test func `a caller is the first account with the uid, which is all that sudo knows`() throws {
    try people(more: "second:x:1000:1000::/:/bin/sh\n")
    let rows = try table("alice ALL=(ALL) NOPASSWD: ALL\nsecond ALL=(ALL) ALL").rows
    let second = try #require(rows.first { $0.user == "second" })
    #expect(second.cells.first { $0.way.name == "sudo" }?.verdict == .withoutCode(.noPasswd))
  }

  @Test func `sudo -i -u gets nobody into a shell that ends at once`() throws {
    try fake.write("/etc/pam.d/sudo-i", open)
    try people(gitsShell: "/usr/sbin/nologin")
    #expect(try cells("alice ALL=(git) ALL")["sudo -u"]?.verdict == .asked(.code))
    #expect(try cells("alice ALL=(git) ALL")["sudo -i -u"] == nil)
    let other = try cells("alice ALL=(ALL, !root) ALL")["sudo -i -u"]
    #expect(other?.verdict == .withoutCode(.noLine) && other?.detail == "as bob")
  }

  @Test func `sudo -i -u is told of where it lets in more`() throws {
    let lines = "alice ALL=(git) ALL"
    #expect(try verdicts(lines)["sudo -i -u"] == nil)
    try fake.write("/etc/pam.d/sudo-i", open)
    #expect(try verdicts(lines)["sudo -i -u"] == .withoutCode(.noLine))
    let some = try verdicts("Defaults!/bin/a !authenticate\n\(lines)")
    #expect(some["sudo -u, some commands"] == .withoutCode(.notAuthenticated))
    #expect(some["sudo -i -u"] == .withoutCode(.noLine))
  }

  @Test func `sudo -A runs the service that a line names`() throws {
    let lines = "alice ALL=(ALL) ALL\nDefaults pam_askpass_service="
    #expect(try verdicts(lines + "sudo")["sudo -A"] == nil)
    #expect(try cells(lines + "corp")["sudo -A"]?.way.service == "corp")
    #expect(try verdicts(lines + "corp")["sudo -A"] == .withoutCode(.noLine))
  }

  @Test func `the account phase is that of the account whose password is asked for`() throws {
    let lines = "Defaults rootpw\nalice ALL=(ALL) NOPASSWD: ALL"
    #expect(try verdicts(lines)["sudo"] == .withoutCode(.noPasswd))
    try shadow(root: ":1:")
    #expect(try verdicts(lines)["sudo"] == .refused(.expired))
    #expect(try verdicts("alice ALL=(ALL) NOPASSWD: ALL")["sudo"] == .withoutCode(.noPasswd))
  }

  @Test func `without an account phase nothing of it counts, whether a rule asks or not`() throws {
    let lines = "Defaults pam_service=shut\nDefaults:alice !pam_acct_mgmt\nalice ALL=(ALL) "
    for service in ["shut"] { try fake.write("/etc/pam.d/\(service)", shut) }
    #expect(try verdicts(lines + "ALL")["sudo"] == .withoutCode(.noLine))
    #expect(try verdicts(lines + "NOPASSWD: ALL")["sudo"] == .withoutCode(.noPasswd))
    let others = lines.replacing("!pam_acct_mgmt", with: "pam_acct_mgmt")
    #expect(try verdicts(others + "ALL")["sudo"] == .refused(.stackShut))
    let one = "Defaults pam_service=shut\nDefaults!/bin/a !pam_acct_mgmt\nalice ALL=(ALL) ALL"
    #expect(try verdicts(one)["sudo, some commands"] == .withoutCode(.noLine))
  }

  @Test func `a cell has the service that sudo really runs`() throws {
    let lines = "Defaults:alice pam_service=corp\nalice ALL=(ALL) ALL"
    let table = try table(lines)
    let row = try #require(table.rows.first { $0.user == "alice" })
    let cell = try #require(row.cells.first { $0.way.name == "sudo" })
    #expect(cell.way.service == "corp" && cell.verdict == .withoutCode(.noLine))
    #expect(!table.isOurs(cell.way))
    // sudo -i asks.
    #expect(cell.severity == .error)
  }

  @Test func `a finding about a line by which nobody gets in is settled`() throws {
    let finding = Finding(
      "sudo-nopasswd", .service("sudo"), "x", severity: .error,
      location: FileLocation(file: "/etc/sudoers", line: 1), effect: .letsIn("alice"))
    let lines = "alice ALL=(ALL) NOPASSWD: ALL\n"
    #expect(try !table(lines).settles(finding))
    #expect(try table(lines + "%alice ALL=(ALL) PASSWD: ALL").settles(finding))
    try shadow(alice: "$6$x$y:19000:0:99999:7::1:\nx:*")
    #expect(try table(lines).settles(finding))
    // It opens the way for somebody else, or for who is not there yet.
    #expect(try !table(lines.replacing("alice", with: "alice, bob")).settles(finding))
    #expect(try !table(lines.replacing("alice", with: "%nobody")).settles(finding))
  }

  @Test func `sudo and sudo-rs are ways of their own, by their own files`() throws {
    for (name, version) in [("sudo", "Sudo version 1.9.16"), ("sudo-rs", "sudo-rs 0.2.8")] {
      try fake.write("/usr/bin/\(name)", "\u{7f}ELF\0\(version)\0")
      try fake.change("/usr/bin/\(name)", mode: 0o4755)
    }
    try fake.write("/etc/sudoers-rs", "alice ALL=(ALL) NOPASSWD: ALL\n")
    let found = try cells("alice ALL=(ALL) ALL")
    #expect(found["sudo"]?.verdict == .asked(.code))
    #expect(found["sudo-rs"]?.verdict == .withoutCode(.noPasswd))
    #expect(found["sudo-rs -i"]?.verdict == .withoutCode(.noPasswd))
    #expect(found["sudo-rs -u"]?.location?.file == "/etc/sudoers-rs")
    // The only one there.
    try fake.change("/usr/bin/sudo", mode: 0o755)
    #expect(try cells("alice ALL=(ALL) ALL")["sudo"] == nil)
    #expect(Sudoers(of: fake.machine).policy.rules[0].location.file == "/etc/sudoers-rs")
  }

  @Test func `rules of a directory are told of once, and in the rows of those who log in`() throws {
    try fake.write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nsudoers: ldap\n")
    let table = try table("alice ALL=(ALL) ALL")
    #expect(table.gaps == ["sudo: the rules of ldap are not looked up"])
    #expect(Set(table.rows.map(\.user)) == ["root", "alice", "bob"])
    let cell = try cells("alice ALL=(ALL) ALL")["sudo"]
    #expect(cell?.verdict == .unseen(.sudoSilent))
  }

  @Test func `what is not known is told in words`() throws {
    let cell = try cells("+ops ALL=(ALL) NOPASSWD: ALL")["sudo"]
    #expect(cell?.verdict == .unseen(.sudoSilent))
    #expect(cell?.detail == "who and what is in the netgroup ops")
  }
}
