import Foundation
import PAMStack
import Testing

@testable import SallyportDoctor

/// sshd's settings, what they mean, and the line that fixes it.
struct SSHCase: CustomTestStringConvertible {
  let name: String
  var settings: [String] = []
  var words: [String] = []
  var account: [String] = []
  var wrong: [String] = []
  var fix: String?
  var locksOut: String?
  var letsIn: String?
  var testDescription: String { name }

  static let all: [SSHCase] = [
    SSHCase(name: "key and prompt"),
    SSHCase(name: "prompts alone", settings: ["authenticationmethods keyboard-interactive"]),
    SSHCase(
      name: "UsePAM no", settings: ["usepam no"], wrong: ["ssh-use-pam error"],
      fix: "UsePAM yes", letsIn: "anybody with a password or a key over ssh"),
    SSHCase(
      name: "a key alone is enough", settings: ["authenticationmethods any"],
      wrong: ["ssh-no-code error"], fix: "AuthenticationMethods publickey,keyboard-interactive",
      letsIn: "anyone with a key over ssh"),
    SSHCase(
      name: "a list without prompts", settings: ["authenticationmethods publickey"],
      wrong: ["ssh-no-code error"], fix: "AuthenticationMethods publickey,keyboard-interactive",
      letsIn: "anyone with a key over ssh"),
    SSHCase(
      name: "a key after the prompts",
      settings: ["authenticationmethods keyboard-interactive,publickey"]),
    SSHCase(
      name: "a key after the prompts that enroll",
      settings: ["authenticationmethods keyboard-interactive,publickey"], words: ["enroll"],
      wrong: ["ssh-enroll-early error"],
      fix: "AuthenticationMethods publickey,keyboard-interactive",
      letsIn: "anyone with the password alone, to an enrollment of their own"),
    SSHCase(
      name: "prompts that enroll after a key", words: ["enroll"]),
    SSHCase(
      name: "demand refuses keys alone", settings: ["authenticationmethods any"],
      account: ["demand"]),
    SSHCase(
      name: "a ticket alone",
      settings: ["gssapiauthentication yes", "authenticationmethods gssapi-with-mic"],
      wrong: ["ssh-no-code error"], fix: "AuthenticationMethods keyboard-interactive",
      letsIn: "anyone with a ticket over ssh"),
    SSHCase(
      name: "an empty password where the code is asked for",
      settings: [
        "permitemptypasswords yes", "passwordauthentication yes",
        "authenticationmethods none keyboard-interactive",
      ]),
    SSHCase(
      name: "an empty password alone",
      settings: [
        "permitemptypasswords yes", "passwordauthentication yes", "authenticationmethods none",
      ], wrong: ["ssh-methods error"], fix: "AuthenticationMethods keyboard-interactive",
      locksOut: "everybody over ssh"),
    SSHCase(
      name: "prompts are off",
      settings: ["kbdinteractiveauthentication no", "authenticationmethods keyboard-interactive"],
      wrong: ["ssh-prompts error"], fix: "KbdInteractiveAuthentication yes",
      locksOut: "everybody over ssh"),
    SSHCase(
      name: "prompts are off and keys are enough",
      settings: ["kbdinteractiveauthentication no", "authenticationmethods any"],
      wrong: ["ssh-prompts error", "ssh-no-code error"], fix: "KbdInteractiveAuthentication yes",
      locksOut: "anyone without a key over ssh", letsIn: "anyone with a key over ssh"),
    SSHCase(
      name: "the old name of the setting",
      settings: [
        "kbdinteractiveauthentication", "challengeresponseauthentication yes",
        "authenticationmethods keyboard-interactive",
      ]),
    SSHCase(
      name: "password besides prompts",
      settings: [
        "passwordauthentication yes", "pubkeyauthentication no", "authenticationmethods any",
      ], wrong: ["ssh-password warning"], fix: "PasswordAuthentication no"),
    SSHCase(
      name: "password and code in one field",
      settings: [
        "passwordauthentication yes", "pubkeyauthentication no", "authenticationmethods password",
      ], words: ["forward_pass"]),
    SSHCase(
      name: "password twice",
      settings: [
        "passwordauthentication yes", "authenticationmethods password,keyboard-interactive",
      ], wrong: ["ssh-methods error"], fix: "AuthenticationMethods keyboard-interactive",
      locksOut: "everybody over ssh"),
    SSHCase(
      name: "a list that works beside one that cannot",
      settings: [
        "passwordauthentication yes",
        "authenticationmethods publickey,password publickey,keyboard-interactive",
      ], wrong: ["ssh-password warning"],
      fix: "AuthenticationMethods publickey,keyboard-interactive"),
    SSHCase(
      name: "a list with a method that is off",
      settings: [
        "pubkeyauthentication no", "authenticationmethods publickey,keyboard-interactive",
      ], wrong: ["ssh-methods error"], fix: "AuthenticationMethods keyboard-interactive",
      locksOut: "everybody over ssh"),
    SSHCase(name: "a key first where PAM's line wants one", words: ["after-key"]),
    SSHCase(
      name: "no key first where PAM's line wants one",
      settings: ["authenticationmethods keyboard-interactive"], words: ["after-key"],
      wrong: ["ssh-methods error"], fix: "AuthenticationMethods publickey,keyboard-interactive",
      locksOut: "everybody over ssh"),
    SSHCase(
      name: "names in place of addresses", settings: ["usedns yes"], wrong: ["ssh-use-dns warning"],
      fix: "UseDNS no"),
    SSHCase(
      name: "root is enrolled and forbidden prompts",
      settings: ["permitrootlogin prohibit-password"], wrong: ["ssh-root warning"],
      fix: "PermitRootLogin no"),
    SSHCase(name: "root is let in by prompts", settings: ["permitrootlogin yes"]),
  ]
}

