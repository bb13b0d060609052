import PAMStack
import SallyportCore
import Testing

@testable import SallyportDoctor

/// What sudo does for one account: tables, without the program. `Sudoers by chance` holds
/// them against sudo.
@Suite struct `A rule for one account` {
  private let fake = FakeMachine()

  private func groups(of name: String) -> [String] { name == "alice" ? [name, "ops"] : [name] }

  private func rules(_ name: String, _ text: String, _ way: SudoWay = .shell) throws -> RootRules {
    try fake.write("/proc/sys/kernel/hostname", "web1\n")
    try fake.write("/etc/sudoers", text)
    return Sudoers(of: fake.machine).rules(
      for: person(name), groups: groups(of: name), way, at: Healthy.now)
  }

  @Test(arguments: [
    ("alice ALL=(ALL) ALL", "caller sudo 1"),
    ("bob ALL=(ALL) ALL", "none"),
    // the last that matches
    ("alice ALL=(ALL) NOPASSWD: ALL\n%ops ALL=(ALL) ALL", "caller sudo 2"),
    ("%ops ALL=(ALL) ALL\nalice ALL=(ALL) NOPASSWD: ALL", "noPassword 2"),
    ("alice ALL=(ALL) NOPASSWD: ALL\nalice ALL=(web) ALL", "noPassword 1"),
    ("alice ALL=(ALL) ALL\nalice ALL=(ALL) !ALL", "none"),
    ("alice ALL=(ALL) ALL\nalice web2=(ALL) NOPASSWD: ALL", "caller sudo 1"),
    ("alice ALL=(ALL) ALL, !/bin/su", "caller sudo 1"),
    // tags go to the right
    ("alice ALL=(ALL) NOPASSWD: /bin/ls, ALL", "noPassword 1"),
    ("alice ALL=(ALL) NOPASSWD: /bin/ls, PASSWD: ALL", "caller sudo 1"),
    ("alice ALL=(ALL) NOPASSWD: /bin/ls : web2=(ALL) NOPASSWD: ALL", "none"),
    ("alice ALL=(ALL) NOPASSWD:PASSWD:ALL", "caller sudo 1"),
    // and before options
    ("Defaults !authenticate\nalice ALL=(ALL) ALL", "notAuthenticated 1"),
    ("Defaults !authenticate\nalice ALL=(ALL) PASSWD: ALL", "caller sudo 2"),
    ("Defaults:alice authenticate\nDefaults !authenticate\nalice ALL=ALL", "notAuthenticated 2"),
    ("Defaults !authenticate\nDefaults:%ops authenticate\nalice ALL=ALL", "caller sudo 3"),
    ("Defaults!ALL !authenticate\nDefaults authenticate\nalice ALL=ALL", "notAuthenticated 1"),
    ("Defaults>web !authenticate\nalice ALL=(ALL) ALL", "caller sudo 2"),
    ("Defaults@web2 !authenticate\nalice ALL=(ALL) ALL", "caller sudo 2"),
    // who is meant
    ("#1005 ALL=ALL", "caller sudo 1"), ("%#2000 ALL=ALL", "caller sudo 1"),
    ("ALL, !%ops ALL=ALL", "none"), ("!%ops, alice ALL=ALL", "caller sudo 1"),
    ("User_Alias ALICE = bob\nALICE ALL=ALL", "none"),
    ("ALICE ALL=ALL", "caller sudo 1"),
    ("User_Alias A = alice, !bob : B = A\nB ALL=NOPASSWD: ALL", "noPassword 2"),
    ("Cmnd_Alias C = ALL : D = sha256:aa= /bin/ls\nalice ALL=NOPASSWD: C", "noPassword 2"),
    ("Runas_Alias R = ALL, !root\nalice ALL=(R) ALL", "none"),
    ("Host_Alias H = web1, 2001:db8::1 : I = web2\nalice H=ALL", "caller sudo 2"),
    ("User_Alias LOOP = LOOP, alice\nLOOP ALL=ALL", "caller sudo 2"),
    ("alice ALL=() NOPASSWD: ALL", "none"), ("alice ALL=(:ops) NOPASSWD: ALL", "none"),
    ("Defaults runas_default=web\nalice ALL=ALL", "none"),
    // when
    ("alice ALL=NOTAFTER=20200101000000Z NOPASSWD: ALL", "none"),
    ("alice ALL=(ALL) ALL\nalice ALL=(ALL) NOTBEFORE=2099010100Z NOPASSWD: ALL", "caller sudo 1"),
    ("alice ALL=NOTBEFORE=20200101 NOPASSWD: ALL", "none"),
    // whose password, and which service
    ("Defaults rootpw, targetpw\nalice ALL=ALL", "root sudo 2"),
    ("Defaults targetpw\nalice ALL=ALL", "target sudo 2"),
    ("Defaults runaspw, runas_default=web\nalice ALL=(ALL) ALL", "account(\"web\") sudo 2"),
    ("Defaults rootpw\nDefaults:alice !rootpw\nalice ALL=ALL", "caller sudo 3"),
    ("Defaults pam_service = \"corp\"\nalice ALL=ALL", "caller corp 2"),
    ("Defaults exempt_group=ops\nalice ALL=PASSWD: ALL", "exemptGroup(\"ops\") 1"),
    ("Defaults exempt_group=adm\nalice ALL=ALL", "caller sudo 2"),
    // what cannot be seen, where it matters
    ("+staff ALL=ALL", "unseen netgroup(\"+staff\")"),
    ("+staff ALL=ALL\nalice ALL=(ALL) ALL", "caller sudo 2"),
    ("alice ALL=ALL\n+staff ALL=ALL", "caller sudo 1"),
    ("alice ALL=ALL\n+staff ALL=NOPASSWD: ALL", "unseen netgroup(\"+staff\")"),
    ("%:staff ALL=ALL", "unseen group(\":staff\")"),
    ("alice 192.0.2.0/24=ALL", "unseen host(\"192.0.2.0/24\")"),
    ("alice web1.example.org=ALL", "unseen host(\"web1.example.org\")"),
    ("Defaults:+staff !authenticate\nalice ALL=ALL", "unseen netgroup(\"+staff\")"),
    ("Defaults:+staff !authenticate\nalice ALL=PASSWD: ALL", "caller sudo 2"),
  ]) func `says what sudo does for root's shell`(lines: String, answer: String) throws {
    #expect(said(try rules("alice", lines + "\n").shell) == answer)
  }

