import CCommand
import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor
@testable import SallyportSupport

@Suite struct `Doctor on clock, module and people` {
  @Test(
    arguments: [
      (true, nil, nil), (false, nil, "clock-synchronised warning"),
      (true, 14.0, nil), (true, 16.0, "clock-offset warning"), (true, 151.0, "clock-offset error"),
      (false, 151.0, "clock-offset error"),
    ] as [(Bool, Double?, String?)]) func `A clock is right, not kept right, or off`(
      isSynchronised: Bool, offset: Double?, wrong: String?
    )
  {
    let diagnosis = Healthy.diagnosis {
      $0.clock.isSynchronised = .seen(isSynchronised)
      $0.clock.source = offset.map { .init(name: "chrony", offset: $0) }
    }
    #expect(diagnosis.wrong == (wrong.map { [$0] } ?? []))
  }

  @Test func `A clock of long ago keeps everybody out`() {
    let diagnosis = Healthy.diagnosis { $0.clock.now = UnixTime(100) }
    #expect(diagnosis.wrong == ["clock-past error"])
    #expect(diagnosis.lockedOut == ["everybody with time-based codes"])
  }

  @Test func `A time keeper that has lost its servers is told`() {
    let diagnosis = Healthy.diagnosis {
      $0.clock.source = .init(name: "chrony", offset: 0, isSynchronised: false)
    }
    #expect(diagnosis.wrong == ["clock-synchronised warning"])
  }

