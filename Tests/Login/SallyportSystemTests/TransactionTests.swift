import CSystem
import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `A login's save` {
  @Test
  func `What is saved is there at the next login, and the one before stays in the other slot`()
    throws
  {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let fresh = try contents(scratch.file("alice", "state"))
    #expect(verdict(try accept(step: 50, try scratch.loaded("alice"), in: scratch.store)) == 41)
    let once = try contents(scratch.file("alice", "state"))
    #expect(verdict(try accept(step: 51, try scratch.loaded("alice"), in: scratch.store)) == 50)
    let twice = try contents(scratch.file("alice", "state"))
    #expect(try scratch.loaded("alice").state.authenticators[0].lastAccepted == 51)
    #expect(once.prefix(4096) == fresh.prefix(4096) && once.suffix(4096) != fresh.suffix(4096))
    #expect(twice.suffix(4096) == once.suffix(4096) && twice.prefix(4096) != once.prefix(4096))
  }

  @Test func `The state under the lock counts, not the one that was loaded`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let early = try scratch.loaded("alice")
    _ = try accept(step: 60, try scratch.loaded("alice"), in: scratch.store)
    #expect(verdict(try accept(step: 61, early, in: scratch.store)) == 60)
  }

  @Test func `What the body throws is thrown, and nothing is written`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    let before = try contents(scratch.file("alice", "state"))
    #expect(throws: StoreTrouble.crypto(.failed)) {
      _ = try scratch.store.transact(record) { _, _ throws(StoreTrouble) -> (Int, LoginState) in
        throw .crypto(.failed)
      }
    }
    #expect(try contents(scratch.file("alice", "state")) == before)
    // The lock is free again.
    #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 41)
  }

  // shows: power-cut, lost-record
  @Test(arguments: [UInt64(0), 4096], [1, 60, 4000])
  func `A torn slot is the older one`(slot: UInt64, at offset: UInt64) throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    for step in UInt64(50)...51 {
      _ = try accept(step: step, try scratch.loaded("alice"), in: scratch.store)
    }
    let path = scratch.file("alice", "state")
    let byte = try contents(path)[Int(slot + offset)]
    try overwrite(path, with: [~byte], at: slot + offset)
    // The last save went to the first slot. A byte that no checksum covers tears nothing.
    let isCovered = offset != 4000
    let left: UInt64 = slot == 0 && isCovered ? 50 : 51
    let record = try scratch.loaded("alice")
    #expect(record.state.authenticators[0].lastAccepted == left)
    // Where a record after that may be lost, all codes until now count as used. In the older slot
    // nothing but its beginning is looked at.
    let mayLack = isCovered && (slot == 0 || offset == 1)
    let before = timeStep(at: try Clock.now().seconds, period: 30)
    let last = verdict(try accept(step: 70, record, in: scratch.store))
    let after = timeStep(at: try Clock.now().seconds, period: 30)
    #expect(mayLack ? (before + 10...after + 10).contains(last ?? 0) : last == left)
    // The save that followed made both whole.
    #expect(verdict(try accept(step: 71, try scratch.loaded("alice"), in: scratch.store)) == 70)
  }

  @Test func `Both slots broken are trouble for a login that has loaded, too`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    let path = scratch.file("alice", "state")
    try breakSlots(of: path)
    #expect(throws: StoreTrouble.state(path: path, .bothSlotsBroken)) {
      try accept(step: 50, record, in: scratch.store)
    }
  }

  @Test func `The state of another enrollment is not taken for this one's`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    try scratch.enroll("bob")
    let record = try scratch.loaded("alice")
    let path = scratch.file("alice", "state")
    removeName(path)
    rename(scratch.file("bob", "state"), to: path)
    #expect(throws: StoreTrouble.foreignState(path: path)) { try scratch.loaded("alice") }
    #expect(throws: StoreTrouble.foreignState(path: path)) {
      try accept(step: 50, record, in: scratch.store)
    }
  }

  @Test func `The directory of another user is not taken for this one's`() throws {
    let scratch = try Scratch()
    try scratch.enroll("bob")
    rename(scratch.directory("bob"), to: scratch.directory("alice"))
    let path = scratch.file("alice", "enrollment")
    #expect(throws: StoreTrouble.otherUser(path: path, found: try userName("bob"))) {
      try scratch.loaded("alice")
    }
  }

  @Test(
    arguments: [(1000, 1000, true), (1000, 1001, false), (1000, nil, false), (nil, 1000, true)]
      as [(UInt32?, UInt32?, Bool)])
  func `A uid that is not the recorded one is trouble`(
    recorded: UInt32?, found: UInt32?, isGood: Bool
  ) throws {
    let scratch = try Scratch()
    try scratch.enroll("alice", uid: recorded)
    if isGood {
      #expect(try scratch.store.load(account("alice", uid: found)) != nil)
    } else {
      let path = scratch.file("alice", "enrollment")
      let trouble = StoreTrouble.otherUID(path: path, recorded: recorded ?? 0, found: found)
      #expect(throws: trouble) { try scratch.store.load(account("alice", uid: found)) }
    }
  }

  // shows: missing-store
  @Test func `Not enrolled is only a missing directory in a good store`() throws {
    let scratch = try Scratch()
    #expect(try scratch.store.load(account("alice")) == nil)
  }

  // decisive
  // shows: missing-store
  @Test(.enabled(if: isRoot, "needs root"))
  func `A caller without the right to read is told so, never that nobody is enrolled`() async {
    await #expect(processExitsWith: .success) {
      let scratch = try Scratch()
      try scratch.enroll("alice")
      setMode(scratch.path, 0o711)
      let store = Store(root: scratch.root, owner: .root)
      try #require(seteuid(65534) == 0)
      for user in ["alice", "nobody-here"] {
        let path = scratch.path + "/store/users"
        #expect(throws: StoreTrouble.system("open", path: path, errno: EACCES)) {
          try store.load(account(user))
        }
      }
      try #require(seteuid(0) == 0)
    }
  }

  @Test func `An enrollment changed since it was loaded is told, and nothing is written`() throws {
    let changes: [(Scratch, Enrollment) throws -> Void] = [
      { scratch, other in
        removeName(scratch.file("alice", "state"))
        removeName(scratch.file("alice", "enrollment"))
        try FileManager.default.removeItem(atPath: scratch.directory("alice"))
        try scratch.store.create(other, LoginState(initialFor: other))
      },
      { scratch, _ in
        let record = try scratch.loaded("alice")
        _ = try scratch.store.rewrite(record, record.enrollment) { $0 }
      },
      { scratch, _ in try overwrite(scratch.file("alice", "enrollment"), with: [0x23], at: 0) },
      { scratch, _ in rename(scratch.directory("alice"), to: scratch.path + "/aside") },
    ]
    for change in changes {
      let scratch = try Scratch()
      try scratch.enroll("alice")
      let record = try scratch.loaded("alice")
      try change(scratch, try sample("alice"))
      let before = try? contents(scratch.file("alice", "state"))
      #expect(isChanged(try accept(step: 50, record, in: scratch.store)))
      #expect((try? contents(scratch.file("alice", "state"))) == before)
    }
  }
}

