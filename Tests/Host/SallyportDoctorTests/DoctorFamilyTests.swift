import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor

@Suite struct `Doctor on programs with several services` {
  private let fake = FakeMachine()
  private let open = "auth required pam_unix.so\naccount required pam_unix.so\n"
  private let asks =
    "auth required pam_unix.so\nauth required pam_sallyport.so\naccount required pam_unix.so\n"

  init() throws {
    try fake.write("/etc/debian_version", "12\n")
    try fake.write("/etc/pam.d/other", open)
    try fake.write("/etc/pam.d/sudo", asks)
    try fake.write("/etc/pam.d/sudo-i", asks)
    try fake.write("/etc/sudoers", "alice ALL=(ALL) ALL\n")
  }

  private func ways() -> [Finding] {
    let stacks = ServiceStack.ours(of: fake.machine)
    let facts = Facts(of: fake.machine, stacks, nil, at: "/nowhere", Healthy.now)
    return Diagnosis(facts, version: "0.1.0").findings.filter {
      ["family-open", "sudo-service"].contains($0.id)
    }
  }

  @Test func `all of which ask bring nothing`() { #expect(ways() == []) }

  // shows: service-family
  @Test(arguments: [("sudo", "sudo"), ("sudo-i", "sudo -i")])
  func `sudo's own names count as if sudoers named them`(service: String, way: String) throws {
    try fake.write("/etc/pam.d/\(service)", open)
    let found = try #require(ways().first)
    #expect(ways().count == 1 && found.severity == .error && found.area == .service(service))
    #expect(found.text == "\(way) runs the service \(service), which asks for no code")
    #expect(found.effect == .letsIn("anyone with the password through \(way)"))
    #expect(found.fixes == [.command("sallyport pam enable \(service)")])
  }

  @Test func `a name of sudo that sudoers replaces does not count, but for sudo-rs`() throws {
    try fake.write("/etc/pam.d/sudo-i", open)
    try fake.write("/etc/pam.d/corp", asks)
    try fake.write("/etc/sudoers", "Defaults pam_login_service=corp\nalice ALL=(ALL) ALL\n")
    #expect(ways() == [])
    try fake.write("/usr/bin/sudo-rs", "")
    #expect(ways().map(\.area) == [.service("sudo-i")])
  }

  @Test func `a service that only sudoers names brings sudo's others`() throws {
    for service in ["sudo", "sudo-i"] { try fake.write("/etc/pam.d/\(service)", open) }
    try fake.write("/etc/pam.d/corp", asks)
    try fake.write("/etc/sudoers", "Defaults:bob pam_service=corp\nalice ALL=(ALL) ALL\n")
    #expect(ways().map(\.area) == [.service("sudo"), .service("sudo-i")])
  }

  @Test func `doas is told of where it is installed and lets somebody`() throws {
    try fake.write("/etc/pam.d/doas", open)
    #expect(ways() == [])
    try fake.write("/usr/bin/doas", "")
    try fake.write("/etc/doas.conf", "# permit alice\ndeny bob\n")
    #expect(ways() == [])
    try fake.write("/etc/doas.conf", "permit persist :wheel\n")
    #expect(ways().map(\.area) == [.service("doas")])
    try fake.write("/etc/pam.d/doas", asks)
    #expect(ways() == [])
  }

  @Test func `su and login are told of in the same way`() throws {
    for (service, other) in [("su", "su-l"), ("login", "remote")] {
      try fake.write("/etc/pam.d/\(service)", asks)
      try fake.write("/etc/pam.d/\(other)", open)
      #expect(ways().map(\.area) == [.service(other)])
      try fake.write("/etc/pam.d/\(other)", "auth include \(service)\n")
      #expect(ways() == [])
    }
  }
}
