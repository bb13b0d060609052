import Foundation
import Testing

@testable import PAMStack
@testable import SallyportCLI

/// A service of Tests/Vectors/setups.txt.
struct Shipped: CustomTestStringConvertible {
  let distribution, service: String
  /// Where its files are.
  var directory = "/etc/pam.d"
  var testDescription: String { "\(distribution) \(service) in \(directory)" }

  private static let services = ["sshd", "sudo", "su", "su-l", "login"]

  static let all = SetupCase.distributions.keys.sorted().flatMap { distribution in
    services.filter { SetupCase.distributions[distribution]?[$0] != nil }.flatMap {
      service in
      let directories = distribution.hasPrefix("opensuse") ? ["/etc/pam.d", "/usr/lib/pam.d"] : []
      return (directories.isEmpty ? ["/etc/pam.d"] : directories).map { directory in
        Shipped(distribution: distribution, service: service, directory: directory)
      }
    }
  }

  /// A machine with the files of the distribution, written as people write them.
  func machine() throws -> PamBench {
    let machine = try PamBench([:], debian: SetupCase.isDebian(distribution))
    for (name, lines) in SetupCase.distributions[distribution] ?? [:]
    where name != "sshd_config" {
      let text = lines.map { $0.replacing(" ", with: "\t", maxReplacements: 1) + "\n" }.joined()
      try machine.write("\(directory)/\(name)", "#%PAM-1.0\n\n\(text)# end\n")
    }
    return machine
  }
}

@Suite struct `Turning on what distributions ship` {
  /// What the application is answered when somebody logs in on an ordinary machine of files.
  private func verdict(
    _ phase: PAMPhase, of service: String, on machine: PamBench, password: Bool = true,
    code: PAMCode = .success
  ) -> PAMCode {
    let stack = StackParser.parse(
      service: service, StackDirectory(root: machine.root).files)
    return stack.verdict(phase) { line in
      switch line.moduleName {
      case "pam_sallyport": phase == .auth ? code : .ignore
      case "pam_unix": password || phase != .auth ? .success : .authenticationError
      case "pam_sss", "pam_systemd_home": .userUnknown
      case "pam_deny", "pam_rootok", "pam_succeed_if", "pam_fprintd": .authenticationError
      case "pam_faillock": line.arguments == ["authfail"] ? .authenticationError : .success
      case "pam_nologin", "pam_faildelay", "pam_cap", "pam_group", "pam_sepermit": .ignore
      case _: .success
      }
    }
  }

  @Test(arguments: Shipped.all)
  func `nobody is locked out, and nobody gets in without password and code`(shipped: Shipped)
    throws
  {
    let (machine, service) = (try shipped.machine(), shipped.service)
    // Each by itself: where su-l includes su, its own session line would come before ours.
    let enabled = machine.run("enable", service, "--only", "--yes")
    try #require(enabled.status == 0, "\(enabled.aside)")
    for phase in [PAMPhase.auth, .account, .session] {
      #expect(verdict(phase, of: service, on: machine) == .success, "\(phase)")
    }
    for (password, code) in [
      (false, PAMCode.success), (false, .authenticationError), (true, .authenticationError),
      (false, .ignore),
    ] {
      let answer = verdict(.auth, of: service, on: machine, password: password, code: code)
      #expect(answer != .success, "password \(password), code \(code.name)")
    }
    let stack = StackParser.parse(service: service, StackDirectory(root: machine.root).files)
    for phase in [PAMPhase.account, .session] {
      let first = stack[phase].drop { $0.arguments == ["close"] }.first
      #expect(first?.moduleName == "pam_sallyport", "\(phase)")
    }
  }

  @Test(arguments: Shipped.all)
  func `disable restores each to the byte`(shipped: Shipped) throws {
    let (machine, service) = (try shipped.machine(), shipped.service)
    let before = try machine.content()
    #expect(machine.run("enable", service, "--yes").status == 0)
    #expect(try machine.content() != before)
    #expect(machine.run("disable", service, "--yes").status == 0)
    #expect(try machine.content() == before)
  }

  @Test(arguments: SetupCase.all.filter(\.isEnabled))
  func `the lines of the cases are those that enable writes`(setup: SetupCase) throws {
    let machine = try PamBench([:], debian: SetupCase.isDebian(setup.distribution))
    for (name, lines) in SetupCase.distributions[setup.distribution] ?? [:] {
      try machine.write("/etc/pam.d/\(name)", lines.joined(separator: "\n") + "\n")
    }
    #expect(machine.run("enable", setup.service, "--yes").status == 0)
    let written = (machine.read("/etc/pam.d/\(setup.service)") ?? "")
      .replacing(" store=\(machine.bench.directory)", with: "").split(separator: "\n")
      .map { $0.split(separator: " ").joined(separator: " ") }
    #expect(written == setup.files[setup.service])
  }
}