  @Test(arguments: [
    ##"@include "/etc/my rules""##, ##"@include /etc/my\ rules"##,
    "@include /etc/more\n@include /etc/more",
  ]) func `is that of every file that sudo includes`(line: String) throws {
    for file in ["my rules", "more"] {
      try fake.write("/etc/\(file)", "alice ALL=(ALL) NOPASSWD: ALL\n")
    }
    #expect(said(try rules("alice", "alice ALL=ALL\n\(line)\n").shell) == "noPassword 1")
    // The last one counts, also where a file is included twice.
    let again = try rules("alice", "\(line)\nalice ALL=PASSWD: ALL\n\(line)\n").shell
    #expect(said(again) == "noPassword 1")
  }

  @Test func `is of no file that others may write, as sudo has it`() throws {
    try fake.write("/etc/sudoers.d/late", "alice ALL=PASSWD: ALL\n")
    let lines = "alice ALL=NOPASSWD: ALL\n@includedir /etc/sudoers.d\n"
    #expect(said(try rules("alice", lines).shell) == "caller sudo 1")
    for (path, mode) in [("sudoers.d/late", 0o646), ("sudoers.d", 0o777)] as [(String, Int)] {
      try fake.change("/etc/\(path)", mode: mode)
      #expect(said(try rules("alice", lines).shell) == "noPassword 1")
      #expect(Sudoers(of: fake.machine).ignored == ["/etc/\(path)"])
      try fake.change("/etc/sudoers.d/late", mode: 0o640)
    }
    try fake.change("/etc/sudoers", mode: 0o666)
    #expect(Sudoers(of: fake.machine).policy.rules.isEmpty)
  }

  @Test func `is that of the file that sudo's own settings name`() throws {
    try fake.write("/etc/sudo.conf", "Plugin sudoers_io sudoers.so\n")
    #expect(said(try rules("alice", "alice ALL=ALL\n").shell) == "caller sudo 1")
    try fake.write("/etc/other", "alice ALL=NOPASSWD: ALL\n")
    try fake.write(
      "/etc/sudo.conf", "Plugin sudoers_policy sudoers.so sudoers_uid=0 sudoers_file=/etc/other\n")
    #expect(said(try rules("alice", "alice ALL=ALL\n").shell) == "noPassword 1")
  }

  @Test(arguments: [
    ("root ALL=(ALL) ALL", "callerIsRoot 1"), ("alice ALL=ALL", "none"),
    ("Defaults !root_sudo\nroot ALL=(ALL) ALL", "none"),
  ]) func `asks root nothing, if it is for root`(lines: String, answer: String) throws {
    #expect(said(try rules("root", lines + "\n").shell) == answer)
  }

