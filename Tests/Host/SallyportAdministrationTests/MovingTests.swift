import CSystem
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `A user who is moved` {
  private func mark(_ mark: MoveMark?, _ scratch: Scratch) throws {
    let done = try scratch.store.moving(try account("alice")) { user in
      (try? user.write(mark)) != nil
    }
    #expect(done == true)
  }

  // decisive
  // shows: fleet-move
  @Test func `is refused by his files once he is marked, and known by them without the mark`()
    throws
  {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let loaded = try scratch.loaded("alice")
    _ = try accept(step: 50, loaded, in: scratch.store)
    try mark(.push(version: 7), scratch)
    let path = scratch.file("alice", "enrollment")
    #expect(throws: StoreTrouble.malformed(path: path, SettingsError(line: 2, .moving))) {
      try scratch.store.load(try account("alice"))
    }
    // A login that has loaded him before saves nothing either.
    #expect(verdict(try accept(step: 51, loaded, in: scratch.store)) == nil)
    let found = try scratch.store.moving(try account("alice")) { user in
      (user.mark, user.state.authenticators.first?.lastAccepted, user.enrollment.id)
    }
    let (mark, last, id) = try #require(found)
    #expect(mark == .push(version: 7) && last == 50 && id == loaded.enrollment.id)
    try self.mark(nil, scratch)
    let again = try scratch.loaded("alice")
    #expect(again.state.authenticators.first?.lastAccepted == 50)
    #expect(verdict(try accept(step: 51, again, in: scratch.store)) == 50)
    #expect(try scratch.names() == ["alice"])
  }

  // decisive
  @Test func `leaves nothing, and his secret is wiped`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let old = try Descriptor(Path(scratch.file("alice", "enrollment")), sys_for_reading)
    try mark(.merge, scratch)
    let marked = try Descriptor(Path(scratch.file("alice", "enrollment")), sys_for_reading)
    let done = try scratch.store.moving(try account("alice")) { (try? $0.remove()) != nil }
    #expect(done == true)
    let (isWiped, isMarkedWiped) = (isZeroed(old.number), isZeroed(marked.number))
    #expect(isWiped && isMarkedWiped)
    #expect(try scratch.names() == [])
    #expect(try scratch.store.load(try account("alice")) == nil)
    #expect(try scratch.store.moving(try account("alice")) { _ in true } == nil)
  }

  @Test func `is waited for by a login, and by another command that moves him`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    let hasty = scratch.store(timeout: LockTimeout(nanoseconds: 1_000_000))
    let path = scratch.file("alice", "state")
    let done = try scratch.store.moving(try account("alice")) { user in
      #expect(throws: StoreTrouble.busy(path: path)) { try accept(step: 50, record, in: hasty) }
      #expect(throws: StoreTrouble.busy(path: scratch.users)) {
        try hasty.moving(try account("alice")) { _ in }
      }
      return true
    }
    #expect(done == true)
    #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 41)
  }

  /// A login enrolls without the lock of the commands, so at any moment of theirs.
  @Test func `is moved with his files locked, or not at all, while a login enrolls him`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let (alice, away) = (try account("alice"), scratch.path + "/away")
    let place = scratch.directory("alice")
    let state = place + "/state"
    let (turns, done) = (Counter(), Counter())
    let login = Thread {
      for turn in 1...4000 {
        while turns.value < turn { sched_yield() }
        for _ in 0..<(turn % 200) * 10 { _ = sys_monotonic() }
        rename(away, to: place)
        done.increment()
      }
    }
    rename(place, to: away)
    login.start()
    var open = 0
    for turn in 1...4000 {
      turns.increment()
      _ = try scratch.store.moving(alice) { _ in
        guard let file = try? opened(state) else { return }
        defer { sys_close(file) }
        if sys_lock(file, F_WRLCK, 0, 1) == 0 { open += 1 }
      }
      while done.value < turn { sched_yield() }
      rename(place, to: away)
    }
    #expect(open == 0, "moved with files that were not locked")
  }

  @Test func `is of this account, with files that can be read`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice", uid: 3001)
    let path = scratch.file("alice", "enrollment")
    #expect(throws: StoreTrouble.otherUID(path: path, recorded: 3001, found: 3002)) {
      try scratch.store.moving(try account("alice", uid: 3002)) { _ in }
    }
  }
}
