import Foundation
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSystem
import Testing

@testable import SallyportCLI

struct Level: Decodable, Equatable {
  let name: String
  let from: String?
  var until: String? = nil
}

@Suite struct `A level of one's own` {
  private let bench = Bench()

  private struct Told: Decodable {
    let user: String
    let level: Level?
    let enrolled: String?
    let logins: Int?
    let enrollingBegun: String?
  }

  private func level(_ words: String...) throws -> Level? {
    let done = bench.run(arguments: words + ["--user", "daemon", "--allow-missing", "--json"])
    try #require(done.status == 0, "\(done.aside)")
    return try done.json(Told.self).level
  }

  private func status() throws -> Told {
    let done = bench.run("status", "--user", "daemon", "--allow-missing", "--json")
    #expect(done.status == 66)
    return try done.json(Told.self)
  }

  @Test func `Is required, exempt, or taken back, and the last word counts`() throws {
    #expect(try level("require") == Level(name: "required", from: nil))
    #expect(
      try level("require", "--by", "2027-03-01")
        == Level(name: "required", from: "2027-03-01T00:00:00Z"))
    #expect(try status().level == Level(name: "required", from: "2027-03-01T00:00:00Z"))
    #expect(try level("exempt") == Level(name: "exempt", from: nil))
    #expect(try status().level == Level(name: "exempt", from: nil))
    #expect(try level("exempt", "--undo") == nil)
    #expect(try status().level == nil)
  }

  // decisive
  @Test func `Is exempt until a day, and then as the policy says`() throws {
    #expect(
      try level("exempt", "--until", "2099-03-01")
        == Level(name: "exempt", from: nil, until: "2099-03-01T00:00:00Z"))
    #expect(bench.run("status", "daemon").answer.contains("exempt until 2099-03-01 00:00 UTC\n"))
    for words in [["--until", "2001-03-01"], ["--until", "2099-03-01", "--undo"]] {
      #expect(bench.run(arguments: ["exempt", "daemon"] + words).status == 64)
    }
    #expect(try status().level?.until == "2099-03-01T00:00:00Z")
    let store = Store(root: bench.directory, owner: .effectiveUser)
    let daemon = try Accounts.find(#require(UserName(Array("daemon".utf8))))
    try store.setLevel(.exempt(until: UnixTime(9)), of: daemon)
    let told = bench.run("status", "daemon").answer
    #expect(told.contains("exempt until 1970-01-01 UTC, which is past"), "\(told)")
    let gone = Account(name: try #require(UserName(Array("gone".utf8))), uid: 54_321)
    try store.setLevel(.exempt(until: UnixTime(9)), of: gone)
    #expect(!bench.run("list").answer.contains("gone"))
    #expect(try level("exempt", "--undo") == nil)
  }

  private struct Many: Decodable {
    let users: [Told]
    let exempt, alreadyRequired: [String]
  }

  /// root is in the group root by its account, without being a listed member.
  @Test func `Is set for everybody in a group, and leaves the exempt alone`() throws {
    let done = bench.run("require", "--group", "root", "--by", "2027-03-01", "--json")
    try #require(done.status == 0, "\(done.aside)")
    let told = try done.json(Many.self)
    let root = try #require(told.users.first { $0.user == "root" })
    #expect(root.level == Level(name: "required", from: "2027-03-01T00:00:00Z"))
    let later = try bench.run("require", "--group", "root", "--by", "2028-03-01", "--json")
      .json(Many.self)
    #expect(later.users.isEmpty && later.alreadyRequired.contains("root"))
    #expect(bench.run("status", "root").answer.contains("required from 2027-03-01 on"))
    let sooner = try bench.run("require", "--group", "root", "--json").json(Many.self)
    #expect(sooner.users.contains { $0.user == "root" && $0.level?.from == nil })
    bench.run("exempt", "root")
    let again = bench.run("require", "--group", "root")
    #expect(again.answer.hasSuffix("left exempt:\n  root\n"), "\(again.answer)")
    #expect(bench.run("status", "root").answer.contains("exempt"))
    let undone = try bench.run("require", "--group", "root", "--undo", "--json").json(Many.self)
    #expect(!undone.users.contains { $0.user == "root" })
  }

  @Test func `Is set for every person`() throws {
    let people = Set(try AccountBook.all().filter(\.isPerson).map(\.account.name.text))
    let done = bench.run("require", "--all", "--json")
    #expect(done.status == (people.isEmpty ? 66 : 0), "\(done.aside)")
    if !people.isEmpty { #expect(Set(try done.json(Many.self).users.map(\.user)) == people) }
  }

  @Test(arguments: [
    ["require", "root", "--all"], ["require", "--group", "root", "--all"],
    ["require", "--user", "root", "--group", "root"],
  ]) func `Is for one user, or a group, or all`(arguments: [String]) {
    #expect(bench.run(arguments: arguments).status == 64)
    #expect(bench.run("require", "--group", "no-such-group-here").status == 66)
  }

  @Test func `Is not taken back where it is another one`() throws {
    _ = try level("exempt")
    let done = bench.run("require", "--user", "daemon", "--allow-missing", "--undo")
    #expect(done.status == 66)
    #expect(done.aside.hasPrefix("sallyport: nothing to undo: daemon has no such level\n"))
    #expect(try status().level?.name == "exempt")
  }

  /// As `userdel` leaves it: the note has a uid that no account of that name has.
  private func keepExempt(_ name: String, uid: UInt32) throws {
    bench.run("prepare")
    let user = try #require(UserName(Array(name.utf8)))
    let store = Store(root: bench.directory, owner: .effectiveUser)
    try store.setLevel(.exempt(until: nil), of: Account(name: user, uid: uid))
  }

  // decisive
  @Test(arguments: ["no-such-user-here", "daemon"])
  func `Is taken back by its name, also where the account is gone or another`(_ name: String)
    throws
  {
    try keepExempt(name, uid: 54_321)
    let told = bench.run("status", name, "--allow-missing").answer
    #expect(told.contains("uid 54321"), "\(told)")
    let listed = bench.run("list").answer
    #expect(listed.contains("exempt, and not found: \(name)") == (name != "daemon"), "\(listed)")
    let done = bench.run("exempt", name, "--undo")
    #expect(done.status == 0 && done.answer == "\(name): the policy's level applies.\n")
    #expect(!FileManager.default.fileExists(atPath: "\(bench.directory)/unenrolled/\(name)"))
    let again = bench.run("exempt", name, "--undo")
    #expect(again.status == 66 && again.aside.contains("nothing to undo: \(name) has no such"))
    #expect(again.aside.contains("list --exempt") == (name != "daemon"), "\(again.aside)")
    #expect(!bench.run("list").answer.contains("exempt"))
  }

  /// A login of an enrolled user reads no note; neither do the verbs that help one.
  // decisive
  @Test(arguments: [0o600, 0o644])
  func `In a damaged note keeps no verb from an enrolled user`(mode: Int) throws {
    let daemon = ["--user", "daemon", "--allow-missing"]
    func status(_ words: String...) -> Int32 { bench.run(arguments: words + daemon).status }
    #expect(status("enroll", "--no-confirm") == 0)
    let notes = "\(bench.directory)/unenrolled"
    try FileManager.default.createDirectory(atPath: notes, withIntermediateDirectories: true)
    try Data((mode == 0o600 ? "level = none\n" : "").utf8)
      .write(to: URL(fileURLWithPath: "\(notes)/daemon"))
    try FileManager.default.setAttributes(
      [.posixPermissions: mode], ofItemAtPath: "\(notes)/daemon")
    #expect(status("unlock") == 0)
    #expect(status("forget") == 0)
    #expect(status("backup-codes", "--regenerate") == 0)
    #expect(status("add", "--no-confirm", "--force") == 0)
    #expect(status("unenroll", "--force") == 0)
  }

  @Test func `Of an account before does not take what is required of this one with it`() throws {
    let daemon = try Accounts.find(#require(UserName("daemon".utf8)))
    try keepExempt("daemon", uid: 54_321)
    let other = try #require(UserName("no-such-user-here".utf8))
    let store = Store(root: bench.directory, owner: .effectiveUser)
    try store.setLevel(.required(from: nil), of: Account(name: other, uid: daemon.uid))
    #expect(bench.run("exempt", "daemon", "--undo").status == 0)
    #expect(try store.level(of: daemon) == .required(from: nil))
  }

  @Test(arguments: ["2027-02-29", "2027-3-1", "tomorrow", "", "1969-12-31", "2027-03-01T00:00"])
  func `Wants a day as it is written`(_ day: String) {
    let done = bench.run("require", "--user", "daemon", "--by", day)
    #expect(done.status == 64)
  }

  @Test func `Keeps the count of logins, and the count keeps it`() throws {
    let store = Store(root: bench.directory, owner: .effectiveUser)
    let daemon = try Accounts.find(#require(UserName("daemon".utf8)))
    _ = try level("require")
    #expect(try store.countLogin(of: daemon) == 1)
    #expect(try status().level?.name == "required")
    _ = try level("exempt")
    #expect(try status().logins == 1)
  }

  @Test func `Stands beside an enrolling that was begun at a login and has not ended`() throws {
    let store = Store(root: bench.directory, owner: .effectiveUser)
    let daemon = try Accounts.find(#require(UserName("daemon".utf8)))
    _ = try level("require")
    try store.noteEnrolling(of: daemon, begun: bench.now)
    let told = { bench.run("status", "daemon", "--allow-missing").answer }
    #expect(told().hasPrefix("daemon, not enrolled\n\n  level       required\n"), "\(told())")
    let clock = whenText(bench.now, seenFrom: bench.now)
    #expect(told().hasSuffix("\n  enrolling   begun \(clock) and not ended\n"), "\(told())")
    #expect(try status().enrollingBegun != nil)
    // The end of it is the enrollment; once that is gone nothing is left of either.
    _ = try bench.enroll("daemon")
    #expect(!told().contains("enrolling"))
    #expect(bench.run("unenroll", "daemon", "--allow-missing", "--force").status == 0)
    #expect(!told().contains("enrolling"), "\(told())")
    #expect(try status().enrollingBegun == nil)
  }

  @Test func `Is told to people, enrolled or not`() throws {
    _ = try level("require", "--by", "2027-03-01")
    let absent = bench.run("status", "--user", "daemon", "--allow-missing")
    #expect(absent.answer == "daemon, not enrolled\n\n  level   required from 2027-03-01 on\n")
    #expect(absent.aside == "hint: sallyport enroll daemon --store \(bench.directory)\n")
    #expect(absent.status == 66)
    _ = try bench.enroll("daemon")
    let done = bench.run("status", "--user", "daemon", "--allow-missing")
    #expect(done.answer.contains("\n  level          required from 2027-03-01 on"))
  }

  @Test func `Says of the enrolled that exempt asks them all the same`() throws {
    _ = try bench.enroll("root")
    #expect(
      bench.run("exempt", "root").answer == "root: exempt, whatever level the policy sets. root is "
        + "enrolled, and is asked for a code all the same.\n")
    #expect(
      bench.run("status", "root").answer.contains("level          exempt: enrolled, so asked "))
    let checked = bench.run("config", "check", bench.policyFile, "--user", "root").answer
    #expect(
      checked.replacing("\n", with: " ").contains(
        "(exempt by name); root is enrolled, and is asked for a code "), "\(checked)")
    #expect(bench.run("exempt", "daemon", "--allow-missing").answer.hasSuffix("policy sets.\n"))
  }

  @Test func `Says that a day is past`() throws {
    let past = bench.run("require", "daemon", "--by", "2026-03-02", "--allow-missing")
    #expect(past.aside == "sallyport: warning: 2026-03-02 is past: required from now on\n")
    for day in ["2026-03-03", "2026-03-04"] {
      let done = bench.run("require", "daemon", "--by", day, "--allow-missing")
      #expect(done.status == 0 && done.aside == "", "\(day)")
    }
  }

  @Test func `Of nobody is refused`() {
    #expect(bench.run("require", "--user", "no-such-user-here").status == 67)
    #expect(bench.run("exempt", "--user", "no-such-user-here").status == 67)
  }

  @Test func `That cannot be read is trouble, and the message fixes it`() throws {
    _ = try level("require")
    let file = bench.directory + "/unenrolled/daemon"
    try Data("level = none\n".utf8).write(to: URL(fileURLWithPath: file))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    for verb in ["status", "exempt"] {
      let done = bench.run(arguments: [verb, "--user", "daemon", "--allow-missing"])
      #expect(done.status == 65)
      #expect(done.aside.contains("version is missing"))
      #expect(done.aside.contains("hint: rm \(file)"))
    }
  }
}

@Suite struct `Remembered addresses` {
  private let bench = Bench()
  private let store: Store

  init() { store = Store(root: bench.directory, owner: .effectiveUser) }

  private struct Report: Decodable {
    struct Pair: Decodable, Equatable {
      let origin, service, granted: String
    }
    let remembered: [Pair]
  }

  private struct Forgotten: Decodable {
    let user: String
    let forgotten: [Report.Pair]
  }

  private static let pair = Report.Pair(
    origin: "192.0.2.7", service: "sshd", granted: "2026-03-03T09:26:40Z")

  private func record() throws -> Record {
    let alice = Account(name: try #require(UserName("alice".utf8)), uid: nil)
    return try #require(try store.load(alice))
  }

  /// An address; and a slip, with which a login could be given something back.
  private func remember() throws {
    let record = try record()
    let phone = try #require(record.enrollment.authenticators.first).id
    let address = try #require(NumericAddress([192, 0, 2, 7]))
    let now = bench.now
    _ = try store.transact(record) { (_, state) throws(StoreTrouble) in
      var state = state
      state.grant(address, service: Label("sshd"), at: now)
      state.slip = Slip(
        authenticator: phone, position: 9, time: now, amount: GuessProbability(units: 1))
      return ((), state)
    }
  }

  private func remembered() throws -> [Report.Pair] {
    try bench.run("status", "--user", "alice", "--allow-missing", "--json")
      .json(Report.self).remembered
  }

  @Test func `Are shown, and forgotten when asked`() throws {
    _ = try bench.enroll()
    #expect(try remembered() == [])
    try remember()
    #expect(try remembered() == [Self.pair])
    let text = bench.run("status", "--user", "alice", "--allow-missing").answer
    #expect(text.contains("remembered     192.0.2.7 for sshd, since today "), "\(text)")
    let done = try bench.run("forget", "--user", "alice", "--allow-missing", "--json")
      .json(Forgotten.self)
    #expect((done.user, done.forgotten) == ("alice", [Self.pair]))
    #expect(try remembered() == [])
    let again = bench.run("forget", "--user", "alice", "--allow-missing")
    #expect(again.answer == "Forgot 0 remembered addresses of alice.\n")
  }

  @Test func `Of somebody who is not enrolled are an error`() {
    bench.run("prepare")
    #expect(bench.run("forget", "--user", "alice", "--allow-missing").status == 66)
  }

  // shows: remembered-place
  @Test(arguments: ["add", "remove", "backup-codes", "resync", "enroll", "rename", "unlock"])
  func `Are forgotten with every change of what a code is`(_ verb: String) throws {
    let phone = try bench.enroll()
    _ = bench.run(
      arguments: [
        "add", "--user", "alice", "--name", "tablet", "--force", "--no-confirm", "--json",
        "--allow-missing",
      ])
    try remember()
    var words = [verb, "--user", "alice", "--allow-missing"]
    var script: [Act] = []
    switch verb {
    case "add": words += ["--name", "fob", "--force", "--no-confirm", "--json"]
    case "remove": words += ["--name", "tablet", "--force"]
    case "backup-codes": words.append("--regenerate")
    case "enroll": words += ["--force", "--no-confirm", "--json"]
    case "rename": words += ["--name", "tablet", "--to", "slate"]
    case "resync":
      script = [
        .types(try phone.code(at: bench.now)), .types(try phone.code(at: bench.now, steps: 1)),
      ]
    case _: break
    }
    let done = bench.run(arguments: words, on: FakeTerminal(script))
    #expect(done.status == 0, "\(done.aside)")
    let stays = verb == "rename" || verb == "unlock"
    #expect(try remembered() == (stays ? [Self.pair] : []))
    let keepsSlip = verb == "add" || verb == "backup-codes" || verb == "rename"
    #expect(try (record().state.slip != nil) == keepsSlip)
  }
}
