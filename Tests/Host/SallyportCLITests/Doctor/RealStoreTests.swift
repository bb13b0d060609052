import Foundation
import OneTimePassword
import PAMStack
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `Doctor looks at a real store` {
  private let bench = Bench()

  private func facts(at time: UnixTime? = nil) -> StoreFacts {
    let store = Store(root: bench.directory, owner: .effectiveUser)
    return StoreFacts(of: Machine(), store, at: bench.directory, time ?? bench.now)
  }

  @Test func `What a command has made is whole, and the look leaves nothing behind`() throws {
    _ = try bench.enroll()
    let before = try bench.content()
    let facts = facts()
    #expect(facts.error == nil && facts.decoyError == nil && facts.writing == .works)
    #expect(facts.enrolled == ["alice"] && facts.users[0].aheadUntil == nil)
    #expect(facts.users[0].isForNobody && facts.users[0].waits == (0, 0))
    #expect(facts.users[0].state.born <= facts.users[0].state.modified)
    #expect(try bench.content() == before)
  }

  @Test func `A code of the future and guesses are seen`() throws {
    let enrolled = try bench.enroll()
    let code = try enrolled.code(at: bench.now)
    bench.run("verify", "--user", "alice", on: FakeTerminal([.types(code)]))
    let past = UnixTime(bench.now.seconds - 86400)
    // The second at which `verify` accepts a code again: after the step of the last one.
    let next = UnixTime((bench.now.seconds / 30 + 1) * 30)
    #expect(facts(at: past).users[0].aheadUntil == next && !facts(at: past).users[0].isPaused)
    // As far ahead as `prepare --new-machine` leaves it, and a step more.
    for (steps, isPaused) in [(Int64(10), true), (11, false)] {
      let ahead = facts(at: UnixTime(bench.now.seconds - 30 * steps)).users[0]
      #expect(ahead.aheadUntil == next && ahead.isPaused == isPaused)
    }
    for _ in 0..<20 { bench.run("verify", "--user", "alice", on: FakeTerminal([.types("000000")])) }
    #expect(facts().users[0].waits.known != 0)
  }

  @Test func `What others made, opened, cut or copied is seen`() throws {
    _ = try bench.enroll()
    let state = "\(bench.directory)/users/alice/state"
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1000)], ofItemAtPath: state)
    #expect(facts().users[0].state.modified == 1000)
    let set = { (mode: Int) in
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: state)
    }
    try set(0o644)
    #expect(facts().users[0].error == .unsafe(path: state, .mode(0o644)))
    try set(0o600)
    try FileHandle(forWritingAtPath: state)?.truncate(atOffset: 4096)
    #expect(facts().users[0].error == .state(path: state, .size))
    try FileManager.default.createDirectory(
      atPath: "\(bench.directory)/users/.tmp-x", withIntermediateDirectories: false)
    #expect(facts(at: UnixTime(Int64(Date().timeIntervalSince1970) + 3600)).leftovers.count == 1)
    #expect(facts(at: UnixTime(Int64(Date().timeIntervalSince1970))).leftovers.isEmpty)
  }

  @Test func `Notes are read as a login reads them, and the rest of their directory too`() throws {
    let (directory, long) = ("\(bench.directory)/unenrolled", String(repeating: "long", count: 60))
    bench.run("exempt", "--user", "daemon")
    bench.run("require", "--user", "nobody-here", "--allow-missing")
    bench.run("require", "--user", long, "--allow-missing")
    bench.run("exempt", "--user", "bin")
    bench.run("exempt", "--user", "sys")
    let manager = FileManager.default
    try manager.setAttributes([.posixPermissions: 0o640], ofItemAtPath: "\(directory)/bin")
    try "version = 1\nuser = sys\n".write(
      toFile: "\(directory)/sys", atomically: false, encoding: .utf8)
    try manager.copyItem(atPath: "\(directory)/daemon", toPath: "\(directory)/mail")
    try manager.copyItem(atPath: "\(directory)/daemon", toPath: "\(directory)/daemon~")
    try "?".write(toFile: "\(directory)/what~", atomically: true, encoding: .utf8)
    let facts = facts()
    let notes = Dictionary(facts.notes.map { ($0.path.split(separator: "/").last ?? "", $0) }) {
      one, _ in one
    }
    #expect(facts.notesError == nil && notes.count == 8)
    #expect(notes["daemon"]?.error == nil && notes["daemon"]?.level == .exempt(until: nil))
    #expect(notes["daemon"]?.hasAccount == true)
    // Where a directory may be away, nobody is said to have none.
    #expect(notes["nobody-here"]?.hasAccount == (facts.knowsAllAccounts ? false : nil))
    #expect(notes["nobody-here"]?.level == .required(from: nil))
    let ofLong = facts.notes.first { $0.name == long }
    #expect(ofLong?.level == .required(from: nil) && ofLong?.error == nil)
    #expect(notes["bin"]?.error == .unsafe(path: "\(directory)/bin", .mode(0o640)))
    for name in ["sys", "mail", "daemon~", "what~"] {
      #expect(notes[Substring(name)]?.error?.path == "\(directory)/\(name)", "\(name)")
    }
    #expect(notes["mail"]?.name == "mail" && notes["what~"]?.name == nil)
    bench.run("require", "--user", "nobody-here", "--undo", "--allow-missing")
    #expect(self.facts().notes.count == 7)
    try manager.setAttributes([.posixPermissions: 0o770], ofItemAtPath: directory)
    #expect(self.facts().notesError == .unsafe(path: directory, .mode(0o770)))
    #expect(self.facts().notes.isEmpty)
  }

  /// A service whose auth line has these words, with a policy file of this text.
  private func policy(_ text: String?, _ words: String...) throws -> PolicyFacts {
    bench.run("prepare")
    let file = "\(bench.directory)/policy"
    try text?.write(toFile: file, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    let service = ServiceFacts(name: "sshd", lines: Healthy.lines(words + ["conf=\(file)"]))
    let person = AccountFacts.Account(name: "daemon", uid: 1, group: 1, shell: "/bin/sh")
    let store = Store(root: bench.directory, owner: .effectiveUser)
    return PolicyFacts(
      of: Machine(), in: store, service, people: [person], enrolled: facts().users, at: bench.now)
  }

  @Test(
    arguments: [
      ("", [], .refuse), ("", ["nullok"], .pass), ("", ["nullok", "oops"], .refuse),
      ("[default]\nenrollment = voluntary\n", [], .pass),
      ("[default]\nenrollment = required\n", ["enroll"], .enroll(.required)),
      ("[default]\nenrollment = required\n", [], .refuse),
      ("[default]\nenrollment = offer\n", ["enroll"], .enroll(.offer)),
      ("[rule a]\nmatch_user = daemon\nenrollment = voluntary\n", [], .pass),
      ("[rule a]\nmatch_service = sudo\nenrollment = voluntary\n", [], .refuse),
      ("[rule a]\nmatch_group = daemon\nenrollment = voluntary\n", [], .pass),
    ] as [(String, [String], UnenrolledAction)])
  func `What becomes of the unenrolled follows the policy`(
    text: String, words: [String], action: UnenrolledAction
  ) throws {
    let facts =
      words.count > 1
      ? try policy(text, words[0], words[1])
      : try words.first.map { try policy(text, $0) } ?? policy(text)
    #expect(facts.unenrolled.map(\.action) == [action])
    #expect(facts.error == nil && facts.problems == [])
  }

  @Test func `What root said of one user counts`() throws {
    bench.run("exempt", "--user", "daemon")
    #expect(try policy("").unenrolled.map(\.action) == [.pass])
  }

  // decisive
  @Test func `While the last good file applies, it says what becomes of the unenrolled`() throws {
    bench.run("exempt", "--user", "daemon")
    let broken = "[default]\nenrollment = voluntary\nnonsense = 1\n"
    let strict = try policy(broken)
    #expect(strict.unenrolled.map(\.action) == [.refuse] && !strict.isLastGood)
    #expect(try policy("[default]\n").isLastGood == false)
    // A login reads the good file, and keeps it.
    let store = Store(root: bench.directory, owner: .effectiveUser)
    let daemon = try Accounts.find(#require(UserName("daemon".utf8)))
    let file = Array("\(bench.directory)/policy".utf8)
    #expect(store.policy(at: file, base: Policy(), .command(for: daemon)).trouble == nil)
    let held = try policy(broken)
    #expect(held.unenrolled.map(\.action) == [.pass] && held.isLastGood)
    #expect(held.problems.map(\.location.line) == [3])
    var service = ServiceFacts(name: "sshd", lines: Healthy.lines())
    for (facts, holds) in [(held, "the last good file applies"), (strict, "the strict policy")] {
      service.policy = facts
      #expect(PolicyFindings(service).file.first?.text.contains(holds) == true)
    }
  }

  @Test func `A policy's mistakes, absence and dead ends are seen`() throws {
    _ = try bench.enroll("alice", "--backup-codes", "0")
    let broken = try policy("[default]\nlook_ahead = x\nnonsense = 1\n")
    #expect(broken.problems.map(\.location.line) == [2, 3])
    #expect(try policy("[default]\nfactor_totp = off\n").stranded == ["alice"])
    #expect(try policy("[default]\nfactor_hotp = off\n").stranded == [])
    #expect(try policy("[default]\nstate = disabled\n").isDisabled)
    #expect(try policy("[default]\nenrollment = refuse\n", "nullok").overrulesLine)
    try FileManager.default.removeItem(atPath: "\(bench.directory)/policy")
    let service = ServiceFacts(
      name: "sshd", lines: Healthy.lines("conf=\(bench.directory)/policy"))
    let store = Store(root: bench.directory, owner: .effectiveUser)
    let facts = PolicyFacts(
      of: Machine(), in: store, service, people: [], enrolled: [], at: bench.now)
    #expect(facts.error != nil)
  }
}
