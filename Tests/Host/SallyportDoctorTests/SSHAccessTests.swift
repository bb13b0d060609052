import Foundation
import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// sshd's settings and one account: the lists of methods, each with sshd's own refusal.
struct AccessCase: CustomTestStringConvertible {
  let name: String
  /// `sshd -T` beside the usual.
  var settings: [String] = []
  var user = "alice"
  var uid: UInt32 = 1001
  var shell = "/bin/sh"
  var address = "192.0.2.7"
  let entrances: [String]
  var testDescription: String { name }

  private static let both = ["publickey", "keyboard-interactive"]
  private static let out = both.map { "\($0): notAllowed" }
  private static let noRoot = both.map { "\($0): rootLogin" }

  static let all: [AccessCase] = [
    AccessCase(name: "each method by itself", entrances: both),
    AccessCase(
      name: "lists, with PAM named",
      settings: ["authenticationmethods publickey,keyboard-interactive:pam publickey"],
      entrances: ["publickey,keyboard-interactive", "publickey"]),
    AccessCase(
      name: "a list with a method that is off, or has nothing behind it",
      settings: [
        "authenticationmethods password publickey keyboard-interactive:bsdauth publickey:x"
      ],
      entrances: [
        "password: unusable", "publickey", "keyboard-interactive: unusable", "publickey: unusable",
      ]),
    AccessCase(
      name: "all that is on",
      settings: [
        "passwordauthentication yes", "permitemptypasswords yes", "hostbasedauthentication yes",
        "gssapiauthentication yes",
      ],
      entrances: both + ["password", "hostbased", "gssapi-with-mic", "none"]),
    AccessCase(
      name: "nothing behind the prompts without PAM", settings: ["usepam no"],
      entrances: ["publickey", "keyboard-interactive: unusable"]),
    AccessCase(
      name: "locked, without PAM", settings: ["usepam no"], user: "locked",
      entrances: ["publickey: locked", "keyboard-interactive: locked"]),
    AccessCase(name: "locked, with PAM", user: "locked", entrances: both),
    AccessCase(
      name: "a shell that is not there", shell: "/bin/none",
      entrances: both.map { "\($0): shell" }),
    AccessCase(
      name: "no shell in a directory of its own", settings: ["chrootdirectory /srv/%u"],
      shell: "/bin/none", entrances: both),
    AccessCase(name: "nologin is a shell", shell: "/usr/sbin/nologin", entrances: both),
    AccessCase(name: "no shell is sh", shell: "", entrances: both),
    AccessCase(
      name: "allowed by name", settings: ["allowusers bob", "allowusers alice"],
      entrances: both),
    AccessCase(name: "allowed by pattern", settings: ["allowusers a?i*e"], entrances: both),
    AccessCase(
      name: "not allowed", settings: ["allowusers bob", "allowusers alic"],
      entrances: out),
    AccessCase(
      name: "names have letters of both cases", settings: ["allowusers Alice"],
      entrances: out),
    AccessCase(
      name: "a comma is no end of a name", settings: ["allowusers bob,alice"],
      entrances: out),
    AccessCase(
      name: "an exclamation mark is a letter", settings: ["denyusers !bob"],
      entrances: both),
    AccessCase(name: "denied", settings: ["denyusers alice", "allowusers alice"], entrances: out),
    AccessCase(
      name: "denied from elsewhere", settings: ["denyusers *@10.0.0.0/8"], entrances: both),
    AccessCase(name: "denied from there", settings: ["denyusers *@192.0.2.*"], entrances: out),
    AccessCase(
      name: "allowed from there", settings: ["allowusers alice@192.0.2.0/24,!192.0.2.9"],
      entrances: both),
    AccessCase(
      name: "not allowed from an address that is taken out",
      settings: ["allowusers alice@192.0.2.0/24,!192.0.2.9"], address: "192.0.2.9",
      entrances: out),
    AccessCase(
      name: "allowed by one of two places",
      settings: ["allowusers alice@10.0.0.1", "allowusers alice@192.0.2.7"], entrances: both),
    AccessCase(name: "its first group is allowed", settings: ["allowgroups own"], entrances: both),
    AccessCase(
      name: "another of its groups is allowed", settings: ["allowgroups st*"], entrances: both),
    AccessCase(
      name: "none of its groups is allowed", settings: ["allowgroups wheel"],
      entrances: out),
    AccessCase(
      name: "one of its groups is denied", settings: ["allowgroups own", "denygroups staff"],
      entrances: out),
    AccessCase(
      name: "in no group", settings: ["denygroups wheel"], user: "lonely", entrances: both),
    AccessCase(
      name: "the connection is refused", settings: ["refuseconnection yes"], entrances: out),
    AccessCase(name: "root", user: "root", uid: 0, entrances: noRoot),
    AccessCase(
      name: "root by all", settings: ["permitrootlogin yes"], user: "root", uid: 0,
      entrances: both),
    AccessCase(
      name: "root without passwords",
      settings: [
        "permitrootlogin without-password", "hostbasedauthentication yes",
        "passwordauthentication yes", "permitemptypasswords yes",
        "authenticationmethods publickey publickey,keyboard-interactive password none hostbased",
      ], user: "root", uid: 0,
      entrances: [
        "publickey", "publickey,keyboard-interactive: rootLogin", "password: rootLogin",
        "none: rootLogin", "hostbased",
      ]),
    AccessCase(
      name: "another name of uid 0", settings: ["permitrootlogin prohibit-password"],
      user: "toor", uid: 0, entrances: ["publickey", "keyboard-interactive: rootLogin"]),
    AccessCase(
      name: "root by a command of his key",
      settings: ["permitrootlogin forced-commands-only", "hostbasedauthentication yes"],
      user: "root", uid: 0,
      entrances: [
        "publickey", "keyboard-interactive: rootLogin", "hostbased: rootLogin",
      ]),
  ]
}