  @Test func `A kernel that cannot be asked is unseen`() {
    #expect(
      Healthy.diagnosis { $0.clock.isSynchronised = .unseen("no") }.wrong
        == ["clock-synchronised unseen"])
  }

  @Test(
    arguments: [
      (
        "chronyc",
        "Leap status     : Normal\nSystem time     : 0.000412 seconds slow of NTP time\n",
        ClockFacts.Source(name: "chrony", offset: 0.000412)
      ),
      (
        "chronyc", "System time : 1.5 seconds fast of NTP time\nLeap status : Not synchronised\n",
        ClockFacts.Source(name: "chrony", offset: 1.5, isSynchronised: false)
      ),
      (
        "ntpq", "associd=0 status=0615 leap_none, sync_ntp,\noffset=-1.25, frequency=3.1,\n",
        ClockFacts.Source(name: "ntpd", offset: 0.00125)
      ),
      (
        "timedatectl", "  Server: 192.0.2.1\n  Offset: -2min 3.5s\n",
        ClockFacts.Source(name: "systemd-timesyncd", offset: 123.5)
      ),
      (
        "timedatectl", "Offset: +250ms\n",
        ClockFacts.Source(name: "systemd-timesyncd", offset: 0.25)
      ),
      ("timedatectl", "NTP service: inactive\n", nil),
    ] as [(String, String, ClockFacts.Source?)]) func `Time keepers are understood`(
      program: String, answer: String, source: ClockFacts.Source?
    )
  {
    #expect(ClockFacts.source(program, answer) == source)
  }

  /// {what `chronyc -n tracking`, `ntpq -c rv` or `timedatectl timesync-status` says, what the
  /// second question brings, whether the time is signed}
  static let vouched: [(String, String, String?, Bool?)] = [
    ("chronyc", "Reference ID    : C0000201 (192.0.2.1)\n", authdata, false),
    ("chronyc", "Reference ID    : C0000202 (192.0.2.2)\n", authdata, true),
    ("chronyc", "Reference ID    : 8A2B1C3D (2001:db8::3)\n", authdata, true),
    ("chronyc", "Reference ID    : 50505300 (PPS)\n", authdata, true),
    ("chronyc", "Reference ID    : 7F7F0101 ()\n", authdata, true),
    ("chronyc", "Reference ID    : 00000000 ()\n", authdata, nil),
    ("chronyc", "Reference ID    : C0000202 (192.0.2.2)\n", nil, nil),
    ("ntpq", "leap=00, stratum=1, refid=GPS,\n", nil, true),
    ("ntpq", "leap=00, stratum=11,\n", associations("none", "ok "), false),
    ("ntpq", "leap=00, stratum=3,\n", associations("none", "ok "), false),
    ("ntpq", "leap=00, stratum=3,\n", associations("ok ", "none"), true),
    ("ntpq", "leap=00, stratum=3,\n", associations("bad", "none"), false),
    ("ntpq", "leap=00, stratum=3,\n", "No association IDs in list\n", nil),
    ("timedatectl", "Server: 192.0.2.1\n", nil, false),
  ]

  static let authdata = """
    Name/IP address             Mode KeyID Type KLen Last Atmp  NAK Cook CLen
    =========================================================================
    192.0.2.1                      -     0    0    0    -    0    0    0    0
    192.0.2.2                    NTS     1   15  256  33m    0    0    8   64
    2001:db8::3                   SK    30   13  128    -    0    0    0    0
    """

  /// `peer`: of the server that the clock follows.
  static func associations(_ peer: String, _ other: String) -> String {
    """

    ind assid status  conf reach auth condition  last_event cnt
    ===========================================================
      1 57011  f414   yes   yes  \(other)  candidat    reachable  1
      2 57012  f63a   yes   yes  \(peer)  sys.peer     sys_peer  3
    """
  }

  // shows: clock-jump
  @Test(arguments: vouched.indices) func `Who signs the time is told by the keeper`(index: Int) {
    let (program, answer, more, expected) = `Doctor on clock, module and people`.vouched[index]
    #expect(ClockFacts.isAuthenticated(program, answer, more) == expected)
  }

  @Test func `The keeper of the clock is asked who signs`() {
    let fake = FakeMachine()
    fake.answers["chronyc -n tracking"] = CommandOutput(
      output: "Reference ID    : C0000201 (192.0.2.1)\nLeap status     : Normal\n")
    fake.answers["chronyc -n authdata"] = CommandOutput(output: Self.authdata)
    fake.answers["timedatectl timesync-status"] = CommandOutput(output: "Offset: +1ms\n")
    let clock = ClockFacts(of: fake.machine, Healthy.now)
    #expect(clock.source?.name == "chrony" && clock.source?.isAuthenticated == false)
    fake.answers["chronyc -n authdata"]?.status = 1
    #expect(ClockFacts(of: fake.machine, Healthy.now).source?.isAuthenticated == nil)
    #expect(ClockFacts(of: fake.machine, Healthy.now).hasTimedate)
  }

  // MARK: module

  static let breakages: [(String, @Sendable (inout ModuleFacts) -> Void)] = [
    ("module-missing error", { $0.file = .absent }),
    ("module-missing unseen", { $0.file = .unseen("no") }),
    ("module-owner error", { $0.file = .seen(FileFacts(owner: 1000)) }),
    ("module-mode error", { $0.file = .seen(FileFacts(mode: 0o666)) }),
    ("module-directory error", { $0.openDirectories = ["/lib/security"] }),
    ("module-architecture error", { $0.machines = (183, 62) }),
    ("module-loading error", { $0.refusal = "libcrypto.so.3: cannot open shared object file" }),
    ("module-crypto error", { $0.makesCodes = false }),
    ("module-version warning", { $0.version = "0.0.9-1" }),
  ]

  @Test(arguments: breakages.indices) func `Each flaw of the module has its finding`(index: Int) {
    let (wrong, change) = `Doctor on clock, module and people`.breakages[index]
    #expect(Healthy.diagnosis { change(&$0.modules[0]) }.wrong == [wrong])
  }

  @Test func `A module of this version, and none of a package, are fine`() {
    #expect(Healthy.diagnosis { $0.modules[0].version = "0.1.0-1" }.wrong == [])
  }

  // MARK: packages

  /// {os-release(5), what fixes a module of another version, a broken one, and a clock without a
  /// keeper}
  static let systems: [(String, [String])] = [
    (
      "ID=debian\nVERSION_ID=\"12\"\n",
      [
        "apt-get install libpam-sallyport sallyport",
        "apt-get install --reinstall libpam-sallyport", "apt-get install chrony",
      ]
    ),
    (
      "NAME=x\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
      [
        "apt-get install libpam-sallyport sallyport",
        "apt-get install --reinstall libpam-sallyport", "apt-get install chrony",
      ]
    ),
    (
      "ID=\"almalinux\"\nID_LIKE=\"rhel centos fedora\"\n",
      [
        "dnf upgrade pam-sallyport sallyport", "dnf reinstall pam-sallyport",
        "dnf install chrony",
      ]
    ),
    (
      "ID='fedora'\n",
      [
        "dnf upgrade pam-sallyport sallyport", "dnf reinstall pam-sallyport",
        "dnf install chrony",
      ]
    ),
    (
      "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n",
      [
        "zypper update pam-sallyport sallyport", "zypper install --force pam-sallyport",
        "zypper install chrony",
      ]
    ),
    ("ID=arch\nBUILD_ID=rolling\n", []), ("", []),
  ]

  @Test(arguments: systems.indices) func `Advice names the package tool of the system`(index: Int)
    throws
  {
    let (release, wanted) = Self.systems[index]
    let fake = FakeMachine()
    try fake.write("/etc/os-release", release)
    let packages = PackageTool(of: fake.machine)
    let diagnosis = Healthy.diagnosis {
      $0.packages = packages
      $0.modules[0].version = "0.0.9-1"
      $0.modules[0].refusal = "no"
      $0.clock.isSynchronised = .seen(false)
    }
    let ids = ["module-version", "module-loading", "clock-synchronised"]
    let fixes = ids.compactMap { id in diagnosis.findings.first { $0.id == id }?.fixes.first }
    let commands = fixes.filter { $0.kind == .command }.map(\.text)
    #expect(commands == wanted)
  }

  @Test func `The version of the module is asked of the system's own database`() throws {
    for (release, question) in [
      ("ID=debian", "dpkg-query -W -f ${Version} libpam-sallyport"),
      ("ID=fedora", "rpm -q --queryformat %{VERSION} pam-sallyport"),
    ] {
      let fake = FakeMachine()
      try fake.write("/etc/os-release", release)
      try fake.write("/m.so", "")
      fake.answers[question] = CommandOutput(output: "0.0.9")
      let packages = PackageTool(of: fake.machine)
      let facts = ModuleFacts(of: fake.machine, "/m.so", at: nil, packages)
      #expect(facts.version == "0.0.9")
      #expect(ModuleFacts(of: fake.machine, "/m.so", at: nil, nil).version == nil)
    }
  }

  // MARK: SELinux

  @Test func `The label of the store counts only where SELinux is on`() throws {
    let fake = FakeMachine()
    try fake.write("/store/users/x", "")
    guard label("\(fake.root)/store", "var_auth_t"), label("\(fake.root)/store/users", "var_lib_t")
    else { return }
    #expect(StoreLabel(of: fake.machine, in: "/store") == nil)
    try fake.write("/sys/fs/selinux/enforce", "1")
    let wrong = StoreLabel(path: "/store/users", type: "var_lib_t", isEnforced: true)
    #expect(StoreLabel(of: fake.machine, in: "/store") == wrong)
    try fake.write("/sys/fs/selinux/enforce", "0")
    #expect(StoreLabel(of: fake.machine, in: "/store")?.isEnforced == false)
    var asked: [[String]] = []
    let machine = Machine(root: fake.root) { words in
      asked.append(words)
      _ = self.label("\(fake.root)/store/users", "var_auth_t")
      return .seen(CommandOutput())
    }
    for _ in 0..<2 { machine.restoreLabels(of: "/store") }
    #expect(asked == [["restorecon", "-R", "/store"]])
    #expect(StoreLabel(of: fake.machine, in: "/store") == nil)
  }

  /// Whether the file system here takes a label from this user: root's alone.
  private func label(_ path: String, _ type: String) -> Bool {
    let text = Array("system_u:object_r:\(type):s0\0".utf8)
    // SAFETY: as many bytes as are said.
    return unsafe setxattr(path, "security.selinux", text, text.count, 0) == 0
  }

  // MARK: people and policy

  // decisive
  @Test func `A policy that is broken or contradicted is told once`() {
    let broken = Healthy.diagnosis {
      $0.services += [ServiceFacts(name: "sudo", lines: Healthy.lines())]
      for index in 0...1 {
        $0.services[index].policy.problems = [
          .init(
            location: FileLocation(file: "/etc/security/sallyport.conf", line: 3),
            text: "unknown key")
        ]
      }
    }
    #expect(broken.wrong == ["policy-broken error"])
    let nullok = Healthy.diagnosis {
      $0.services[0].lines = Healthy.lines("nullok")
      $0.services[0].policy.overrulesLine = true
    }
    #expect(nullok.wrong == ["policy-nullok warning"])
  }

  @Test func `Who can log in at all`() throws {
    let fake = FakeMachine()
    try fake.write(
      "/etc/passwd",
      "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n"
        + "keys:x:1001:1001::/home/keys:/bin/sh\nlocked:x:1002:1002::/:/bin/sh\n"
        + "daemon:x:1:1::/:/bin/sh\nshut:x:1003:1003::/:/usr/sbin/nologin\n")
    try fake.write(
      "/etc/shadow",
      "root:$6$x:1::::::\nalice:$6$x:1::::::\nkeys:!:1::::::\nlocked:*:1::::::\n"
        + "daemon:$6$:1:\nshut:$6$:1:\n"
    )
    try fake.write("/home/keys/.ssh/authorized_keys", "ssh-ed25519 AAAA\n")
    try fake.write("/etc/group", "sudo:x:27:alice\nkeys:x:1001:\n")
    let accounts = AccountFacts(of: fake.machine)
    // Also daemon, who has a password and a shell.
    #expect(accounts.people.map(\.name) == ["root", "alice", "keys", "daemon"])
    #expect(accounts.members(of: "keys") == ["keys"])
  }
}
