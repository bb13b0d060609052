import Foundation
import SallyportCore
import Testing

@testable import SallyportCLI

@Suite struct `A command that is built without the fleet` {
  private let bench = Bench()
  private let user = "nobody"

  private func run(_ words: [String], typing script: [Act] = []) -> Bench.Outcome {
    bench.runAsRoot(words, on: FakeTerminal(script), store: bench.directory)
  }

  private static let aboutOne = [
    ["enroll", "--no-confirm"], ["add", "--no-confirm"], ["backup-codes"],
    ["rename", "phone", "b"],
    ["remove", "phone", "--force"], ["verify"], ["status"], ["unlock"], ["unenroll", "--force"],
    ["resync"], ["require"], ["exempt"],
  ]

  @Test(arguments: aboutOne)
  func `refuses whose codes the policy has the fleet verify`(words: [String]) throws {
    try bench.policy("[default]\nverification = fleet\n")
    for isEnrolled in [false, true] {
      if isEnrolled { _ = try bench.enroll(user) }
      let before = try bench.content()
      let done = run([words[0], user] + words.dropFirst())
      #expect(done.status == 78)
      #expect(
        done.aside.hasPrefix(
          "sallyport: the fleet verifies the codes of nobody, and this sallyport is built without "
            + "the fleet; nothing was changed\nhint: sallyport config edit "), "\(done.aside)")
      #expect(done.answer.isEmpty && done.terminal.prompts.isEmpty)
      #expect(try bench.content() == before)
    }
  }

  @Test func `works on files where the policy says so, or a store is named`() throws {
    try bench.policy("[rule here]\nmatch_user = nobody\nverification = local\n")
    #expect(run(["enroll", user, "--no-confirm"]).status == 0)
    try bench.policy("[default]\nverification = fleet\n")
    #expect(run(["status", user]).status == 78)
    #expect(bench.run("status", user).status == 0)
    #expect(bench.run("unenroll", user, "--force").status == 0)
  }

  @Test func `lists no fleet, and has no verb of one`() {
    let listed = run(["list", "--fleet"])
    #expect(listed.status == 78)
    #expect(listed.aside.hasPrefix("sallyport: this sallyport is built without the fleet;"))
    #expect(run(["fleet", "status"]).status == 64)
    #expect(!run(["--help"]).answer.contains("fleet"))
    for line in [["verifiers"], ["fleet", "join"], ["cluster"]] {
      #expect(!run(line).aside.contains("Did you mean"))
    }
  }

  @Test func `has doctor say what the policy wants, and name no verb that is not there`() throws {
    let machine = try PamBench()
    let security = "\(machine.root)/etc/security"
    try FileManager.default.createDirectory(
      atPath: security, withIntermediateDirectories: true)
    try machine.write("/etc/security/sallyport.conf", "[default]\nverification = fleet\n")
    for isMember in [false, true] {
      if isMember { try machine.write("/etc/security/sallyport-fleet.conf", "") }
      let done = machine.doctor("sudo")
      let said = done.answer.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(done.status == 2)
      #expect(said.contains("verification = fleet, but this sallyport is built without the fleet"))
      #expect(said.contains("see: sallyport config edit: verification = local, in [default]"))
      #expect(!said.contains("sallyport fleet"), "\(said)")
    }
  }
}
