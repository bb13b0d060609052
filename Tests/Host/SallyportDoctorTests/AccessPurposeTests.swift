import Foundation
import PAMStack
import SallyportCore
import SallyportSupport
import SallyportSystem
import Testing

@testable import SallyportDoctor

@Suite struct `Who gets in without a code on purpose`: AccessTrial {
  let fake = FakeMachine()

  init() throws { try prepare() }

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
      ("ansible:su", "the account is refused there"),
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
}