@Suite struct `The lock` {
  /// The state file of a user, open and locked, as another process would have it.
  private func held(_ scratch: Scratch) throws -> Int32 {
    let file = try opened(scratch.file("alice", "state"))
    try #require(sys_lock(file, F_WRLCK, 0, 8192) == 0)
    return file
  }

  @Test func `A lock that another holds is waited for no longer than the bound`() throws {
    let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 20_000_000))
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    let file = try held(scratch)
    #expect(throws: StoreTrouble.busy(path: scratch.file("alice", "state"))) {
      try accept(step: 50, record, in: scratch.store)
    }
    sys_unlock(file)
    sys_close(file)
    #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 41)
  }

  // shows: exchanged-files
  @Test func `A login that waits while directories are exchanged saves nothing into the old one`()
    throws
  {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    try scratch.enroll("carol")
    let record = try scratch.loaded("alice")
    let file = try held(scratch)
    let store = scratch.store
    let outcome = Outcome()
    let waiter = DispatchGroup()
    waiter.enter()
    Thread.detachNewThread {
      outcome.set(try? isChanged(accept(step: 50, record, in: store)))
      waiter.leave()
    }
    try #require(someoneWaits(file))
    rename(scratch.directory("alice"), to: scratch.directory(".gone-1"))
    rename(scratch.directory("carol"), to: scratch.directory("alice"))
    let old = try contents(scratch.directory(".gone-1") + "/state")
    sys_unlock(file)
    sys_close(file)
    waiter.wait()
    #expect(outcome.value == true)
    #expect(try contents(scratch.directory(".gone-1") + "/state") == old)
  }

  // shows: exchanged-files
  @Test func `A login that waits while the state is put back from a copy saves into the new file`()
    throws
  {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    let path = scratch.file("alice", "state")
    let file = try held(scratch)
    let store = scratch.store
    let outcome = Outcome()
    let waiter = DispatchGroup()
    waiter.enter()
    Thread.detachNewThread {
      outcome.set(try? verdict(accept(step: 50, record, in: store)) == 41)
      waiter.leave()
    }
    // It has opened the file that is about to lose its name.
    try #require(someoneWaits(file))
    try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
    setMode(path + ".copy", 0o600)
    rename(path + ".copy", to: path)
    let old = try contents(of: file)
    sys_unlock(file)
    waiter.wait()
    #expect(outcome.value == true)
    #expect(try scratch.loaded("alice").state.authenticators[0].lastAccepted == 50)
    #expect(try contents(of: file) == old)
    sys_close(file)
  }

  // shows: guesses
  @Test func `128 at once all get in, each sees what the one before saved`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    let store = scratch.store
    let failures = Outcome()
    atOnce(128) { _ in
      do {
        let outcome = try store.transact(record) { _, state throws(StoreTrouble) in
          var state = state
          state.authenticators[0].lastAccepted = (state.authenticators[0].lastAccepted ?? 0) + 1
          return (true, state)
        }
        if isChanged(outcome) { failures.set(false) }
      } catch {
        failures.set(false)
      }
    }
    #expect(failures.value == nil)
    #expect(try scratch.loaded("alice").state.authenticators[0].lastAccepted == 41 + 128)
  }

  // shows: frozen-login
  @Test func `8 users at once do not wait for each other`() throws {
    let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 0))
    for user in 0..<8 { try scratch.enroll("user\(user)") }
    let records = try (0..<8).map { try scratch.loaded("user\($0)") }
    let store = scratch.store
    let failures = Outcome()
    atOnce(8) { index in
      if (try? verdict(accept(step: 50, records[index], in: store))) != 41 { failures.set(false) }
    }
    #expect(failures.value == nil)
  }
}