@Suite struct `Doctor on sshd` {
  @Test(arguments: SSHCase.all) func `Each setting has its finding`(item: SSHCase) {
    let found = SSHFindings(
      ssh: Healthy.ssh(item.settings), lines: Healthy.lines(item.words, account: item.account),
      enrolled: ["root", "alice"]
    ).all
    #expect(found.wrong == item.wrong)
    let wrong = found.filter { $0.severity != .ok }
    if let fix = item.fix { #expect(wrong.first?.fixes.first == .add(fix)) }
    #expect(
      wrong.compactMap(\.effect)
        == [item.locksOut.map { .locksOut($0) }, item.letsIn.map { .letsIn($0) }].compactMap { $0 })
    #expect(item.wrong.isEmpty == (found.allSatisfy { $0.severity == .ok }))
  }

  /// Neither changes the exit status.
  @Test(
    arguments: [
      ("persourcepenalties crash:90 authfail:5 noauth:1", "", "ssh-penalties"),
      ("persourcepenalties no", "", nil),
      ("logingracetime 120", "enroll", "ssh-grace"), ("logingracetime 120", "", nil),
      ("logingracetime 299", "enroll", "ssh-grace"), ("logingracetime 300", "enroll", nil),
      ("logingracetime 0", "enroll", nil),
    ] as [(String, String, String?)])
  func `What sshd does by itself is told where it matters`(
    _ setting: String, _ word: String, _ told: String?
  ) throws {
    let words = word.isEmpty ? [] : [word]
    let found = SSHFindings(
      ssh: Healthy.ssh([setting]), lines: Healthy.lines(words), enrolled: []
    ).all
    #expect(found.allSatisfy { $0.severity == .ok })
    #expect(found.filter { !$0.fixes.isEmpty }.map(\.id) == (told.map { [$0] } ?? []))
  }

  @Test func `An sshd that refuses its configuration is a lock-out with its line`() {
    let complaint = "/etc/ssh/sshd_config: line 12: Bad configuration option: UsePam2"
    let found = SSHFindings(
      ssh: SSHFacts(settings: .unseen(complaint)), lines: Healthy.lines(), enrolled: []
    )
    .all
    #expect(found.wrong == ["ssh-config error"])
    #expect(found[0].location == FileLocation(file: "/etc/ssh/sshd_config", line: 12))
  }

