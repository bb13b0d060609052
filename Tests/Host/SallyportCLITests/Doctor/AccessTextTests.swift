import Foundation
import PAMStack
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

/// alice and bob have passwords, alice is enrolled, and sudo asks for a code.
@Suite struct `Doctor about one account` {
  private let machine: PamBench

  init() throws {
    machine = try PamBench(enrolled: false)
    try machine.people("alice", "bob")
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) ALL\n")
    _ = try machine.bench.enroll("alice")
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
  }

  private func rows(_ user: String) -> [String] {
    machine.doctor("--user", user).answer.split(separator: "\n").map(String.init)
  }

  // decisive
  @Test func `names for each way what changes it`() throws {
    #expect(
      rows("bob").starts(with: [
        "bob (uid 1001; not enrolled)",
        "  sudo, sudo -u      refused: not enrolled, /etc/pam.d/sudo:8",
        "      # sallyport enroll bob",
      ]), "\(rows("bob"))")
    try machine.write(
      "/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) NOPASSWD: ALL\n")
    let open = rows("bob")
    #expect(open.contains { $0.contains("without a code: NOPASSWD, /etc/sudoers:2") }, "\(open)")
    #expect(open.contains("      # visudo -f /etc/sudoers"), "\(open)")
    #expect(rows("alice").contains { $0.hasPrefix("  sudo, sudo -u      asked for a code") })
  }

  // decisive
  @Test func `counts and marks what the table alone tells of`() throws {
    try machine.write("/etc/sudoers", "alice ALL=(ALL) ALL\nbob ALL=(ALL) ALL\n")
    let told = machine.doctor("sudo")
    #expect(told.status == 2)
    #expect(!told.answer.contains("\n0 errors"), "\(told.answer)")
    #expect(told.answer.contains(" error: "), "\(told.answer)")
  }

  // decisive
  @Test func `counts once what a finding and the table tell`() throws {
    let before = try errors(machine.doctor("sudo").answer)
    try machine.write("/etc/sudoers", "alice ALL=(ALL) NOPASSWD: ALL\nbob ALL=(ALL) ALL\n")
    let told = machine.doctor("sudo").answer
    #expect(told.contains("NOPASSWD"))
    #expect(try errors(told) == before + 1, "\(told)")
  }

  /// As the last line of the findings counts them.
  private func errors(_ told: String) throws -> Int {
    let line = try #require(
      told.split(separator: "\n").first {
        $0.contains(" error") && $0.hasSuffix(".") && $0.first?.isNumber == true
      })
    return try #require(Int(line.prefix { $0.isNumber }))
  }

  // decisive
  @Test func `names whose code sudo asks for`() throws {
    try machine.write("/etc/sudoers", "Defaults rootpw\nalice ALL=(ALL) ALL\n")
    try machine.write("/etc/shadow", "root:$6$x::\nalice:$6$x::\nbob:$6$x::\n")
    let told = rows("alice")
    #expect(told.contains("      # sallyport enroll root"), "\(told)")
    #expect(!told.contains("      # sallyport enroll alice"), "\(told)")
  }

  @Test func `keeps to the columns there are`() throws {
    for row in rows("alice") + rows("bob") where !row.hasPrefix("      # ") {
      #expect(row.unicodeScalars.count <= 80)
    }
  }

  // decisive
  @Test(arguments: [Barrier.noKey, .stackShut, .wrongWord, .rootLogin, .expired, .noRule])
  func `knows what changes a refusal`(_ barrier: Barrier) {
    let line = FileLocation(file: "/etc/pam.d/sudo", line: 3)
    let wanted: Remedy? =
      switch barrier {
      case .noKey: .edit("~bob/.ssh/authorized_keys")
      case .expired: .command("chage bob")
      case .noRule: .command("visudo")
      case _: .edit("/etc/pam.d/sudo:3")
      }
    #expect(remedy(.refused(barrier), at: line) == wanted)
  }

  // decisive
  @Test(arguments: [
    Verdict.refused(.noPassword), .refused(.locked), .refused(.noKey), .withoutCode(.keyAlone),
  ])
  func `tells to enroll a person first, and no robot`(_ verdict: Verdict) throws {
    guard case .see(let parts) = try #require(remedy(verdict, isEnrolled: false)) else {
      Issue.record("a command could be pasted for a robot")
      return
    }
    #expect(parts.prefix(3) == ["for a person:", "sallyport enroll bob,", "then"])
    if verdict == .withoutCode(.keyAlone) {
      #expect(
        folded(parts, 69)
          == [
            "for a person: sallyport enroll bob, then", "sallyport pam enable sshd --sshd match",
          ])
    }
    if case .see(let other) = remedy(verdict) { Issue.record("\(other)") }
  }

  // decisive
  @Test func `asks for what each has where a key alone is enough`() {
    #expect(
      remedy(.withoutCode(.keyAlone)) == .command("sallyport pam enable sshd --sshd match"))
    let ours = FileLocation(file: "/etc/ssh/sshd_config.d/00-sallyport.conf", line: 3)
    #expect(
      remedy(.withoutCode(.keyAlone), at: ours) == .command("sallyport pam enable sshd"))
    // A robot that is enrolled would be asked for a code from the next change on.
    #expect(
      remedy(.withoutCode(.keyAlone), at: ours, isEnrolled: false)
        == .see(["to allow it:", "without_code = bob:sudo"]))
    let other = FileLocation(file: "/etc/ssh/sshd_config", line: 3)
    #expect(
      remedy(.withoutCode(.keyAlone), at: other, isEnrolled: false) == .edit(other.text))
  }

  @Test func `has a command or a line for every way that is not asked`() {
    let line = FileLocation(file: "/etc/x", line: 3)
    for barrier in Barrier.allCases {
      #expect(remedy(.refused(barrier), at: line) != nil, "\(barrier)")
    }
    for opening in Opening.allCases {
      #expect(remedy(.withoutCode(opening), at: line) != nil, "\(opening)")
    }
    #expect(remedy(.asked(.code), at: line) == nil)
    #expect(remedy(.unseen(.notRoot), at: line) == nil)
  }

  private func remedy(
    _ verdict: Verdict, at location: FileLocation? = nil, isEnrolled: Bool = true
  ) -> Remedy? {
    Remedy(verdict, of: ["bob"], at: "sudo", location, isEnrolled: isEnrolled)
  }
}
