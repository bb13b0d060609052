import Foundation
import Testing

@testable import SallyportDoctor

/// A line of a file of keys, and for whom it counts.
struct KeyLineCase: CustomTestStringConvertible {
  let name: String
  let line: String
  var settings = ""
  var uid: UInt32 = 1001
  let answer: SSHKeyAnswer
  var testDescription: String { name }

  fileprivate static let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA alice@laptop"

  static let all: [KeyLineCase] = [
    KeyLineCase(name: "a key", line: key, answer: .yes),
    KeyLineCase(name: "a comment", line: "# \(key)", answer: .no),
    KeyLineCase(name: "a comment that is indented", line: "  # \(key)", answer: .no),
    KeyLineCase(name: "a type without a key", line: "ssh-ed25519", answer: .no),
    KeyLineCase(
      name: "options with spaces in quotes", line: "command=\"a b\",no-pty \(key)", answer: .yes),
    KeyLineCase(
      name: "a key in the quotes of an option alone", line: "command=\"x \(key)\"", answer: .no),
    KeyLineCase(
      name: "a quote in quotes", line: "command=\"echo \\\"a b\\\" c\" \(key)", answer: .yes),
    KeyLineCase(name: "for this place", line: "from=\"10.0.0.1,127.0.0.0/8\" \(key)", answer: .yes),
    KeyLineCase(
      name: "for another place", line: "from=\"10.0.0.0/8\" \(key)",
      answer: .from(hosts: "10.0.0.0/8")),
    KeyLineCase(
      name: "not for this place", line: "from=\"*,!127.0.0.1\" \(key)",
      answer: .from(hosts: "*,!127.0.0.1")),
    KeyLineCase(
      name: "one that is over", line: "expiry-time=\"20200101\" \(key)", answer: .no),
    KeyLineCase(
      name: "one that is over in UTC", line: "expiry-time=\"202001012359Z\" \(key)", answer: .no),
    KeyLineCase(
      name: "one that is not over", line: "expiry-time=\"29990101\" \(key)", answer: .yes),
    KeyLineCase(
      name: "one that signs others", line: "cert-authority,principals=\"a\" \(key)",
      answer: .unseen(.elsewhere(keyword: "cert-authority"))),
    KeyLineCase(
      name: "an option that sshd may not know", line: "No-PTY,command=\"a\",no-such-word \(key)",
      answer: .unseen(.elsewhere(keyword: "no-such-word"))),
    KeyLineCase(
      name: "one that may be revoked", line: key, settings: "revokedkeys /etc/ssh/revoked",
      answer: .unseen(.elsewhere(keyword: "RevokedKeys"))),
    KeyLineCase(
      name: "a type that sshd does not accept", line: "ssh-dss AAAAB3NzaC1kc3MAAACB x",
      settings: "pubkeyacceptedalgorithms ssh-ed25519,rsa-sha2-512", answer: .no),
    KeyLineCase(
      name: "RSA by the names of its signatures", line: "ssh-rsa AAAAB3NzaC1yc2EA x",
      settings: "pubkeyacceptedalgorithms ssh-ed25519,rsa-sha2-512", answer: .yes),
    KeyLineCase(
      name: "root's without a command", line: key, settings: "permitrootlogin forced-commands-only",
      uid: 0, answer: .no),
    KeyLineCase(
      name: "root's with a command", line: "command=\"backup\" \(key)",
      settings: "permitrootlogin forced-commands-only", uid: 0, answer: .yes),
    KeyLineCase(
      name: "somebody else's without a command", line: key,
      settings: "permitrootlogin forced-commands-only", answer: .yes),
  ]
}

@Suite struct `A key of an account` {
  private let fake = FakeMachine()
  private static let usual = """
    authorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2
    authorizedkeyscommand none
    trustedusercakeys none
    """

  private func account(_ uid: UInt32 = 1001) -> AccountFacts.Account {
    .init(name: "alice", uid: uid, group: 1001, shell: "/bin/sh", home: "/srv/alice")
  }

  private func key(_ settings: [String], uid: UInt32 = 1001, seconds: UInt64 = 60) -> SSHKeyAnswer {
    let text = (settings + [Self.usual]).joined(separator: "\n")
    return SSHKeyring(fake.machine, seconds: seconds).key(
      of: account(uid), SSHSettings(text), from: .here(port: "22"))
  }

  @Test(arguments: KeyLineCase.all) func `is a line that sshd takes`(item: KeyLineCase) throws {
    try fake.write("/srv/alice/.ssh/authorized_keys2", "\n\(item.line)\r\n")
    #expect(key([item.settings], uid: item.uid) == item.answer)
  }