@Suite struct `What sshd lets an account try` {
  private let fake = FakeMachine()
  private static let unset = """
    usepam yes
    kbdinteractiveauthentication yes
    passwordauthentication no
    pubkeyauthentication yes
    hostbasedauthentication no
    gssapiauthentication no
    permitemptypasswords no
    permitrootlogin no
    usedns no
    authenticationmethods any
    """

  private func accounts(_ item: AccessCase) -> AccountFacts {
    AccountFacts(
      accounts: [
        .init(
          name: item.user, uid: item.uid, group: item.user == "lonely" ? 1 : 1001,
          shell: item.shell, isLocked: item.user == "locked",
          groups: item.user == "lonely" ? [] : [50])
      ],
      groups: [
        .init(name: "own", number: 1001, members: []),
        .init(name: "staff", number: 50, members: [item.user]),
      ], shells: ["/bin/none": LoginShell(isThere: false)])
  }

  private func words(_ answer: SSHAnswer) -> [String] {
    guard case .seen(let entrances) = answer else { return ["\(answer)"] }
    return entrances.map { one in
      let refusal = one.refusal.map { ": \("\($0)".prefix { $0 != "(" })" } ?? ""
      return one.methods.joined(separator: ",") + refusal
    }
  }

  private func answering(_ settings: [String]) -> Machine {
    let text = (settings + [Self.unset]).joined(separator: "\n")
    return Machine(root: fake.root) { _ in .seen(CommandOutput(output: text)) }
  }

  @Test(arguments: AccessCase.all) func `It is refused as sshd does`(item: AccessCase) throws {
    let facts = accounts(item)
    let access = SSHAccess(
      of: answering(item.settings), facts, addresses: [item.address])
    let connection = try #require(access.connections.first { $0.address == item.address })
    #expect(words(access.entrances(of: facts.accounts[0], from: connection)) == item.entrances)
  }

  @Test func `Each answer has the line that it comes from`() throws {
    try fake.write(
      "/etc/ssh/sshd_config",
      """
      PasswordAuthentication yes
      DenyUsers eve
      DenyUsers mallory b*
      PermitRootLogin no
      Match User alice
        AuthenticationMethods publickey
        AllowUsers x
      Match all
        AuthenticationMethods password
      """)
    let configuration = SSHConfiguration(of: fake.machine)
    func lines(_ user: String, _ blocks: [Int], _ settings: String...) -> [String] {
      let door = SSHDoor(
        SSHSettings((settings + [Self.unset]).joined(separator: "\n")), configuration,
        blocks: blocks, from: .here(port: "22"))
      let login = SSHLogin(
        name: Array(user.utf8), groups: [], isRoot: user == "root", hasShell: true,
        isLocked: false)
      return door.entrances(for: login).map { one in
        let line = one.location.map { "\($0.line ?? 0)" } ?? "-"
        switch one.refusal {
        case .notAllowed(let at), .rootLogin(let at), .unusable(let at):
          return "\(line) \(at.map { "\($0.line ?? 0)" } ?? "-")"
        case .locked, .shell, nil: return line
        }
      }
    }
    #expect(lines("alice", [0, 1], "authenticationmethods publickey") == ["6"])
    #expect(
      lines("bob", [1], "authenticationmethods password", "passwordauthentication yes")
        == ["9"])
    #expect(lines("bob", [], "passwordauthentication yes") == ["-", "-", "1"])
    #expect(
      lines("bob", [], "denyusers eve", "denyusers b*", "pubkeyauthentication no") == ["- 3"])
    #expect(lines("alice", [0], "allowusers x", "pubkeyauthentication no") == ["- 7"])
    #expect(lines("root", [], "pubkeyauthentication no") == ["- 4"])
  }

  @Test func `What sshd does not tell is not taken for anything`() throws {
    let facts = accounts(AccessCase(name: "", entrances: []))
    let (here, alice) = (SSHConnection.here(port: "22"), facts.accounts[0])
    let none = SSHAccess(of: Machine(root: fake.root) { _ in .absent }, facts)
    #expect(none.entrances(of: alice, from: here) == .absent)
    let broken = Machine(root: fake.root) { _ in
      .seen(CommandOutput(status: 255, errors: "line 3: bad"))
    }
    #expect(
      SSHAccess(of: broken, facts).entrances(of: alice, from: here)
        == .unseen(.silent("line 3: bad")))
    try fake.write("/etc/ssh/sshd_config", "Include /etc/ssh/more\n")
    try fake.write("/etc/ssh/more/directory", "")
    let access = SSHAccess(of: answering([]), facts)
    #expect(
      access.entrances(of: alice, from: here)
        == .unseen(.silent("/etc/ssh/more: Invalid argument (EINVAL)")))
  }

  @Test func `Nobody gets in where sshd does not start for its lists`() throws {
    try fake.write("/etc/ssh/sshd_config", "AuthenticationMethods password\n")
    let machine = Machine(root: fake.root) { words in
      words.contains("-o")
        ? .seen(CommandOutput(output: Self.unset))
        : .seen(CommandOutput(status: 255, errors: SSHFacts.unsatisfiable))
    }
    let facts = accounts(AccessCase(name: "", entrances: []))
    let access = SSHAccess(of: machine, facts)
    #expect(
      words(access.entrances(of: facts.accounts[0], from: access.connections[1]))
        == ["password: unusable"])
  }

  // MARK: runs of sshd

  private func many(_ count: Int) -> AccountFacts {
    AccountFacts(
      accounts: (0..<count).map {
        .init(
          name: "user\($0)", uid: UInt32(2000 + $0), group: UInt32(100 + $0 % 200),
          shell: "/bin/sh")
      }, groups: (0..<200).map { .init(name: "g\($0)", number: UInt32(100 + $0), members: []) })
  }

  @Test func `sshd is asked once or twice for each kind, and never for each account`() throws {
    let blocks = (0..<20).map { "Match Group g\($0)\n  PermitEmptyPasswords no\n" }
    try fake.write("/etc/ssh/sshd_config", blocks.joined())
    var asked: [String] = []
    let machine = Machine(root: fake.root) { words in
      asked.append(words.last ?? "")
      return .seen(CommandOutput(output: Self.unset))
    }
    let facts = many(2000)
    let access = SSHAccess(of: machine, facts)
    #expect(asked.count == 1 + 2 * 21 && Set(asked).count == asked.count)
    #expect(access.connections.map(\.name) == ["anywhere", "this machine"])
    #expect(
      words(access.entrances(of: facts.accounts[1999], from: access.connections[0])).count == 2)
  }

  @Test func `Kinds beyond the last run are unseen`() throws {
    let blocks = (0..<200).map { "Match Group g\($0)\n  PermitEmptyPasswords no\n" }
    try fake.write("/etc/ssh/sshd_config", blocks.joined())
    let facts = many(200)
    let access = SSHAccess(of: answering([]), facts)
    let answers = facts.accounts.map { access.entrances(of: $0, from: access.connections[0]) }
    let gap = SSHAnswer.unseen(.tooMany(runs: SSHAccess.mostRuns))
    #expect(answers.filter { $0 == gap }.count == 50 && answers[0] != gap && answers[199] == gap)
  }

  @Test func `More connections than are asked about are told of`() throws {
    let blocks = (0..<120).map { "Match Address 10.0.\($0).0/24\n  PermitEmptyPasswords no\n" }
    try fake.write("/etc/ssh/sshd_config", blocks.joined())
    let access = SSHAccess(of: answering([]), many(1))
    #expect(access.connections.count == SSHConnections.most && access.isCut)
    try fake.write("/etc/ssh/sshd_config", blocks.prefix(90).joined())
    #expect(!SSHAccess(of: answering([]), many(1)).isCut)
    try fake.write("/etc/ssh/sshd_config", blocks.joined())
    let facts = AccessFacts(of: answering([]), Store(root: fake.root + "/none"), at: UnixTime(0))
    #expect(facts.gaps.contains("sshd: logins of more than 100 kinds of connections"))
  }

  @Test func `A block that sshd reads otherwise is not trusted`() throws {
    try fake.write("/etc/ssh/sshd_config", "Match User user[01]\n  UsePAM no\n")
    let machine = Machine(root: fake.root) { words in
      let isOther = words.last?.hasSuffix("user=user1") == true
      return .seen(CommandOutput(output: (isOther ? "usepam no\n" : "") + Self.unset))
    }
    let facts = many(2)
    let access = SSHAccess(of: machine, facts)
    #expect(
      access.entrances(of: facts.accounts[0], from: access.connections[1])
        == .unseen(.contradictory))
  }

  // MARK: connections

  @Test(arguments: [
    ("Match User bob\n UsePAM no\n", ""),
    ("Match Address 10.0.0.0/8\n X11Forwarding no\n", ""),
    ("Match Address 10.0.0.0/8\n UsePAM no\n", "address 10.0.0.0/8 10.0.0.1"),
    (
      "Match Address 10.0.0.0/8,!10.0.0.1,!10.0.0.2\n UsePAM no\n",
      "address 10.0.0.0/8,!10.0.0.1,!10.0.0.2 10.0.0.77"
    ),
    ("Match Address *,!10.0.0.1\n UsePAM no\n", "from 10.0.0.1 10.0.0.1"),
    ("Match Address 2001:db8::/32\n UsePAM no\n", "address 2001:db8::/32 2001:db8::1"),
    ("Match Address 192.168.*\n UsePAM no\n", "address 192.168.* 192.168.1.1"),
    ("Match Address 127.0.0.0/8\n UsePAM no\n", ""),
    (
      "Match Address 10.0.0.0/8 User bob\n UsePAM no\nMatch Address 10.*\n UsePAM no\n",
      "address 10.0.0.0/8 10.0.0.1"
    ),
    ("Match Host *.example.org\n UsePAM no\n", ""),
    ("Match LocalPort 2222\n UsePAM no\n", "localport 2222 203.0.113.1"),
    ("AllowUsers a@10.0.0.0/8 b\n", "from 10.0.0.0/8 10.0.0.1"),
    ("DenyUsers *@10.0.0.5\n", "from 10.0.0.5 10.0.0.5"),
    ("Match Address 203.0.113.1\n UsePAM no\n", "address 203.0.113.1 203.0.113.1"),
  ]) func `A connection is looked at where it makes a difference`(text: String, more: String) throws
  {
    try fake.write("/etc/ssh/sshd_config", text)
    let configuration = SSHConfiguration(of: fake.machine)
    let found = SSHConnections(
      configuration, SSHBlocks(configuration), ports: ["22"], usesNames: false
    ).all
    #expect(found.prefix(2).map(\.name) == ["anywhere", "this machine"])
    #expect(
      found.dropFirst(2).map { "\($0.name) \($0.address)" } == (more.isEmpty ? [] : [more]))
    #expect(found.allSatisfy { $0.host == $0.address })
  }

  @Test func `An origin that others ask about is looked at`() throws {
    try fake.write("/etc/ssh/sshd_config", "DenyUsers *@192.0.2.0/24\n")
    let configuration = SSHConfiguration(of: fake.machine)
    let found = SSHConnections(
      configuration, SSHBlocks(configuration), ports: ["22"], usesNames: false,
      origins: ["192.0.2.64/28", "2001:db8::/32"]
    ).all
    #expect(
      found.dropFirst(2).map { "\($0.name) \($0.address)" } == [
        "from 192.0.2.0/24 192.0.2.1", "from 192.0.2.0/24 192.0.2.77",
        "from 2001:db8::/32 2001:db8::1",
      ])
  }

  @Test func `An origin of IPv4 may be written as one of IPv6`() throws {
    try fake.write("/etc/ssh/sshd_config", "")
    let configuration = SSHConfiguration(of: fake.machine)
    let found = SSHConnections(
      configuration, SSHBlocks(configuration), ports: ["22"], usesNames: false,
      origins: ["::ffff:192.0.2.0/120"]
    ).all
    #expect(found.dropFirst(2).map(\.address) == ["192.0.2.1"])
  }

  @Test func `Names of hosts count where sshd looks them up`() throws {
    try fake.write(
      "/etc/ssh/sshd_config", "Match Host *.example.org\n UsePAM no\nPort 22\n")
    let configuration = SSHConfiguration(of: fake.machine)
    let found = SSHConnections(
      configuration, SSHBlocks(configuration), ports: ["22", "2022"], usesNames: true
    ).all
    #expect(found.map(\.host) == ["203.0.113.1", "localhost", ".example.org"])
    #expect(found[2].name == "host *.example.org")
  }
}
