import CSystem
import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `A login that enrolls or changes` {
  @Test func `Who is enrolled is not enrolled again, and nothing is left over`() throws {
    let scratch = try Scratch()
    let first = try scratch.enroll("alice")
    let trouble = StoreTrouble.exists(path: scratch.directory("alice"))
    #expect(throws: trouble) { try scratch.enroll("alice") }
    #expect(try scratch.loaded("alice").enrollment.id == first.id)
    #expect(try scratch.names() == ["alice"])
  }

  // shows: enroll-race, enroll-cut
  @Test func `Of many at once one enrolls a user`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    let enrollment = try sample("alice")
    let wins = Counter()
    atOnce(8) { _ in
      let done: Void? = try? store.create(enrollment, LoginState(initialFor: enrollment))
      if done != nil { wins.increment() }
    }
    #expect(wins.value == 1)
    #expect(try scratch.names() == ["alice"])
  }

  @Test func `Rewriting keeps what the state knows and changes what it is told to`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    _ = try accept(step: 50, try scratch.loaded("alice"), in: scratch.store)
    let record = try scratch.loaded("alice")
    let old = try Descriptor(Path(scratch.file("alice", "enrollment")), sys_for_reading)
    var enrollment = record.enrollment
    enrollment.backupCodes = BackupCodeSet(
      id: 9, salt: [UInt8](repeating: 1, count: 16), digests: [[UInt8](repeating: 2, count: 32)])
    let outcome = try scratch.store.rewrite(record, enrollment) { state in
      var state = state
      state.reconcile(with: enrollment)
      return state
    }
    #expect(!isChanged(outcome))
    let now = try scratch.loaded("alice")
    #expect(now.enrollment.backupCodes?.id == 9)
    #expect(now.state.backupCodes?.setID == 9)
    #expect(now.state.authenticators[0].lastAccepted == 50)
    let isWiped = isZeroed(old.number)
    #expect(isWiped)
    #expect(try scratch.names() == ["alice"])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: scratch.directory("alice")).count == 2)
    #expect(isChanged(try scratch.store.rewrite(record, enrollment) { $0 }))
  }

  @Test func `A rehearsal of enrolling leaves nothing, and fails where enrolling would`() throws {
    let scratch = try Scratch()
    try scratch.store.rehearse()
    #expect(try scratch.names() == [])
    setMode(scratch.users, 0o777)
    #expect(throws: StoreTrouble.unsafe(path: scratch.users, .mode(0o777))) {
      try scratch.store.rehearse()
    }
    try FileManager.default.removeItem(atPath: scratch.users)
    #expect(throws: StoreTrouble.noStore(path: scratch.users)) { try scratch.store.rehearse() }
  }

  @Test func `All blocks of a state are written when it is made`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let path = scratch.file("alice", "state")
    let attributes = try URL(fileURLWithPath: path).resourceValues(forKeys: [
      .fileSizeKey, .fileAllocatedSizeKey,
    ])
    #expect(attributes.fileSize == 8192)
    #expect(try #require(attributes.fileAllocatedSize) >= 8192)
  }
}
