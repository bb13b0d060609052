import Foundation
import OneTimePassword
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `Doctor on the store` {
  struct Breakage: CustomTestStringConvertible {
    let name: String
    let wrong: String
    var fix: String?
    var effect: Effect?
    let change: @Sendable (inout StoreFacts) -> Void
    var testDescription: String { name }
  }

  static let root = "/var/lib/sallyport"
  static let breakages: [Breakage] = [
    Breakage(
      name: "no store", wrong: "store-missing error", fix: "sallyport prepare",
      effect: .locksOut("everybody who is asked for a code")
    ) { $0.error = .noStore(path: root) },
    Breakage(
      name: "a store of others", wrong: "store-parent error",
      fix: "chown -h root:root \(root)", effect: .locksOut("everybody who is asked for a code")
    ) { $0.error = .unsafe(path: root, .owner(1000, wanted: 0)) },
    Breakage(
      name: "directories that others look into", wrong: "store-directories warning",
      fix: "chmod 0700 \(root)"
    ) {
      $0.directories[root] = FileFacts(mode: 0o755)
    },
    Breakage(
      name: "another label", wrong: "store-label error", fix: "restorecon -R \(root)",
      effect: .locksOut("everybody who is asked for a code")
    ) { $0.label = StoreLabel(path: root, type: "var_lib_t", isEnforced: true) },
    Breakage(
      name: "another label, that is only logged", wrong: "store-label warning",
      fix: "restorecon -R \(root)"
    ) { $0.label = StoreLabel(path: root, type: "var_lib_t", isEnforced: false) },
    Breakage(name: "no decoy", wrong: "store-decoy warning", fix: "sallyport prepare") {
      $0.decoyError = .noStore(path: "\(root)/decoy")
    },
    Breakage(name: "a crash", wrong: "store-leftovers warning", fix: "sallyport prepare") {
      $0.leftovers = ["\(root)/users/.tmp-1"]
    },
    Breakage(name: "a full disk", wrong: "store-space warning") {
      $0.disk = .seen(DiskFacts(freeBlocks: 49_999))
    },
    Breakage(name: "no inodes", wrong: "store-inodes warning") {
      $0.disk = .seen(DiskFacts(freeFiles: 49_999))
    },
    Breakage(name: "memory", wrong: "store-file-system warning") {
      $0.disk = .seen(DiskFacts(type: 0x0102_1994))
    },
    Breakage(name: "zfs", wrong: "store-file-system warning") {
      $0.disk = .seen(DiskFacts(type: 0x2fc1_2fc1))
    },
    Breakage(
      name: "btrfs that copies", wrong: "store-copy-on-write warning",
      fix: "sallyport enroll alice --force"
    ) {
      $0.disk = .seen(DiskFacts(type: DiskFacts.btrfs))
      $0.users[0].isInPlace = false
    },
    Breakage(
      name: "read-only", wrong: "store-writing error",
      fix: "mount -o remount,rw \"$(findmnt -n -o TARGET -T \(root))\"",
      effect: .locksOut("everybody who is asked for a code")
    ) { $0.writing = .fails(.make, errno: EROFS) },
    Breakage(
      name: "forbidden", wrong: "store-writing error", fix: "restorecon -Rv \(root)",
      effect: .locksOut("everybody who is asked for a code")
    ) { $0.writing = .fails(.change, errno: EACCES) },
    Breakage(name: "no room for a state", wrong: "store-writing warning") {
      $0.writing = .fails(.fill, errno: ENOSPC)
    },
    Breakage(
      name: "a damaged state", wrong: "user-unusable error",
      fix: "sallyport enroll alice --force", effect: .locksOut("alice")
    ) { $0.users[0].error = .state(path: "\(root)/users/alice/state", .bothSlotsBroken) },
    Breakage(
      name: "an open enrollment", wrong: "user-unusable error",
      fix: "chmod go= \(root)/users/alice/enrollment", effect: .locksOut("alice")
    ) { $0.users[0].error = .unsafe(path: "\(root)/users/alice/enrollment", .mode(0o644)) },
    Breakage(name: "a second name", wrong: "user-unusable error", effect: .locksOut("alice")) {
      $0.users[0].error = .unsafe(path: "\(root)/users/alice/state", .links(2))
    },
    Breakage(
      name: "another uid", wrong: "user-unusable error",
      fix: "sallyport enroll alice --force", effect: .locksOut("alice")
    ) {
      $0.users[0].error = .otherUID(
        path: "\(root)/users/alice/enrollment", recorded: 1, found: 2)
    },
    Breakage(
      name: "no account", wrong: "user-no-account warning",
      fix: "sallyport unenroll alice --force --allow-missing --uid 1"
    ) {
      $0.users[0].error = .otherUID(
        path: "\(root)/users/alice/enrollment", recorded: 1, found: nil)
    },
    Breakage(
      name: "an account that a directory may have", wrong: "user-unseen unseen"
    ) {
      $0.knowsAllAccounts = false
      $0.users[0].error = .otherUID(
        path: "\(root)/users/alice/enrollment", recorded: 1, found: nil)
    },
    Breakage(
      name: "a clock that ran ahead", wrong: "user-ahead error",
      fix: "sallyport resync alice", effect: .locksOut("alice")
    ) { $0.users[0].aheadUntil = UnixTime(1_900_000_000) },
    Breakage(
      name: "a state from a backup", wrong: "user-restored warning",
      fix: "sallyport backup-codes alice --regenerate"
    ) { $0.users[0].state = FileFacts(modified: 1000, born: 2000) },
    Breakage(
      name: "counters from a backup", wrong: "user-restored warning",
      fix: "sallyport enroll alice --force"
    ) {
      $0.users[0].state = FileFacts(modified: 1000, born: 2000)
      $0.users[0].usesCounters = true
    },
    Breakage(
      name: "guesses", wrong: "user-throttled warning", fix: "sallyport unlock alice"
    ) {
      $0.users[0].waits = (0, 7200)
    },
    Breakage(
      name: "a note that others can read", wrong: "people-note error",
      fix: "chmod go= \(root)/unenrolled/bob", effect: .locksOut("bob")
    ) { $0.notes = [note("bob", error: .unsafe(path: "\(root)/unenrolled/bob", .mode(0o644)))] },
    Breakage(name: "the same of one who is enrolled", wrong: "people-note warning") {
      $0.notes = [note("alice", error: .unsafe(path: "\(root)/unenrolled/alice", .mode(0o644)))]
    },
    Breakage(name: "a broken note of nobody", wrong: "people-note warning") {
      let path = "\(root)/unenrolled/x~"
      let error = SettingsError(line: 1, .missing("user"))
      $0.notes = [NoteFacts(path: path, error: .malformed(path: path, error))]
    },
    Breakage(
      name: "an exemption that waits for an account", wrong: "note-no-account warning",
      fix: "sallyport exempt bob --undo"
    ) { $0.notes = [note("bob", level: .exempt, hasAccount: false)] },
    Breakage(
      name: "an exemption of somebody whom a directory may have", wrong: "note-unseen unseen"
    ) { $0.notes = [note("bob", level: .exempt, hasAccount: nil)] },
    Breakage(
      name: "a duty that waits for an account", wrong: "note-no-account warning",
      fix: "sallyport require bob --undo"
    ) { $0.notes = [note("bob", level: .required(from: nil), hasAccount: false)] },
    Breakage(
      name: "an exemption of an account before", wrong: "note-other-uid warning",
      fix: "sallyport exempt bob"
    ) { $0.notes = [note("bob", level: .exempt, uid: 1002)] },
    Breakage(
      name: "an exemption without a uid", wrong: "note-other-uid warning",
      fix: "sallyport prepare"
    ) { $0.notes = [note("bob", level: .exempt, uid: nil)] },
    Breakage(
      name: "an exemption that never got a uid", wrong: "note-other-uid warning",
      fix: "sallyport exempt bob --undo"
    ) { $0.notes = [note("bob", level: .exempt, uid: UserNote.noUID)] },
    Breakage(
      name: "a directory of notes that is another's", wrong: "store-notes error",
      fix: "chown -h root:root \(root)/unenrolled", effect: .locksOut("the unenrolled")
    ) { $0.notesError = .unsafe(path: "\(root)/unenrolled", .owner(1000, wanted: 0)) },
  ]

  static func note(
    _ name: String, error: StoreTrouble? = nil, level: UserNote.Level? = nil,
    uid: UInt32? = 1001, hasAccount: Bool? = true
  ) -> NoteFacts {
    NoteFacts(
      path: "\(root)/unenrolled/\(name)", name: name, error: error, level: level,
      uid: uid, accountUID: hasAccount == true ? 1001 : nil, hasAccount: hasAccount)
  }

  @Test(arguments: [nil, UserNote.noUID, 1001])
  func `An exemption without a uid is promised to no new account`(_ uid: UInt32?) {
    let diagnosis = Healthy.diagnosis {
      $0.store.notes = [Self.note("bob", level: .exempt, uid: uid, hasAccount: nil)]
    }
    let text = diagnosis.findings.first { $0.id == "note-unseen" }?.text
    #expect(text?.contains("this name and uid") == (uid == 1001), "\(text ?? "")")
  }

  @Test(arguments: breakages) func `Each breakage has its finding and its fix`(item: Breakage) {
    let diagnosis = Healthy.diagnosis { item.change(&$0.store) }
    #expect(diagnosis.wrong == [item.wrong])
    let found = diagnosis.findings.first { $0.severity != .ok }
    if let fix = item.fix {
      #expect(found?.fixes.contains(.command(fix)) == true, "\(found?.fixes ?? [])")
    }
    #expect(found?.effect == item.effect)
    #expect(diagnosis.status == (item.wrong.hasSuffix("error") ? 2 : 1))
  }

  @Test func `Notes that hold bring nothing`() {
    let diagnosis = Healthy.diagnosis {
      $0.store.notes = [
        `Doctor on the store`.note("bob", level: .exempt),
        `Doctor on the store`.note("carol", hasAccount: false),
        `Doctor on the store`.note("dora", level: .required(from: nil), hasAccount: nil),
      ]
    }
    #expect(diagnosis.wrong == [])
  }

  @Test func `A healthy store brings nothing`() {
    #expect(Healthy.diagnosis().wrong == [])
    #expect(Healthy.diagnosis().status == 0)
  }

  @Test func `A store that may not be looked at is said to be unseen`() {
    let diagnosis = Healthy.diagnosis { $0.store = StoreFacts(isClosed: true) }
    #expect(diagnosis.wrong == ["store-closed unseen"])
    #expect(diagnosis.status == 1)
  }

  @Test func `The commands name another store`() {
    let store = StoreFindings(
      StoreFacts(error: .noStore(path: "/tmp/s")), option: "/tmp/s")
    #expect(store.all.first?.fixes == [.command("sallyport prepare --store /tmp/s")])
  }
}

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
    #expect(facts(at: past).users[0].aheadUntil == next)
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
    #expect(notes["daemon"]?.error == nil && notes["daemon"]?.level == .exempt)
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
      of: Machine(), store, service, people: [person], facts().users, GroupCensus(), bench.now)
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
      of: Machine(), store, service, people: [], [], GroupCensus(), bench.now)
    #expect(facts.error != nil)
  }
}
