import Foundation
import OneTimePassword
import PAMStack
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportDoctor

/// Accounts are treated alike only where nothing tells them apart.
@Suite struct `Classes of accounts in the table of who gets in` {
  private let fake = FakeMachine()
  private let asks =
    "auth required pam_unix.so\nauth required pam_sallyport.so\naccount required pam_unix.so\n"
    + "session required pam_permit.so\n"
  private let names = ["root", "alice", "bob", "carol", "dora"]

  init() throws {
    try fake.write("/etc/debian_version", "12\n")
    try fake.write("/etc/pam.d/other", "auth required pam_deny.so\n")
    for service in ["sudo", "sudo-i", "su", "su-l", "login"] {
      try fake.write("/etc/pam.d/\(service)", asks)
    }
    let rows = names.enumerated().map { index, name in
      let number = index == 0 ? 0 : 1000 + index
      return "\(name):x:\(number):\(number)::/home/\(name):/bin/sh\n"
    }
    try fake.write("/etc/passwd", rows.joined())
    let shadow = names.map { "\($0):$6$x$y:19000:0:99999:7:::\n" }
    try fake.write("/etc/shadow", shadow.joined())
    try fake.write("/etc/group", "root:x:0:\nstaff:x:50:carol\nlist:x:51:dora\n")
    try fake.write("/etc/sudoers", "ALL ALL=(ALL) ALL\n")
    try fake.write("/bin/sh", "")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: "\(fake.root)/bin/sh")
  }

  /// By name; everybody is enrolled.
  private func verdicts(_ way: String) -> [String: Verdict] {
    let store = Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser)
    var facts = AccessFacts(of: fake.machine, store, at: Healthy.now)
    facts.isStoreBroken = false
    for name in names { facts.enrollments[name] = .enrolled([.totp]) }
    let rows = AccessTable(facts).rows.map { row in
      (row.user, row.cells.first { $0.way.name == way }?.verdict ?? .unseen(.tooMany))
    }
    return Dictionary(rows) { first, _ in first }
  }

  @Test(arguments: ["lt", "<"])
  func `A condition on uids tells accounts apart, and those on one side are alike`(sign: String)
    throws
  {
    try fake.write("/etc/pam.d/su", "auth sufficient pam_succeed_if.so uid \(sign) 1002\n" + asks)
    #expect(
      verdicts("su") == [
        "root": .withoutCode(.skipped), "alice": .withoutCode(.skipped), "bob": .asked(.code),
        "carol": .asked(.code), "dora": .asked(.code),
      ])
  }

  @Test(arguments: [
    ("pam_succeed_if.so user in alice:bob", ["alice", "bob"]),
    ("pam_succeed_if.so user = carol", ["carol"]),
    ("pam_succeed_if.so user ingroup staff:gone", ["carol"]),
    ("pam_succeed_if.so user notingroup staff:gone", ["root", "alice", "bob", "dora"]),
    ("pam_usertype.so issystem", ["root", "alice", "bob"]),
  ])
  func `Conditions on names, groups and kinds of users tell accounts apart`(
    condition: String, around: [String]
  ) throws {
    try fake.write("/etc/login.defs", "UID_MIN 1003\nSYS_UID_MIN 1001\n")
    try fake.write("/etc/pam.d/su", "auth sufficient \(condition)\n" + asks)
    let found = verdicts("su")
    #expect(Set(found.filter { $0.value == .withoutCode(.skipped) }.keys) == Set(around))
    #expect(found.count { $0.value == .asked(.code) } == names.count - around.count)
  }

  @Test func `A least uid of Kerberos tells accounts apart`() throws {
    try fake.write(
      "/etc/pam.d/su",
      asks.replacing("auth required pam_unix", with: "auth required pam_krb5")
        .replacing("krb5.so", with: "krb5.so minimum_uid=1003"))
    let found = verdicts("su")
    #expect(found["bob"] == .refused(.stackShut) && found["dora"] == .unseen(.moduleDecides))
  }

  @Test func `A stack that only sudoers names tells accounts apart too`() throws {
    try fake.write("/etc/sudoers", "Defaults pam_service=corp\nALL ALL=(ALL) ALL\n")
    try fake.write(
      "/etc/pam.d/corp", "auth sufficient pam_succeed_if.so user ingroup staff:list\n" + asks)
    let found = verdicts("sudo")
    #expect(found["alice"] == .asked(.code) && found["bob"] == .asked(.code))
    #expect(found["carol"] == .withoutCode(.skipped) && found["dora"] == .withoutCode(.skipped))
  }

  @Test func `A rule of sudoers and an option for one account tell it apart`() throws {
    try fake.write(
      "/etc/sudoers",
      "Defaults:bob !authenticate\n%staff ALL=(ALL) NOPASSWD: ALL\nalice ALL=(dora) ALL\n"
        + "bob ALL=(ALL) ALL\n")
    let found = verdicts("sudo")
    #expect(found["alice"] == .refused(.noRule) && found["dora"] == .refused(.noRule))
    #expect(found["bob"] == .withoutCode(.notAuthenticated))
    #expect(found["carol"] == .withoutCode(.noPasswd))
    #expect(verdicts("sudo -u")["alice"] == .asked(.code))
    #expect(verdicts("sudo -u")["dora"] == .refused(.noRule))
  }

  @Test func `A rule of the policy for some of them tells them apart`() throws {
    try fake.write(
      "/etc/security/sallyport.conf",
      "[rule a]\nmatch_user = alice\nstate = disabled\n[rule b]\nmatch_group = list\n"
        + "state = disabled\n")
    let found = verdicts("login")
    #expect(found["alice"] == .withoutCode(.disabled) && found["dora"] == .withoutCode(.disabled))
    #expect(found["bob"] == .asked(.code) && found["carol"] == .asked(.code))
  }

  @Test func `Rules of a damaged policy file tell accounts apart as in a login`() throws {
    let text = "[rule a]\nmatch_user = alice\n!\n[rule b]\nmatch_user = bob\n"
    var terms = PolicyTerms()
    terms.take(PolicyText("/p", try #require(Secret(Array(text.utf8)))))
    let truths = try ["alice", "bob", "carol", "dora"].map { name in
      terms.truths(of: Account(name: try #require(UserName(Array(name.utf8))), uid: 1000)) { _ in
        .no
      }
    }
    #expect(Set(truths).count == 3 && truths[2] == truths[3])
  }
}
