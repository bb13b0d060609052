import Foundation
import Testing

@testable import SallyportCLI

@Suite struct `A pass that is given` {
  private let bench = Bench()

  private struct Given: Decodable {
    let pass: String
    let expires: String
    let uses: Int
  }

  private struct Told: Decodable {
    struct Open: Decodable {
      let expires: String
      let usesLeft: Int
    }
    let passes: [Open]
  }

  init() throws { _ = try bench.enroll("daemon") }

  private func open() throws -> [Int] {
    try bench.run("status", "daemon", "--json").json(Told.self).passes.map(\.usesLeft)
  }

  private func verify(_ code: String) -> Int32 {
    bench.run("verify", "--user", "daemon", on: FakeTerminal([.types(code)])).status
  }

  @Test func `Is verified as often as it is good for, and told of by status`() throws {
    let done = bench.run("pass", "daemon", "--uses", "2", "--for", "90m", "--json")
    let given = try done.json(Given.self)
    #expect(given.uses == 2)
    #expect(try open() == [2])
    #expect(verify(given.pass) == 0)
    #expect(try open() == [1])
    #expect(verify(given.pass) == 0)
    #expect(try open() == [])
    #expect(verify(given.pass) == 1)
  }

  @Test func `Is told of by status where it was used, as the other ways are`() throws {
    let enrolled = try bench.enroll()
    let given = try bench.run("pass", "alice", "--json").json(Given.self).pass
    let use = "today \(whenText(bench.now, seenFrom: bench.now).suffix(5))"
    let codes = [try enrolled.code(at: bench.now), enrolled.backupCodes[3], given]
    for code in codes {
      let done = bench.run("verify", "--user", "alice", on: FakeTerminal([.types(code)]))
      #expect(done.status == 0)
    }
    let lines = bench.run("status", "--user", "alice").answer.split(separator: "\n").dropFirst()
    #expect(
      lines.map { $0.drop { $0 == " " } } == [
        "phone          TOTP, 6 digits, 30 s   used \(use), sallyport,", "this machine",
        "backup codes   9 of 10 left", "one used \(use), sallyport, this machine",
        "wrong codes    20 more before a wait from known places, 20 from elsewhere",
        "pass used      \(use)",
      ])
  }

  @Test func `Consents to no change`() throws {
    let given = try bench.run("pass", "daemon", "--json").json(Given.self)
    let terminal = FakeTerminal([.types(given.pass)])
    #expect(bench.run("unenroll", "daemon", on: terminal).status == 1)
    #expect(try open() == [1])
  }

  @Test func `Is revoked, and a fourth one is refused`() throws {
    for _ in 1...3 { #expect(bench.run("pass", "daemon").status == 0) }
    let fourth = bench.run("pass", "daemon")
    #expect(fourth.status == 73 && fourth.aside.contains("--revoke"))
    #expect(bench.run("pass", "daemon", "--revoke").answer.contains(" 3 were ended."))
    #expect(bench.run("pass", "daemon", "--revoke").answer.contains("It had none before."))
    #expect(try open() == [])
  }

  @Test func `Is for root with --force alone`() throws {
    _ = try bench.enroll("root")
    #expect(bench.run("pass", "root").status == 1)
    #expect(bench.run("pass", "root", "--force").status == 0)
  }

  @Test(arguments: ["9m", "8d", "2", "h", "-1h", "1 h", "99999999999999999999d"])
  func `Ends between ten minutes and a week from now`(time: String) {
    #expect(bench.run("pass", "daemon", "--for", time).status == 64)
  }

  private struct Enrolls: Decodable {
    struct Open: Decodable { let enrolls: Bool? }
    struct Suspended: Decodable { let id: String }
    let passes: [Open]
    let suspended: [Suspended]
  }

  @Test func `That enrolls is told of, and good for nothing else`() throws {
    let given = try bench.run("pass", "daemon", "--enroll", "--json").json(Given.self)
    #expect(given.uses == 1)
    let told = try bench.run("status", "daemon", "--json").json(Enrolls.self)
    #expect(told.passes.map(\.enrolls) == [true] && told.suspended.isEmpty)
    #expect(bench.run("status", "daemon").answer.contains("one that enrolls again"))
    let refused = bench.run(
      "verify", "--user", "daemon", on: FakeTerminal([.types(given.pass)]))
    #expect(refused.status == 1 && refused.aside.contains("ends in enrolling"))
    #expect(try open() == [3])
    #expect(bench.run("pass", "daemon", "--enroll", "--uses", "2").status == 64)
    let none = bench.run("restore", "daemon", "--yes")
    #expect(none.status == 1 && none.aside.contains("nothing can be restored"))
  }

  @Test(arguments: [["--for", "2h"], ["--uses", "1"], ["--force"], ["--enroll"]])
  func `Is not given by what revokes it`(words: [String]) {
    #expect(bench.run(arguments: ["pass", "daemon", "--revoke"] + words).status == 64)
  }

  @Test func `Is for nobody who is not enrolled`() {
    #expect(bench.run("pass", "bin").status == 66)
  }
}
