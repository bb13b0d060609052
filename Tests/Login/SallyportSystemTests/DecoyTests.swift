import CSystem
import Foundation
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `The decoy` {
  private func file(_ scratch: Scratch) -> String { scratch.root + "/decoy/state" }

  // shows: same-for-all
  @Test func `It is like everybody's enrollment and saves like it; a name waits for itself only`()
    throws
  {
    let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 0))
    let record = try scratch.store.loadDecoy(for: Array("mallory".utf8))
    #expect(record.isDecoy)
    #expect(record.enrollment.authenticators.count == 1)
    #expect(record.enrollment.backupCodes?.digests.count == 10)
    let other = try opened(file(scratch))
    let bytes = try scratch.store.lockBytes(of: record)
    #expect(bytes.count == 1 && bytes.start >= 0)
    try #require(sys_lock(other, F_WRLCK, bytes.start, 1) == 0)
    for isKnown in [true, false] {
      #expect(throws: StoreTrouble.busy(path: file(scratch))) {
        try accept(step: 50, record, in: scratch.store, asKnown: isKnown)
      }
    }
    sys_unlock(other)
    // All others' bytes.
    try #require(sys_lock(other, F_WRLCK, 0, bytes.start) == 0)
    try #require(sys_lock(other, F_WRLCK, bytes.start + 3, 0) == 0)
    let before = try contents(file(scratch))
    #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 0)
    sys_close(other)
    let after = try contents(file(scratch))
    let own = Int(getpid() & 1) * 4096
    #expect(after[own..<own + 4096] != before[own..<own + 4096])
    let others = 4096 - own
    #expect(after[others..<others + 4096] == before[others..<others + 4096])
  }

  /// The hash of names that stood here before had 8,192 values and no key.
  // shows: same-for-all
  @Test func `Which names wait for each other cannot be worked out without the decoy's salt`()
    throws
  {
    let (scratch, other) = (try Scratch(), try Scratch())
    func start(_ name: String, _ scratch: Scratch) throws -> Int64 {
      try scratch.store.lockBytes(of: scratch.store.loadDecoy(for: Array(name.utf8))).start
    }
    // "Aa" and "BB" have one hash under h * 31 + byte, so have all names made of them.
    let colliding = ["AaAaAa", "AaAaBB", "AaBBAa", "AaBBBB", "BBAaAa", "BBAaBB", "BBBBAa"]
    #expect(try Set(colliding.map { try start($0, scratch) }).count == colliding.count)
    #expect(try start("AaAaAa", scratch) == start("AaAaAa", scratch))
    #expect(try start("AaAaAa", scratch) != start("AaAaAa", other))
  }

  @Test func `Its last byte and its first can be locked, and a name's own are its alone`() throws {
    let scratch = try Scratch()
    for byte in [UInt8(0), 0xff] {
      let bytes = LockBytes(decoyDigest: [UInt8](repeating: byte, count: 32))
      #expect(bytes.start == (byte == 0 ? 0 : Int64.max - 3))
      let (one, two) = (try opened(file(scratch)), try opened(file(scratch)))
      let none = LockTimeout(nanoseconds: 0)
      for isKnown in [true, false] {
        try bytes.acquire(one, asKnown: isKnown, none, .none)
        #expect(throws: StoreTrouble.busy(path: "")) {
          try bytes.acquire(two, asKnown: !isKnown, none, .none)
        }
        sys_unlock(one)
        try bytes.acquire(two, asKnown: !isKnown, none, .none)
        sys_unlock(two)
      }
      sys_close(one)
      sys_close(two)
    }
  }

  // decisive
  @Test func `Torn pages never become trouble`() throws {
    let scratch = try Scratch()
    let record = try scratch.store.loadDecoy(for: [])
    try breakSlots(of: file(scratch))
    #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 0)
    try breakSlots(of: file(scratch))
    #expect(try scratch.store.loadDecoy(for: []).enrollment.id == record.enrollment.id)
  }

  // decisive
  // shows: same-for-all
  @Test func `Many at once never get in each other's way`() throws {
    let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 0))
    let store = scratch.store
    let failures = Outcome()
    atOnce(32) { index in
      do {
        let record = try store.loadDecoy(for: [UInt8(index)])
        if isChanged(try accept(step: UInt64(index), record, in: store)) { failures.set(false) }
      } catch {
        failures.set(false)
      }
    }
    #expect(failures.value == nil)
  }

  @Test func `Without one, that is told`() throws {
    let scratch = try Scratch()
    try FileManager.default.removeItem(atPath: scratch.root + "/decoy")
    #expect(throws: StoreTrouble.noStore(path: scratch.root + "/decoy")) {
      try scratch.store.loadDecoy(for: [])
    }
  }
}
