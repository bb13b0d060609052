import Foundation
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

/// alice and bob have passwords and may use sudo; alice is enrolled.
@Suite struct `What changes for whom` {
  private let machine: PamBench

  init() throws {
    machine = try PamBench(enrolled: false)
    try machine.people("alice", "bob")
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) ALL\n")
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/security", withIntermediateDirectories: true)
    _ = try machine.bench.enroll("alice")
  }

  private func told(_ text: String) -> String {
    text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  // decisive
  @Test func `is shown by pam enable and pam disable, before the question`() throws {
    let on = told(machine.run("enable", "sudo", "--dry-run").answer)
    #expect(
      on.contains(
        "What changes: asked for a code alice at sudo, sudo -u before: without a code"),
      "\(on)")
    #expect(on.contains("refused bob at sudo, sudo -u not enrolled"), "\(on)")
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    let off = told(machine.run("disable", "sudo", "--dry-run").answer)
    #expect(off.contains("What changes: without a code alice at sudo"), "\(off)")
    #expect(off.contains("without a code bob at sudo"), "\(off)")
  }

  private func shell() throws {
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/bin", withIntermediateDirectories: true)
    try machine.write("/bin/sh", "")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: "\(machine.root)/bin/sh")
  }

  // decisive
  @Test func `is shown of sshd, whose settings pam disable takes back`() throws {
    let sshd = try FakeSSHD(machine)
    try shell()
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    let off = told(machine.run("disable", "sshd", "--dry-run").answer)
    #expect(
      off.contains(
        "What changes: without a code alice at sshd a key alone; before: asked for a code"),
      "\(off)")
    #expect(sshd.dropIn != nil)
    let left = try FileManager.default.contentsOfDirectory(atPath: "\(machine.root)/run")
    #expect(left.sorted() == ["sallyport-pam.lock", "systemd"], "\(left)")
  }

  // decisive
  @Test func `is shown of the places that a new rule is about`() throws {
    let sshd = try FakeSSHD(machine)
    try shell()
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    try machine.write("/new.conf", "[rule a]\nmatch_origin = 10.1.0.0/16\nstate = disabled\n")
    let on = told(machine.install("/new.conf", answers: "n").answer)
    #expect(on.contains("without a code alice at sshd from 10.1.0.0/16 state = disabled"), "\(on)")
    withExtendedLifetime(sshd) {}
  }

  // decisive
  @Test func `is shown where the service has no line but ours, and none afterwards`() throws {
    try shell()
    try machine.write("/etc/pam.d/gdm-password", "@include common-auth\n@include common-account\n")
    let on = told(machine.run("enable", "gdm-password", "--dry-run").answer)
    #expect(
      on.contains(
        "asked for a code alice at gdm-password before: without a code, the service has no line"),
      "\(on)")
    #expect(machine.run("enable", "gdm-password", "--yes").status == 0)
    let off = told(machine.run("disable", "gdm-password", "--dry-run").answer)
    #expect(off.contains("What changes: without a code alice at gdm-password"), "\(off)")
    #expect(off.contains("without a code bob at gdm-password"), "\(off)")
  }

  // decisive
  @Test func `is shown by config install, which then asks whether to loosen anything`() throws {
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    try machine.write("/new.conf", "[rule a]\nmatch_user = alice\nstate = disabled\n")
    let no = machine.install("/new.conf", answers: "n")
    #expect(
      told(no.answer).contains(
        "What changes: without a code alice at sudo, sudo -u state = disabled"), "\(no.answer)")
    #expect(no.status != 0 && no.aside.contains("nothing was changed"), "\(no.aside)")
    let done = machine.install("/new.conf", answers: "y")
    #expect(done.status == 0 && done.answer.contains("Installed as"), "\(done.aside)")
    let again = machine.install("/new.conf")
    #expect(!again.answer.contains("What changes"), "\(again.answer)")
  }

  // decisive
  @Test func `is shown by config edit, which keeps the changes of who says no`() throws {
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    let loose = "[rule a]\nmatch_user = alice\nstate = disabled\n"
    let dropped = machine.edit([loose, loose], answers: "n", "e", "n", "d")
    #expect(dropped.status != 0 && dropped.aside.contains("nothing was changed"))
    #expect(dropped.terminal.prompts.last == "Edit again, or drop the changes? [e/d]: ")
    #expect(machine.read("/etc/security/sallyport.conf") == nil)
    #expect(machine.edit([loose], answers: "n", "d").status != 0)
    #expect(machine.edit([loose, loose], answers: "n", "e", "y").status == 0)
    #expect(machine.read("/etc/security/sallyport.conf") == loose)
  }

  // decisive
  @Test func `is told with --yes of who is shut out, and of nobody else`() throws {
    let on = machine.run("enable", "sudo", "--yes")
    #expect(on.status == 0 && !on.answer.contains("What changes"), "\(on.answer)")
    let warnings = on.aside.split(separator: "\n")
    #expect(
      warnings == [
        "sallyport: warning: bob no longer gets in at sudo, sudo -u: not enrolled"
      ], "\(on.aside)")
    try machine.write("/new.conf", "[default]\nfactor_totp = off\nfactor_backup_code = off\n")
    let new = machine.install("/new.conf", "--yes")
    #expect(new.status == 0 && !new.answer.contains("What changes"), "\(new.answer)")
    #expect(
      new.aside.contains("warning: alice no longer gets in at sudo, sudo -u: "), "\(new.aside)")
    #expect(machine.install("/new.conf", "--yes").aside.isEmpty)
  }

  // decisive
  @Test func `is not looked for by pam disable where nobody is asked`() throws {
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    var runs: [[String]] = []
    machine.programs = {
      runs.append($0)
      return .absent
    }
    let off = machine.run("disable", "sudo", "--yes")
    #expect(off.status == 0 && !off.answer.contains("What changes"), "\(off.answer)")
    #expect(!runs.contains { $0.first == "sshd" }, "\(runs)")
  }

  /// cvtsudoers may take ten seconds.
  @Test func `reads sudoers once for all services`() throws {
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\n")
    var runs: [[String]] = []
    machine.programs = {
      runs.append($0)
      return .absent
    }
    #expect(machine.run("enable", "sudo", "su", "--yes").status == 0)
    #expect(runs.count { $0.first == "cvtsudoers" } == 1, "\(runs)")
  }
}
