import CSystem
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `What commands change` {
  @Test(arguments: [true, false])
  func `Replacing exchanges both files and wipes the old ones`(exchanges: Bool) throws {
    let scratch = try Scratch(exchanges: exchanges)
    try scratch.enroll("alice")
    _ = try accept(step: 50, try scratch.loaded("alice"), in: scratch.store)
    let old = try Descriptor(Path(scratch.file("alice", "enrollment")), sys_for_reading)
    let new = try sample("alice")
    try scratch.store.replace(new, LoginState(initialFor: new))
    let record = try scratch.loaded("alice")
    #expect(record.enrollment.id == new.id)
    #expect(record.state.authenticators[0].lastAccepted == 41)
    let isWiped = isZeroed(old.number)
    #expect(isWiped)
    #expect(try scratch.names() == ["alice"])
    #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 41)
  }

  @Test(arguments: [true, false])
  func `Replacing enrolls who is not enrolled`(exchanges: Bool) throws {
    let scratch = try Scratch(exchanges: exchanges)
    let new = try sample("alice")
    try scratch.store.replace(new, LoginState(initialFor: new))
    #expect(try scratch.loaded("alice").enrollment.id == new.id)
  }

  @Test func `A change of an enrollment that was replaced meanwhile leaves the new one`() throws {
    let scratch = try Scratch()
    let former = try scratch.enroll("alice")
    let new = try sample("alice")
    var state = LoginState(initialFor: new)
    state.other = Bucket(spent: GuessProbability(units: 5), since: UnixTime(1_772_530_000))
    try scratch.store.replace(new, state)
    let (store, alice) = (scratch.store, try account("alice"))
    let digits = former.authenticators[0].parameters.digits
    let codes = try #require(CodePair(.code(1, digits), .code(2, digits)))
    #expect(try !store.unlock(alice, id: former.id))
    #expect(try store.forget(alice, id: former.id) == nil)
    #expect(
      try store.resynchronize(
        alice, id: former.id, by: codes, named: nil, under: Policy(), at: { UnixTime(1) }) == nil)
    #expect(try !store.end(alice, id: former.id))
    let record = try scratch.loaded("alice")
    #expect(record.enrollment.id == new.id && record.state == state)
  }

  @Test func `Replacing fixes what cannot be read`() throws {
    let breaks: [(Scratch) throws -> Void] = [
      { removeName($0.file("alice", "state")) },
      { try overwrite($0.file("alice", "enrollment"), with: [0], at: 0) },
      {
        rename($0.directory("alice"), to: $0.path + "/aside")
        makeEmpty($0.directory("alice"))
      },
      { setMode($0.directory("alice"), 0o777) },
    ]
    for damage in breaks {
      let scratch = try Scratch()
      try scratch.enroll("alice")
      try damage(scratch)
      let new = try sample("alice")
      try scratch.store.replace(new, LoginState(initialFor: new))
      #expect(try scratch.loaded("alice").enrollment.id == new.id)
      #expect(try scratch.names() == ["alice"])
    }
  }

  // decisive
  @Test(arguments: [true, false])
  func `While it is replaced, a user is never without an enrollment`(exchanges: Bool) throws {
    let scratch = try Scratch(exchanges: exchanges)
    try scratch.enroll("alice")
    let (store, owner) = (scratch.store, try account("alice"))
    let isDone = Outcome()
    let absences = Counter()
    atOnce(3) { index in
      if index == 0 {
        for _ in 0..<60 {
          guard let new = try? sample("alice") else { continue }
          try? store.replace(new, LoginState(initialFor: new))
        }
        isDone.set(true)
      }
      while isDone.value == nil {
        do {
          guard let record = try store.load(owner) else {
            absences.increment()
            continue
          }
          if index == 2 { _ = try accept(step: 50, record, in: store) }
        } catch {
          // Only where directories cannot be exchanged is there a moment of trouble.
          if exchanges { Issue.record(error) }
        }
      }
    }
    #expect(absences.value == 0)
  }

  @Test func `An exchange that stopped half-way is trouble until the next command ends it`() throws
  {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let new = try sample("alice")
    let made = try scratch.store.changing { users throws(StoreTrouble) in
      try users.make(try scratch.store.text(new), LoginState(initialFor: new))
    }
    let marker = scratch.directory(".moving-alice")
    rename(scratch.directory(made.text), to: marker)
    #expect(try scratch.store.load(account("alice")) != nil)
    rename(marker + "/enrollment", to: scratch.file("alice", "enrollment"))
    #expect(throws: StoreTrouble.unsettled(path: scratch.directory("alice"))) {
      try scratch.loaded("alice")
    }
    try scratch.store.prepare()
    #expect(try scratch.loaded("alice").enrollment.id == new.id)
    #expect(try scratch.names() == ["alice"])
  }

  @Test func `An exchange that stopped before it began is forgotten`() throws {
    let scratch = try Scratch()
    let old = try scratch.enroll("alice")
    try scratch.enroll("bob")
    rename(scratch.directory("bob"), to: scratch.directory(".moving-alice"))
    try scratch.store.prepare()
    #expect(try scratch.loaded("alice").enrollment.id == old.id)
    #expect(try scratch.names() == ["alice"])
  }

  @Test func `Removing wipes, and a login that has loaded is told`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    let old = try Descriptor(Path(scratch.file("alice", "enrollment")), sys_for_reading)
    #expect(!isChanged(try scratch.store.remove(record)))
    let isWiped = isZeroed(old.number)
    #expect(isWiped)
    #expect(try scratch.names() == [])
    #expect(try scratch.store.load(account("alice")) == nil)
    #expect(isChanged(try accept(step: 50, record, in: scratch.store)))
    #expect(isChanged(try scratch.store.remove(record)))
  }

  @Test func `What cannot be read can be removed all the same`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    removeName(scratch.file("alice", "state"))
    let name = try #require(try scratch.store.enrolledNames().first)
    #expect(try scratch.store.remove(stored: name))
    #expect(try scratch.names() == [])
    #expect(try !scratch.store.remove(stored: name))
  }

  /// What no login locks: none of these is a state.
  @Test(arguments: ["directory", "link", "pipe", "socket"])
  func `Whatever lies where the state was, the rest can be removed`(kind: String) throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let (state, files) = (scratch.file("alice", "state"), FileManager.default)
    removeName(state)
    switch kind {
    case "directory": try files.createDirectory(atPath: state, withIntermediateDirectories: false)
    case "link": try files.createSymbolicLink(atPath: state, withDestinationPath: "/etc/passwd")
    case "pipe": makePipe(state)
    case _: makeSocket(state)
    }
    let name = try #require(try scratch.store.enrolledNames().first)
    #expect(try scratch.store.remove(stored: name))
    #expect(try !scratch.names().contains("alice"))
  }

  @Test func `Where its state cannot be opened, nothing is removed without the login's lock`() async
  {
    await #expect(processExitsWith: .success) {
      let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 0))
      try scratch.enroll("alice")
      let name = try #require(try scratch.store.enrolledNames().first)
      let login = try Descriptor(Path(scratch.file("alice", "state")), sys_for_updating)
      let timeout = scratch.store.timeout
      try LockBytes.own.acquire(login.number, asKnown: true, timeout, "/x")
      var limit = rlimit()
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
      // SAFETY, twice: filled and read within the call.
      try #require(unsafe getrlimit(resource, &limit) == 0)
      let usual = limit.rlim_cur
      var reasons: [StoreTrouble] = []
      for most in rlim_t(3)...40 {
        limit.rlim_cur = most
        _ = unsafe setrlimit(resource, &limit)
        do throws(StoreTrouble) { _ = try scratch.store.remove(stored: name) } catch {
          reasons.append(error)
        }
        limit.rlim_cur = usual
        _ = unsafe setrlimit(resource, &limit)
        #expect(try scratch.names() == ["alice"], "with \(most) descriptors")
      }
      #expect(reasons.count == 38)
      let state = scratch.file("alice", "state")
      #expect(reasons.contains(.system("open", path: state, errno: EMFILE)))
      #expect(reasons.last == .busy(path: state))
    }
  }

  // shows: frozen-login
  @Test func `Commands wait for each other no longer than the bound`() throws {
    let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 10_000_000))
    let users = try Descriptor(Path(scratch.users), sys_as_directory)
    try #require(sys_lock_directory(users.number) == 0)
    let (store, alice, new) = (scratch.store, try account("alice"), try sample("alice"))
    let state = LoginState(initialFor: new)
    let busy = StoreTrouble.busy(path: scratch.users)
    #expect(throws: busy) { try store.prepare() }
    #expect(throws: busy) { try store.replace(new, state) }
    #expect(throws: busy) { _ = try store.create(all: [(new, state)]) }
    #expect(throws: busy) { try store.setLevel(.exempt(until: nil), of: alice) }
    // What logins do as well waits for none of them.
    try store.create(new, state)
    let record = try scratch.loaded("alice")
    #expect(!isChanged(try store.rewrite(record, record.enrollment) { $0 }))
    #expect(try store.countLogin(of: alice) == 1)
    #expect(throws: busy) { _ = try store.remove(try scratch.loaded("alice")) }
    #expect(try scratch.names() == ["alice"])
    sys_unlock_directory(users.number)
    #expect(!isChanged(try store.remove(try scratch.loaded("alice"))))
  }

  @Test func `A change waits for a login that is saving`() throws {
    let scratch = try Scratch(timeout: LockTimeout(nanoseconds: 10_000_000))
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    let state = try Descriptor(Path(scratch.file("alice", "state")), sys_for_updating)
    try #require(sys_lock(state.number, F_WRLCK, 0, 8192) == 0)
    let busy = StoreTrouble.busy(path: scratch.file("alice", "state"))
    let new = try sample("alice")
    #expect(throws: busy) { try scratch.store.replace(new, LoginState(initialFor: new)) }
    #expect(throws: busy) { _ = try scratch.store.remove(record) }
    #expect(throws: busy) { _ = try scratch.store.rewrite(record, record.enrollment) { $0 } }
    #expect(try scratch.names() == ["alice"])
    #expect(try scratch.loaded("alice").enrollment.id == record.enrollment.id)
  }

  // shows: full-disk
  @Test
  func `Where nothing can be written, the old enrollment stays whole and nothing is left over`()
    async
  {
    await #expect(processExitsWith: .success) {
      let scratch = try Scratch()
      let old = try scratch.enroll("alice")
      let record = try scratch.loaded("alice")
      let new = try sample("alice")
      let other = try sample("bob")
      limitFileSize(100)
      let store = scratch.store
      expectTooBig { try store.replace(new, LoginState(initialFor: new)) }
      expectTooBig { try store.create(other, LoginState(initialFor: other)) }
      expectTooBig { _ = try store.rewrite(record, new) { $0 } }
      expectTooBig { try store.setLevel(.required(from: nil), of: try account("alice", uid: 3001)) }
      expectTooBig { try store.confirm([UInt8](repeating: 0x20, count: 200)) }
      #expect(try scratch.loaded("alice").enrollment.id == old.id)
      #expect(try scratch.names() == ["alice"])
      let top = try FileManager.default.contentsOfDirectory(atPath: scratch.root)
      #expect(top.filter { $0.hasPrefix(".") } == [])
    }
  }
}

