import Foundation
import Testing

@testable import SallyportCLI

@Suite struct `Several services` {
  private let machine: PamBench

  init() throws { machine = try PamBench() }

  /// No file of this name can be made in /etc/pam.d.
  private func block(_ name: String) throws {
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/pam.d/\(name)", withIntermediateDirectories: true)
  }

  @Test func `are turned on and off after one question`() throws {
    let before = try machine.content()
    let on = machine.run("enable", "sudo", "su", "sudo", answers: "y")
    #expect(on.status == 0 && on.terminal.prompts.count == 1, "\(on.aside)")
    #expect(on.answer.contains("/etc/pam.d/sudo\n") && on.answer.contains("/etc/pam.d/su\n"))
    #expect(on.answer.hasSuffix("Undo: sallyport pam disable sudo su\n"), "\(on.answer)")
    #expect(!machine.ours("sudo").isEmpty && !machine.ours("su").isEmpty)
    let again = machine.run("enable", "sudo", "su")
    #expect(again.status == 0 && again.answer.hasSuffix("Nothing was changed.\n"))
    let off = machine.run("disable", "sudo", "su", answers: "y")
    #expect(off.status == 0 && off.terminal.prompts.count == 1)
    #expect(off.answer.contains("sudo no longer asks for a code."))
    #expect(off.answer.contains("su no longer asks for a code."))
    #expect(try machine.content() == before)
  }

  @Test func `one that is on already is left as it is`() throws {
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    let done = machine.run("enable", "sudo", "su", "--yes", "--json")
    struct Answer: Decodable {
      struct Service: Decodable { let service: String, changed: Bool }
      let services: [Service]
    }
    let services = try done.json(Answer.self).services
    #expect(services.map(\.service) == ["sudo", "su"])
    #expect(services.map(\.changed) == [false, true])
  }

  @Test func `one that includes the file of another is turned on with it`() throws {
    let done = machine.run("enable", "su", "su-l", "--yes")
    #expect(done.status == 0, "\(done.aside)")
    #expect(!machine.ours("su").isEmpty && machine.ours("su-l").isEmpty)
  }

  @Test func `of which one cannot be planned are all left as they are`() throws {
    let before = try machine.content()
    #expect(machine.run("enable", "sudo", "nothing", "--yes").status == 66)
    #expect(try machine.content() == before)
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    let on = try machine.content()
    #expect(machine.run("disable", "sudo", "su", "--yes").status == 66)
    #expect(try machine.content() == on)
  }

  // shows: several-services
  @Test func `of which one cannot be written are all taken back`() throws {
    try block(".su.sallyport-new/x")
    let before = try machine.content()
    let on = machine.run("enable", "sudo", "su", "--yes")
    #expect(on.status == 74, "\(on.aside)")
    #expect(on.aside.hasPrefix("sallyport: su: /etc/pam.d/su"))
    #expect(on.aside.contains("\n  sudo is as it was before\n"), "\(on.aside)")
    #expect(try machine.content() == before)
  }

  @Test func `of which one cannot be turned off all stay on`() throws {
    #expect(machine.run("enable", "sudo", "su", "--yes").status == 0)
    try block(".su.sallyport-new/x")
    let on = try machine.content()
    let off = machine.run("disable", "sudo", "su", "--yes")
    #expect(off.status == 74, "\(off.aside)")
    #expect(off.aside.contains("\n  sudo is as it was before\n"), "\(off.aside)")
    #expect(try machine.content() == on)
  }

  // shows: several-services
  @Test func `what stays changed is told`() throws {
    try block(".su.sallyport-new/x")
    let sshd = try FakeSSHD(machine)
    // The old file of sudo cannot be put back any more by then.
    sshd.reloaded = { try? self.block(".sudo.sallyport-new/x") }
    sshd.reloads = false
    let on = machine.run("enable", "sshd", "sudo", "--yes")
    #expect(on.status == 78)
    let told = "\n  sudo was changed, and is still: /etc/pam.d/sudo: "
    #expect(on.aside.contains(told), "\(on.aside)")
    #expect(machine.ours("sshd").isEmpty && !machine.ours("sudo").isEmpty)
  }

  @Test func `sshd comes last, for it may not take the change`() throws {
    let sshd = try FakeSSHD(machine)
    let before = try machine.content()
    sshd.reloads = false
    let on = machine.run("enable", "sshd", "sudo", "--yes")
    #expect(on.status == 78 && on.aside.contains("\n  sudo is as it was before\n"))
    #expect(try machine.content() == before)
    #expect(sshd.dropIn == nil)
  }
}
