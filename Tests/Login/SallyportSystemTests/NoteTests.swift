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

  @Test func `are empty where there is no file, no directory and no trouble`() throws {
    let scratch = try Scratch()
    #expect(try scratch.store.note(of: userName("alice")) == UserNote())
    try scratch.note(required, on: "bob")
    #expect(try scratch.store.note(of: userName("alice")) == UserNote())
    #expect(try scratch.store.note(of: userName("bob")) == required)
  }

  /// What could have been put there by somebody else, or might hide a `required`.
  // decisive
  // shows: notes
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
      try scratch.note(required, on: "alice")
      try spoil()
      if case .malformed = trouble { setMode(file, 0o600) }
      if case .unsafe(_, .tooLong) = trouble { setMode(file, 0o600) }
      #expect(throws: trouble) { try scratch.store.note(of: name) }
    }
  }

  @Test func `of another user under this name are trouble`() throws {
    let scratch = try Scratch()
    try scratch.note(required, on: "bob")
    rename(path(scratch, "bob"), to: path(scratch))
    let trouble = StoreTrouble.otherUser(path: path(scratch), found: try userName("bob"))
    #expect(throws: trouble) { try scratch.store.note(of: userName("alice")) }
  }
}
