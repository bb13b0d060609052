import Foundation
import SallyportCore
import Testing

@testable import SallyportCLI

@Suite struct `A list with conditions` {
  private let bench = Bench()

  private struct Listed: Decodable {
    struct Person: Decodable { let user: String }
    let users: [Person]
  }

  private func names(_ words: String...) throws -> [String] {
    let done = bench.run(arguments: ["list", "--json"] + words)
    return try done.json(Listed.self).users.map(\.user)
  }

  init() throws {
    for user in ["alice", "bob", "carol"] { _ = try bench.enroll(user) }
  }

  @Test func `Lists those with an open pass`() throws {
    try #require(bench.run("pass", "bob", "--allow-missing").status == 0)
    #expect(try names("--passes") == ["bob"])
    #expect(bench.run("list", "--passes").answer.contains("1 of 3 enrolled"))
    bench.now = UnixTime(bench.now.seconds + 7200)
    #expect(try names("--passes") == [])
    #expect(try names() == ["alice", "bob", "carol"])
  }

  @Test func `Lists those with no accepted code for that long`() throws {
    bench.now = UnixTime(bench.now.seconds + 90 * 86_400 - 1)
    #expect(try names("--idle", "90d") == [])
    bench.now = UnixTime(bench.now.seconds + 1)
    #expect(try names("--idle", "90d") == ["alice", "bob", "carol"])
    let given = bench.run("pass", "bob", "--allow-missing", "--json")
    #expect(given.status == 0)
    // Those who meet every condition.
    #expect(try names("--idle", "90d", "--passes") == ["bob"])
  }

  @Test func `Lists those whose wrong codes are used up`() throws {
    #expect(try names("--locked") == [])
    for _ in 0..<40 {
      _ = bench.run(
        "verify", "--user", "alice", "--allow-missing", on: FakeTerminal([.types("000000")]))
    }
    #expect(try names("--locked") == ["alice"])
  }

  @Test func `Lists the exempt, enrolled or not`() throws {
    _ = try bench.enroll("bin")
    for user in ["bin", "daemon"] { try #require(bench.run("exempt", user).status == 0) }
    #expect(try names("--exempt") == ["bin", "daemon"])
    try #require(bench.run("pass", "carol", "--allow-missing").status == 0)
    #expect(try names("--exempt", "--passes") == [])
    let shown = bench.run("list", "--exempt").answer
    #expect(shown.contains("daemon   exempt") && shown.contains("2 persons"), "\(shown)")
  }

  /// It may be that of somebody who is exempt.
  @Test(arguments: [["--exempt"], ["--exempt", "--passes"]])
  func `Is incomplete where a note cannot be read`(words: [String]) throws {
    try #require(bench.run("exempt", "daemon").status == 0)
    let note = URL(fileURLWithPath: bench.directory + "/unenrolled/daemon")
    try Data("no note\n".utf8).write(to: note)
    let done = bench.run(arguments: ["list"] + words)
    #expect(done.status != 0 && (done.answer + done.aside).contains("unenrolled/daemon"))
  }

  /// Nobody of the enrolled, and no account that is no person's.
  @Test func `Lists people who have an account and are not enrolled`() throws {
    let done = bench.run("list", "--never-enrolled", "--json")
    #expect([0, 75].contains(done.status))
    let listed = try done.json(Listed.self).users.map(\.user)
    #expect(!listed.contains("alice") && !listed.contains("root") && !listed.contains("daemon"))
  }

  @Test(arguments: [
    ["--never-enrolled", "--locked"], ["--idle", "90"], ["--idle", "0d"],
  ])
  func `Has no conditions that nobody can meet`(words: [String]) {
    #expect(bench.run(arguments: ["list"] + words).status == 64)
  }
}
