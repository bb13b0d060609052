import Foundation
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

/// Stacks whose included file lets a wrong password go on to our line.
@Suite struct `The gate before our line` {
  private static let families = ["fedora", "fedora-sssd"]

  private func machine(_ distribution: String, withGate: Bool = true) throws -> PamBench {
    let machine = try PamBench([:], debian: false)
    try machine.lay(distribution)
    if withGate { try machine.layGate() }
    return machine
  }

  // shows: wrong-password
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
    let found = machine.analysis(service)
    #expect(!found.asksAfterWrongPassword && found.asksEverybody)
    #expect(found.findings(with: [.unwanted, .wayAround]) == [])
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
    #expect(machine.analysis("sshd").asksAfterWrongPassword)
    func fixes() -> [Fix] { self.fixes("stack-wrong-password", of: "sshd", on: machine) }
    #expect(fixes().count == 1)
    let file = try #require(machine.read("/etc/pam.d/sshd"))
    try machine.write(
      "/etc/pam.d/sshd", file.replacing(" store=\(machine.bench.directory)", with: ""))
    #expect(fixes().count == 1)
    try machine.layGate()
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
    try machine.layGate()
    let other = enroll == "--enroll" ? "--no-enroll" : "--enroll"
    for words in [[other], [enroll, "--nullok"]] {
      #expect(machine.run(words: ["enable", "sshd", "--yes"] + words).status != 0)
      #expect(machine.read("/etc/pam.d/sshd") == plain)
    }
    #expect(machine.run("enable", "sshd", "--yes", enroll).status == 0)
    let lines = try #require(machine.read("/etc/pam.d/sshd")).split(separator: "\n")
    #expect(lines.filter { $0 != StackGate.line } == plain.split(separator: "\n"))
    #expect(!machine.analysis("sshd").asksAfterWrongPassword)
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

  @Test func `stays away where a wrong password ends the stack by itself`() throws {
    let machine = try PamBench()
    try machine.layGate()
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    #expect(machine.read("/etc/pam.d/sshd")?.contains("gate") == false)
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
    #expect(machine.analysis("x").asksAfterWrongPassword)
    #expect(machine.run("enable", "x", "--yes", "--no-enroll", "--force").status != 0)
    #expect(machine.read("/etc/pam.d/x") == stack)
  }
}
