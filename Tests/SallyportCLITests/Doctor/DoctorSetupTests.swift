import SallyportCore
import Testing

@testable import SallyportCLI

@Suite struct `Doctor on whole set-ups` {
  /// The files of the case in a folder, read by doctor's own code; alice is enrolled.
  private func diagnosis(_ setup: Setup, _ fake: FakeMachine) throws -> Diagnosis {
    for (name, lines) in setup.files where name != "sshd_config" {
      try fake.write("/etc/pam.d/\(name)", lines.joined(separator: "\n") + "\n")
    }
    if ["debian", "ubuntu"].contains(setup.distribution) {
      try fake.write("/etc/debian_version", "12.8\n")
    }
    let files = Setup.distributions.values.flatMap(\.values).joined().joined(separator: " ")
    let known = ["sallyport", "google_authenticator", "wheel", "succeed_if"].map { "pam_\($0).so" }
    let modules = files.split(separator: " ").map(String.init).filter { $0.hasSuffix(".so") }
    for module in modules + known { try fake.write("/usr/lib/security/\(module)", "") }
    try fake.write("/etc/ssh/sshd_config", setup.settings.joined(separator: "\n") + "\n")
    let sshd = FakeSshd(setup.settings)
    fake.answers["sshd -T"] = sshd.answer()
    fake.answers["sshd -T -o AuthenticationMethods=any"] = sshd.answer(anyMethod: true)
    for user in sshd.users {
      fake.answers["sshd -T -C addr=127.0.0.1,host=localhost,user=\(user)"] = sshd.answer(user)
    }
    var facts = Healthy.facts
    let service = ServiceFacts(ServiceStack(of: fake.machine, setup.service), of: fake.machine)
    facts.services = [service]
    facts.ssh = setup.service == "sshd" ? SSHFacts(of: fake.machine, AccountFacts()) : nil
    return Diagnosis(facts, version: "0.1.0")
  }

  @Test(arguments: Setup.all) func `Each has its findings and its verdict`(setup: Setup) throws {
    let found = try diagnosis(setup, FakeMachine())
    #expect(found.wrong == setup.findings)
    #expect(found.lockedOut == setup.lockedOut)
    #expect(found.letIn == setup.letIn)
  }

  @Test func `There are forty of five distributions, and each is another`() {
    #expect(Setup.all.count >= 40)
    #expect(Set(Setup.all.map(\.name)).count == Setup.all.count)
    #expect(
      Set(Setup.all.map(\.distribution))
        == ["debian", "ubuntu", "fedora", "fedora-sssd", "arch", "opensuse"])
  }
}