  @Test(
    arguments: [
      ("alice ALL=(ALL) ALL", nil),
      ("alice ALL=(ALL) ALL, NOPASSWD: /usr/bin/apt", "noPassword 1"),
      ("alice ALL=NOPASSWD: /usr/bin/apt", "noPassword 1"),
      ("alice ALL=/usr/bin/apt", "caller sudo 1"),
      ("alice ALL=(ALL) ALL\nDefaults!/bin/ls !authenticate", "notAuthenticated 2"),
      ("Defaults!/bin/ls !authenticate", nil),
      ("alice ALL=NOPASSWD: /usr/bin/apt\nalice ALL=/usr/bin/*", "caller sudo 2"),
      ("alice ALL=NOPASSWD: /bin/apt\nalice ALL=/usr/bin/", "caller sudo 2"),
      ("alice ALL=NOPASSWD: /usr/bin/apt update\nalice ALL=/usr/bin/apt", "caller sudo 2"),
      (
        "alice ALL=NOPASSWD: /usr/bin/apt\nalice ALL=/usr/bin/apt update",
        "caller sudo 2; noPassword 1"
      ),
      ("alice ALL=NOPASSWD: /usr/bin/apt\nalice ALL=!/usr/bin/apt", nil),
      ("Cmnd_Alias A = /bin/a, /bin/b\nalice ALL=ALL, NOPASSWD: A, !/bin/b", "noPassword 2"),
      ("alice ALL=NOPASSWD: list", nil),
    ] as [(String, String?)])
  func `says what it opens for some commands beyond that for a shell`(
    lines: String, answer: String?
  ) throws {
    let all = try rules("alice", lines + "\n").someCommands.map(said)
    #expect(all.joined(separator: "; ") == answer ?? "")
  }

