import Foundation
import Testing

@testable import SallyportCLI

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
}