  // decisive
  @Test func `What sshd does not say is never taken for good`() {
    let hint = "Missing privilege separation directory: /run/sshd"
    let found = SSHFindings(
      ssh: SSHFacts(settings: .unseen(hint)), lines: Healthy.lines(), enrolled: []
    ).all
    #expect(found.wrong == ["ssh-settings unseen"])
    #expect(found[0].fixes == [.command("mkdir -p -m 0755 /run/sshd")])
    let none = SSHFindings(ssh: SSHFacts(settings: .absent), lines: Healthy.lines(), enrolled: [])
      .all
    #expect(none.wrong == ["ssh-installed unseen"])
  }
}

@Suite struct `sshd's files` {
  private let fake = FakeMachine()
  private let accounts = AccountFacts(
    accounts: [.init(name: "carol", uid: 1002, group: 1002, shell: "/bin/sh")],
    groups: [.init(name: "sftp", number: 50, members: ["dave"])])

  private func facts() -> SSHFacts { SSHFacts(of: fake.machine, accounts) }

  private func answer(_ words: String, _ changes: String) {
    fake.answers[words] = CommandOutput(output: changes + "\n" + Healthy.sshText)
  }

  @Test func `A setting is found where it counts, in includes too`() throws {
    try fake.write(
      "/etc/ssh/sshd_config",
      "# head\nInclude sshd_config.d/*.conf\nUsePAM=yes\nusepam no\nMatch User x\n  UseDNS yes\n")
    try fake.write("/etc/ssh/sshd_config.d/10-a.conf", "ChallengeResponseAuthentication \"no\"\n")
    try fake.write(
      "/etc/ssh/sshd_config.d/20-b.conf", "\nKbdInteractiveAuthentication yes # late\n")
    let files = SSHConfiguration(of: fake.machine)
    #expect(files.location(of: "UsePAM")?.text == "/etc/ssh/sshd_config:3")
    #expect(
      files.location(of: "KbdInteractiveAuthentication")?.text
        == "/etc/ssh/sshd_config.d/10-a.conf:1")
    #expect(files.location(of: "UseDNS") == nil)
    #expect(files.location(of: "UseDNS", in: 0)?.text == "/etc/ssh/sshd_config:6")
    #expect(files.lines.map(\.arguments).contains(["no"]))
  }

  @Test func `Where only the vendor has a file, lines go into a drop-in that comes first`() throws {
    try fake.write(
      "/usr/etc/ssh/sshd_config",
      "Include /etc/ssh/sshd_config.d/*.conf\nInclude /usr/etc/ssh/sshd_config.d/*.conf\n"
        + "UsePAM no\n"
    )
    try fake.write("/etc/ssh/sshd_config.d/10-a.conf", "UseDNS yes\n")
    try fake.write("/usr/etc/ssh/sshd_config.d/40-b.conf", "PasswordAuthentication no\n")
    let files = SSHConfiguration(of: fake.machine)
    #expect(files.lines.map(\.keyword) == ["usedns", "passwordauthentication", "usepam"])
    #expect(files.location(of: "UseDNS")?.text == "/etc/ssh/sshd_config.d/10-a.conf:1")
    #expect(files.location(of: "PasswordAuthentication") == nil)
    answer("sshd -T", "usepam no")
    let found = SSHFindings(ssh: facts(), lines: Healthy.lines([]), enrolled: []).all[0]
    #expect(found.location == FileLocation(file: "/etc/ssh/sshd_config.d/00-sallyport.conf"))
    #expect(found.fixes == [.add("UsePAM yes")])
    // One of the administrator's own stands in for the vendor's.
    try fake.write("/etc/ssh/sshd_config", "UsePAM no\n")
    #expect(SSHConfiguration(of: fake.machine).location(of: "UsePAM")?.line == 1)
  }

  // sshd ends with an error if a block asks for what it was not told.
  @Test func `sshd is told all of a connection, with the port that it listens on`() throws {
    try fake.write(
      "/etc/ssh/sshd_config", "Port 2022\nMatch LocalPort 2222\n  UsePAM no\nMatch User bob\n")
    var asked: [String] = []
    let machine = Machine(root: fake.root) { words in
      asked.append(words.joined(separator: " "))
      return .seen(CommandOutput(output: Healthy.sshText))
    }
    var facts = SSHFacts(of: machine, accounts)
    facts.look(for: ["carol"], of: machine, accounts)
    _ = try machine.sshSettings()
    let elsewhere =
      "sshd -T -C addr=203.0.113.1,host=203.0.113.1,laddr=203.0.113.2,lport=2022,rdomain=,"
      + "user=nobody"
    #expect(asked.first == elsewhere && asked.last == elsewhere && asked.count == 5)
    for keyword in ["addr", "host", "laddr", "lport", "rdomain", "user"] {
      #expect(asked.allSatisfy { $0.contains("\(keyword)=") })
    }
    #expect(asked[1].contains("lport=2222,") && asked[3].contains("lport=2022,"))
  }

  @Test func `A setting with several lines has all of them`() {
    let settings = SSHSettings("allowusers a\nallowusers B@10.0.0.1\nusepam yes\nallowusers c d")
    #expect(settings.all("allowusers") == ["a", "B@10.0.0.1", "c d"])
    #expect(settings.written("allowusers") == "a" && settings.all("denyusers") == [])
    #expect(settings.replacing("usepam", with: ["no"])["usepam"] == "no")
  }

  @Test func `An empty password is a method of its own, which is not offered`() {
    let both = "permitemptypasswords yes\npasswordauthentication yes\n"
    #expect(SSHSettings(both).methods == ["password", "none"])
    #expect(SSHSettings(both).offered == ["password"])
    #expect(SSHSettings(both + "authenticationmethods none").ways == [["none"]])
    #expect(SSHSettings("permitemptypasswords yes\nauthenticationmethods none").ways == [])
    #expect(SSHSettings("passwordauthentication yes\nauthenticationmethods none").ways == [])
  }

  @Test func `The line in a block for all is found where all is meant`() throws {
    try fake.write("/etc/ssh/sshd_config", "UsePAM yes\nMatch all\n  UsePAM no\n")
    answer("sshd -T", "usepam no")
    let found = SSHFindings(ssh: facts(), lines: Healthy.lines(), enrolled: []).all
    #expect(found.first?.location?.line == 3)
  }

  @Test func `Line ends of Windows are those of lines, as for sshd`() throws {
    try fake.write("/etc/ssh/sshd_config", "# ours\r\nUseDNS no\r\nUsePAM no\r\n")
    let files = SSHConfiguration(of: fake.machine)
    #expect(files.location(of: "UsePAM")?.line == 3)
    #expect(files.lines.map(\.arguments) == [["no"], ["no"]])
  }

  @Test func `A Match block in an included file ends with it`() throws {
    try fake.write("/etc/ssh/sshd_config", "Include /etc/ssh/more\nUseDNS no\n")
    try fake.write("/etc/ssh/more", "Match all\nUsePAM no\n")
    let files = SSHConfiguration(of: fake.machine)
    #expect(files.location(of: "UseDNS")?.line == 2)
    #expect(files.location(of: "UsePAM") == nil)
  }

  @Test(arguments: [
    ("User backup", "127.0.0.1 localhost 127.0.0.1 22  backup"),
    ("User !root,dev*", "127.0.0.1 localhost 127.0.0.1 22  dev"),
    ("Group sftp", "127.0.0.1 localhost 127.0.0.1 22  dave"),
    ("Address 192.0.2.0/24,!192.0.2.9", "192.0.2.0 localhost 127.0.0.1 22  nobody"),
    ("Address 192.168.*", "192.168.1.1 localhost 127.0.0.1 22  nobody"),
    ("Host *.example.org LocalPort 2222", "127.0.0.1 .example.org 127.0.0.1 2222  nobody"),
    ("LocalAddress 192.0.2.7 RDomain red", "127.0.0.1 localhost 192.0.2.7 22 red nobody"),
    ("all", "127.0.0.1 localhost 127.0.0.1 22  nobody"),
  ]) func `A Match block is asked about with a connection that it means`(
    condition: String, probe: String
  ) throws {
    try fake.write("/etc/ssh/sshd_config", "Match \(condition)\n")
    let files = SSHConfiguration(of: fake.machine)
    let found = SSHProbe(files.blocks[0], accounts, port: files.port)
    let connection = try #require(found?.connection)
    let asked = [
      connection.address, connection.host, connection.localAddress, connection.port,
      connection.domain, found?.user ?? "",
    ]
    #expect(asked.joined(separator: " ") == probe)
  }

  @Test func `A key alone for one who is enrolled is an error, for a program a warning`() throws {
    try fake.write(
      "/etc/ssh/sshd_config", "UsePAM yes\nMatch User backup\n  AuthenticationMethods publickey\n")
    answer("sshd -T", "")
    answer(FakeMachine.login("backup"), "authenticationmethods publickey")
    let others = SSHFindings(ssh: facts(), lines: Healthy.lines(), enrolled: ["alice"]).all
    #expect(others.wrong == ["ssh-no-code warning"])
    let own = SSHFindings(ssh: facts(), lines: Healthy.lines(), enrolled: ["backup"]).all
    #expect(own.wrong == ["ssh-no-code error"])
    let found = own.first { $0.severity == .error }
    #expect(found?.location == FileLocation(file: "/etc/ssh/sshd_config", line: 3))
    #expect(found?.effect == .letsIn("backup over ssh"))
  }

  // decisive
  @Test func `Nobody is told to edit the file that pam enable wrote`() throws {
    try fake.write("/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n")
    try fake.write(
      SSHStage.path, "UsePAM yes\nMatch User ansible,git\n  AuthenticationMethods publickey\n")
    answer("sshd -T", "")
    answer(FakeMachine.login("ansible"), "authenticationmethods publickey")
    let found = SSHFindings(ssh: facts(), lines: Healthy.lines(), enrolled: []).all
    #expect(found.wrong == ["ssh-no-code warning"])
    #expect(
      found.first { $0.severity == .warning }?.fixes == [
        .meant(["ansible:sshd", "git:sshd"]),
        .advice(parts: [
          "or, for a person,", "sallyport enroll NAME,", "then", "sallyport pam enable sshd",
        ]),
      ])
    // A step on the way.
    try fake.write(SSHStage.path, "UsePAM yes\nAuthenticationMethods publickey\n")
    answer("sshd -T", "authenticationmethods publickey")
    let step = SSHFindings(ssh: facts(), lines: Healthy.lines(), enrolled: []).all
    #expect(
      step.first { $0.severity == .error }?.fixes.first == .command("sallyport pam enable sshd"))
  }

  @Test func `Lists that sshd itself calls impossible are looked at all the same`() throws {
    try fake.write(
      "/etc/ssh/sshd_config",
      "KbdInteractiveAuthentication no\nAuthenticationMethods publickey,keyboard-interactive\n")
    fake.answers["sshd -T"] = CommandOutput(
      status: 255,
      errors: """
        Disabled method "keyboard-interactive" in AuthenticationMethods list "keyboard-interactive"
        AuthenticationMethods cannot be satisfied by enabled authentication methods

        """)
    let found = SSHFindings(ssh: facts(), lines: Healthy.lines(), enrolled: []).all
    #expect(found.wrong == ["ssh-settings unseen"])
    answer("sshd -T -o AuthenticationMethods=any", "kbdinteractiveauthentication no")
    let looked = SSHFindings(ssh: facts(), lines: Healthy.lines(), enrolled: []).all
    #expect(looked.wrong == ["ssh-prompts error"])
    #expect(looked[0].location?.line == 1 && looked[0].effect == .locksOut("everybody over ssh"))
  }

  @Test func `What holds for all is not told again for each Match block`() throws {
    try fake.write("/etc/ssh/sshd_config", "Match Address 192.0.2.0/24\n  X11Forwarding no\n")
    answer("sshd -T", "authenticationmethods any")
    answer(FakeMachine.login("nobody", from: "192.0.2.0"), "authenticationmethods any")
    #expect(
      SSHFindings(ssh: facts(), lines: Healthy.lines(), enrolled: []).all.wrong == [
        "ssh-no-code error"
      ])
  }
}
