import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// AuthorizedKeysFile and what lies where: who has a key.
struct KeyCase: CustomTestStringConvertible {
  let name: String
  var settings: [String] = []
  var files: [String: String] = [:]
  var hasKey = true
  /// Why that is not known.
  var unseen: String?
  var testDescription: String { name }

  static let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA alice@laptop\n"

  static let all: [KeyCase] = [
    KeyCase(name: "in the home", files: ["/srv/alice/.ssh/authorized_keys": key]),
    KeyCase(name: "the second file", files: ["/srv/alice/.ssh/authorized_keys2": key]),
    KeyCase(
      name: "nowhere", files: ["/home/alice/.ssh/authorized_keys": key], hasKey: false),
    KeyCase(
      name: "after options",
      files: [
        "/srv/alice/.ssh/authorized_keys": "\n# mine\nfrom=\"*\",command=\"a b\" \(key)"
      ]),
    KeyCase(
      name: "comments alone", files: ["/srv/alice/.ssh/authorized_keys": "# \(key)\n #\(key)"],
      hasKey: false),
    KeyCase(
      name: "no key at all", files: ["/srv/alice/.ssh/authorized_keys": "ssh-ed25519\nAAAA\n"],
      hasKey: false),
    KeyCase(
      name: "a key of hardware",
      files: [
        "/srv/alice/.ssh/authorized_keys": "sk-ssh-ed25519@openssh.com AAAAGnNr x\r\n"
      ]),
    KeyCase(
      name: "by name", settings: ["authorizedkeysfile /etc/ssh/Keys/%u"],
      files: ["/etc/ssh/Keys/alice": key]),
    KeyCase(
      name: "by home", settings: ["authorizedkeysfile %h/keys"], files: ["/srv/alice/keys": key]),
    KeyCase(
      name: "by number, with a sign", settings: ["authorizedkeysfile /keys/%U%%h"],
      files: ["/keys/1001%h": key]),
    KeyCase(
      name: "one of several", settings: ["authorizedkeysfile none /keys/a /keys/%u"],
      files: ["/keys/alice": key]),
    KeyCase(
      name: "none", settings: ["authorizedkeysfile none"],
      files: ["/srv/alice/.ssh/authorized_keys": key, "/srv/alice/none": key],
      hasKey: false),
    KeyCase(
      name: "a command", settings: ["authorizedkeyscommand /usr/bin/keys %u"],
      unseen: "AuthorizedKeysCommand may know a key"),
    KeyCase(
      name: "certificates", settings: ["trustedusercakeys /etc/ssh/ca.pub"],
      unseen: "TrustedUserCAKeys may know a key"),
    KeyCase(
      name: "a command, and a file with a key",
      settings: ["authorizedkeyscommand /usr/bin/keys %u"],
      files: ["/srv/alice/.ssh/authorized_keys": key]),
  ]
}

@Suite struct `Doctor on keys` {
  private let fake = FakeMachine()
  private static let usual = """
    authorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2
    authorizedkeyscommand none
    trustedusercakeys none

    """
  private let accounts = AccountFacts(accounts: [
    .init(name: "alice", uid: 1001, group: 1001, shell: "/bin/sh", home: "/srv/alice"),
    .init(name: "bob", uid: 1002, group: 1002, shell: "/bin/sh", home: "/srv/bob"),
    .init(name: "root", uid: 0, group: 0, shell: "/bin/sh", home: "/root"),
    .init(name: "backup", uid: 34, group: 34, shell: "/bin/sh", home: "/srv/backup"),
  ])

  private func answer(_ words: String = "sshd -T", _ changes: [String] = []) {
    let text = (changes + [Self.usual + Healthy.sshText]).joined(separator: "\n")
    fake.answers[words] = CommandOutput(output: text)
  }

  private func facts(_ names: String...) -> SSHFacts {
    var facts = SSHFacts(of: fake.machine, accounts)
    facts.look(for: names, of: fake.machine, accounts)
    return facts
  }

  /// Of what has to do with keys.
  private func found(_ facts: SSHFacts, _ lines: ModuleLines = Healthy.lines()) -> [Finding] {
    SSHFindings(ssh: facts, lines: lines, enrolled: ["alice", "bob"]).all.filter {
      $0.id == "ssh-keys"
    }
  }

