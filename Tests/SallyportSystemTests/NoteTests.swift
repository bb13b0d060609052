import CSystem
import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `Notes on users` {
  private let required = UserNote(level: .required(from: UnixTime(1_772_528_400)))

  private func path(_ scratch: Scratch, _ name: String = "alice") -> String {
    scratch.root + "/unenrolled/" + name
  }

  private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  @Test func `are empty where there is no file, no folder and no trouble`() throws {
    let scratch = try Scratch()
    #expect(try scratch.store.note(of: userName("alice")) == UserNote())
    try scratch.store.write(required, of: userName("bob"))
    #expect(try scratch.store.note(of: userName("alice")) == UserNote())
    #expect(try scratch.store.note(of: userName("bob")) == required)
  }

  @Test func `are the owner's alone, and nothing is left over`() throws {
    let scratch = try Scratch()
    try scratch.store.write(required, of: userName("alice"))
    _ = try scratch.store.countLogin(of: userName("alice"))
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

  @Test func `count logins and keep the level`() throws {
    let scratch = try Scratch()
    let name = try userName("alice")
    #expect(try scratch.store.countLogin(of: name) == 1)
    try scratch.store.write(UserNote(logins: 1, level: .exempt), of: name)
    #expect(try scratch.store.countLogin(of: name) == 2)
    #expect(try scratch.store.note(of: name) == UserNote(logins: 2, level: .exempt))
    try scratch.store.write(UserNote(logins: .max), of: name)
    #expect(try scratch.store.countLogin(of: name) == .max)
  }

  @Test func `count each of many logins at once, and are whole for whoever reads meanwhile`() throws
  {
    let scratch = try Scratch()
    let (store, name) = (scratch.store, try userName("alice"))
    try store.write(required, of: name)
    let troubles = Counter()
    atOnce(16) { index in
      for _ in 0..<10 {
        let done: Bool?
        if index.isMultiple(of: 2) {
          done = try? store.countLogin(of: name) > 0
        } else {
          done = try? store.note(of: name).level == .required(from: UnixTime(1_772_528_400))
        }
        if done != true { troubles.increment() }
      }
    }
    #expect(troubles.value == 0)
    #expect(try store.note(of: name).logins == 80)
  }

  /// What could have been put there by somebody else, or might hide a `required`.
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
      #expect(throws: trouble) { try scratch.store.countLogin(of: name) }
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
      let file = try scratch.store.place(of: userName(name)).name.text
      #expect(exists(path(scratch, file)))
    }
  }

  @Test func `need a store`() throws {
    let scratch = try Scratch()
    let none = Store(root: scratch.path + "/none", owner: .effectiveUser)
    let trouble = StoreTrouble.noStore(path: scratch.path + "/none")
    #expect(throws: trouble) { try none.note(of: userName("alice")) }
    #expect(throws: trouble) { try none.write(required, of: userName("alice")) }
  }

  @Test func `wait for the lock of the commands, and not for ever`() throws {
    let scratch = try Scratch(patience: Patience(nanoseconds: 20_000_000))
    let shelf = try Descriptor(Path(scratch.users), sys_as_folder)
    try Errno.check(sys_lock_folder(shelf.number))
    #expect(throws: StoreTrouble.busy(path: scratch.users)) {
      try scratch.store.countLogin(of: userName("alice"))
    }
    #expect(try scratch.store.note(of: userName("alice")) == UserNote())
    sys_unlock_folder(shelf.number)
    #expect(try scratch.store.countLogin(of: userName("alice")) == 1)
  }
}

extension Store {
  fileprivate func write(_ note: UserNote, of name: UserName) throws {
    #expect(try changeNote(of: name) { $0 = note } == note)
  }
}
