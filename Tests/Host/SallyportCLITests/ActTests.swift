import Foundation
import Glibc
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI

private typealias LoggedAct = SallyportAdministration.Act

@Suite struct `An act in the log` {
  private let bench = Bench()

  /// As root in a session that began as uid 2^31, which nobody has.
  private func run(_ words: [String], on terminal: FakeTerminal = FakeTerminal()) -> Int32 {
    bench.logged = []
    var context = bench.context(terminal, caller: "mallory", as: 0)
    context.usualStore = Store(root: bench.directory, owner: .effectiveUser)
    context.loginUID = { 2_147_483_648 }
    return Command.run(words + ["--user", "daemon", "--allow-missing"], in: context)
  }

  private static let by = "by=root loginuid=2147483648 for=daemon"

  @Test func `Is told before and after each change that root makes of a person`() throws {
    let new = ["--force", "--no-confirm", "--json"]
    let cases: [([String], String)] = [
      (["enroll", "--no-confirm", "--json"], "enroll authenticator=phone"),
      (["add", "--name", "fob"] + new, "add authenticator=fob"),
      (["rename", "--name", "fob", "--to", "old fob"], "rename authenticator=fob new=old%20fob"),
      (["remove", "--name", "old fob", "--force"], "remove authenticator=old%20fob"),
      (["backup-codes", "--regenerate"], "backup-codes backup-codes=10"),
      (["unlock"], "unlock"), (["forget"], "forget"),
      (["pass"], "pass uses=1 until=2026-03-03T11:26:40Z"), (["pass", "--revoke"], "revoke"),
      (["require", "--by", "2027-03-01"], "require from=2027-03-01T00:00:00Z"),
      (["exempt", "--until", "2099-03-01"], "exempt until=2099-03-01T00:00:00Z"),
      (["exempt"], "exempt"), (["exempt", "--undo"], "level level=policy"),
      (["unenroll", "--force"], "unenroll"),
    ]
    for (words, told) in cases {
      #expect(run(words) == 0, "\(words)")
      let parts = told.split(separator: " ", maxSplits: 1)
      let facts = parts.count > 1 ? " \(parts[1])" : ""
      let text = "act=\(parts[0]) \(Self.by)\(facts) via=command stage="
      #expect(bench.logged == ["\(LOG_INFO) \(text)will", "\(LOG_NOTICE) \(text)done"])
    }
  }

  @Test func `Has one record of the audit log, by its kind, with what came of it`() throws {
    #expect(run(["enroll", "--no-confirm", "--json"]) == 0)
    #expect(run(["exempt"]) == 0)
    let wrong = FakeTerminal([.types("000000"), .types("000001")])
    #expect(run(["resync"], on: wrong) != 0)
    #expect(
      bench.audited == [
        "1108 sallyport-enroll daemon true", "1102 sallyport-exempt daemon true",
        "1108 sallyport-resync daemon false",
      ])
  }

  @Test func `That changed nothing says so, and one that was refused before is none`() throws {
    #expect(run(["enroll", "--no-confirm", "--json"]) == 0)
    let wrong = FakeTerminal([.types("000000"), .types("000001")])
    #expect(run(["resync"], on: wrong) != 0)
    #expect(bench.logged.last?.hasSuffix("via=command stage=failed") == true)
    #expect(run(["enroll", "--no-confirm", "--json"]) == 73)
    #expect(bench.logged == [])
  }

  @Test func `Of a store that somebody made for himself is none of root's`() throws {
    let context = bench.context(FakeTerminal(isInteractive: false), as: 1)
    let words = ["enroll", "--user", "alice", "--allow-missing", "--no-confirm", "--json"]
    #expect(Command.run(words + ["--store", bench.directory], in: context) == 0)
    #expect(bench.logged == [])
  }

  /// What somebody chose is never a line or a key of its own.
  @Test func `Tells a caller as a claim, and no name as a line or a key`() throws {
    let user = try #require(UserName(Array("eve".utf8)))
    let act = LoggedAct(
      .add, .done, for: user, [.init("authenticator", "a\nact=x by=\"r\"".utf8)])
    let field = "authenticator=a%0Aact%3Dx%20by%3D%22r%22"
    let claimed = Actor(name: "root", login: nil, claimed: "c by=x")
    #expect(
      act.text(by: claimed)
        == "act=add by=root claimed=c%20by%3Dx for=eve \(field) via=command stage=done")
    let known = Actor(name: "root", login: (1000, "carol"), claimed: "x")
    #expect(act.text(by: known).hasPrefix("act=add by=root(carol) loginuid=1000 for=eve "))
  }
}
