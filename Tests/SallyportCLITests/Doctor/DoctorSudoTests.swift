import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `Doctor on sudo` {
  private let fake = FakeMachine()

  private func found(
    _ text: String, words: [String] = ["enroll"], account: [String] = [],
    enrolled: Set<String> = ["alice"]
  ) throws -> [Finding] {
    try fake.write("/etc/sudoers", text)
    let lines = Healthy.lines(words, account: account)
    return SudoFindings(Sudoers(of: fake.machine), lines, enrolled: enrolled).all
  }

  @Test(arguments: [
    ("alice ALL=(ALL) NOPASSWD:ALL", "sudo-nopasswd error", "alice ALL=(ALL) ALL"),
    ("%ops ALL = NOPASSWD : SETENV: ALL # why", "sudo-nopasswd error", "%ops ALL = SETENV: ALL"),
    (
      "alice ALL=/bin/ls, NOPASSWD: /bin/id, ALL", "sudo-nopasswd error",
      "alice ALL=/bin/ls, /bin/id, ALL"
    ),
    ("backup ALL=NOPASSWD: /usr/bin/rsync", "sudo-nopasswd warning", "backup ALL=/usr/bin/rsync"),
    ("Defaults:alice !authenticate", "sudo-authenticate error", "Defaults:alice authenticate"),
    ("Defaults env_reset, !pam_session", "sudo-session warning", "Defaults env_reset, pam_session"),
    ("Defaults exempt_group=ops", "sudo-exempt-group error", "Defaults !exempt_group"),
    ("Defaults timestamp_timeout = -1", "sudo-ticket warning", "Defaults timestamp_timeout=15"),
  ]) func `Each exception has its finding and the line without it`(
    line: String, wrong: String, fixed: String
  ) throws {
    let found = try found("Defaults env_reset\n\(line)\n")
    #expect(found.wrong == [wrong])
    #expect(found[0].place == FileLocation(file: "/etc/sudoers", line: 2))
    #expect(found[0].fixes.first == .line(fixed))
    #expect(try self.found("Defaults env_reset\n\(fixed)\n").wrong == [])
  }

  @Test(arguments: [
    "alice ALL=(ALL:ALL) ALL", "# alice ALL=(ALL) NOPASSWD:ALL", "#1000 ALL=(ALL) ALL",
    "Cmnd_Alias NOPASSWD_THINGS = /bin/ls", "Defaults timestamp_timeout=5", "",
  ]) func `Lines that ask bring nothing`(line: String) throws {
    #expect(try found(line + "\n").wrong == [])
  }

  @Test func `The session phase guards only where enroll stands`() throws {
    #expect(try found("Defaults !pam_session\n", words: []).wrong == [])
  }

  @Test func `Where the account line demands a code, exceptions let nobody in`() throws {
    let text = "alice ALL=(ALL) NOPASSWD:ALL\nDefaults !authenticate\n"
    #expect(try found(text, account: ["demand"]).wrong == [])
  }

  @Test func `Root's code is asked for only where root has one`() throws {
    let none = try found("Defaults rootpw\n")
    #expect(none.wrong == ["sudo-other-account error"])
    #expect(none[0].effect == .locksOut("everybody from root through sudo"))
    #expect(
      none[0].fixes == [
        .command("sallyport enroll root"), .line("Defaults !rootpw"),
        .advice("visudo -f /etc/sudoers"),
      ])
    #expect(
      try found("Defaults rootpw\n", enrolled: ["root"]).wrong == ["sudo-other-account warning"])
  }

  @Test func `openSUSE's targetpw is never taken out beside its rule for everybody`() throws {
    let found = try found("Defaults targetpw # of root\nALL ALL=(ALL) ALL\n")
    #expect(
      found[0].fixes == [
        .command("sallyport enroll root"),
        .advice("remove targetpw and the rule for ALL together, never targetpw alone"),
      ])
  }

  @Test func `The vendor's file counts where there is no other, and is not changed`() throws {
    try fake.write("/usr/etc/sudoers", "@includedir /etc/sudoers.d\nDefaults !authenticate\n")
    try fake.write("/etc/sudoers.d/alice", "alice ALL=(ALL) NOPASSWD:ALL\n")
    let rules = Sudoers(of: fake.machine)
    let found = SudoFindings(rules, Healthy.lines(["enroll"]), enrolled: ["alice"]).all
    #expect(found.map { $0.place?.text } == ["/etc/sudoers.d/alice:1", "/usr/etc/sudoers:2"])
    #expect(
      found[1].fixes == [
        .advice("visudo -f /etc/sudoers.d/sallyport, with the line: Defaults authenticate")
      ])
    try fake.write("/etc/sudoers", "alice ALL=(ALL) ALL\n")
    #expect(Sudoers(of: fake.machine).entries.isEmpty)
  }

  @Test(arguments: [
    ("Defaults targetpw\nDefaults !targetpw\n", 0),
    ("Defaults timestamp_timeout=-1\nDefaults env_reset, timestamp_timeout = 5\n", 0),
    ("Defaults !authenticate\nDefaults authenticate\nDefaults !authenticate\n", 1),
    ("Defaults !targetpw\nDefaults targetpw\n", 1),
    ("Defaults targetpw, !targetpw\n", 0),
    ("Defaults !targetpw, targetpw\n", 1),
    ("Defaults:alice !authenticate\nDefaults authenticate\n", 1),
    ("Defaults !authenticate\nDefaults:alice authenticate\n", 1),
  ]) func `Of lines for everybody the last one counts`(text: String, count: Int) throws {
    #expect(try found(text).wrong.count == count)
  }

  @Test(arguments: [
    "# a path: C:\\\nDefaults targetpw\n", "Defaults env_reset # a\\\nDefaults targetpw\n",
    "Defaults env_reset\r\nDefaults env_keep += A, \\\r\n  targetpw\r\n",
    "Defaults passprompt=\"# \", targetpw\n",
  ]) func `What looks like a comment, or its end, hides nothing`(text: String) throws {
    #expect(try found(text).wrong == ["sudo-other-account error"])
  }

  @Test func `What is in quotes is no option`() throws {
    #expect(try found("Defaults badpass_message=\"No, targetpw, no\"\n").wrong.isEmpty)
  }

  @Test func `Included files are read in sudo's way`() throws {
    try fake.write("/etc/sudoers.d/10-cloud", "alice ALL=(ALL) \\\n  NOPASSWD:ALL\n")
    try fake.write("/etc/sudoers.d/old.bak", "bob ALL=(ALL) NOPASSWD:ALL\n")
    try fake.write("/etc/sudoers.d/one~", "bob ALL=(ALL) NOPASSWD:ALL\n")
    try fake.write("/etc/more", "carol ALL=(ALL) NOPASSWD:ALL\n")
    let found = try found("@includedir /etc/sudoers.d\n#include more\n")
    #expect(found.map { $0.place?.text } == ["/etc/sudoers.d/10-cloud:1", "/etc/more:1"])
  }

  @Test func `Who may call sudo is known`() throws {
    try fake.write(
      "/etc/sudoers", "root ALL=(ALL) ALL\nUser_Alias ADMINS = bob\n%sudo,alice ALL=(ALL) ALL\n")
    #expect(Sudoers(of: fake.machine).callers == ["root", "%sudo", "alice"])
  }
}
