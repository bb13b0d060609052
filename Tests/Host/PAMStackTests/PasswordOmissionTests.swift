import Foundation
import Testing

@testable import PAMStack

@Suite struct `A key in place of the password` {
  private func planner(_ machine: PamFiles) throws -> StackPlanner {
    try StackPlanner("sshd", in: StackDirectory(root: machine.root))
  }

  @Test func `leaves the password's line out, of this file alone, and brings it back`() throws {
    let machine = try PamFiles()
    let before = try machine.content()
    let change = try planner(machine).enable(StackOptions(afterKey: true))
    let writer = StackWriter(directory: StackDirectory(root: machine.root), date: "2026-03-03")
    _ = try writer.write(change)
    let lines = try #require(machine.read("/etc/pam.d/sshd")).components(separatedBy: "\n")
    #expect(lines.contains("#after-key# @include common-auth"))
    let index = try #require(lines.firstIndex { $0.hasPrefix("auth") })
    #expect(lines[index] == "auth     required   pam_sallyport.so after-key enroll")
    #expect(lines.filter { $0.contains("common-auth") } == ["#after-key# @include common-auth"])
    #expect(change.analysis.stack[.auth].map(\.moduleName) == ["pam_sallyport"])
    #expect(change.analysis.findings == [])
    let text = StackDiff(change).text
    #expect(text.contains("-  @include common-auth\n+  #after-key# @include common-auth"))
    #expect(try planner(machine).enable(StackOptions(afterKey: true)).changesNothing)
    _ = try writer.write(try planner(machine).disable())
    #expect(try machine.content() == before)
  }

  // shows: key-and-code
  @Test(arguments: ["pam_faillock", "pam_access", "pam_fprintd", "pam_custom"])
  func `leaves no other module out with it, unseen`(module: String) throws {
    var files = Stacks.debian
    files["common-auth"] = "auth required \(module).so\n" + (files["common-auth"] ?? "")
    let machine = try PamFiles(files)
    #expect(throws: StackRefusal.moreThanPassword("sshd", modules: [module])) {
      try planner(machine).enable(StackOptions(afterKey: true))
    }
  }

  // shows: key-and-code
  @Test func `is not for services that have no key`() throws {
    var files = Stacks.debian
    files["cockpit"] = "@include sshd"
    let machine = try PamFiles(files)
    #expect(throws: StackRefusal.passwordElsewhere("sshd", services: ["cockpit"])) {
      try planner(machine).enable(StackOptions(afterKey: true))
    }
    #expect(throws: Never.self) { try planner(machine).enable(StackOptions()) }
  }

  @Test func `needs a line that is for the password alone`() throws {
    for text in ["account required pam_unix.so", "@include system-login"] {
      let both = "auth required pam_unix.so\naccount required pam_unix.so"
      let machine = try PamFiles(["sshd": text, "system-login": both])
      #expect(throws: StackRefusal.self) {
        try planner(machine).enable(StackOptions(afterKey: true))
      }
    }
  }
}
