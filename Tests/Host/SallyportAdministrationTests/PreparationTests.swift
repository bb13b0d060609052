import CSystem
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import Testing

@testable import SallyportSystem

private func mode(_ path: String) throws -> UInt32 { try facts(at: Path(path)).mode }

@Suite struct `Preparing a store` {
  // shows: store-closed
  @Test func `Everything that is made is the owner's alone, whatever the umask says`() async {
    await #expect(processExitsWith: .success) {
      // Without root a directory that is made with no permission at all cannot be opened any more.
      for mask in [mode_t(0), 0o077, isRoot ? 0o777 : 0o022] {
        umask(0o022)
        let scratch = try Scratch()
        umask(mask)
        let store = Store(root: scratch.path + "/second", owner: .effectiveUser)
        try store.prepare()
        let alice = try sample("alice")
        try store.create(alice, LoginState(initialFor: alice))
        let (root, users) = (store.root.text, store.users.text)
        let directories = [root, users, users + "/alice", root + "/decoy"]
        #expect(try directories.map(mode) == [0o700, 0o700, 0o700, 0o700])
        let files = ["/enrollment", "/state"].flatMap {
          [directories[2] + $0, directories[3] + $0]
        }
        #expect(try files.map(mode) == [0o600, 0o600, 0o600, 0o600])
        #expect(umask(mask) == mask)
      }
    }
  }

  // decisive
  @Test func `Twice is as good as once`() throws {
    let scratch = try Scratch()
    let enrollment = try scratch.enroll("alice")
    try scratch.store.prepare()
    #expect(try scratch.loaded("alice").enrollment.id == enrollment.id)
    #expect(try scratch.names() == ["alice"])
  }

  // shows: one-write
  @Test func `What a crash left over is wiped and removed, also where it is no directory of ours`()
    throws
  {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    try scratch.enroll("bob")
    let old = scratch.directory(".gone-12")
    rename(scratch.directory("bob"), to: old)
    try FileManager.default.createDirectory(
      atPath: scratch.directory(".tmp-34"), withIntermediateDirectories: false)
    makeEmpty(scratch.directory(".tmp-56"))
    makePipe(scratch.directory(".tmp-34") + "/enrollment")
    try FileManager.default.createSymbolicLink(
      atPath: scratch.directory(".tmp-78"), withDestinationPath: scratch.directory("alice"))
    // An open file still shows what becomes of the bytes.
    let secret = try Descriptor(Path(old + "/enrollment"), sys_for_reading)
    try scratch.store.prepare()
    #expect(try scratch.names() == ["alice"])
    let isWiped = isZeroed(secret.number)
    #expect(isWiped)
    #expect(try scratch.store.load(account("alice")) != nil)
  }

  // shows: frozen-login
  @Test
  func `What is being made without the lock of commands is wiped when it is old and nobody has it`()
    throws
  {
    let scratch = try Scratch()
    let (enrollment, state) = (try sample("alice"), StateRecord.fileSize)
    let parent = try Descriptor(Path(scratch.users), sys_as_directory)
    var made: Unfinished? = try Unfinished(alone: true)
    let name = try #require(made).name
    let text = try #require(enrollment.written())
    try made?.make(
      in: parent, scratch.store.users, enrollment: text, state: [UInt8](repeating: 1, count: state))
    let path = scratch.directory(name.text)
    #expect(name.text.hasPrefix(".new-"))
    setAge(path, 660)
    try scratch.store.prepare()
    #expect(try scratch.names() == [name.text], "it is locked")
    made = nil
    setAge(path, 540)
    try scratch.store.prepare()
    #expect(try scratch.names() == [name.text], "it is young")
    setAge(path, 660)
    let secret = try Descriptor(Path(path + "/enrollment"), sys_for_reading)
    // A child that another test is just starting has the lock as well, up to its exec.
    let isSwept = soon {
      (try? scratch.store.prepare()) != nil && (try? scratch.names()) == []
    }
    #expect(isSwept)
    let isWiped = isZeroed(secret.number)
    #expect(isWiped)
    makeEmpty(path)
    try scratch.store.prepare()
    #expect(try scratch.names() == [], "no directory is nobody's work")
  }

  // decisive
  @Test func `A directory where others may write is never made a store`() throws {
    let scratch = try Scratch()
    let store = Store(root: scratch.path + "/second", owner: .effectiveUser)
    setMode(scratch.path, 0o770)
    #expect(throws: StoreTrouble.unsafe(path: scratch.path, .mode(0o770))) { try store.prepare() }
    #expect(!FileManager.default.fileExists(atPath: store.root.text))
  }

  @Test func `A good decoy stays, and one that is missing or broken is made again`() throws {
    let scratch = try Scratch()
    let id = try scratch.store.loadDecoy(for: []).enrollment.id
    try scratch.store.prepare()
    #expect(try scratch.store.loadDecoy(for: []).enrollment.id == id)
    removeName(scratch.root + "/decoy/state")
    try scratch.store.prepare()
    #expect(try scratch.store.loadDecoy(for: []).enrollment.id != id)
  }
}
