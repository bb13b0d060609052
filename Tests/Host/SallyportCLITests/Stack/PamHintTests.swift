import Foundation
import Testing

@testable import SallyportCLI

/// What `sallyport pam` says of what it did not do, and whom a service asks.
@Suite struct `What pam says` {
  private let machine: PamBench

  init() throws {
    machine = try PamBench()
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/security", withIntermediateDirectories: true)
  }

  @Test func `The enrolled without a rule of sudoers are named, and the hint has all services`()
    throws
  {
    try machine.write("/etc/sudoers", "%wheel ALL=(ALL) ALL\n")
    try machine.write("/etc/group", "wheel:x:10:\n")
    let done = machine.run("enable", "sudo", "su", "--no-enroll")
    #expect(done.status == 78)
    #expect(
      done.aside == """
        sallyport: nobody could log in to sudo after this: sudoers has no rule for alice, who is \
        enrolled
        hint: visudo
        hint: sallyport pam enable sudo su --no-enroll --store \(machine.bench.directory) --force

        """)
  }

  @Test func `Nobody enrolled is told as before`() throws {
    let empty = try PamBench(enrolled: false)
    try empty.write("/etc/sudoers", "%wheel ALL=(ALL) ALL\n")
    let done = empty.run("enable", "sudo", "--yes")
    #expect(done.aside.contains("after this: nobody is enrolled\nhint: sallyport enroll NAME\n"))
  }

  private func asked(_ policy: String, _ words: String...) throws -> [String] {
    struct Answer: Decodable {
      struct Service: Decodable { let asks: String }
      let services: [Service]
    }
    try machine.write("/etc/security/sallyport.conf", policy)
    let done = machine.run(words: ["enable", "sudo", "--yes", "--force"] + words)
    #expect(done.status == 0, "\(done.aside)")
    let text = machine.run("status").answer.split(separator: "\n").first {
      $0.hasPrefix("sudo ")
    }
    let facts = try machine.run("status", "--json").json(Answer.self).services.map(\.asks)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(text?.hasPrefix("sudo      \(facts.first ?? "")  ") == true, "\(text ?? "")")
    return facts
  }

  @Test func `Whom a service asks follows from its line and from the policy`() throws {
    #expect(try asked("") == ["everybody"])
    #expect(try asked("", "--nullok") == ["the enrolled"])
    #expect(try asked("[default]\nenrollment = refuse\n", "--nullok") == ["everybody"])
    for level in ["offer", "remind", "voluntary"] {
      #expect(try asked("[default]\nenrollment = \(level)\n") == ["the enrolled"], "\(level)")
    }
    #expect(try asked("[default]\nenrollment = required\n") == ["everybody"])
    #expect(try asked("[default]\nstate = disabled\n") == ["nobody"])
    #expect(
      try asked("[rule a]\nmatch_service = sudo\nenrollment = offer\n") == ["the enrolled"])
  }

  // decisive
  @Test func `A service that one without an enrollment passes does not ask all`() throws {
    try machine.people("alice", "bob")
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) NOPASSWD: ALL\n")
    #expect(try asked("") == ["not all"])
  }

  @Test func `Another service that includes the file is named, with what to do`() throws {
    try machine.write("/etc/pam.d/i3lock", "auth include login\n")
    let done = machine.run("enable", "login", "--yes")
    #expect(done.status == 78)
    #expect(
      done.aside.hasPrefix(
        "sallyport: login was not changed: i3lock includes its file, and would be broken: "),
      "\(done.aside)")
    #expect(done.aside.contains("\nhint: in /etc/pam.d/i3lock include what login includes"))
  }

  @Test func `A service that another file still asks in is told so when it is turned off`() throws {
    let own = Stacks.debian["sudo"] ?? ""
    try machine.write("/etc/pam.d/sudo", "auth required pam_sallyport.so\n\(own)\n")
    let shared = Stacks.debian["common-auth"] ?? ""
    try machine.write("/etc/pam.d/common-auth", "\(shared)\nauth required pam_sallyport.so\n")
    let done = machine.run("disable", "sudo", "--yes")
    #expect(done.status == 0, "\(done.aside)")
    #expect(!done.answer.contains("no longer asks"), "\(done.answer)")
    #expect(
      done.answer.hasSuffix(
        "sudo still asks for a code, by /etc/pam.d/common-auth:9.\nFor every service that includes "
          + "it: sallyport pam disable common-auth\n"), "\(done.answer)")
    #expect(machine.ours("sudo").isEmpty)
  }

  @Test(arguments: [60, 100]) func `Its lists are as wide as the terminal`(width: Int) throws {
    machine.screen = Screen(columns: width, lines: 24, isUTF8: true)
    try machine.people("alice", "barbara", "catherine", "dorothea", "elisabeth", "friederike")
    for index in 0..<12 {
      try machine.write("/etc/pam.d/service-\(index)", "@include common-auth\n")
    }
    let list = try #require(
      machine.run("status").answer.components(separatedBy: "Without a second").last)
    let impact = machine.run("enable", "su", "--dry-run").answer
    let changes = try #require(impact.components(separatedBy: "What changes:").last)
    for text in ["Without a second\(list)", changes] {
      let widest = text.split(separator: "\n").map(\.count).max() ?? 0
      #expect(widest <= width && widest > width - 25, "\(text)")
    }
  }

  @Test func `A dry run needs no sshd that runs`() throws {
    let sshd = try FakeSSHD(machine)
    sshd.isListening = false
    #expect(machine.run("enable", "sshd", "--yes").status == 78)
    let dry = machine.run("enable", "sshd", "--dry-run")
    #expect(dry.status == 0, "\(dry.aside)")
    #expect(dry.answer.contains("+  "))
    #expect(dry.answer.contains("warning: no sshd listens at 127.0.0.1:22"), "\(dry.answer)")
    #expect(sshd.dropIn == nil && machine.ours("sshd").isEmpty)
  }
}
