import CSystem
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `Notes that commands write` {
  private let required = UserNote(level: .required(from: UnixTime(1_772_528_400)), uid: 3003)

  private func path(_ scratch: Scratch, _ name: String = "alice") -> String {
    scratch.root + "/unenrolled/" + name
  }

  private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

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

  @Test func `stand under the same file names as enrollments`() throws {
    let scratch = try Scratch()
    for name in ["a b", "%", String(repeating: "ü", count: 100)] {
      try scratch.store.write(required, of: userName(name))
      #expect(try scratch.store.note(of: userName(name)) == required)
      let file = try scratch.store.location(of: userName(name)).name.text
      #expect(exists(path(scratch, file)))
    }
  }

  // shows: notes
  @Test func `require by the name or the uid, and exempt by both`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    let (carol, other) = (try account("carol", uid: 3003), try account("carol", uid: 3004))
    let renamed = try account("carla", uid: 3003)
    let (later, sooner) = (UnixTime(1_800_000_000), UnixTime(1_700_000_000))
    try store.setLevel(.exempt(until: nil), of: carol)
    #expect(try [carol, other, renamed].map(store.level) == [.exempt(until: nil), nil, nil])
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
    try store.setLevel(.exempt(until: nil), of: carol)
    #expect(try store.level(of: carol) == .exempt(until: nil))
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
    for level in [UserNote.Level?.none, .exempt(until: nil)] {
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

  // decisive
  @Test func `on a uid of two names require also where the other's account is gone`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    let find = { (name: UserName) throws(StoreTrouble) in
      Account(name: name, uid: name == (try? userName("carol")) ? 3003 : nil)
    }
    // The account is gone, or another one has its name.
    for uid in [nil, UInt32(3004)] {
      for name in ["carol", "kate"] {
        try store.setLevel(.required(from: nil), of: account(name, uid: 3003), find)
      }
      try store.setLevel(nil, of: Account(name: userName("kate"), uid: uid), find)
      #expect(try store.level(of: account("kim", uid: 3003)) == .required(from: nil))
      #expect(try store.level(of: account("kate", uid: 3004)) == nil)
      try store.setLevel(nil, of: account("carol"), find)
      #expect(try store.level(of: account("kim", uid: 3003)) == nil)
    }
  }

  /// As the version before wrote it, without a uid.
  private func makeNoteOfBefore(
    _ level: UserNote.Level, of name: String, in scratch: Scratch, as file: String? = nil
  ) throws {
    let note = UserNote(level: level).written(for: try userName(name))
    let path = path(scratch, file ?? name)
    try scratch.store.write(UserNote(level: level, uid: 3003), of: userName(name))
    let text = try #require(note)
    try Data(text.bytes(in: 0..<text.count)).write(to: URL(fileURLWithPath: path))
    setMode(path, 0o600)
  }

  /// Another person may have got the name since.
  // decisive
  @Test func `that loosen get their uid by root's command alone`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    for name in ["carol", "gone"] {
      try makeNoteOfBefore(.exempt(until: nil), of: name, in: scratch)
    }
    try makeNoteOfBefore(.required(from: nil), of: "dave", in: scratch)
    let find = { (name: UserName) throws(StoreTrouble) in
      if name == (try? userName("gone")) { return Account(name: name, uid: nil) }
      return Account(name: name, uid: name == (try? userName("dave")) ? 3005 : 3004)
    }
    var left = try store.adoptNotes(areLocal: false, isOrdered: false, find)
    #expect(left.count == 2)
    #expect(try ["carol", "gone"].map { try store.note(of: userName($0)).uid } == [nil, nil])
    #expect(try store.note(of: userName("dave")).uid == 3005)
    left = try store.adoptNotes(areLocal: true, isOrdered: false, find)
    #expect(left.count == 2)
    #expect(try store.note(of: userName("carol")).uid == nil)
    #expect(try store.note(of: userName("gone")).uid == UserNote.noUID)
    left = try store.adoptNotes(areLocal: true, isOrdered: true, find)
    #expect(left.isEmpty)
    #expect(try store.level(of: account("carol", uid: 3004)) == .exempt(until: nil))
    #expect(try store.note(of: userName("gone")).uid == UserNote.noUID)
  }

  /// As an editor or `rsync --backup` leaves it.
  // decisive
  @Test(arguments: ["carol~", "carol.bak"])
  func `that are copies under another name change nothing`(_ copy: String) throws {
    let scratch = try Scratch()
    let store = scratch.store
    let carol = try account("carol", uid: 3003)
    try makeNoteOfBefore(.exempt(until: nil), of: "carol", in: scratch, as: copy)
    try store.setLevel(.required(from: nil), of: carol)
    let left = try store.adoptNotes(areLocal: true, isOrdered: true) { name throws(StoreTrouble) in
      Account(name: name, uid: 3003)
    }
    #expect(left.map(\.path) == [path(scratch, copy)] && left.first?.user == nil)
    #expect(try store.level(of: carol) == .required(from: nil))
  }

  /// A login takes the same lock, and a directory may be slow.
  // decisive
  @Test func `get their uid without a lock while the directory is asked`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    let toor = try account("toor", uid: 3003)
    try makeNoteOfBefore(.exempt(until: nil), of: "carol", in: scratch)
    var asked = 0
    let left = try store.adoptNotes(areLocal: true, isOrdered: true) { name throws(StoreTrouble) in
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

extension Store {
  fileprivate func write(_ note: UserNote, of name: UserName) throws {
    try setLevel(note.level, of: Account(name: name, uid: note.uid))
  }
}