  // decisive
  @Test func `is found at a path with spaces, which sshd prints without its quotes`() throws {
    try fake.write("/etc/ssh/my keys/alice", "\(KeyLineCase.key)\n")
    try fake.write("/etc/ssh/sshd_config", "AuthorizedKeysFile none \"/etc/ssh/my keys/%u\"\n")
    let keyring = SSHKeyring(fake.machine, SSHConfiguration(of: fake.machine))
    let settings = SSHSettings("authorizedkeysfile none /etc/ssh/my keys/%u")
    #expect(keyring.key(of: account(), settings, from: .here(port: "22")) == .yes)
  }

  @Test(arguments: [(137, true), (0, false), (1, false)] as [(Int32, Bool)])
  func `is not known where the file system of the home does not answer`(
    _ status: Int32, _ isSilent: Bool
  ) throws {
    try fake.write("/srv/alice/.ssh/authorized_keys", "\(KeyLineCase.key)\n")
    try fake.write(
      "/proc/self/mountinfo",
      "1 0 8:1 / / rw - ext4 /dev/x rw\n2 1 0:9 / /srv rw - nfs4 host:/srv rw\n")
    var asked: [[String]] = []
    let machine = Machine(root: fake.root) { words in
      asked.append(words)
      return .seen(CommandOutput(status: status))
    }
    let keyring = SSHKeyring(machine)
    let found = (1...2).map { _ in
      keyring.key(of: account(), SSHSettings(Self.usual), from: .here(port: "22"))
    }
    let path = "/srv/alice/.ssh/authorized_keys"
    let silent = SSHKeyAnswer.unseen(.unread("\(path): its file system does not answer"))
    #expect(found == (isSilent ? [silent, silent] : [.yes, .yes]))
    #expect(asked == [["timeout", "-s", "KILL", "2", "stat", "-f", "--", "/srv/alice/.ssh"]])
  }

  @Test(arguments: [0o777, 0o775, 0o755, 0o700]) func `is not taken where others may replace it`(
    _ mode: Int
  ) throws {
    try fake.write("/srv/alice/.ssh/authorized_keys", "\(KeyLineCase.key)\n")
    try FileManager.default.setAttributes(
      [.posixPermissions: mode], ofItemAtPath: "\(fake.root)/srv/alice/.ssh")
    let isSafe = mode & 0o022 == 0
    #expect(key(["strictmodes yes"], uid: geteuid()) == (isSafe ? .yes : .no))
    #expect(key(["strictmodes no"], uid: geteuid()) == .yes)
  }

  @Test(arguments: [0o755, 0o775])
  func `counts in a directory behind a link by who can write that one`(mode: Int) throws {
    try fake.write("/srv/alice/.profile", "")
    try fake.write("/srv/keys/alice/authorized_keys", "\(KeyLineCase.key)\n")
    try FileManager.default.createSymbolicLink(
      atPath: "\(fake.root)/srv/alice/.ssh", withDestinationPath: "../keys/alice")
    let isSafe = mode & 0o022 == 0
    try fake.change("/srv/keys", mode: mode)
    // sshd does not come to the home.
    try fake.change("/srv/alice", mode: isSafe ? 0o775 : 0o755)
    #expect(key(["strictmodes yes"], uid: geteuid()) == (isSafe ? .yes : .no))
  }

  @Test(arguments: KeyCase.all) func `is where sshd looks for it`(item: KeyCase) throws {
    for (path, text) in item.files { try fake.write(path, text) }
    let keyword =
      item.settings.first?.hasPrefix("trusted") == true
      ? "TrustedUserCAKeys" : "AuthorizedKeysCommand"
    let expected: SSHKeyAnswer =
      item.unseen == nil
      ? item.hasKey ? .yes : .no : .unseen(.elsewhere(keyword: keyword))
    #expect(key(item.settings) == expected)
  }

  @Test func `is not known where its file cannot be read, or in time`() throws {
    try fake.write("/srv/alice/.ssh/authorized_keys/directory", "")
    let path = "/srv/alice/.ssh/authorized_keys"
    #expect(key([]) == .unseen(.unread("\(path): Invalid argument (EINVAL)")))
    #expect(key([], seconds: 0) == .unseen(.slow(path)))
    try fake.write("/srv/alice/.ssh/authorized_keys2", KeyCase.key)
    #expect(key([]) == .yes)
  }

  @Test func `is asked about by what holds for the account and the connection`() throws {
    try fake.write("/etc/ssh/sshd_config", "Match User alice\n  AuthorizedKeysFile /keys/%u\n")
    try fake.write("/keys/alice", KeyCase.key)
    let machine = Machine(root: fake.root) { words in
      let isAlice = words.last?.hasSuffix("user=alice") == true
      return .seen(
        CommandOutput(output: (isAlice ? "authorizedkeysfile /keys/%u\n" : "") + Self.usual))
    }
    let bob = AccountFacts.Account(name: "bob", uid: 1002, group: 1, shell: "/bin/sh")
    let facts = AccountFacts(accounts: [account(), bob])
    let access = SSHAccess(of: machine, facts)
    let answers = facts.accounts.map { access.key(of: $0, from: access.connections[0]) }
    #expect(answers == [.yes, .no])
  }
}
