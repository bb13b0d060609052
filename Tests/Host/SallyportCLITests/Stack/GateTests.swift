import Foundation
import TestSupport
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

/// Stacks whose included file lets a wrong password go on to our line.
@Suite struct `The gate before our line` {
  private static let families = ["fedora", "fedora-sssd"]
  private static func file(_ name: String) -> String? { try? textOfSources("pam/\(name)") }

  private func layGate(on machine: PamBench) throws {
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/security", withIntermediateDirectories: true)
    try machine.write(StackGate.path, try #require(Self.file("gate")))
    try machine.write(StackGate.innerPath, try #require(Self.file("gate-inner")))
  }

  private func machine(_ distribution: String, withGate: Bool = true) throws -> PamBench {
    let machine = try PamBench([:], debian: false)
    for (name, lines) in SetupCase.distributions[distribution] ?? [:]
    where name != "sshd_config" {
      try machine.write("/etc/pam.d/\(name)", lines.joined(separator: "\n") + "\n")
    }
    if withGate { try layGate(on: machine) }
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

  // decisive
  @Test(arguments: families)
  func `is left out where its file is not there, and doctor says what to type once it is`(
    family: String
  ) throws {
    let machine = try machine(family, withGate: false)
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    #expect(machine.read("/etc/pam.d/sshd")?.contains("gate") == false)
    #expect(analysis("sshd", on: machine).asksAfterWrongPassword)
    func fixes() -> [Fix] { self.fixes("stack-wrong-password", of: "sshd", on: machine) }
    #expect(fixes().count == 1)
    let file = try #require(machine.read("/etc/pam.d/sshd"))
    try machine.write(
      "/etc/pam.d/sshd", file.replacing(" store=\(machine.bench.directory)", with: ""))
    #expect(fixes().count == 1)
    try layGate(on: machine)
    #expect(fixes().first == .command("sallyport pam enable sshd --enroll --sshd none"))
    let declined = try #require(machine.read("/etc/pam.d/sshd")).replacing(" enroll", with: "")
    try machine.write("/etc/pam.d/sshd", declined)
    #expect(fixes().first == .command("sallyport pam enable sshd --no-enroll --sshd none"))
  }

  private func fixes(_ id: String, of service: String, on machine: PamBench) -> [Fix] {
    let stack = ServiceStack(of: Machine(root: machine.root), service)
    let facts = ServiceFacts(stack, of: Machine(root: machine.root))
    return StackFindings(facts, ssh: nil).all.first { $0.id == id }?.fixes ?? []
  }

  @Test(arguments: ["--enroll", "--no-enroll"])
  func `is put before lines that are there in one write, which leaves their words`(
    enroll: String
  ) throws {
    let machine = try machine("fedora", withGate: false)
    #expect(machine.run("enable", "sshd", "--yes", enroll).status == 0)
    let plain = try #require(machine.read("/etc/pam.d/sshd"))
    try layGate(on: machine)
    let other = enroll == "--enroll" ? "--no-enroll" : "--enroll"
    for words in [[other], [enroll, "--nullok"]] {
      #expect(machine.run(words: ["enable", "sshd", "--yes"] + words).status != 0)
      #expect(machine.read("/etc/pam.d/sshd") == plain)
    }
    #expect(machine.run("enable", "sshd", "--yes", enroll).status == 0)
    let lines = try #require(machine.read("/etc/pam.d/sshd")).split(separator: "\n")
    #expect(lines.filter { $0 != StackGate.line } == plain.split(separator: "\n"))
    #expect(!analysis("sshd", on: machine).asksAfterWrongPassword)
    #expect(machine.run("enable", "sshd", "--yes", enroll).status == 0)
    #expect(machine.read("/etc/pam.d/sshd")?.split(separator: "\n") == lines)
  }

  @Test func `that is gone is brought back by its package, or its line is taken out`() throws {
    let machine = try machine("fedora")
    #expect(machine.run("enable", "login", "--yes").status == 0)
    try FileManager.default.removeItem(atPath: machine.root + StackGate.path)
    for id in ["stack-fault", "stack-shut"] {
      let fixes = fixes(id, of: "login", on: machine)
      #expect(fixes.count == 2 && fixes.last == .command("sallyport pam disable login"), "\(id)")
    }
    #expect(machine.run("disable", "login", "--yes").status == 0)
  }

  @Test func `is no success where nobody has said anything`() throws {
    let machine = try machine("fedora")
    try machine.write(
      "/etc/pam.d/x",
      "auth required pam_krb5.so\n\(StackGate.line)\nauth required pam_sallyport.so nullok\n")
    let stack = StackParser.parse(service: "x", StackDirectory(root: machine.root).files)
    let verdict = stack.verdict(.auth) { entry in
      if entry.stopsWrongPassword { return .authenticationError }
      return entry.moduleName == "pam_permit" ? .success : .ignore
    }
    #expect(verdict == .permissionDenied)
  }

  @Test(arguments: ["pam_krb5.so", "pam_himmelblau.so"])
  func `says nothing for a module that its own file makes ignore a user`(module: String) throws {
    let machine = try machine("fedora")
    try machine.write(
      "/etc/pam.d/x", "auth required \(module)\nauth required pam_sallyport.so\n")
    #expect(analysis("x", on: machine).differences.contains { $0.isCodeAlone })
  }

  @Test func `stays away where a wrong password ends the stack by itself`() throws {
    let machine = try PamBench()
    try layGate(on: machine)
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

  @Test func `stays where a jump that counts it would skip another line without it`() throws {
    let machine = try machine("fedora")
    let stack = """
      auth [success=2 default=ignore] pam_unix.so
      auth requisite pam_deny.so
      \(StackGate.line)
      auth required pam_sallyport.so
      auth required pam_listfile.so item=user sense=deny file=/etc/denied
      auth required pam_env.so
      account required pam_unix.so

      """
    try machine.write("/etc/pam.d/x", stack)
    #expect(machine.run("disable", "x", "--yes").status == 78)
    #expect(machine.read("/etc/pam.d/x") == stack)
  }

  /// Behind a jump, and with a control that somebody chose.
  @Test(arguments: [
    """
    auth [success=1 default=ignore] pam_succeed_if.so quiet user = bob
    auth required pam_sallyport.so
    auth required pam_listfile.so item=user sense=deny file=/etc/denied
    auth required pam_env.so
    """,
    """
    auth [success=done ignore=ignore default=die] pam_sallyport.so
    auth required pam_env.so
    """,
  ])
  func `is not put before lines that would not stay what they are`(lines: String) throws {
    let machine = try machine("fedora")
    let store = "sallyport.so store=\(machine.bench.directory)"
    let ours = lines.replacing("sallyport.so", with: store)
    let stack = "auth substack password-auth\n\(ours)\naccount required pam_unix.so\n"
    try machine.write("/etc/pam.d/x", stack)
    #expect(analysis("x", on: machine).asksAfterWrongPassword)
    #expect(machine.run("enable", "x", "--yes", "--no-enroll", "--force").status != 0)
    #expect(machine.read("/etc/pam.d/x") == stack)
  }
}
