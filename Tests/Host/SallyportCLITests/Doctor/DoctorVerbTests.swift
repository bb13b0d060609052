import Foundation
import SallyportCore
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `The verb doctor` {
  private let open = "auth required pam_unix.so\naccount required pam_unix.so\n"
  private let asks =
    "auth required pam_unix.so\nauth required pam_sallyport.so\naccount required pam_unix.so\n"

  @Test func `a service without a file is other's, unless sudo was built without it`() throws {
    let machine = try PamBench(["sudo": asks, "other": open], enrolled: false)
    let text = { machine.doctor().answer }
    #expect(text().contains("sudo -i runs the service sudo-i, which has no file"))
    #expect(text().contains("cp /etc/pam.d/sudo /etc/pam.d/sudo-i"), "\(text())")
    machine.programs = { words in
      guard words == ["sudo", "-V"] else { return .absent }
      return .seen(
        CommandOutput(status: 0, output: "PAM service name to use for login shells: sudo\n"))
    }
    #expect(!text().contains("sudo-i"))
    machine.programs = { _ in .absent }
    try machine.write("/etc/pam.d/other", "auth required pam_deny.so\n")
    #expect(!text().contains("sudo-i"))
  }

  @Test func `sshd under another name is told of, and enable does not say Done`() throws {
    let machine = try PamBench(
      ["sshd": open, "corp": open + "session required pam_permit.so\n", "other": open])
    let sshd = try FakeSSHD(machine)
    let programs = machine.programs
    machine.programs = { words in
      let said = programs(words)
      guard words.prefix(2) == ["sshd", "-T"], var output = said.value else { return said }
      output.output += "\npamservicename corp\n"
      return .seen(output)
    }
    let on = machine.run("enable", "sshd", "--yes")
    #expect(on.status == 78 && on.aside.contains("PAMServiceName corp"), "\(on.aside)")
    #expect(on.aside.contains("PAMServiceName sshd") && sshd.dropIn == nil)
    #expect(machine.run("enable", "sshd", "--sshd", "none", "--yes").status == 0)
    #expect(machine.doctor().answer.contains("ssh runs the service corp, which asks for no code"))
  }

  // shows: after-key
  @Test func `after-key in a file that another service includes refuses there`() throws {
    let machine = try PamBench()
    try machine.write("/etc/pam.d/keyed", "auth required pam_sallyport.so after-key\n")
    let ends = "account required pam_unix.so\nsession required pam_unix.so\n"
    for name in ["cockpit", "sshd"] {
      try machine.write("/etc/pam.d/\(name)", "auth include keyed\n\(ends)")
    }
    struct Answer: Decodable {
      struct Finding: Decodable { let id, area: String }
      let findings: [Finding]
      let lockedOut: [String]
    }
    let said = try machine.doctor().json(Answer.self)
    let areas = Set(said.findings.filter { $0.id == "stack-after-key" }.map(\.area))
    #expect(areas.contains("cockpit") && !areas.contains("sshd"))
    #expect(said.lockedOut.contains { $0.hasPrefix("everybody from cockpit") })
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/security", withIntermediateDirectories: true)
    try machine.write(
      "/etc/security/sallyport.conf", "[default]\nsshd_services = sshd, cockpit, keyed\n")
    let named = try machine.doctor().json(Answer.self)
    #expect(!named.findings.contains { $0.id == "stack-after-key" })
  }
}
