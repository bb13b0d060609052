import CSystem
import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `Notes on users` {
  private let required = UserNote(level: .required(from: UnixTime(1_772_528_400)), uid: 3003)

  private func path(_ scratch: Scratch, _ name: String = "alice") -> String {
    scratch.root + "/unenrolled/" + name
  }

  private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  @Test func `are empty where there is no file, no directory and no trouble`() throws {
    let scratch = try Scratch()
    #expect(try scratch.store.note(of: userName("alice")) == UserNote())
    try scratch.store.write(required, of: userName("bob"))
    #expect(try scratch.store.note(of: userName("alice")) == UserNote())
    #expect(try scratch.store.note(of: userName("bob")) == required)
  }

  @Test func `are the owner's alone, and nothing is left over`() throws {
    let scratch = try Scratch()
    try scratch.store.write(required, of: userName("alice"))
    #expect(try facts(at: Path(path(scratch))).mode == 0o600)
    #expect(try facts(at: Path(scratch.root + "/unenrolled")).mode == 0o700)
    #expect(try scratch.names() == [])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: scratch.root + "/unenrolled")
        == ["alice"])
  }

  @Test func `are removed where nothing is left to be kept`() throws {
    let scratch = try Scratch()
    try scratch.store.write(required, of: userName("alice"))
    try scratch.store.write(UserNote(), of: userName("alice"))
    #expect(!exists(path(scratch)))
    try scratch.store.write(UserNote(), of: userName("alice"))
    #expect(try scratch.store.note(of: userName("alice")) == UserNote())
  }

  /// What could have been put there by somebody else, or might hide a `required`.
  // decisive
  @Test func `that are odd are trouble, never empty`() throws {
    let scratch = try Scratch()
    let (name, file) = (try userName("alice"), path(scratch))
    let odd: [(StoreTrouble, () throws -> Void)] = [
      (.unsafe(path: file, .mode(0o640)), { setMode(file, 0o640) }),
      (.unsafe(path: file, .links(2)), { addName(file + "2", to: file) }),
      (
        .unsafe(path: file, .symbolicLink),
        {
          rename(file, to: file + "2")
          try FileManager.default.createSymbolicLink(
            atPath: file, withDestinationPath: file + "2")
        }
      ),
      (
        .unsafe(path: file, .notRegular),
        {
          removeName(file)
          makePipe(file)
        }
      ),
      (
        .malformed(path: file, SettingsError(line: 1, .missing("version"))),
        { try Data().write(to: URL(fileURLWithPath: file)) }
      ),
      (
        .unsafe(path: file, .tooLong),
        { try Data(repeating: 10, count: 65537).write(to: URL(fileURLWithPath: file)) }
      ),
      (
        .unsafe(path: scratch.root + "/unenrolled", .mode(0o750)),
        { setMode(scratch.root + "/unenrolled", 0o750) }
      ),
    ]
    for (trouble, spoil) in odd {
      try? FileManager.default.removeItem(atPath: scratch.root + "/unenrolled")
      try scratch.store.write(required, of: name)
      try spoil()
      if case .malformed = trouble { setMode(file, 0o600) }
      if case .unsafe(_, .tooLong) = trouble { setMode(file, 0o600) }
      #expect(throws: trouble) { try scratch.store.note(of: name) }
    }
  }

  @Test func `of another user under this name are trouble`() throws {
    let scratch = try Scratch()
    try scratch.store.write(required, of: userName("bob"))
    rename(path(scratch, "bob"), to: path(scratch))
    let trouble = StoreTrouble.otherUser(path: path(scratch), found: try userName("bob"))
    #expect(throws: trouble) { try scratch.store.note(of: userName("alice")) }
  }

  @Test func `stand under the same file names as enrollments`() throws {
    let scratch = try Scratch()
    for name in ["a b", "%", String(repeating: "ü", count: 100)] {
      try scratch.store.write(required, of: userName(name))
      #expect(try scratch.store.note(of: userName(name)) == required)
      let file = try scratch.store.location(of: userName(name)).name.text
      #expect(exists(path(scratch, file)))
    }
  }

  @Test func `require by the name or the uid, and exempt by both`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    let (carol, other) = (try account("carol", uid: 3003), try account("carol", uid: 3004))
    let renamed = try account("carla", uid: 3003)
    let (later, sooner) = (UnixTime(1_800_000_000), UnixTime(1_700_000_000))
    try store.setLevel(.exempt, of: carol)
    #expect(try [carol, other, renamed].map(store.level) == [.exempt, nil, nil])
    #expect(try store.level(of: account("carol")) == nil)
    try store.setLevel(.required(from: later), of: carol)
    #expect(
      try [carol, other, renamed].map(store.level) == [
        .required(from: later), .required(from: later), .required(from: later),
      ])
    try store.setLevel(.required(from: sooner), of: renamed)
    #expect(
      try [carol, renamed].map(store.level) == [.required(from: sooner), .required(from: sooner)])
    #expect(try store.level(of: other) == .required(from: later))
    try store.setLevel(.required(from: nil), of: renamed)
    #expect(try store.level(of: carol) == .required(from: nil))
    // The last word on an account counts, whichever of its names had the one before.
    try store.setLevel(.exempt, of: carol)
    #expect(try store.level(of: carol) == .exempt)
    try store.setLevel(nil, of: renamed)
    try store.setLevel(.required(from: nil), of: carol)
    // The account has another uid now: nothing is left for the uid before.
    try store.setLevel(nil, of: other)
    #expect(try [carol, other, renamed].map(store.level) == [nil, nil, nil])
  }

  /// `toor` and `root`, and a name that another person has now.
  // decisive
  @Test func `on a uid of two names require while one of them does`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    let (root, toor) = (try account("root", uid: 0), try account("toor", uid: 0))
    let all = { (name: UserName) throws(StoreTrouble) in Account(name: name, uid: 0) }
    for level in [UserNote.Level?.none, .exempt] {
      try store.setLevel(.required(from: nil), of: root, all)
      try store.setLevel(.required(from: nil), of: toor, all)
      try store.setLevel(level, of: toor, all)
      #expect(try [root, toor].map(store.level) == [.required(from: nil), .required(from: nil)])
      try store.setLevel(.required(from: nil), of: toor, all)
      try store.setLevel(level, of: root, all)
      #expect(try [root, toor].map(store.level) == [.required(from: nil), .required(from: nil)])
      try store.setLevel(level, of: toor, all)
      #expect(try [root, toor].map(store.level) == [level, level])
    }
  }

  // decisive
  @Test func `on a name that another person has now require of both`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    let (before, now) = (try account("carol", uid: 3003), try account("carol", uid: 3004))
    try store.setLevel(.required(from: nil), of: before)
    try store.setLevel(.required(from: nil), of: now)
    #expect(try store.level(of: account("carla", uid: 3003)) == .required(from: nil))
    try store.setLevel(nil, of: now)
    #expect(try store.level(of: now) == nil)
  }

  /// A login takes the same lock, and a directory may be slow.
  // decisive
  @Test func `get their uid without a lock while the directory is asked`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    let (carol, toor) = (try account("carol", uid: 3003), try account("toor", uid: 3003))
    try store.setLevel(.exempt, of: carol)
    let text = try #require(String(validating: contents(path(scratch, "carol")), as: UTF8.self))
    let older = text.split(separator: "\n").dropFirst().joined(separator: "\n") + "\n"
    try Data(older.utf8).write(to: URL(fileURLWithPath: path(scratch, "carol")))
    setMode(path(scratch, "carol"), 0o600)
    var asked = 0
    let left = try store.adoptNotes(areFiles: true) { name throws(StoreTrouble) in
      asked += 1
      // Would wait for ever.
      try store.setLevel(.required(from: nil), of: toor)
      return Account(name: name, uid: 3003)
    }
    #expect(asked == 1 && left.isEmpty)
    #expect(try store.note(of: userName("carol")).uid == 3003)
    #expect(try store.level(of: account("carla", uid: 3003)) == .required(from: nil))
  }

  /// As a crash leaves it, or a version before that knows `unenrolled` alone.
  @Test func `are the last word on their own name, whatever the uid's says`() throws {
    let scratch = try Scratch()
    let carol = try account("carol", uid: 3003)
    try scratch.store.setLevel(.required(from: nil), of: carol)
    removeName(path(scratch, "carol"))
    #expect(try scratch.store.level(of: carol) == nil)
    #expect(try scratch.store.level(of: account("carla", uid: 3003)) == .required(from: nil))
    try Data("level = exempt".utf8)
      .write(to: URL(fileURLWithPath: scratch.root + "/required/3003"))
    #expect(throws: StoreTrouble.self) { try scratch.store.level(of: carol) }
  }

  @Test func `need a store`() throws {
    let scratch = try Scratch()
    let none = Store(root: scratch.path + "/none", owner: .effectiveUser)
    let trouble = StoreTrouble.noStore(path: scratch.path + "/none")
    #expect(throws: trouble) { try none.note(of: userName("alice")) }
    #expect(throws: trouble) { try none.write(required, of: userName("alice")) }
  }
}

