import SallyportCore
import Testing

@testable import PAMStack
@testable import SallyportDoctor

@Suite struct `Doctor on whole set-ups` {
  /// The files of the case in a directory, read by doctor's own code; alice is enrolled.
  private func diagnosis(_ setup: SetupCase, _ fake: FakeMachine) throws -> Diagnosis {
    for (name, lines) in setup.files where name != "sshd_config" {
      try fake.write("/etc/pam.d/\(name)", lines.joined(separator: "\n") + "\n")
    }
    if setup.isDebian {
      try fake.write("/etc/debian_version", "12.8\n")
    }
    for module in SetupCase.modules {
      try fake.write("/usr/lib/security/\(module)", "")
    }
    try fake.write("/etc/ssh/sshd_config", setup.settings.joined(separator: "\n") + "\n")
    let sshd = FakeSshd(setup.settings)
    fake.answers["sshd -T"] = sshd.answer()
    fake.answers["sshd -T -o AuthenticationMethods=any"] = sshd.answer(anyMethod: true)
    for user in sshd.users {
      fake.answers[FakeMachine.login(user)] = sshd.answer(user)
    }
    var facts = Healthy.facts
    let service = ServiceFacts(ServiceStack(of: fake.machine, setup.service), of: fake.machine)
    facts.services = [service]
    facts.ssh = setup.service == "sshd" ? SSHFacts(of: fake.machine, AccountFacts()) : nil
    return Diagnosis(facts, version: "0.1.0")
  }

  @Test(arguments: SetupCase.all) func `Each has its findings and its verdict`(
    setup: SetupCase
  ) throws {
    let found = try diagnosis(setup, FakeMachine())
    #expect(found.wrong == setup.findings)
    #expect(found.lockedOut == setup.lockedOut)
    #expect(found.letIn == setup.letIn)
  }

  @Test func `There are forty and more of five distributions, and each is another`() {
    #expect(SetupCase.all.count >= 45)
    #expect(Set(SetupCase.all.map(\.name)).count == SetupCase.all.count)
    for family in ["debian", "ubuntu", "fedora", "arch", "opensuse"] {
      let cases = SetupCase.all.filter { $0.distribution.hasPrefix(family) }
      #expect(cases.count >= 6, "\(family)")
      #expect(Set(cases.map(\.service)) == ["sshd", "sudo", "su", "login"], "\(family)")
    }
    #expect(
      Set(SetupCase.all.map(\.distribution))
        == Set(SetupCase.distributions.keys))
  }
}
