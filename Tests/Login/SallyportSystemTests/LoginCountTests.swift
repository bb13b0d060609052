import CSystem
import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportSystem

/// What follows the number of logins of an account with the uid 3003.
private let own = "0000000000\n0000003004\n"

@Suite struct `Counts of logins` {
  private func path(_ scratch: Scratch) -> String { scratch.root + "/reminders/alice" }

  @Test func `are the owner's alone, and the level is kept apart`() throws {
    let scratch = try Scratch()
    let alice = try account("alice", uid: 3003)
    #expect(try scratch.store.loginsCounted(of: alice) == 0)
    try scratch.note(UserNote(level: .exempt(until: nil), uid: 3003), on: "alice")
    for count in UInt32(1)...3 { #expect(try scratch.store.countLogin(of: alice) == count) }
    #expect(try scratch.store.loginsCounted(of: alice) == 3)
    #expect(try scratch.store.level(of: alice) == .exempt(until: nil))
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
  func `that cannot be read begin at zero, and none is counted further than it can`(
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

  // shows: frozen-login
  @Test func `are waited for no longer than the bound, by that user's logins alone`() throws {
    let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 20_000_000))
    _ = try scratch.store.countLogin(of: account("alice", uid: 3003))
    let file = try opened(path(scratch))
    try #require(sys_lock(file, F_WRLCK, 0, 1) == 0)
    #expect(throws: StoreTrouble.busy(path: path(scratch))) {
      try scratch.store.countLogin(of: account("alice", uid: 3003))
    }
    #expect(try scratch.store.countLogin(of: account("bob", uid: 3003)) == 1)
    sys_unlock(file)
    sys_close(file)
    #expect(try scratch.store.countLogin(of: account("alice", uid: 3003)) == 2)
  }
}
