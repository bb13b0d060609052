import Foundation
import Testing

@testable import PAMStack

/// A line for those with a key, in front of the password, and the ordinary one behind it.
@Suite struct `A key or the password` {
  private let options = StackOptions(keyOrPassword: true)

  private func planner(_ machine: PamFiles) throws -> StackPlanner {
    try StackPlanner("sshd", in: StackDirectory(root: machine.root))
  }

  @Test func `both are asked for a code by lines of their own, which go again`() throws {
    let machine = try PamFiles()
    let before = try machine.content()
    let change = try planner(machine).enable(options)
    let writer = StackWriter(directory: StackDirectory(root: machine.root), date: "2026-03-03")
    _ = try writer.write(change)
    let lines = try #require(machine.read("/etc/pam.d/sshd")).components(separatedBy: "\n")
    let auth = lines.filter { $0.hasPrefix("auth") || $0.contains("common-auth") }
    #expect(
      auth == [
        "auth     [success=done perm_denied=ignore default=die] pam_sallyport.so "
          + "after-key enroll",
        "@include common-auth", "auth     required   pam_sallyport.so enroll",
      ])
    #expect(change.analysis.findings == [] && change.analysis.asksEverybody)
    #expect(change.analysis.lines.map(\.phase) == [.auth, .auth, .account, .session])
    #expect(change.analysis.line(.auth)?.isAfterKey == false)
    #expect(try planner(machine).enable(options).changesNothing)
    _ = try writer.write(try planner(machine).disable())
    #expect(try machine.content() == before)
  }

  /// Whether libpam, as it is modelled, lets in.
  private func isIn(
    _ machine: PamFiles, key: PAMCode, password: PAMCode, code: PAMCode
  ) -> Bool {
    let verdict = machine.stack("sshd").verdict(.auth) { entry in
      switch ModuleKind(entry) {
      case .afterKey: key
      case .ours: code
      case .password: password
      case .deny: .authenticationError
      case _: .success
      }
    }
    return verdict == .success
  }

  // shows: after-key
  @Test func `each gets in by two factors, and by neither of them alone`() throws {
    let machine = try PamFiles()
    let change = try planner(machine).enable(options)
    let writer = StackWriter(directory: StackDirectory(root: machine.root), date: "2026-03-03")
    _ = try writer.write(change)
    let (yes, no, none) = (
      PAMCode.success, PAMCode.authenticationError, PAMCode.permissionDenied
    )
    #expect(isIn(machine, key: yes, password: no, code: no))
    #expect(isIn(machine, key: none, password: yes, code: yes))
    for password in [yes, no] {
      for code in [yes, no] {
        #expect(!isIn(machine, key: no, password: password, code: code))
        #expect(!isIn(machine, key: .ignore, password: password, code: code))
        let both = password == yes && code == yes
        #expect(isIn(machine, key: none, password: password, code: code) == both)
      }
    }
  }

  @Test(arguments: ["pam_faillock", "pam_access", "pam_fprintd", "pam_custom"])
  func `nothing but the password is left out for a key`(module: String) throws {
    for isBehind in [true, false] {
      var files = Stacks.debian
      let line = "auth required \(module).so\n"
      let old = files["common-auth"] ?? ""
      files["common-auth"] = isBehind ? old + "\n" + line : line + old
      let machine = try PamFiles(files)
      #expect(throws: StackRefusal.moreThanPassword("sshd", modules: [module])) {
        try planner(machine).enable(options)
      }
    }
  }

  @Test func `is for sshd alone`() throws {
    var files = Stacks.debian
    files["cockpit"] = "@include sshd"
    let machine = try PamFiles(files)
    #expect(throws: StackRefusal.passwordElsewhere("sshd", services: ["cockpit"])) {
      try planner(machine).enable(options)
    }
    #expect(throws: StackRefusal.self) {
      try StackPlanner("sudo", in: StackDirectory(root: machine.root)).enable(options)
    }
  }

  private func findings(_ control: String, _ rest: String) throws -> [StackFinding] {
    let machine = try PamFiles()
    try machine.write("/etc/pam.d/x", "auth [\(control)] pam_sallyport.so after-key\n\(rest)")
    return machine.analysis("x").findings
  }

  private let ordinary = "auth requisite pam_unix.so\nauth required pam_sallyport.so\n"

  @Test func `a line that lets those without a key go on to nothing asks nobody`() throws {
    let control = "success=done perm_denied=ignore default=die"
    #expect(try findings(control, ordinary) == [])
    #expect(try findings(control, "auth required pam_unix.so\n").contains(.notAsked))
  }

  @Test func `a line for a key that is asked twice, or does not count, is told of`() throws {
    let twice = try findings("success=ok perm_denied=ignore default=die", ordinary)
    #expect(twice.contains { if case .askedTwice = $0 { true } else { false } })
    let idle = try findings(
      "success=done perm_denied=ignore default=ignore",
      "auth sufficient pam_permit.so\n" + ordinary)
    #expect(idle.contains { if case .notCounted = $0 { true } else { false } })
  }
}