  // shows: no-keys
  @Test(arguments: KeyCase.all) func `A key is where sshd looks for it`(item: KeyCase) throws {
    answer("sshd -T", item.settings)
    for (path, text) in item.files { try fake.write(path, text) }
    let expected: Probe<Bool> = item.unseen.map { .unseen($0) } ?? .seen(item.hasKey)
    #expect(facts("alice").people.map(\.hasKey) == [expected])
  }

  // shows: no-keys
  @Test func `Where nobody who is enrolled has a key that sshd asks for, nobody gets in`() throws {
    try fake.write("/etc/ssh/sshd_config", "AuthenticationMethods publickey,keyboard-interactive\n")
    answer()
    let found = found(facts("alice", "bob"))
    #expect(found.wrong == ["ssh-keys error"])
    #expect(found.first?.effect == .locksOut("everybody who is enrolled from sshd"))
    #expect(found.first?.location?.text == "/etc/ssh/sshd_config:1")
    #expect(
      found.first?.fixes == [
        .advice("put a public key of alice into /srv/alice/.ssh/authorized_keys")
      ])
  }

  @Test func `One who has none is named, and is out`() throws {
    answer()
    try fake.write("/srv/alice/.ssh/authorized_keys", KeyCase.key)
    let found = found(facts("alice", "bob"))
    #expect(found.wrong == ["ssh-keys warning"])
    #expect(found.first?.effect == .locksOut("bob from sshd"))
    #expect(self.found(facts("alice")).map(\.severity) == [.ok])
  }

  @Test func `Who may have a key elsewhere is unseen, not locked out`() throws {
    answer("sshd -T", ["authorizedkeyscommand /usr/bin/keys"])
    #expect(found(facts("alice", "bob")).wrong == ["ssh-keys unseen"])
    answer()
    // Of a directory: his home is not known here.
    #expect(found(facts("alice", "dora")).wrong == ["ssh-keys warning", "ssh-keys unseen"])
  }

  /// Of who has no password, where the auth stack asks for one.
  private func passwords(
    _ have: [Bool?], needed: Bool = true, account: [String] = [], _ settings: String...
  ) -> [Finding] {
    answer("sshd -T", settings)
    var facts = SSHFacts(of: fake.machine, accounts)
    facts.people = zip(["alice", "bob"], have).map { name, password in
      SSHPerson(
        name: name, settings: facts.settings, hasKey: .seen(true), hasPassword: password)
    }
    var lines = Healthy.lines([], account: account)
    lines.needsPassword = needed
    return SSHFindings(ssh: facts, lines: lines, enrolled: ["alice", "bob"]).all
      .filter { $0.id == "ssh-passwords" }
  }

  // shows: no-keys
  @Test func `Where sshd's stack asks for a password, a user without one is named, and is out`() {
    let one = passwords([true, false])
    #expect(one.wrong == ["ssh-passwords warning"])
    #expect(one.first?.text == "sshd asks for a password, and bob has none")
    #expect(one.first?.effect == .locksOut("bob from sshd"))
    #expect(one.first?.fixes == [.command("passwd bob")])
    #expect(passwords([false, false]).wrong == ["ssh-passwords error"])
    #expect(passwords([true, nil]) == [])
  }

  @Test(arguments: [
    "authenticationmethods publickey", "authenticationmethods any", "usepam no",
    "permitemptypasswords yes",
    "authenticationmethods publickey,keyboard-interactive publickey",
  ]) func `Where a way is left that asks for no password, nobody needs one`(settings: String) {
    #expect(passwords([false, false], settings) == [])
  }

  @Test func `Where the stack lets in without a password, nobody needs one`() {
    #expect(passwords([false, false], needed: false) == [])
    // Behind `demand` a key alone is refused.
    let left = passwords([false, true], account: ["demand"], "authenticationmethods any")
    #expect(left.wrong == ["ssh-passwords warning"])
  }

  @Test func `A locked account, or one whose password is empty, has none`() throws {
    try fake.write(
      "/etc/passwd",
      ["a", "b", "c", "d"].map { "\($0):x:1001:1001::/srv/\($0):/bin/sh\n" }.joined())
    try fake.write("/etc/shadow", "a:$6$x:1::::::\nb:!$6$x:1::::::\nc:*:1::::::\nd::1::::::\n")
    answer()
    var facts = SSHFacts(of: fake.machine, accounts)
    facts.look(for: ["a", "b", "c", "d"], of: fake.machine, AccountFacts(of: fake.machine))
    #expect(facts.people.map(\.hasPassword) == [true, false, false, false])
  }

  // shows: no-keys
  @Test(arguments: [
    ("auth required pam_unix.so\nauth required pam_sallyport.so", true),
    (
      "auth [success=1 default=ignore] pam_unix.so\nauth requisite pam_deny.so\n"
        + "auth required pam_sallyport.so", true
    ),
    ("auth required pam_sallyport.so", false),
    (
      "auth sufficient pam_u2f.so\nauth required pam_unix.so\nauth required pam_sallyport.so", false
    ),
    ("auth required pam_deny.so\nauth required pam_sallyport.so", false),
  ]) func `A stack needs a password where none that is right ends in a refusal`(
    stack: String, needs: Bool
  ) throws {
    try fake.write("/etc/pam.d/sshd", stack + "\n")
    let stack = ServiceStack(of: fake.machine, "sshd")
    #expect(ServiceFacts(stack, of: fake.machine).lines.needsPassword == needs)
  }

  @Test(arguments: [
    "authenticationmethods keyboard-interactive", "authenticationmethods any",
    "authenticationmethods publickey,keyboard-interactive keyboard-interactive", "usepam no",
  ]) func `Where another way is left nobody needs a key`(settings: String) {
    answer("sshd -T", [settings])
    #expect(found(facts("alice", "bob")) == [])
  }

  @Test func `A way that ends in a refusal is none that is left`() {
    answer(
      "sshd -T",
      [
        "authenticationmethods any", "passwordauthentication yes",
        "kbdinteractiveauthentication no",
      ])
    // Only a key gets in, without a code, and nobody has one.
    #expect(found(facts("alice")).wrong == ["ssh-keys error"])
  }

  @Test func `Match blocks on people have each of them asked about`() throws {
    try fake.write(
      "/etc/ssh/sshd_config",
      "Match User bob\n  AuthenticationMethods keyboard-interactive\nMatch Group x\n")
    answer()
    answer(FakeMachine.login("alice"))
    answer(
      FakeMachine.login("bob"),
      ["authenticationmethods keyboard-interactive"])
    #expect(found(facts("bob")) == [])
    // bob gets in without one.
    let both = found(facts("alice", "bob"))
    #expect(both.wrong == ["ssh-keys warning"] && both[0].effect == .locksOut("alice from sshd"))
    fake.answers[FakeMachine.login("alice")] = nil
    #expect(found(facts("alice", "bob")).wrong == ["ssh-keys unseen"])
  }

  @Test func `Nobody logs in as root or as a program by prompts`() {
    answer()
    #expect(facts("root", "backup").people == [])
    answer("sshd -T", ["permitrootlogin yes"])
    #expect(facts("root", "backup").people.map(\.name) == ["root"])
  }

  // MARK: at the edges

  @Test func `A block on groups has each person asked about too`() throws {
    try fake.write("/etc/ssh/sshd_config", "Match Group x\n")
    answer()
    answer(FakeMachine.login("bob"), ["authenticationmethods any"])
    #expect(found(facts("bob")) == [])
  }

  @Test func `Root is looked at where his own settings let him in`() throws {
    try fake.write("/etc/ssh/sshd_config", "Match User root\n  PermitRootLogin yes\n")
    answer()
    answer(FakeMachine.login("root"), ["permitrootlogin yes"])
    #expect(facts("root").people.map(\.name) == ["root"])
  }

  @Test func `A file that cannot be read is not known to be without keys`() throws {
    answer()
    try fake.write("/srv/alice/.ssh/authorized_keys/directory", "")
    #expect(found(facts("alice")).wrong == ["ssh-keys unseen"])
  }

  @Test func `Those whom no Match block tells apart need one run of sshd`() throws {
    try fake.write("/etc/ssh/sshd_config", "Match User x\nPubkeyAuthentication yes\n")
    let names = (0...SSHFacts.mostPeople).map { "user\($0)" }
    let accounts = AccountFacts(
      accounts: names.map { .init(name: $0, uid: 1500, group: 1500, shell: "/bin/sh") })
    answer(FakeMachine.login(names[0]))
    answer()
    var facts = SSHFacts(of: fake.machine, accounts)
    facts.look(for: names, of: fake.machine, accounts)
    #expect(facts.people.allSatisfy { $0.settings.value != nil && $0.hasKey == .seen(false) })
  }

  @Test func `After a number of kinds of people the rest is told as not looked at`() throws {
    let names = (0...SSHFacts.mostPeople).map { "user\($0)" }
    let blocks = names.map { "Match User \($0)\nPubkeyAuthentication yes\n" }
    try fake.write("/etc/ssh/sshd_config", blocks.joined())
    let accounts = AccountFacts(
      accounts: names.map { .init(name: $0, uid: 1500, group: 1500, shell: "/bin/sh") })
    for name in names { answer(FakeMachine.login(name)) }
    answer()
    var facts = SSHFacts(of: fake.machine, accounts)
    facts.look(for: names, of: fake.machine, accounts)
    #expect(facts.people.filter { $0.settings.value == nil }.map(\.name) == [names.last])
    #expect(found(facts).wrong == ["ssh-keys warning", "ssh-keys unseen"])
  }

  @Test(arguments: ["ecdsa-sha2-nistp256", "ssh-rsa", "sk-ecdsa-sha2-nistp256@openssh.com"])
  func `A key of each type is one`(type: String) throws {
    answer()
    try fake.write("/srv/alice/.ssh/authorized_keys", "\t\(type) AAAAE2VjZHNh\n")
    #expect(facts("alice").people.map(\.hasKey) == [.seen(true)])
  }

  @Test func `A catalog that cannot be used is told with its line, and costs no way in`() {
    let flaw = PolicyFacts.Problem(
      location: FileLocation(file: "/usr/share/sallyport/messages/fr", line: 7), text: "unknown key"
    )
    let diagnosis = Healthy.diagnosis { $0.services[0].policy.languages = [flaw] }
    #expect(diagnosis.wrong == ["policy-language warning"])
    #expect(diagnosis.findings.first { $0.id == "policy-language" }?.location == flaw.location)
  }

  @Test func `An enrollment for no account needs no key`() {
    var store = Healthy.store
    store.users.append(UserFacts(directory: "/x", name: "dora", isForNobody: true))
    store.users.append(UserFacts(directory: "/y", name: "erin", error: .outOfMemory))
    #expect(store.peopleEnrolled == ["alice"])
  }

  // decisive
  @Test func `A group that is not there, or nobody is in, is told once for all services`() {
    let flaw = PolicyFacts.Problem(
      location: FileLocation(file: "/etc/security/sallyport.conf", line: 2),
      text: "there is no group x")
    let diagnosis = Healthy.diagnosis {
      $0.services.append(ServiceFacts(name: "su", lines: Healthy.lines()))
      for index in $0.services.indices { $0.services[index].policy.groups = [flaw] }
    }
    #expect(diagnosis.wrong == ["policy-group warning"])
    #expect(diagnosis.findings.first { $0.id == "policy-group" }?.location == flaw.location)
    var unseen = flaw
    unseen.isUnseen = true
    #expect(
      Healthy.diagnosis { $0.services[0].policy.groups = [unseen] }.wrong
        == ["policy-group unseen"])
  }

  // decisive
  @Test func `A mistake in what no login reads is a warning, told once`() {
    let flaw = PolicyFacts.Problem(
      location: FileLocation(file: "/etc/security/sallyport.conf", line: 2), text: "wrong")
    let diagnosis = Healthy.diagnosis {
      $0.services.append(ServiceFacts(name: "su", lines: Healthy.lines()))
      for index in $0.services.indices { $0.services[index].policy.purposes = [flaw] }
    }
    #expect(diagnosis.wrong == ["policy-purpose warning"])
    #expect(diagnosis.findings.first { $0.id == "policy-purpose" }?.location == flaw.location)
    #expect(diagnosis.lockedOut.isEmpty)
  }

  // shows: common-faults
  @Test func `Without PAM its stacks say nothing of sshd`() {
    let diagnosis = Healthy.diagnosis {
      $0.ssh = Healthy.ssh("usepam no")
      $0.services[0].stack = [.notAsked]
      $0.services[0].policy.unenrolled = [.init(name: "carol")]
    }
    #expect(diagnosis.wrong == ["ssh-use-pam error"])
    let bare = Healthy.diagnosis {
      $0.ssh = Healthy.ssh("usepam no")
      $0.services = [ServiceFacts(name: "sshd")]
    }
    #expect(bare.wrong == ["ssh-use-pam error"])
    #expect(bare.letIn == ["anybody with a password or a key over ssh"])
    let other = Healthy.diagnosis {
      $0.ssh = Healthy.ssh("usepam no")
      $0.services.append(ServiceFacts(name: "su", stack: [.notAsked]))
    }
    #expect(other.wrong == ["ssh-use-pam error", "service-unasked error"])
  }
}
