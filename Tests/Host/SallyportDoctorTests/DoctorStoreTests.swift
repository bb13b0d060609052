import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Testing

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
    Breakage(
      name: "a copy", wrong: "store-machine warning", fix: "sallyport prepare --new-machine"
    ) { $0.otherMachine = [.machine] },
    Breakage(
      name: "a copy but for one", wrong: "store-machine warning",
      fix: "sallyport prepare --new-machine"
    ) { ($0.otherMachine, $0.notTakenOver) = ([], ["bob"]) },
    Breakage(
      name: "a mark that others write", wrong: "store-machine warning",
      fix: "chmod go= \(root)/machine"
    ) { $0.markError = .unsafe(path: "\(root)/machine", .mode(0o666)) },
    Breakage(
      name: "a counter of a copy", wrong: "user-counter warning", fix: "sallyport resync alice"
    ) { $0.users[0].heldCounters = ["fob"] },
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
      name: "a name that got its domain", wrong: "user-name-form error",
      fix: "sallyport adopt alice@example.com --from alice", effect: .locksOut("alice")
    ) { $0.users[0].holder = ("alice@example.com", 1) },
    Breakage(
      name: "a name that got the domain of Windows", wrong: "user-name-form error",
      fix: #"sallyport adopt 'EXAMPLE\alice' --from alice"#, effect: .locksOut("alice")
    ) { $0.users[0].holder = (#"EXAMPLE\alice"#, 1) },
    Breakage(name: "a uid that another name has", wrong: "user-renamed warning") {
      $0.users[0].holder = ("alina", 1)
    },
    Breakage(
      name: "a clock that ran ahead", wrong: "user-ahead error",
      fix: "sallyport resync alice", effect: .locksOut("alice")
    ) { $0.users[0].aheadUntil = UnixTime(1_900_000_000) },
    Breakage(
      name: "a pause", wrong: "user-ahead warning",
      fix: "sallyport backup-codes alice --regenerate"
    ) {
      ($0.users[0].aheadUntil, $0.users[0].isPaused) = (UnixTime(1_900_000_000), true)
      $0.users[0].backupCodesLeft = 0
    },
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
    ) { $0.notes = [note("bob", level: .exempt(until: nil), hasAccount: false)] },
    Breakage(
      name: "an exemption of somebody whom a directory may have", wrong: "note-unseen unseen"
    ) { $0.notes = [note("bob", level: .exempt(until: nil), hasAccount: nil)] },
    Breakage(
      name: "a duty that waits for an account", wrong: "note-no-account warning",
      fix: "sallyport require bob --undo"
    ) { $0.notes = [note("bob", level: .required(from: nil), hasAccount: false)] },
    Breakage(
      name: "a duty of a name before", wrong: "note-renamed warning",
      fix: "sallyport require bert --by 2027-01-15 && sallyport require bob --undo"
    ) {
      let day = UserNote.Level.required(from: UnixTime(1_799_971_200))
      $0.notes = [note("bob", level: day, hasAccount: false)]
      $0.notes[0].holder = "bert"
    },
    Breakage(
      name: "a duty of a name before, and of the one now", wrong: "note-no-account warning",
      fix: "sallyport require bob --undo"
    ) {
      let level = UserNote.Level.required(from: nil)
      $0.notes = [note("bob", level: level, hasAccount: false), note("bert", level: level)]
      $0.notes[0].holder = "bert"
    },
    Breakage(
      name: "an exemption of an account before", wrong: "note-other-uid warning",
      fix: "sallyport exempt bob"
    ) { $0.notes = [note("bob", level: .exempt(until: nil), uid: 1002)] },
    Breakage(
      name: "an exemption without a uid", wrong: "note-other-uid warning",
      fix: "sallyport prepare"
    ) { $0.notes = [note("bob", level: .exempt(until: nil), uid: nil)] },
    Breakage(
      name: "an exemption that never got a uid", wrong: "note-other-uid warning",
      fix: "sallyport exempt bob --undo"
    ) { $0.notes = [note("bob", level: .exempt(until: nil), uid: UserNote.noUID)] },
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
      $0.store.notes = [Self.note("bob", level: .exempt(until: nil), uid: uid, hasAccount: nil)]
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

  /// A new enrollment would be no better.
  @Test func `No enrollment is replaced where libcrypto does not work`() {
    let diagnosis = Healthy.diagnosis {
      $0.store.users[0].error = .state(path: "/alice/state", .crypto(.unavailable))
      $0.store.decoyError = .state(path: "/decoy/state", .crypto(.unavailable))
    }
    #expect(diagnosis.wrong == ["user-unusable error"])
    #expect(diagnosis.findings.first { $0.severity != .ok }?.fixes == [])
  }

  @Test func `Notes that hold bring nothing`() {
    let diagnosis = Healthy.diagnosis {
      $0.store.notes = [
        `Doctor on the store`.note("bob", level: .exempt(until: nil)),
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
      store: StoreFacts(error: .noStore(path: "/tmp/s")), option: "/tmp/s")
    #expect(store.all.first?.fixes == [.command("sallyport prepare --store /tmp/s")])
  }

  @Test func `A user who has no tries left is told the way on`() {
    let diagnosis = Healthy.diagnosis { $0.store.users[0].waits = (7200, 0) }
    let found = diagnosis.findings.first { $0.id == "user-throttled" }
    #expect(
      found?.text == "alice has no tries left from known places, next try in 2 h; backup codes "
        + "work; was it a stranger?")
    #expect(found?.fixes.first == .command("sallyport unlock alice"))
  }
}
