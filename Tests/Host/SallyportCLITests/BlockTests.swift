import Foundation
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI

@Suite struct `A user who is blocked` {
  private let bench = Bench()
  private var store: Store { Store(root: bench.directory, owner: .effectiveUser) }

  private struct Told: Decodable {
    struct Block: Decodable, Equatable { let since, until: String? }
    let blocked: Block?
  }

  private struct Listed: Decodable {
    struct Person: Decodable {
      let user: String
      let blocked: Told.Block?
    }
    let users: [Person]
  }

  private func told() throws -> Told.Block? {
    try bench.run("status", "daemon", "--json").json(Told.self).blocked
  }

  private func isBlocked(_ name: String, _ uid: UInt32?) throws -> Bool {
    let account = Account(name: try #require(UserName(Array(name.utf8))), uid: uid)
    return try store.isBlocked(account, at: { bench.now })
  }

  @Test func `is told of by status and list, keeps what is enrolled, and is let in again`() throws {
    let enrolled = try bench.enroll("daemon")
    bench.run("exempt", "daemon")
    #expect(try told() == nil)
    #expect(bench.run("block", "daemon").status == 0)
    #expect(try told() == Told.Block(since: "2026-03-03T09:26:40Z", until: nil))
    #expect(bench.run("status", "daemon").answer.contains("blocked"))
    #expect(bench.run("list").answer.contains("  blocked, exempt\n"))
    #expect(try bench.run("list", "--json").json(Listed.self).users.first?.blocked != nil)
    #expect(
      try bench.run("list", "--blocked", "--json").json(Listed.self).users.map(\.user) == ["daemon"]
    )
    let code = try enrolled.code(at: bench.now)
    let refused = bench.run("verify", "daemon", on: FakeTerminal([.types(code)]))
    #expect(refused.status == 1 && refused.aside.contains("is blocked"))
    #expect(bench.run("block", "daemon", "--undo").status == 0)
    #expect(try told() == nil)
    #expect(bench.run("verify", "daemon", on: FakeTerminal([.types(code)])).status == 0)
    #expect(bench.run("status", "daemon").answer.contains("exempt"))
    #expect(bench.run("block", "daemon", "--undo").status == 66)
    let gone = bench.run("block", "nobody-here", "--undo")
    #expect(gone.status == 66 && gone.aside.contains("hint: sallyport list --blocked"))
  }

  @Test func `is so up to another end, and what that replaces is said`() throws {
    func said(_ words: String...) -> String {
      bench.run(arguments: ["block", "daemon"] + words).answer
    }
    #expect(!said().contains("Before this"))
    #expect(!said().contains("Before this"))
    let end = said("--until", "2026-03-05")
    #expect(end.contains("daemon is blocked up to 2026-03-05 00:00 UTC: nothing is accepted."))
    #expect(end.contains("`sudo loginctl terminate-user daemon` ends them."))
    #expect(end.contains("Before this it was blocked without an end."), "\(end)")
    #expect(said().contains("Before this it was blocked up to 2026-03-05 00:00 UTC."))
    bench.run("block", "daemon", "--until", "2026-03-05")
    bench.now = try #require(UnixTime(date: Array("2026-03-06".utf8)))
    #expect(!said().contains("Before this"))
  }

  @Test func `gets a pass with the warning that it is refused`() throws {
    _ = try bench.enroll("daemon")
    bench.run("block", "daemon")
    let given = bench.run("pass", "daemon")
    #expect(given.status == 0 && given.aside.contains("daemon is blocked: the pass is refused"))
    bench.run("block", "daemon", "--undo")
    #expect(!bench.run("pass", "daemon").aside.contains("blocked"))
  }

  @Test func `is so without an enrollment, and stays so when the enrollment ends`() throws {
    #expect(bench.run("block", "daemon").status == 0)
    #expect(try isBlocked("daemon", 1))
    _ = try bench.enroll("daemon")
    #expect(bench.run("unenroll", "daemon", "--force").status == 0)
    #expect(try isBlocked("daemon", 1))
  }

  @Test func `is so up to a day, which has not begun`() throws {
    #expect(bench.run("block", "daemon", "--until", "2026-03-03").status == 64)
    #expect(bench.run("block", "daemon", "--until", "2026-03-05").status == 0)
    #expect(try isBlocked("daemon", 1))
    let list = bench.run("list", "--blocked").answer
    #expect(list.contains("up to 2026-03-05"))
    bench.now = try #require(UnixTime(date: Array("2026-03-05".utf8)))
    #expect(try !isBlocked("daemon", 1))
    #expect(try bench.run("list", "--blocked", "--json").json(Listed.self).users.isEmpty)
  }

  // decisive
  @Test func `is so under another name with the same uid, and lifted under that`() throws {
    let former = Account(name: try #require(UserName(Array("former-name".utf8))), uid: 1)
    try store.prepare()
    #expect(try store.block(former, until: nil, at: bench.now) == .done)
    #expect(try isBlocked("daemon", 1) && isBlocked("former-name", nil))
    #expect(
      try bench.run("list", "--blocked", "--json").json(Listed.self).users.map(\.user)
        == ["daemon", "former-name"])
    #expect(bench.run("block", "daemon", "--undo").status == 0)
    #expect(try !isBlocked("daemon", 1) && !isBlocked("former-name", nil))
  }

  @Test func `keeps the block of another account`() throws {
    #expect(bench.run("block", "daemon").status == 0)
    #expect(bench.run("block", "bin").status == 0)
    #expect(bench.run("block", "daemon", "--undo").status == 0)
    #expect(try isBlocked("bin", 2) && !isBlocked("daemon", 1))
  }

  @Test func `is not root, nor who types it, but with --force`() throws {
    #expect(bench.run("block", "root").status == 1)
    #expect(bench.run("block", "daemon", caller: "daemon").status == 1)
    #expect(try !isBlocked("root", 0) && !isBlocked("daemon", 1))
    #expect(bench.run("block", "daemon", "--force", caller: "daemon").status == 0)
    #expect(bench.run("block", "nobody-here").status == 67)
  }

  @Test func `whose file is not understood is blocked for good, and lifted`() throws {
    #expect(bench.run("block", "daemon", "--until", "2026-03-05").status == 0)
    for file in ["blocked/daemon", "blocked-uids/1"] {
      let path = bench.directory + "/" + file
      let text = try String(contentsOfFile: path, encoding: .utf8)
      try (text + "by = carol\n").write(toFile: path, atomically: false, encoding: .utf8)
    }
    bench.now = try #require(UnixTime(date: Array("2027-03-05".utf8)))
    #expect(try isBlocked("daemon", 1))
    #expect(bench.run("status", "daemon").answer.contains("is not understood"))
    #expect(bench.run("block", "daemon", "--undo").status == 0)
    #expect(try !isBlocked("daemon", 1))
  }

  @Test(arguments: [
    ["--undo", "--until", "2030-01-01"], ["--undo", "--force"], ["--until", "soon"],
  ])
  func `is not made so by options that contradict`(words: [String]) {
    #expect(bench.run(arguments: ["block", "daemon"] + words).status == 64)
  }
}
