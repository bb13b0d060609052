import PAMStack
import Testing

@testable import SallyportDoctor

@Suite struct `Doctor on sudo` {
  private let fake = FakeMachine()

  private func found(
    _ text: String, words: [String] = ["enroll"], account: [String] = [],
    enrolled: Set<String> = ["alice"]
  ) throws -> [Finding] {
    try fake.write("/etc/sudoers", text)
    let lines = Healthy.lines(words, account: account)
    return SudoFindings(sudoers: Sudoers(of: fake.machine), lines: lines, enrolled: enrolled).all
  }

  // shows: service-family
  @Test func `The service that sudo runs is the one that has to ask`() throws {
    try fake.write("/etc/pam.d/corp", "auth required pam_unix.so\n")
    let text = "Defaults pam_service=corp\nDefaults pam_login_service = sudo-i\n"
    let found = try #require(try found(text).first)
    #expect(found.id == "sudo-service" && found.severity == .error)
    #expect(found.effect == .letsIn("anyone with the password through sudo"))
    #expect(
      found.fixes.map(\.text) == [
        "Defaults pam_service=sudo", "visudo -f /etc/sudoers", "sallyport pam enable corp",
      ])
    try fake.write("/etc/pam.d/corp", "auth required pam_unix.so\nauth required pam_sallyport.so\n")
    #expect(try self.found(text).map(\.id) == ["sudo-rules"])
  }

  @Test(arguments: [
    ("alice ALL=(ALL) NOPASSWD:ALL", "sudo-nopasswd error", "alice ALL=(ALL) ALL"),
    ("%ops ALL = NOPASSWD : SETENV: ALL # why", "sudo-nopasswd error", "%ops ALL = SETENV: ALL"),
    (
      "alice ALL=/bin/ls, NOPASSWD: /bin/id, ALL", "sudo-nopasswd error",
      "alice ALL=/bin/ls, /bin/id, ALL"
    ),
    ("backup ALL=NOPASSWD: /usr/bin/rsync", "sudo-nopasswd warning", "backup ALL=/usr/bin/rsync"),
    (
      "dba ALL=(postgres : ALL) NOPASSWD: ALL", "sudo-nopasswd warning",
      "dba ALL=(postgres : ALL) ALL"
    ),
    (
      "dba ALL=(www-data, root) NOPASSWD: ALL", "sudo-nopasswd error",
      "dba ALL=(www-data, root) ALL"
    ),
    (
      "dba ALL=(root) /bin/ls, (#33) NOPASSWD: /bin/id, ALL", "sudo-nopasswd warning",
      "dba ALL=(root) /bin/ls, (#33) /bin/id, ALL"
    ),
    (
      "alice ALL=NOPASSWD: /bin/ls, PASSWD: ALL", "sudo-nopasswd warning",
      "alice ALL=/bin/ls, PASSWD: ALL"
    ),
    (
      ##"alice ALL=NOPASSWD: /bin/x \# --a\=(b c"d, ALL"##, "sudo-nopasswd error",
      ##"alice ALL=/bin/x \# --a\=(b c"d, ALL"##
    ),
    ("Defaults:alice !authenticate", "sudo-authenticate error", "Defaults:alice authenticate"),
    (
      "Defaults>www-data !authenticate", "sudo-authenticate warning",
      "Defaults>www-data authenticate"
    ),
    ("Defaults>root !authenticate", "sudo-authenticate error", "Defaults>root authenticate"),
    (
      "Defaults!/bin/ls, /bin/id !authenticate", "sudo-authenticate warning",
      "Defaults!/bin/ls, /bin/id authenticate"
    ),
    ("Defaults!ALL !authenticate", "sudo-authenticate error", "Defaults!ALL authenticate"),
    ("Defaults env_reset, !pam_session", "sudo-session warning", "Defaults env_reset, pam_session"),
    ("Defaults exempt_group=ops", "sudo-exempt-group error", "Defaults !exempt_group"),
    ("Defaults timestamp_timeout = -1", "sudo-ticket warning", "Defaults timestamp_timeout=15"),
  ]) func `Each exception has its finding and the line without it`(
    line: String, wrong: String, fixed: String
  ) throws {
    let found = try found("Defaults env_reset\n\(line)\n")
    #expect(found.wrong == [wrong])
    #expect(found[0].location == FileLocation(file: "/etc/sudoers", line: 2))
    #expect(found[0].fixes.first { $0.kind == .line } == .line(fixed))
    #expect(try self.found("Defaults env_reset\n\(fixed)\n").wrong == [])
  }

  @Test(arguments: [
    "alice ALL=(ALL:ALL) ALL", "# alice ALL=(ALL) NOPASSWD:ALL", "#1000 ALL=(ALL) ALL",
    "alice ALL=/bin/NOPASSWD_THINGS", "Defaults timestamp_timeout=5", "",
  ]) func `Lines that ask bring nothing`(line: String) throws {
    #expect(try found(line + "\n").wrong == [])
  }

  // decisive
  @Test func `of accounts without a code it can be said that it is meant`() throws {
    let meant = Fix.meant(["bot:sudo"])
    #expect(
      meant.text == "to allow it: without_code = bot:sudo in [default], by sallyport config edit"
    )
    // Asked for a password that it does not have, a robot would be locked out.
    #expect(try found("bot ALL=(ALL) NOPASSWD: ALL\n")[0].fixes.first == meant)
    #expect(try found("%bots ALL=(ALL) NOPASSWD: ALL\n")[0].fixes.contains(meant) == false)
  }

  @Test func `All users of a line are named`() throws {
    let text = try found("alice, %ops ,\"joe doe\" ALL=NOPASSWD: ALL\n").map(\.text)
    #expect(text == [#"alice, %ops, "joe doe" can become root without a code: NOPASSWD"#])
    #expect(Sudoers(of: fake.machine).callers == ["alice", "%ops", "\"joe doe\""])
  }

  @Test(arguments: [
    ("web1", true), ("WEB1.example.net", true), ("web2", false), ("ALL", true),
    ("ALL, !web2", true), ("ALL, !web1", false), ("db, web2.example.org", false),
    ("db, web?", true), ("+servers", true), ("192.0.2.0/24", true), ("SERVERS", true),
    ("db=/bin/ls : web1", true), ("web1=/bin/ls : db", false),
  ]) func `What is for other hosts is told as a warning that names them`(
    hosts: String, isHere: Bool
  ) throws {
    try fake.write("/proc/sys/kernel/hostname", "web1.example.org\n")
    let found = try found("alice \(hosts) = NOPASSWD: ALL\n")
    #expect(found.wrong == ["sudo-nopasswd \(isHere ? "error" : "warning")"])
    #expect(found[0].text.hasPrefix("on ") != isHere)
    #expect((found[0].effect != nil) == isHere)
    guard !hosts.contains("=") else { return }
    let all = try self.found("Defaults@\(hosts) !authenticate\n")
    #expect(all.wrong == ["sudo-authenticate \(isHere ? "error" : "warning")"])
  }

  @Test func `Where the host has no name, a line for any host is one for this`() throws {
    #expect(try found("alice web2 = NOPASSWD: ALL\n").wrong == ["sudo-nopasswd error"])
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
        .advice(parts: ["visudo -f /etc/sudoers"]),
      ])
    #expect(
      try found("Defaults rootpw\n", enrolled: ["root"]).wrong == ["sudo-other-account warning"])
  }

  // decisive
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
    let found = SudoFindings(sudoers: rules, lines: Healthy.lines(["enroll"]), enrolled: ["alice"])
      .all
    #expect(found.map { $0.location?.text } == ["/etc/sudoers.d/alice:1", "/usr/etc/sudoers:2"])
    #expect(
      found[1].fixes == [
        .advice(parts: [
          "visudo -f /etc/sudoers.d/sallyport,", "with the line:", "Defaults authenticate",
        ])
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
    ("alice ALL=(ALL) NOPASSWD: ALL\nalice ALL=(ALL) PASSWD: ALL\n", false),
    ("alice ALL=(ALL) NOPASSWD: ALL\nALL ALL=(ALL:ALL) ALL\n", false),
    ("alice ALL=(ALL) NOPASSWD: ALL\nbob, alice ALL=(ALL) /bin/ls, ALL\n", false),
    ("alice ALL=(ALL) PASSWD: ALL\nalice ALL=(ALL) NOPASSWD: ALL\n", true),
    ("alice, bob ALL=(ALL) NOPASSWD: ALL\nalice ALL=(ALL) ALL\n", true),
    ("alice ALL=(ALL) NOPASSWD: ALL\nalice ALL=(root) ALL\n", true),
    ("alice ALL=(ALL) NOPASSWD: ALL\nalice web=(ALL) ALL\n", true),
    ("alice ALL=(ALL) NOPASSWD: ALL\nalice ALL=(ALL) /bin/ls\n", true),
    ("alice ALL=(ALL) NOPASSWD: ALL\nalice ALL=(ALL) NOTAFTER=20200101000000Z ALL\n", true),
    ("alice ALL=(ALL) NOPASSWD: ALL\nALL, !alice ALL=(ALL) ALL\n", true),
    ("alice ALL=(ALL) NOPASSWD: ALL\nalice ALL=(ALL) ALL, NOPASSWD: /bin/ls\n", true),
  ]) func `NOPASSWD counts unless a later rule asks the same people for everything`(
    text: String, counts: Bool
  ) throws {
    #expect(try !found(text).wrong.isEmpty == counts)
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

  @Test func `An included file may be named after the host`() throws {
    try fake.write("/proc/sys/kernel/hostname", "web1.example.org\n")
    try fake.write("/etc/sudoers.web1", "carol ALL=(ALL) NOPASSWD:ALL\n")
    #expect(try found("@include sudoers.%h\n")[0].location?.text == "/etc/sudoers.web1:1")
  }

  @Test func `Included files are read in sudo's way`() throws {
    try fake.write("/etc/sudoers.d/10-cloud", "alice ALL=(ALL) \\\n  NOPASSWD:ALL\n")
    try fake.write("/etc/sudoers.d/old.bak", "bob ALL=(ALL) NOPASSWD:ALL\n")
    try fake.write("/etc/sudoers.d/one~", "bob ALL=(ALL) NOPASSWD:ALL\n")
    try fake.write("/etc/more", "carol ALL=(ALL) NOPASSWD:ALL\n")
    let found = try found("@includedir /etc/sudoers.d\n#include more\n")
    #expect(found.map { $0.location?.text } == ["/etc/sudoers.d/10-cloud:1", "/etc/more:1"])
  }

  @Test func `What others may write is not read, and told`() throws {
    try fake.write("/etc/sudoers.d/bob", "bob ALL=(ALL) NOPASSWD:ALL\n")
    try fake.change("/etc/sudoers.d/bob", mode: 0o646)
    let found = try found("@includedir /etc/sudoers.d\n")
    #expect(found.wrong == ["sudo-files warning"])
    #expect(
      found[0].fixes.map(\.text) == [
        "chown root: /etc/sudoers.d/bob", "chmod go-w /etc/sudoers.d/bob",
      ])
  }

  @Test func `Who may call sudo is known`() throws {
    try fake.write(
      "/etc/sudoers", "root ALL=(ALL) ALL\nUser_Alias ADMINS = bob\n%sudo,alice ALL=(ALL) ALL\n")
    #expect(Sudoers(of: fake.machine).callers == ["root", "%sudo", "alice"])
  }

  // MARK: cvtsudoers

  private func expansion(_ output: String, status: Int32 = 0, errors: String = "") {
    let words = "cvtsudoers -c /dev/null -e -f sudoers \(fake.root)/etc/sudoers"
    fake.answers[words] = CommandOutput(status: status, output: output, errors: errors)
  }

  /// Aliases of each kind, and a line that cvtsudoers breaks.
  private let aliases = """
    Cmnd_Alias EVERYTHING = ALL
    User_Alias ADMINS = alice, %ops
    Runas_Alias SERVICES = www-data
    Host_Alias ELSEWHERE = db1
    ADMINS ALL = NOPASSWD: EVERYTHING
    bob ALL = (SERVICES) NOPASSWD: ALL
    Defaults:ADMINS !authenticate
    carol ELSEWHERE = NOPASSWD: ALL

    """

  private let expanded = """
    Defaults:alice, %ops !authenticate

    alice, %ops ALL = NOPASSWD:\\
        ALL

    bob ALL = (www-data) NOPASSWD: ALL

    carol db1 = NOPASSWD: ALL

    """

  // shows: nopasswd
  @Test func `Aliases mean what cvtsudoers writes, at the location and in the words of the files`()
    throws
  {
    try fake.write("/proc/sys/kernel/hostname", "web1\n")
    expansion(expanded)
    let found = try found(aliases)
    #expect(
      found.wrong == [
        "sudo-nopasswd error", "sudo-nopasswd warning", "sudo-authenticate error",
        "sudo-nopasswd warning",
      ])
    #expect(found.map { $0.location?.line } == [5, 6, 7, 8])
    #expect(
      found.map { $0.fixes.first { $0.kind == .line }?.text } == [
        "ADMINS ALL = EVERYTHING", "bob ALL = (SERVICES) ALL", "Defaults:ADMINS authenticate",
        "carol ELSEWHERE = ALL",
      ])
    #expect(found[0].text == "alice, %ops can become root without a code: NOPASSWD")
    #expect(found[2].text == "sudo asks nothing of alice, %ops: !authenticate")
    #expect(found[3].text == "on db1: carol can become root without a code: NOPASSWD")
    #expect(Sudoers(of: fake.machine).callers == ["alice", "%ops", "bob", "carol"])
  }

  @Test(arguments: [
    ("", 1, "/etc/sudoers:3:26: syntax error\nalice ALL\n", "/etc/sudoers:3:26: syntax error"),
    ("", -1, "", "timed out"), ("", 139, "", "exit status 139"), ("", 0, "", "as many lines"),
    (String(repeating: "alice ALL = ALL\n", count: 65536), 0, "", "as many lines"),
    ("\u{fffd}\u{0}= NOPASSWD\n", 0, "", "as many lines"),
  ]) func `Where cvtsudoers fails, the files are read as they are, and that is said`(
    output: String, status: Int32, errors: String, reason: String
  ) throws {
    expansion(output, status: status, errors: errors)
    let found = try found(aliases)
    #expect(found[0].id == "sudo-aliases" && found[0].severity == .unseen)
    #expect(found[0].text.contains(reason), "\(found[0].text)")
    #expect(found.count(where: { $0.id == "sudo-nopasswd" }) == 3)
    #expect(!found.contains { $0.severity == .ok })
  }

  @Test func `Without cvtsudoers it is aliases that are not known`() throws {
    #expect(try found("alice ALL=ALL\n").map(\.id) == ["sudo-rules"])
    let alias = try self.found("Cmnd_Alias NOPASSWD_THINGS = /bin/ls\n")
    #expect(alias.wrong == ["sudo-aliases unseen"])
    let found = try found(aliases)
    #expect(found[0].text == "aliases in sudoers were not expanded: there is no cvtsudoers")
    #expect(found[0].severity == .unseen)
  }
}
