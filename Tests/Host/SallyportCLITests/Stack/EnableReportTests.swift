import Foundation
import Testing

@testable import SallyportCLI

@Suite struct `The report of pam enable` {
  @Test func `people are told what it means for them`() throws {
    let machine = try PamBench()
    try machine.people("alice", "bob")
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) ALL\n")
    let enabled = machine.run("enable", "sudo", "--dry-run")
    #expect(
      enabled.answer.contains(
        "What changes:\n  asked for a code   alice at sudo, sudo -u\n"), "\(enabled.answer)")
    #expect(
      enabled.answer.contains(
        "  refused            bob at sudo, sudo -u\n                       not enrolled; "),
      "\(enabled.answer)")
    #expect(!enabled.answer.contains("before: refused"), "\(enabled.answer)")
    let open = machine.run("enable", "sudo", "--dry-run", "--nullok").answer
    #expect(open.contains("  without a code     bob at sudo, sudo -u\n"), "\(open)")
  }

  @Test(arguments: ["pam_google_authenticator.so", "pam_oath.so"])
  func `people are told of an old module that goes on asking`(module: String) throws {
    let machine = try PamBench()
    let old = try #require(machine.read("/etc/pam.d/sudo"))
    try machine.write("/etc/pam.d/sudo", old + "auth required \(module)\n")
    let enabled = machine.run("enable", "sudo", "--dry-run")
    #expect(enabled.status == 0)
    #expect(enabled.answer.contains("asks for a code of its own; remove the line once"))
    #expect(!machine.run("enable", "su", "--dry-run").answer.contains("of its own"))
  }

  @Test func `status lists the services that ask, and those that do not`() throws {
    let machine = try PamBench()
    machine.run("enable", "su", "--yes")
    struct Answer: Decodable {
      struct Service: Decodable {
        struct Line: Decodable { let phase, file: String }
        let service, asks: String
        let lines: [Line]
      }
      let services: [Service]
      let others: [String]
    }
    let answer = try machine.run("status", "--json").json(Answer.self)
    #expect(answer.services.map(\.service) == ["su", "su-l"])
    #expect(answer.services.map(\.asks) == ["everybody", "everybody"])
    #expect(answer.services[1].lines.map(\.file).allSatisfy { $0 == "/etc/pam.d/su" })
    #expect(answer.others.contains("sshd"))
    let text = machine.run("status").answer
    #expect(text.contains("SERVICE   ASKS        PHASE     LINE\n"))
  }
}
