import Foundation
import Glibc
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `The log of acts` {
  private let bench = Bench()

  private struct Shown: Decodable {
    struct Fact: Decodable { let key, value: String }
    struct Told: Decodable {
      let time: String?
      let act, by, stage: String
      let loginuid, claimed, `for`, via: String?
      let facts: [Fact]
    }
    let acts: [Told]
    let warnings: [String]
  }

  /// With a journal, in which is nothing.
  init() throws {
    let root = bench.root + "/var/log/journal/0"
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: root + "/system.journal"))
    bench.machine = Machine(root: bench.root, run: { _ in .seen(CommandOutput(status: 1)) })
  }

  private func run(_ words: String..., as user: UInt32 = 0) -> Bench.Outcome {
    let terminal = FakeTerminal()
    var context = bench.context(terminal, caller: "mallory", as: user)
    context.usualStore = Store(root: bench.directory, owner: .effectiveUser)
    context.loginUID = { 2_147_483_648 }
    return Bench.Outcome(status: Command.run(words, in: context), terminal: terminal)
  }

  private func write(_ lines: [String]) throws {
    let store = Store(root: bench.directory, owner: .effectiveUser)
    try store.append(acts: lines, month: "2026-03")
  }

  private func enroll() throws {
    let done = run("enroll", "daemon", "--allow-missing", "--no-confirm", "--json")
    try #require(done.status == 0, "\(done.aside)")
  }

  @Test func `Tells each change in one line`() throws {
    try enroll()
    for words in [["pass"], ["rename", "phone", "old phone"], ["unlock"]] {
      bench.now = UnixTime(bench.now.seconds + 60)
      let more = words.first == "rename" ? Array(words.dropFirst()) : []
      let terminal = FakeTerminal()
      var context = bench.context(terminal, as: 0)
      context.usualStore = Store(root: bench.directory, owner: .effectiveUser)
      let done = Command.run([words[0], "daemon"] + more, in: context)
      #expect(done == 0, "\(terminal.aside)")
    }
    let lines = run("log").answer.split(separator: "\n")
    #expect(lines.allSatisfy { $0.hasPrefix("today ") })
    #expect(
      lines.map { $0.dropFirst(13) } == [
        "root enrolled daemon with \"phone\" [command]",
        "root gave daemon a pass, uses 1, until 2026-03-03T11:27:40Z [command]",
        "root renamed \"phone\" of daemon to \"old phone\" [command]",
        "root unlocked daemon [command]",
      ])
    #expect(run("log", "daemon").answer.split(separator: "\n") == lines)
    #expect(run("log", "bin").answer.hasPrefix("Nothing since "))
    bench.now = UnixTime(bench.now.seconds + 3600 - 120)
    #expect(run("log", "--since", "1h").answer.split(separator: "\n").count == 3)
    #expect(run("log", "--since", "2026-03-04").answer.hasPrefix("Nothing since "))
    for word in ["7", "0d", "1y", "2026-02-30", "d", "-3d"] {
      #expect(run("log", "--since=\(word)").status == 64)
    }
  }

  @Test func `Gives the keys to programs`() throws {
    try enroll()
    let shown = try run("log", "--json").json(Shown.self)
    let told = try #require(shown.acts.first)
    #expect(shown.acts.count == 1)
    #expect(told.act == "enroll" && told.by == "root" && told.for == "daemon")
    #expect(told.loginuid == "2147483648" && told.via == "command" && told.stage == "done")
    #expect(told.time == "2026-03-03T09:26:40Z")
    #expect(told.facts.map(\.key) == ["authenticator"] && told.facts.first?.value == "phone")
    #expect(shown.warnings == [])
  }

  @Test func `Tells what began and has no end as what may have happened`() throws {
    try enroll()
    let by = "by=root(carol) loginuid=1000 for=alice via=command"
    try write([
      "2026-03-03T09:00:00Z act=unenroll \(by) stage=will",
      "2026-03-03T09:00:01Z act=unlock \(by) stage=will",
      "2026-03-03T09:00:02Z act=unlock \(by) stage=failed",
      "2026-03-03T09:00:03Z act=melt \(by) stage=done",
    ])
    let lines = run("log", "alice").answer.split(separator: "\n").map { $0.dropFirst(13) }
    let who = "root (carol)"
    #expect(
      lines == [
        "\(who) may have removed all that alice had enrolled: its end was not seen [command]",
        "\(who) tried to unlock alice, which failed [command]",
        "\(who) did: melt alice [command]",
      ])
  }

  /// The same thing that was begun twice, and ended once.
  @Test func `Takes an end for that of the last beginning`() throws {
    try enroll()
    let by = "act=unlock by=root for=alice via=command"
    try write([
      "2026-03-03T09:00:00Z \(by) stage=will", "2026-03-03T09:10:00Z \(by) stage=will",
      "2026-03-03T09:10:00Z \(by) stage=done",
    ])
    let shown = try run("log", "alice", "--json").json(Shown.self)
    #expect(shown.acts.map(\.stage) == ["will", "done"])
    #expect(shown.acts.map(\.time) == ["2026-03-03T09:00:00Z", "2026-03-03T09:10:00Z"])
  }

  // shows: log-flood
  @Test func `Reads a month that is full, and says whose acts are more`() throws {
    try enroll()
    func lines(_ name: String, _ count: Int) -> [String] {
      (0..<count).flatMap { number in
        ["will", "done"].map {
          "2026-03-03T09:00:00Z act=rename by=\(name) for=\(name) authenticator=a\(number) new=b "
            + "pid=1 via=session stage=\($0)"
        }
      }
    }
    try write(lines("eve", 10_000) + lines("alice", 199))
    let start = ContinuousClock.now
    let shown = try run("log", "--json").json(Shown.self)
    #expect(shown.acts.count == 10_200 && shown.acts.allSatisfy { $0.stage == "done" })
    #expect(ContinuousClock.now - start < .seconds(60))
    #expect(
      shown.warnings == [
        "acts/2026-03: only the first 200 changes that eve made himself are kept; the log of the "
          + "system has the rest"
      ])
    #expect(try run("log", "alice", "--json").json(Shown.self).warnings.isEmpty)
    // Also of what they filled before.
    let later = try run("log", "--since", "10m", "--json").json(Shown.self)
    #expect(later.acts.count == 1 && later.warnings == shown.warnings)
  }

  /// Only root writes there; what a name or a crash left is still no line and no escape.
  // shows: true-log
  @Test func `Shows nothing of a hostile value as it is, and says what it cannot read`() throws {
    try enroll()
    let name = "authenticator=a%0Aact%3Dx%1B[2J"
    try write([
      "2026-03-03T09:00:00Z act=add by=root for=alice \(name) via=command stage=done",
      "2026-03-03T09:00:00Z act=add by=root for=alice authenticator=\u{1b}[2J stage=done",
      "2026-03-03T09:00:00Z act=ad",
    ])
    let shown = run("log", "alice")
    #expect(shown.answer.contains("added \"a%0Aact=x%1B[2J\" for alice"))
    #expect(shown.answer.split(separator: "\n").count == 1)
    #expect(!shown.answer.utf8.contains(0x1b))
    #expect(shown.aside.contains("warning: acts/2026-03: 2 lines cannot be read"))
  }

  /// What is about many people, about a machine or about its policy.
  @Test func `Has the store, the policy and each person of an import`() throws {
    try enroll()
    let (list, policy) = (bench.directory + "-oath", bench.policyFile + "2")
    defer { for path in [list, policy] { try? FileManager.default.removeItem(atPath: path) } }
    let key = "3132333435363738393031323334353637383930"
    for path in [list, policy] {
      try Data((path == list ? "HOTP bob - \(key) 4\nHOTP carol - \(key)\n" : "").utf8)
        .write(to: URL(fileURLWithPath: path))
      _ = unsafe chmod(path, 0o600)
    }
    #expect(run("import", "pam-oath", list, "--allow-missing").status == 0)
    #expect(run("config", "install", policy, "--conf", bench.policyFile, "--yes").status == 0)
    #expect(run("prepare", "--store-only").status == 0)
    let lines = run("log").answer.split(separator: "\n").map { $0.dropFirst(13) }
    #expect(
      lines.dropFirst() == [
        "root imported bob with \"counter\" [command]",
        "root imported carol with \"counter\" [command]",
        "root installed the policy \(bench.policyFile) [command]",
        "root prepared the store [command]",
      ])
    #expect(run("import", "pam-oath", list, "--allow-missing").status == 0)
    #expect(run("log").answer.split(separator: "\n").count == 5)
    #expect(run("prepare", "--empty", "--yes").status == 0)
    let by = "by=root loginuid=2147483648 via=command stage="
    #expect(
      bench.logged.suffix(2) == ["6 act=prepare-empty \(by)will", "5 act=prepare-empty \(by)done"])
    #expect(!FileManager.default.fileExists(atPath: bench.directory + "/acts"))
  }

  @Test func `Is root's`() throws {
    try enroll()
    #expect(run("log", as: 1).status == 77)
  }

  @Test func `Hinders no change where it cannot be written`() throws {
    try enroll()
    let directory = bench.directory + "/acts"
    try FileManager.default.removeItem(atPath: directory)
    try Data().write(to: URL(fileURLWithPath: directory))
    let done = run("unlock", "daemon")
    #expect(done.status == 0)
    #expect(done.aside.contains("sallyport log will not show this act"))
    #expect(bench.logged.last?.hasSuffix("stage=done") == true)
    #expect(run("log").status != 0)
  }
}