private func expectTooBig(_ body: () throws -> Void) {
  do {
    try body()
    Issue.record("it was written")
  } catch {
    guard case .system("write", _, EFBIG)? = error as? StoreTrouble else {
      Issue.record(error)
      return
    }
  }
}

private func ~= (pattern: StaticString, value: StaticString) -> Bool {
  "\(pattern)" == "\(value)"
}

@Suite struct `The names of users' directories` {
  @Test func `All names come back, and only as the store spells them`() throws {
    let scratch = try Scratch()
    let long = String(repeating: "%", count: 80)
    let users = ["alice", "alice@corp.example", "Domain User", "naïve", "50%", "a.b-c_d", long]
    for user in users { try scratch.enroll(user) }
    let stored = try scratch.store.enrolledNames()
    #expect(stored.count == users.count)
    let plain = try users.dropLast().map { try userName($0) }
    #expect(plain.allSatisfy { name in stored.contains { $0.user == name } })
    let hashed = try #require(stored.first { $0.user == nil })
    #expect(hashed.directory.hasPrefix("%%") && hashed.directory.count == 66)
    let record = try #require(try scratch.store.load(stored: hashed))
    #expect(record.enrollment.user == (try userName(long)))
    #expect(try scratch.store.load(account(long)) != nil)
  }

  @Test(arguments: ["%61lice", "%", "%4", "%zz", "a b", "%2e", "%2Fetc", "%41", "-x", "%c3%af"])
  func `A directory name that the store would not have made spells no user`(name: String) {
    #expect(StoredName(directory: [UInt8](name.utf8)).user == nil)
  }

  @Test func `An enrollment in another's directory is told`() throws {
    let scratch = try Scratch()
    try scratch.enroll("bob")
    rename(scratch.directory("bob"), to: scratch.directory("alice"))
    let name = try #require(try scratch.store.enrolledNames().first)
    let path = scratch.file("alice", "enrollment")
    #expect(throws: StoreTrouble.otherUser(path: path, found: try userName("bob"))) {
      try scratch.store.load(stored: name)
    }
  }
}
