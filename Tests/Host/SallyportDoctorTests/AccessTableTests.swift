import Foundation
import PAMStack
import SallyportCore
import SallyportSupport
import SallyportSystem
import Testing

@testable import SallyportDoctor

@Suite struct `Who gets in`: AccessTrial {
  let fake = FakeMachine()

  init() throws { try prepare() }

  @Test func `a robot with NOPASSWD is in by sudo without a code, and not locked out`() {
    let table = table("alice", "root")
    #expect(verdicts(table, "ansible", "sudo") == [.withoutCode(.noPasswd)])
    #expect(verdicts(table, "ansible", "sudo -i") == [.withoutCode(.noPasswd)])
    #expect(verdicts(table, "alice", "sudo") == [.asked(.code)])
    #expect(
      !table.groups.contains { group in
        guard case .refused = group.verdict else { return false }
        return group.users.contains("ansible") && group.ways.contains("sudo")
      })
    #expect(table.severity == .error)
  }

  @Test func `su is a way where the vendor has its file, and where only other has one`() throws {
    let text = ["auth", "account", "session"].map { "\($0) required pam_unix.so\n" }.joined()
    for name in ["su", "login"] {
      try FileManager.default.removeItem(atPath: "\(fake.root)/etc/pam.d/\(name)")
    }
    try fake.write("/usr/lib/pam.d/su", text)
    try fake.write("/usr/bin/login", "")
    try fake.write("/etc/pam.d/other", text)
    let table = table("alice")
    #expect(verdicts(table, "alice", "su") == [.withoutCode(.noLine)])
    #expect(verdicts(table, "alice", "login") == [.withoutCode(.otherFile)])
  }

  @Test func `a rule of sudoers that comes later asks all the same`() throws {
    try fake.write(
      "/etc/sudoers", "alice ALL=(ALL) NOPASSWD: ALL\nalice ALL=(ALL) PASSWD: ALL\n")
    #expect(verdicts(table("alice"), "alice", "sudo") == [.asked(.code)])
  }

  @Test func `who is enrolled and not asked by a rule is told of, with the line`() throws {
    try fake.write(
      "/etc/security/sallyport.conf", "[rule robots]\nmatch_user = alice\nstate = disabled\n")
    let table = table("alice")
    #expect(verdicts(table, "alice", "sudo") == [.withoutCode(.disabled)])
    let group = table.groups.first { $0.verdict == .withoutCode(.disabled) }
    #expect(group?.users == ["alice"] && group?.severity == .warning)
    #expect(group?.location == FileLocation(file: "/etc/security/sallyport.conf", line: 3))
  }

  @Test func `a rule that asks nothing runs the account phase of the service that sudo names`()
    throws
  {
    try fake.write(
      "/etc/pam.d/shut",
      asks.replacing("account required pam_unix", with: "account required pam_deny"))
    let rules = "ansible ALL=(ALL) NOPASSWD: ALL\n"
    try fake.write("/etc/sudoers", "Defaults pam_login_service = shut\n" + rules)
    #expect(verdicts(table(), "ansible", "sudo -i") == [.refused(.stackShut)])
    #expect(verdicts(table(), "ansible", "sudo") == [.withoutCode(.noPasswd)])
    try fake.write("/etc/sudoers", "Defaults:ansible pam_service = shut\n" + rules)
    #expect(verdicts(table(), "ansible", "sudo -i") == [.withoutCode(.noPasswd)])
    #expect(verdicts(table(), "ansible", "sudo") == [.refused(.stackShut)])
  }

  @Test func `who does not know the password that has to be changed stays out at login`() throws {
    try fake.write(
      "/etc/pam.d/login",
      asks.replacing("required pam_unix.so\nauth", with: "sufficient pam_unix.so\nauth"))
    let shadow = "root:*:19000:0:99999:7:::\nalice:!$6$x$y:0:0:99999:7:::\n"
    try fake.write("/etc/shadow", shadow)
    #expect(verdicts(table("alice"), "alice", "login") == [.refused(.noPassword)])
    try fake.write("/etc/shadow", shadow.replacing(":0:0:", with: ":19000:0:"))
    #expect(verdicts(table("alice"), "alice", "login") == [.asked(.code)])
    try fake.write("/etc/pam.d/login", asks)
    try fake.write("/etc/shadow", shadow.replacing("!", with: ""))
    #expect(verdicts(table("alice"), "alice", "login") == [.asked(.code)])
  }

  @Test func `rootpw and targetpw ask for the code of root or of the target`() throws {
    try fake.write("/etc/sudoers", "Defaults rootpw\nalice ALL=(ALL) ALL\n")
    #expect(verdicts(table("root"), "alice", "sudo") == [.asked(.codeOfAnother)])
    #expect(verdicts(table("alice"), "alice", "sudo") == [.refused(.notEnrolled)])
    try fake.write("/etc/sudoers", "Defaults targetpw\nalice ALL=(git) ALL\n")
    #expect(verdicts(table("git"), "alice", "sudo -u") == [.asked(.codeOfAnother)])
    #expect(verdicts(table("root", "alice"), "alice", "sudo -u") == [.refused(.notEnrolled)])
  }

  @Test func `of those that somebody may become, the loosest is told`() throws {
    try fake.write(
      "/etc/sudoers", "alice ALL=(ansible) PASSWD: ALL\nalice ALL=(git) NOPASSWD: ALL\n")
    #expect(verdicts(table("alice"), "alice", "sudo -u") == [.withoutCode(.noPasswd)])
  }

  // MARK: sshd

  /// The cells of alice over ssh, by where she comes from. `there`: settings for 192.0.2.1.
  private func overSSH(there: String = "") throws -> [String: [Cell]] {
    try fake.write("/etc/pam.d/sshd", asks)
    let machine = Machine(root: fake.root) { words in
      let isThere = words.last?.contains("addr=192.0.2.1,") == true
      let usual = Healthy.sshText.replacing("publickey,keyboard-interactive", with: "any")
      return .seen(CommandOutput(output: (isThere ? there : "") + usual))
    }
    let row = try #require(table(["alice"], of: machine).rows.first { $0.user == "alice" })
    return Dictionary(grouping: row.cells.filter { $0.way.kind == .ssh }) { $0.way.origin ?? "" }
  }

  @Test func `an address from which fewer lists of methods are left has cells of its own`() throws {
    try fake.write(
      "/etc/ssh/sshd_config", "Match Address 192.0.2.0/24\n  PubkeyAuthentication no\n")
    let cells = try overSSH(there: "pubkeyauthentication no\n")
    #expect(cells[""]?.map(\.methods) == [["publickey"], ["keyboard-interactive"]])
    #expect(cells["address 192.0.2.0/24"]?.map(\.methods) == [["keyboard-interactive"]])
    #expect(cells.count == 2)
  }

  @Test func `an address that the policy names has cells of its own`() throws {
    try fake.write("/etc/ssh/sshd_config", "")
    try fake.write(
      "/etc/security/sallyport.conf",
      "[rule there]\nmatch_origin = network, 192.0.2.0/24\nstate = disabled\n")
    let cells = try overSSH()
    #expect(cells.count == 1)
    try fake.write(
      "/etc/security/sallyport.conf",
      "[rule there]\nmatch_origin = local, 192.0.2.0/24\nstate = disabled\n")
    let others = try overSSH()
    #expect(Set(others.keys) == ["", "from 192.0.2.0/24"])
    #expect(others["from 192.0.2.0/24"]?.last?.verdict == .withoutCode(.disabled))
    #expect(others[""]?.last?.verdict == .asked(.code))
  }

  @Test func `a misspelt module keeps everybody out, and lets nobody in`() throws {
    try fake.write("/etc/pam.d/sudo", asks.replacing("pam_sallyport", with: "pam_salyport"))
    try fake.write("/lib/x86_64-linux-gnu/security/pam_unix.so", "")
    for name in ["pam_sallyport", "pam_permit", "pam_deny"] {
      try fake.write("/lib/x86_64-linux-gnu/security/\(name).so", "")
    }
    #expect(verdicts(table("alice"), "alice", "sudo") == [.refused(.moduleMissing)])
  }

  @Test func `one way to root that asks nobody is an error where another asks`() throws {
    try fake.write("/etc/pam.d/sudo-i", open)
    let table = table("alice")
    let row = try #require(table.rows.first { $0.user == "alice" })
    let cell = try #require(row.cells.first { $0.way.name == "sudo -i" })
    #expect(cell.verdict == .withoutCode(.noLine))
    #expect(cell.severity == .error)
    #expect(table.narrowed(to: ["sudo-i"], nil).severity == .error)
  }

  @Test func `a service that gives no shell needs none`() throws {
    try fake.write("/etc/pam.d/dovecot", asks)
    try fake.write("/usr/sbin/nologin", "")
    try fake.write(
      "/etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/:/usr/sbin/nologin\n")
    #expect(verdicts(table("alice"), "alice", "dovecot") == [.asked(.code)])
    #expect(verdicts(table("alice"), "alice", "su") == [.refused(.noShell)])
    try fake.write("/etc/pam.d/dovecot", "account required pam_sallyport.so\n" + open)
    #expect(verdicts(table("alice"), "alice", "dovecot") == [.withoutCode(.noLine)])
  }

  @Test func `a service is told of from where the policy lets in the most`() throws {
    try fake.write("/etc/pam.d/vsftpd", asks)
    try fake.write("/etc/ssh/sshd_config", "")
    let rule = "[rule there]\nmatch_origin = 192.0.2.0/24\nstate = disabled\n"
    try fake.write("/etc/security/sallyport.conf", rule)
    let machine = Machine(root: fake.root) { _ in .seen(CommandOutput(output: Healthy.sshText)) }
    let row = try #require(table(["alice"], of: machine).rows.first { $0.user == "alice" })
    let cell = try #require(row.cells.first { $0.way.service == "vsftpd" })
    #expect(cell.verdict == .withoutCode(.disabled))
    #expect(cell.way.origin == "from 192.0.2.0/24")
    try fake.write("/etc/security/sallyport.conf", rule.replacing("192.0.2.0/24", with: "network"))
    #expect(verdicts(table("alice"), "alice", "vsftpd") == [.withoutCode(.disabled)])
  }

  @Test func `what hangs on an enrollment in another store is not known`() throws {
    let there = asks.replacing("pam_sallyport.so", with: "pam_sallyport.so store=/srv/store")
    try fake.write("/etc/pam.d/sudo", there)
    let cell = try #require(table("alice").rows.first { $0.user == "alice" }?.cells.first)
    #expect(cell.verdict == .unseen(.otherStore))
    #expect(cell.location == FileLocation(file: "/etc/pam.d/sudo", line: 2))
    #expect(cell.detail == "/srv/store")
    #expect(verdicts(table("alice"), "ansible", "sudo") == [.withoutCode(.noPasswd)])
  }

  @Test func `who may have a key by a command has a row, but with no shell`() throws {
    try accounts(
      ["root:x:0:0", "alice:x:1000:1000", "git:x:999:999", "mail:x:8:8"],
      passwords: ["git": "*", "mail": "*"])
    let passwd = try String(contentsOfFile: "\(fake.root)/etc/passwd", encoding: .utf8)
    try fake.write(
      "/etc/passwd", passwd.replacing("/home/mail:/bin/sh", with: "/home/mail:/bin/false"))
    try fake.write("/bin/false", "")
    try fake.write("/etc/pam.d/sshd", asks)
    let text = Healthy.sshText + "\nauthorizedkeyscommand /usr/bin/keys\n"
    let machine = Machine(root: fake.root) { _ in .seen(CommandOutput(output: text)) }
    #expect(table([], of: machine).rows.map(\.user) == ["root", "alice", "git"])
  }

  @Test func `a key that is taken from some hosts alone is told of with them`() throws {
    try fake.write("/etc/pam.d/sshd", asks)
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI x\n"
    try fake.write("/home/git/.ssh/authorized_keys", "from=\"10.0.0.5\" \(key)")
    let text =
      Healthy.sshText.replacing("publickey,keyboard-interactive", with: "publickey")
      + "\nauthorizedkeysfile .ssh/authorized_keys\n"
    let machine = Machine(root: fake.root) { _ in .seen(CommandOutput(output: text)) }
    let cells = table([], of: machine).rows.first { $0.user == "git" }?.cells ?? []
    let found = cells.filter { $0.way.kind == .ssh }
    #expect(found.map(\.verdict) == [.withoutCode(.keyAlone), .refused(.noKey)])
    #expect(found.map(\.way.origin) == [nil, "this machine"])
    #expect(found.first?.detail == "from=10.0.0.5")
    // Told of where it is true.
    try fake.write("/home/git/.ssh/authorized_keys", "from=\"127.0.0.1\" \(key)")
    let here = table([], of: machine).rows.first { $0.user == "git" }?.cells ?? []
    #expect(
      here.filter { $0.way.kind == .ssh }.map(\.verdict)
        == [.refused(.noKey), .withoutCode(.keyAlone)])
  }

  @Test func `whom polkit asks as an administrator without a password lets everybody in`() throws {
    for path in ["/usr/lib/polkit-1/polkitd", "/usr/bin/pkexec"] { try fake.write(path, "") }
    try fake.write(
      "/usr/share/polkit-1/actions/x.policy",
      "<action id=\"org.freedesktop.policykit.exec\"><allow_any>auth_admin</allow_any></action>")
    try fake.write(
      "/usr/share/polkit-1/rules.d/50-default.rules",
      "polkit.addAdminRule(function(action, subject) { return [\"unix-user:git\"]; });\n")
    try fake.write("/etc/pam.d/polkit-1", open.replacing("unix.so", with: "unix.so nullok"))
    #expect(verdicts(table("alice"), "alice", "pkexec") == [.refused(.noAdministrator)])
    try accounts(["root:x:0:0", "alice:x:1000:1000", "git:x:999:999"], passwords: ["git": ""])
    let cell = table("alice").rows.first { $0.user == "alice" }?.cells.first {
      $0.way.name == "pkexec"
    }
    #expect(cell?.verdict == .withoutCode(.noLine))
    #expect(cell?.detail == "git")
  }

  @Test func `ways that ask nobody are no fault where none asks`() throws {
    for service in ["sudo", "sudo-i", "su", "su-l", "login"] {
      try fake.write("/etc/pam.d/\(service)", open)
    }
    #expect(table("alice").severity == .ok)
  }

  @Test func `an account without a password, key or rule has no row`() throws {
    try accounts(["root:x:0:0", "alice:x:1000:1000", "daemon:x:1:1"], passwords: ["daemon": "*"])
    #expect(table("alice").rows.map(\.user) == ["root", "alice"])
  }

  @Test func `an empty password is one that others may use`() throws {
    try accounts(["root:x:0:0", "alice:x:1000:1000"], passwords: ["alice": ""])
    try fake.write(
      "/etc/pam.d/su",
      "auth required pam_unix.so nullok\naccount required pam_unix.so\n"
        + "session required pam_permit.so\n")
    #expect(verdicts(table(), "alice", "su") == [.withoutCode(.noLine)])
    #expect(verdicts(table("alice"), "alice", "login") == [.refused(.noPassword)])
  }

  @Test func `the columns can be those of some services, the rows one account`() {
    let narrow = table("alice", "ansible").narrowed(to: ["sudo"], "alice")
    #expect(narrow.rows.map(\.user) == ["alice"])
    #expect(Set(narrow.rows.flatMap(\.cells).map(\.way.service)) == ["sudo"])
  }

  /// One whose name begins with a dot: no file of a store can have it.
  // decisive
  @Test func `an account that cannot be enrolled is refused by our line alone`() throws {
    try accounts(["root:x:0:0", "alice:x:1000:1000", ".dot:x:1001:1001"])
    try fake.write("/etc/pam.d/su", open)
    try fake.write(
      "/etc/pam.d/su-l", asks.replacing("required pam_sallyport", with: "optional pam_sallyport"))
    for policy in ["voluntary", "required"] {
      try fake.write("/etc/security/sallyport.conf", "[default]\nenrollment = \(policy)\n")
      let table = table("alice")
      #expect(verdicts(table, ".dot", "login") == [.refused(.notEnrolled)])
      #expect(verdicts(table, ".dot", "su") == [.withoutCode(.noLine)])
      let optional = verdicts(table, ".dot", "su -")
      #expect(!optional.isEmpty && optional.allSatisfy { $0.mayLetIn })
    }
  }
}
