import Foundation
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

/// Stacks whose included file lets a wrong password go on to our line.
@Suite struct `The gate before our line` {
  private static let families = ["fedora", "fedora-sssd"]
  private static let gate = try? String(
    contentsOfFile: "\(#filePath.components(separatedBy: "/Tests/")[0])/pam/gate", encoding: .utf8)

  private func machine(_ distribution: String, withGate: Bool = true) throws -> PamBench {
    let machine = try PamBench([:], debian: false)
    for (name, lines) in SetupCase.distributions[distribution] ?? [:]
    where name != "sshd_config" {
      try machine.write("/etc/pam.d/\(name)", lines.joined(separator: "\n") + "\n")
    }
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/security", withIntermediateDirectories: true)
    if withGate { try machine.write(StackGate.path, try #require(Self.gate)) }
    return machine
  }

  private func analysis(_ service: String, on machine: PamBench) -> StackAnalysis {
    StackAnalysis(
      StackParser.parse(service: service, StackDirectory(root: machine.root).files))
  }

  @Test(arguments: [
    ("fedora", "sshd"), ("fedora", "su"), ("fedora", "login"), ("fedora-sssd", "sshd"),
  ]) func `is written behind a substack, and no wrong password passes it`(
    family: String, service: String
  ) throws {
    let machine = try machine(family)
    let before = try machine.content()
    #expect(machine.run("enable", service, "--yes").status == 0)
    let file = try #require(machine.read("/etc/pam.d/\(service)"))
    let lines = file.split(separator: "\n").map(String.init)
    let ours = try #require(lines.firstIndex { $0.hasPrefix("auth     required   pam_sallyport") })
    #expect(lines[ours - 1] == "auth     substack   /etc/security/sallyport-gate")
    #expect(lines[ours - 2].hasPrefix("auth substack "))
    let found = analysis(service, on: machine)
    #expect(!found.asksAfterWrongPassword && found.asksEverybody)
    #expect(found.refusals(of: .all) == [])
    #expect(machine.run("disable", service, "--yes").status == 0)
    #expect(try machine.content() == before)
  }

  @Test(arguments: families)
  func `is left out where its file is not there, and doctor says what to type once it is`(
    family: String
  ) throws {
    let machine = try machine(family, withGate: false)
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    #expect(machine.read("/etc/pam.d/sshd")?.contains("gate") == false)
    #expect(analysis("sshd", on: machine).asksAfterWrongPassword)
    func fixes() -> [Fix] {
      let stack = ServiceStack(of: Machine(root: machine.root), "sshd")
      var service = ServiceFacts(stack, of: Machine(root: machine.root))
      // The store of this test stands on the lines.
      service.lines.lines = []
      let found = StackFindings(service, ssh: nil).all
      return found.first { $0.id == "stack-wrong-password" }?.fixes ?? []
    }
    #expect(fixes().count == 1)
    let file = try #require(machine.read("/etc/pam.d/sshd"))
    try machine.write(
      "/etc/pam.d/sshd", file.replacing(" store=\(machine.bench.directory)", with: ""))
    #expect(fixes().count == 1)
    try machine.write(StackGate.path, try #require(Self.gate))
    #expect(
      fixes().first
        == .command("sallyport pam disable sshd && sallyport pam enable sshd --sshd none"))
  }

  @Test func `stays away where a wrong password ends the stack by itself`() throws {
    let machine = try PamBench()
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/security", withIntermediateDirectories: true)
    try machine.write(StackGate.path, try #require(Self.gate))
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    #expect(machine.read("/etc/pam.d/sshd")?.contains("gate") == false)
  }

  @Test func `lets nobody in whom the stack refused without it`() throws {
    let machine = try machine("fedora")
    // Nothing here says yes but pam_permit of the gate.
    try machine.write("/etc/pam.d/password-auth", "auth [default=ignore] pam_unix.so\n")
    try machine.write(
      "/etc/pam.d/x",
      "auth substack password-auth\n\(StackGate.line)\n"
        + "auth required pam_sallyport.so\n")
    let found = analysis("x", on: machine)
    #expect(found.findings.contains { $0.isCodeAlone })
    #expect(found.differences.contains { $0.isCodeAlone })
  }

  @Test func `is one of our lines where an earlier jump counts it`() throws {
    let machine = try machine("fedora")
    let stack = """
      auth [success=2 default=ignore] pam_unix.so
      auth requisite pam_deny.so
      \(StackGate.line)
      auth required pam_sallyport.so

      """
    try machine.write("/etc/pam.d/x", stack)
    // The jump leads past the gate; what stood two lines further was the end.
    #expect(!analysis("x", on: machine).findings.contains(.notAsked))
    #expect(analysis("x", on: machine).asksEverybody)
  }
}
