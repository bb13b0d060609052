import Foundation
import PAMStack
import SallyportCore
import SallyportSupport
import SallyportSystem
import Testing

@testable import SallyportDoctor

/// A machine with Debian's usual stacks, and the table of who gets in.
@Suite struct `Who gets in` {
  private let fake = FakeMachine()
  private let asks =
    "auth required pam_unix.so\nauth required pam_sallyport.so\naccount required pam_unix.so\n"
    + "session required pam_permit.so\n"
  private let open =
    "auth required pam_unix.so\naccount required pam_unix.so\nsession required pam_permit.so\n"

  init() throws {
    try fake.write("/etc/debian_version", "12\n")
    try fake.write("/etc/pam.d/other", "auth required pam_deny.so\n")
    for service in ["sudo", "sudo-i", "su", "su-l", "login"] {
      try fake.write("/etc/pam.d/\(service)", asks)
    }
    try fake.write("/bin/sh", "")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: "\(fake.root)/bin/sh")
    try accounts(["root:x:0:0", "alice:x:1000:1000", "ansible:x:1001:1001", "git:x:999:999"])
    try fake.write("/etc/sudoers", "alice ALL=(ALL) ALL\nansible ALL=(ALL) NOPASSWD: ALL\n")
  }

  private func accounts(_ rows: [String], passwords: [String: String] = [:]) throws {
    let lines = rows.map { "\($0)::/home/\($0.prefix { $0 != ":" }):/bin/sh\n" }
    try fake.write("/etc/passwd", lines.joined())
    let names = rows.map { String($0.prefix { $0 != ":" }) }
    let shadow = names.map { "\($0):\(passwords[$0] ?? "$6$x$y"):19000:0:99999:7:::\n" }
    try fake.write("/etc/shadow", shadow.joined())
    try fake.write("/etc/group", rows.map { "\($0):\n" }.joined().replacing("::", with: ":"))
  }

  /// `enrolled`: whom the files of this machine have a phone of.
  private func table(_ enrolled: String...) -> AccessTable {
    table(enrolled, of: fake.machine)
  }

  private func table(_ enrolled: [String], of machine: Machine) -> AccessTable {
    let store = Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser)
    var facts = AccessFacts(of: machine, store, at: Healthy.now)
    facts.isStoreBroken = false
    for name in enrolled { facts.enrollments[name] = .enrolled([.totp]) }
    return AccessTable(facts)
  }

  private func verdicts(_ table: AccessTable, _ user: String, _ way: String) -> [Verdict] {
    table.rows.filter { $0.user == user }.flatMap(\.cells).filter { $0.way.name == way }
      .map(\.verdict)
  }

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
    #expect(table.severity(of: cell, in: row) == .error)
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

  // MARK: on purpose

  /// What doctor ends with, beside a machine that is healthy otherwise.
  private func status(_ words: String, _ sudoers: String = "") throws -> (Diagnosis, AccessTable) {
    try accounts(
      ["root:x:0:0", "alice:x:1000:1000", "ansible:x:1001:1001", "bob:x:1002:1002"],
      passwords: ["ansible": "*", "bob": "*"])
    try fake.write(
      "/etc/sudoers",
      "alice ALL=(ALL) ALL\nansible ALL=(ALL) NOPASSWD: ALL\n\(sudoers)")
    try fake.write("/etc/security/sallyport.conf", "[default]\nwithout_code = \(words)\n")
    let table = table("alice", "root")
    var diagnosis = Healthy.diagnosis {
      $0.services.append(ServiceFacts(name: "sudo", lines: Healthy.lines()))
      $0.sudoers = Sudoers(of: fake.machine)
    }
    diagnosis.settle(by: table)
    return (diagnosis, table)
  }

  @Test func `a robot that is meant to need no code is no fault, one account more is`() throws {
    let (meant, table) = try status("ansible:sudo")
    #expect(meant.wrong == [] && meant.letIn == [] && meant.status == 0)
    #expect(table.severity == .ok)
    let line = FileLocation(file: "/etc/security/sallyport.conf", line: 2)
    let groups = table.groups.filter { $0.users == ["ansible"] }
    #expect(groups.allSatisfy { $0.purpose == line && $0.severity == .ok })
    #expect(groups.flatMap(\.ways) == Self.sudos)
    let (more, other) = try status("ansible:sudo", "bob ALL=(ALL) NOPASSWD: ALL\n")
    #expect(more.wrong == ["sudo-nopasswd error"] && more.letIn == ["bob through sudo"])
    #expect(other.severity == .error)
    let wrong = other.groups.filter { $0.severity == .error }
    #expect(wrong.allSatisfy { $0.users == ["bob"] && $0.purpose == nil })
    #expect(wrong.flatMap(\.ways) == Self.sudos)
  }

  @Test(
    arguments: [
      ("ansible:sudo-i", ["sudo -i"]), ("ansible:sudo, ansible:sudo-i", sudos),
      ("ansible:su", []), ("alice:sudo, ansible:sudo", sudos), ("ansible", []),
    ] as [(String, [String])])
  func `the first service of a program stands for all of them`(_ words: String, _ ways: [String])
    throws
  {
    let (_, table) = try status(words)
    let cells = table.rows.flatMap(\.cells).filter { $0.purpose != nil }
    #expect(cells.map(\.way.name) == ways)
    #expect(table.severity == (ways == Self.sudos ? .ok : .error))
  }

  private static let sudos = ["sudo", "sudo -i", "sudo -u"]

  @Test(
    arguments: [
      ("ansible:sudo", nil), ("alice:sudo", "the account does not get in there without a code"),
      ("ansible:su", "the account does not get in there without a code"),
      ("nemo:sudo", "there is no such account, or it has no way in"),
      ("ansible:suod", "the account has no such way in"),
    ] as [(String, String?)])
  func `a word that means nothing here is told of, with its line`(_ word: String, _ reason: String?)
    throws
  {
    let (diagnosis, _) = try status(word == "ansible:sudo" ? word : "ansible:sudo, \(word)")
    let found = diagnosis.findings.filter { $0.id == "purpose-idle" }
    #expect(
      found.map(\.text) == reason.map { ["without_code: \(word) has no effect: \($0)"] } ?? [])
    #expect(diagnosis.wrong == (reason == nil ? [] : ["purpose-idle warning"]))
    #expect(
      found.allSatisfy {
        $0.location == FileLocation(file: "/etc/security/sallyport.conf", line: 2)
      })
  }

  @Test func `the file that the service's line names says what is meant there`() throws {
    let sudo = "auth required pam_unix.so\nauth required pam_sallyport.so conf=/etc/own\n"
    for service in ["sudo", "sudo-i"] {
      try fake.write(
        "/etc/pam.d/\(service)",
        sudo + "account required pam_unix.so\nsession required pam_permit.so\n")
    }
    try fake.write("/etc/own", "")
    let (before, table) = try status("ansible:sudo")
    #expect(table.severity == .error && before.status == 2)
    #expect(
      before.findings.first { $0.id == "purpose-idle" }?.text.hasSuffix("another policy file")
        == true)
    try fake.write("/etc/own", "[default]\nwithout_code = ansible:sudo\n")
    #expect(try status("ansible:sudo").1.severity == .ok)
  }

  @Test func `what another host's sudoers has, or nobody can see, stays as it is`() throws {
    try fake.write("/proc/sys/kernel/hostname", "web1\n")
    let host = try status("ansible:sudo", "bob otherhost=(ALL) NOPASSWD: ALL\n").0
    #expect(host.wrong == ["sudo-nopasswd warning"])
    try fake.write("/etc/nsswitch.conf", "passwd: files sss\ngroup: files\n")
    let (directory, table) = try status("ansible:sudo, nemo:sudo")
    #expect(directory.wrong == ["sudo-nopasswd error"] && table.severity == .unseen)
  }

  // MARK: the fleet

  /// `policy`: beside that the fleet verifies codes.
  private func table(_ roster: FleetRoster?, _ policy: String = "") throws -> AccessTable {
    try fake.write("/etc/security/sallyport-fleet.conf", "")
    try fake.write(
      "/etc/security/sallyport.conf", "[default]\nverification = fleet\n\(policy)")
    let store = Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser)
    var facts = AccessFacts(of: fake.machine, store, at: Healthy.now)
    facts.isStoreBroken = false
    if let roster { facts.ask { _ in roster } }
    return AccessTable(facts)
  }

  private func alice(_ place: FleetRoster.Person.Place, _ level: UserNote.Level? = nil) throws
    -> FleetRoster
  {
    .told([FleetRoster.Person(try #require(UserName("alice".utf8)), place, level)])
  }

  private static var factors: Factors {
    var factors = Factors()
    factors.insert(.totp)
    return factors
  }

  @Test func `a person of the fleet is asked for its codes`() throws {
    let enrolled = try table(alice(.enrolled(Self.factors)), "enrollment = voluntary\n")
    #expect(verdicts(enrolled, "alice", "su") == [.asked(.codeOfFleet)])
    #expect(verdicts(enrolled, "git", "su") == [.withoutCode(.voluntary)])
    #expect(enrolled.rows.first { $0.user == "alice" }?.isEnrolled == true)
    let out = try table(alice(.notEnrolled), "enrollment = refuse\n")
    #expect(verdicts(out, "alice", "su") == [.refused(.notEnrolled)])
    let exempt = try table(alice(.notEnrolled, .exempt), "enrollment = refuse\n")
    #expect(verdicts(exempt, "alice", "su") == [.withoutCode(.exempt)])
    #expect(
      verdicts(try table(alice(.unreadable)), "alice", "su") == [.refused(.brokenEnrollment)])
    #expect(verdicts(try table(alice(.taken(by: "web2"))), "alice", "su").first?.name == "refused")
  }

  @Test(
    arguments: [
      (.silent("away"), .fleetSilent), (.keeps, .fleetKeeps), (nil, .fleetSilent),
    ] as [(FleetRoster?, AccessGap)])
  func `what the fleet does not say is not known, where it makes a difference`(
    _ roster: FleetRoster?, _ gap: AccessGap
  ) throws {
    for level in ["voluntary", "offer", "required", "refuse"] {
      let table = try table(roster, "enrollment = \(level)\n")
      #expect(verdicts(table, "alice", "su") == [.unseen(gap)], "\(level)")
      #expect(verdicts(table, "ansible", "sudo") == [.withoutCode(.noPasswd)])
      #expect(table.severity == .error)
    }
    let off = try table(roster, "state = disabled\n")
    #expect(verdicts(off, "alice", "su") == [.withoutCode(.disabled)])
    try accounts(["root:x:0:0", "alice:x:1000:1000"], passwords: ["alice": "*"])
    #expect(verdicts(try table(roster), "alice", "su") == [.refused(.noPassword)])
  }

  @Test func `the fleet is asked once, and only where a policy names it`() throws {
    let store = Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser)
    var asked: [[String]] = []
    func ask() {
      var facts = AccessFacts(of: fake.machine, store, at: Healthy.now)
      facts.ask { names in
        asked.append(names.map(\.text))
        return .told([])
      }
      _ = AccessTable(facts)
    }
    ask()
    try fake.write("/etc/security/sallyport.conf", "[default]\nverification = local\n")
    ask()
    #expect(asked == [])
    try fake.write(
      "/etc/security/sallyport.conf", "[rule a]\nmatch_user = alice\nverification = fleet\n")
    ask()
    #expect(asked == [["root", "alice", "ansible", "git"]])
  }
}