/// What follows the number of logins of an account with the uid 3003.
private let own = "0000000000\n0000003004\n"

@Suite struct `Counts of logins` {
  private func path(_ scratch: Scratch) -> String { scratch.root + "/reminders/alice" }

  @Test func `are the owner's alone, and the level is kept apart`() throws {
    let scratch = try Scratch()
    let alice = try account("alice", uid: 3003)
    #expect(try scratch.store.loginsCounted(of: alice) == 0)
    try scratch.store.setLevel(.exempt, of: alice)
    for count in UInt32(1)...3 { #expect(try scratch.store.countLogin(of: alice) == count) }
    #expect(try scratch.store.loginsCounted(of: alice) == 3)
    #expect(try scratch.store.level(of: alice) == .exempt)
    #expect(try facts(at: Path(path(scratch))).mode == 0o600)
    #expect(try facts(at: Path(scratch.root + "/reminders")).mode == 0o700)
    #expect(try contents(path(scratch)) == Array("0000000003\n0000000000\n0000003004\n".utf8))
    #expect(try scratch.names() == [])
  }

  @Test func `are apart from when an enrolling was begun`() throws {
    let scratch = try Scratch()
    let (store, alice) = (scratch.store, try account("alice", uid: 3003))
    #expect(try store.enrollingBegun(by: alice) == nil)
    try store.noteEnrolling(of: alice, begun: UnixTime(1_772_000_000))
    #expect(try store.enrollingBegun(by: alice) == UnixTime(1_772_000_000))
    #expect(try store.loginsCounted(of: alice) == 0)
    #expect(try store.countLogin(of: alice) == 1)
    try store.noteEnrolling(of: alice, begun: UnixTime(1_772_000_060))
    #expect(try store.countLogin(of: alice) == 2)
    #expect(try contents(path(scratch)) == Array("0000000002\n1772000060\n0000003004\n".utf8))
    try store.noteEnrolling(of: alice, begun: nil)
    #expect(try store.enrollingBegun(by: alice) == nil)
    #expect(try store.loginsCounted(of: alice) == 2)
    // A clock that is wrong in either direction.
    for (time, kept) in [(Int64.min, nil), (Int64.max, Int64(9_999_999_999))] {
      try store.noteEnrolling(of: alice, begun: UnixTime(time))
      #expect(try store.enrollingBegun(by: alice) == kept.map { UnixTime($0) })
    }
  }

  /// A crash in the middle of writing leaves any of these.
  @Test(arguments: [
    "1772000060\n", "\n177200006", "\n1772000060", "\n17720x0060\n", "\n0000000000\n",
  ])
  func `are whole beside half a time, which is none`(_ end: String) throws {
    let scratch = try Scratch()
    let (store, alice) = (scratch.store, try account("alice", uid: 3003))
    _ = try store.countLogin(of: alice)
    let text = "0000000007\(end)"
    let isWhole = text.utf8.count == 22
    try Data((isWhole ? text + "0000003004\n" : text).utf8)
      .write(to: URL(fileURLWithPath: path(scratch)))
    setMode(path(scratch), 0o600)
    #expect(try store.enrollingBegun(by: alice) == nil)
    #expect(try store.loginsCounted(of: alice) == (isWhole ? 7 : 0))
  }

  private static let texts: [(String, UInt32)] = [
    ("", 1), ("12", 1), ("0000000007\n\(own)", 8), ("0000000007", 1),
    ("00000000x7\n\(own)", 1), ("4294967294\n\(own)", .max), ("4294967295\n\(own)", .max),
    ("9999999999\n\(own)", .max), ("0000000007\nmore", 1), ("0000000007\n", 1),
    ("0000000007\n0000000000\n0000003005\n", 1), ("0000000007\n0000000000\n0000003003\n", 1),
  ]

  @Test(arguments: texts)
  func `that cannot be read begin anew, and none is counted further than it can`(
    _ text: String, _ next: UInt32
  ) throws {
    let scratch = try Scratch()
    let alice = try account("alice", uid: 3003)
    _ = try scratch.store.countLogin(of: alice)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path(scratch)))
    setMode(path(scratch), 0o600)
    #expect(try scratch.store.countLogin(of: alice) == next)
    #expect(try scratch.store.loginsCounted(of: alice) == next)
  }

  @Test func `count each of many logins at once, from the first on`() throws {
    let scratch = try Scratch()
    let (store, alice, troubles) = (scratch.store, try account("alice", uid: 3003), Counter())
    atOnce(16) { _ in
      for _ in 0..<5 {
        if (try? store.countLogin(of: alice)) == nil { troubles.increment() }
      }
    }
    #expect(troubles.value == 0)
    #expect(try store.loginsCounted(of: alice) == 80)
  }

  /// Each opens the file, finds none and makes it: of two at once the second finds it made.
  @Test func `begin with whichever of two logins was faster`() throws {
    let scratch = try Scratch()
    let (store, troubles) = (scratch.store, Counter())
    for round in 0..<150 {
      let (alice, here) = (try account("user\(round)", uid: 3003), Counter())
      atOnce(2) { _ in
        here.increment()
        _ = soon { here.value == 2 }
        if (try? store.countLogin(of: alice)) == nil { troubles.increment() }
      }
      #expect(try store.loginsCounted(of: alice) == 2)
    }
    #expect(troubles.value == 0)
  }

  @Test func `of somebody else's making are trouble`() throws {
    let scratch = try Scratch()
    let (alice, file) = (try account("alice", uid: 3003), path(scratch))
    _ = try scratch.store.countLogin(of: alice)
    setMode(file, 0o640)
    for count in [scratch.store.countLogin, scratch.store.loginsCounted] {
      #expect(throws: StoreTrouble.unsafe(path: file, .mode(0o640))) { try count(alice) }
    }
    removeName(file)
    makePipe(file)
    #expect(throws: StoreTrouble.unsafe(path: file, .notRegular)) {
      try scratch.store.countLogin(of: alice)
    }
  }

  @Test func `are waited for no longer than the bound, by that user's logins alone`() throws {
    let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 20_000_000))
    _ = try scratch.store.countLogin(of: account("alice", uid: 3003))
    let file = try opened(path(scratch))
    try #require(sys_lock(file, sys_alone, 0, 1) == 0)
    #expect(throws: StoreTrouble.busy(path: path(scratch))) {
      try scratch.store.countLogin(of: account("alice", uid: 3003))
    }
    #expect(try scratch.store.countLogin(of: account("bob", uid: 3003)) == 1)
    sys_unlock(file)
    sys_close(file)
    #expect(try scratch.store.countLogin(of: account("alice", uid: 3003)) == 2)
  }
}

extension Store {
  fileprivate func write(_ note: UserNote, of name: UserName) throws {
    try setLevel(note.level, of: Account(name: name, uid: note.uid))
  }
}
