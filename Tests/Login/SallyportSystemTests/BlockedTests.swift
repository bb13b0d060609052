import CSystem
import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportSystem

@Suite struct `Who is blocked` {
  private let scratch: Scratch
  private var path: String { scratch.root + "/blocked/alice" }

  init() throws { scratch = try Scratch() }

  private func isBlocked(_ name: String = "alice", uid: UInt32? = 1000, at now: Int64 = 2000)
    throws -> Bool
  {
    let user = Account(name: try userName(name), uid: uid)
    return try scratch.store.isBlocked(user, at: { UnixTime(now) })
  }

  @Test func `is nobody where there is no file, no directory or no store`() throws {
    #expect(try !scratch.store.mayBlock() && !isBlocked())
    try makeBlock("bob", at: scratch.root)
    #expect(try scratch.store.mayBlock() && !isBlocked() && isBlocked("bob"))
    let none = Store(root: scratch.path + "/none", owner: .effectiveUser)
    #expect(try !none.mayBlock())
    let alice = Account(name: try userName("alice"), uid: 1000)
    #expect(try !none.isBlocked(alice, at: { UnixTime(0) }))
  }

  @Test func `is who has the name or the uid`() throws {
    try makeBlock("alice", at: scratch.root)
    #expect(try isBlocked() && isBlocked(uid: 1001) && isBlocked(uid: nil))
    #expect(try !isBlocked("alice2"))
    try makeBlock("1000", in: "blocked-uids", at: scratch.root)
    #expect(try isBlocked("alice2") && !isBlocked("alice2", uid: 1001))
  }

  @Test func `is so up to the end, and no longer`() throws {
    try makeBlock("alice", until: "3000", at: scratch.root)
    #expect(try isBlocked(at: 2999) && !isBlocked(at: 3000))
    // Of two the longer one counts.
    try makeBlock("1000", in: "blocked-uids", until: "none", at: scratch.root)
    #expect(try isBlocked(at: 3000))
  }

  /// What could hide a file, or have been put in its place.
  // decisive
  // shows: block
  @Test func `is trouble where it cannot be read, never nobody`() throws {
    try makeBlock("alice", at: scratch.root)
    let directory = scratch.root + "/blocked"
    let odd: [(StoreTrouble, () throws -> Void)] = [
      (.unsafe(path: path, .mode(0o640)), { setMode(path, 0o640) }),
      (.unsafe(path: path, .links(2)), { addName(path + "2", to: path) }),
      (
        .unsafe(path: path, .notRegular),
        {
          removeName(path)
          makePipe(path)
        }
      ),
      (
        .unsafe(path: path, .tooLong),
        { try Data(repeating: 10, count: 65537).write(to: URL(fileURLWithPath: path)) }
      ),
      (.unsafe(path: directory, .mode(0o750)), { setMode(directory, 0o750) }),
      (
        .unsafe(path: directory, .notADirectory),
        {
          try FileManager.default.removeItem(atPath: directory)
          try Data().write(to: URL(fileURLWithPath: directory))
        }
      ),
      (
        .unsafe(path: directory, .symbolicLink),
        {
          try FileManager.default.removeItem(atPath: directory)
          try FileManager.default.createSymbolicLink(
            atPath: directory, withDestinationPath: "/nowhere")
        }
      ),
    ]
    for (trouble, spoil) in odd {
      try? FileManager.default.removeItem(atPath: directory)
      try makeBlock("alice", at: scratch.root)
      try spoil()
      #expect(throws: trouble) { try isBlocked() }
    }
  }
}
