import CSystem
import Foundation
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite("The decoy") struct DecoyTests {
  private func file(_ scratch: Scratch) -> String { scratch.root + "/decoy/state" }

  @Test("It is like everybody's enrollment and saves like it; a name waits for itself only")
  func saves() throws {
    let scratch = try Scratch(patience: Patience(nanoseconds: 0))
    let record = try scratch.store.loadDecoy(for: Array("a".utf8))
    #expect(record.isDecoy)
    #expect(record.enrollment.authenticators.count == 1)
    #expect(record.enrollment.backupCodes?.digests.count == 10)
    // SAFETY: the C string lives for the call.
    let other = unsafe sys_open(sys_here, file(scratch), sys_for_updating)
    try #require(sys_lock_range(other, Int64(UInt8(ascii: "a")), 1) == 0)
    #expect(throws: StoreTrouble.busy(path: file(scratch))) {
      try accept(step: 50, record, in: scratch.store)
    }
    sys_unlock(other)
    try #require(sys_lock_range(other, Int64(UInt8(ascii: "b")), 1) == 0)
    let before = try contents(file(scratch))
    #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 0)
    sys_close(other)
    let after = try contents(file(scratch))
    let own = Int(sys_process() & 1) * 4096
    #expect(after[own..<own + 4096] != before[own..<own + 4096])
    let others = 4096 - own
    #expect(after[others..<others + 4096] == before[others..<others + 4096])
  }

  @Test("Torn pages never become trouble")
  func torn() throws {
    let scratch = try Scratch()
    let record = try scratch.store.loadDecoy(for: [])
    for slot in [UInt64(0), 4096] { try overwrite(file(scratch), with: [0xff], at: slot + 4095) }
    #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 0)
    for slot in [UInt64(0), 4096] { try overwrite(file(scratch), with: [0xff], at: slot + 4095) }
    #expect(try scratch.store.loadDecoy(for: []).enrollment.id == record.enrollment.id)
  }

  @Test("Many at once never get in each other's way")
  func crowd() throws {
    let scratch = try Scratch(patience: Patience(nanoseconds: 0))
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

  @Test("Without one, that is told")
  func missing() throws {
    let scratch = try Scratch()
    try FileManager.default.removeItem(atPath: scratch.root + "/decoy")
    #expect(throws: StoreTrouble.noStore(path: scratch.root + "/decoy")) {
      try scratch.store.loadDecoy(for: [])
    }
    try scratch.store.prepare()
    #expect(try scratch.store.loadDecoy(for: []).isDecoy)
  }

  @Test("Preparing leaves a good one alone and makes a broken one anew")
  func prepared() throws {
    let scratch = try Scratch()
    let id = try scratch.store.loadDecoy(for: []).enrollment.id
    try scratch.store.prepare()
    #expect(try scratch.store.loadDecoy(for: []).enrollment.id == id)
    removeName(file(scratch))
    try scratch.store.prepare()
    #expect(try scratch.store.loadDecoy(for: []).enrollment.id != id)
  }
}
