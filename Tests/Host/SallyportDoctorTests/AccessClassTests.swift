import PAMStack
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportDoctor

/// Accounts between which one thing alone makes the difference.
@Suite struct `Who is told from whom` {
  private let fake = FakeMachine()
  private let end = "account required pam_unix.so\nsession required pam_permit.so\n"
  private let ours = "auth required pam_unix.so\nauth required pam_sallyport.so\n"

  /// The verdicts for two accounts of one number; both are enrolled but for those with a note.
  private func verdicts(
    _ stack: String, policy: String = "", password: String = "$6$x$y:19000",
    notes: [String: UserNote.Level] = [:], by way: String = "login"
  ) throws -> [Verdict] {
    try fake.write(
      "/etc/passwd", "alice:x:1000:1000::/home/a:/bin/sh\nbob:x:1000:1000::/home/b:/bin/sh\n")
    try fake.write(
      "/etc/shadow", "alice:\(password):0:99999:7:::\nbob:\(password):0:99999:7:::\n")
    try fake.write("/etc/group", "users:x:1000:\nstaff:x:50:bob\n")
    try fake.write("/bin/sh", "")
    try fake.change("/bin/sh", mode: 0o755)
    for service in ["login", "su"] { try fake.write("/etc/pam.d/\(service)", stack + end) }
    try fake.write("/etc/security/sallyport.conf", policy)
    var facts = AccessFacts(
      of: fake.machine, Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser),
      at: Healthy.now)
    facts.isStoreBroken = false
    facts.notes = notes
    for name in ["alice", "bob"] where notes[name] == nil {
      facts.enrollments[name] = .enrolled([.totp])
    }
    return AccessTable(facts).rows.flatMap(\.cells).filter { $0.way.name == way }.map(\.verdict)
  }

  @Test(arguments: ["match_user = bob", "match_group = staff"])
  func `a rule of the policy is for whom it names, though another has the same number`(
    condition: String
  ) throws {
    #expect(
      try verdicts(ours, policy: "[rule r]\n\(condition)\nstate = disabled\n")
        == [.asked(.code), .withoutCode(.disabled)])
  }

  @Test func `what root has set for one account is for no other`() throws {
    #expect(
      try verdicts(ours, notes: ["bob": .exempt(until: nil)]) == [
        .asked(.code), .withoutCode(.exempt),
      ])
  }

  @Test func `su is called by somebody else than root`() throws {
    let stack = "auth sufficient pam_rootok.so\n" + ours
    #expect(try verdicts(stack, by: "su") == [.asked(.code), .asked(.code)])
  }

  @Test func `an empty password that has to be changed is known to everybody`() throws {
    let open = Verdict.withoutCode(.noLine)
    #expect(
      try verdicts("auth required pam_unix.so nullok\n", password: ":0") == [open, open])
  }
}