  @Test func `says each answer for commands that lines name, once`() throws {
    let lines = """
      Cmnd_Alias TOOLS = /bin/a, /bin/b
      Defaults!TOOLS runaspw
      Defaults!/bin/c pam_service=corp
      Defaults!/bin/d !authenticate
      Defaults!/bin/e !pam_acct_mgmt, !pam_session
      alice ALL=ALL, !/bin/f

      """
    let all = try rules("alice", lines).someCommands
    #expect(
      all.map(said) == [
        "root sudo 6", "caller corp 6", "notAuthenticated 4", "caller sudo 6",
      ])
    let checks = all.map { rule -> [Bool] in
      switch rule {
      case .asks(let check, _), .asksNothing(_, let check, _):
        [check.runsAccountPhase, check.runsSessionPhase]
      case .none, .unseen: []
      }
    }
    #expect(checks == [[true, true], [true, true], [true, true], [false, false]])
  }

  @Test func `has another service for sudo -A`() throws {
    let lines = "Defaults pam_service=x, pam_askpass_service=y\nalice ALL=ALL\n"
    #expect(said(try rules("alice", lines, SudoWay(form: .askpass)).shell) == "caller y 2")
    let others = "Defaults pam_service=x\nalice ALL=ALL\n"
    #expect(said(try rules("alice", others, SudoWay(form: .askpass)).shell) == "caller x 2")
  }

  @Test(arguments: [
    ("alice ALL=ALL", "caller sudo-i 1"),
    ("Defaults pam_login_service=corp\nalice ALL=NOPASSWD: /bin/ls, PASSWD: ALL", "caller corp 2"),
    ("alice ALL=ALL\nalice ALL=NOPASSWD: /bin/zsh", "noPassword 2"),
    ("alice ALL=ALL, !/usr/bin/zsh", "none"), ("alice ALL=/bin/zsh -c *", "none"),
    ("Defaults!/bin/zsh !authenticate\nalice ALL=ALL", "notAuthenticated 1"),
  ]) func `is also one for the shell that sudo -i runs`(lines: String, answer: String) throws {
    try fake.write("/etc/passwd", "root:x:0:0:root:/root:/bin/zsh\n")
    #expect(said(try rules("alice", lines + "\n", .login).shell) == answer)
  }

  @Test(arguments: [
    ("alice ALL=ALL", "none"), ("alice ALL=(ALL) ALL", "caller sudo 1"),
    ("alice ALL=(%www) NOPASSWD: ALL", "noPassword 1"), ("alice ALL=(#33) ALL", "caller sudo 1"),
    ("alice ALL=(ALL, !web) ALL", "none"),
    ("Defaults>web targetpw\nalice ALL=(ALL) ALL", "target sudo 2"),
  ]) func `says who becomes another account`(lines: String, answer: String) throws {
    let target = SudoTarget(person("web"), groups: ["web", "www"])
    #expect(said(try rules("alice", lines + "\n", .other(target)).shell) == answer)
  }

  @Test func `asks nothing of an account that becomes itself`() throws {
    let target = SudoTarget(person("alice"), groups: ["alice"])
    #expect(said(try rules("alice", "alice ALL=() ALL\n", .other(target)).shell) == "sameAccount 1")
  }

  @Test func `is not seen where a file or a directory of rules is not`() throws {
    try fake.write("/etc/nsswitch.conf", "sudoers: files sss\n")
    #expect(said(try rules("alice", "alice ALL=ALL\n").shell) == "caller sudo 1")
    try fake.write("/etc/sssd/sssd.conf", "[sssd]\n")
    #expect(said(try rules("alice", "alice ALL=ALL\n").shell) == "unseen source(\"sss\")")
    try fake.write("/etc/nsswitch.conf", "sudoers: ldap files\n")
    #expect(said(try rules("alice", "alice ALL=ALL\n").shell) == "unseen source(\"ldap\")")
    try fake.write("/etc/nsswitch.conf", "sudoers: files\n")
    try fake.write("/etc/sudoers.d/x/y", "")
    let unread = said(try rules("alice", "alice ALL=ALL\n@include sudoers.d/x\n").shell)
    #expect(unread.hasPrefix("unseen file(") && unread.contains("/etc/sudoers.d/x"))
  }

  @Test(arguments: [
    ("alice ALL=ALL", "caller sudo 1"), ("alice ALL=NOPASSWD: ALL", "noPassword 1"),
    ("Defaults !authenticate, exempt_group=ops, pam_service=x\nalice ALL=ALL", "caller sudo 2"),
    ("Defaults targetpw, runaspw\nalice ALL=ALL", "target sudo 2"),
    ("alice web1, web? = ALL", "caller sudo 1"), ("alice web? = ALL", "none"),
    ("User_Alias A = alice\nA ALL=ALL", "caller sudo 2"),
  ]) func `says what sudo-rs does, by its own file`(lines: String, answer: String) throws {
    try fake.write("/proc/sys/kernel/hostname", "web1\n")
    try fake.write("/etc/sudoers", "alice ALL=(ALL) NOPASSWD: ALL\n")
    try fake.write("/etc/sudoers-rs", lines + "\n")
    let sudoers = Sudoers(of: fake.machine, as: .rust)
    let rules = sudoers.rules(for: person("alice"), groups: ["ops"], .shell, at: Healthy.now)
    #expect(said(rules.shell) == answer)
    #expect(said(rules.shell) == "none" || sudoers.policy.rules[0].location.file.hasSuffix("-rs"))
  }

  @Test func `is sudo's and sudo-rs's own where both are there`() throws {
    #expect(SudoProgram.installed(on: fake.machine).isEmpty)
    for (name, version) in [("sudo", "sudo-rs 0.2.8"), ("sudo.ws", "Sudo version 1.9.17")] {
      try fake.write("/usr/bin/\(name)", "\u{7f}ELF\0\(version)\0")
      try fake.change("/usr/bin/\(name)", mode: 0o4755)
    }
    try fake.write("/usr/bin/sudo-rs", "sudo-rs 0.2.8")
    let found = SudoProgram.installed(on: fake.machine)
    #expect(found.map(\.name) == ["sudo", "sudo.ws"])
    #expect(found.map(\.program) == [.rust, .sudo])
  }

  @Test func `is not seen where sudo cannot parse a line`() throws {
    let words = "cvtsudoers -c /dev/null -e -f sudoers \(fake.root)/etc/sudoers"
    fake.answers[words] = CommandOutput(status: 1, errors: "/etc/sudoers:1:7: syntax error\n")
    let answer = said(try rules("alice", "alice ALL\nalice ALL=ALL\n").shell)
    #expect(answer == "unseen complaint(\"/etc/sudoers:1:7: syntax error\")")
  }

  @Test func `is not known for a group whose members are not`() throws {
    try fake.write("/etc/sudoers", "%ops ALL=ALL\n%#2000 ALL=NOPASSWD: /bin/ls\n")
    let rules = Sudoers(of: fake.machine).rules(
      for: person("alice"), groups: nil, .shell, at: Healthy.now)
    #expect(said(rules.shell) == "unseen group(\"ops\")")
    #expect(rules.someCommands.map(said) == ["noPassword 2"])
  }
}

/// root, web, or a person; alice is in the group 2000.
func person(_ name: String) -> AccountFacts.Account {
  let (uid, groups): (UInt32, [UInt32]) =
    switch name {
    case "root": (0, [])
    case "web": (33, [])
    case _: (1000 + UInt32(name.utf8.count), name == "alice" ? [2000] : [])
    }
  return AccountFacts.Account(
    name: name, uid: uid, group: uid, shell: "/bin/sh", groups: groups)
}

/// What is done, and the line that says so.
func said(_ rule: RootRule) -> String {
  switch rule {
  case .none: "none"
  case .asks(let check, let location):
    "\(check.owner) \(check.service) \(location.line ?? 0)"
  case .asksNothing(let opening, _, let location): "\(opening) \(location.line ?? 0)"
  case .unseen(let gap): "unseen \(gap)"
  }
}
