import CSystem
import Foundation
import SallyportCore
import Testing

@testable import SallyportSystem

/// The bytes of a user's state file: the lock proper, then the announcement and the gate.
private let (last, announcement, gate) = (Int64(8191), Int64(8192), Int64(8193))

@Suite struct `Who waits for whom` {
  private let scratch: Scratch
  private let record: Record
  private let other: Int32

  init() throws {
    scratch = try Scratch(timeout: LockTimeout(nanoseconds: 20_000_000))
    try scratch.enroll("alice")
    record = try scratch.loaded("alice")
    other = try opened(scratch.file("alice", "state"))
  }

  private func saves(asKnown isKnown: Bool) throws -> Bool {
    do {
      return verdict(try accept(step: 50, record, in: scratch.store, asKnown: isKnown)) != nil
    } catch StoreTrouble.busy {
      return false
    }
  }

  @Test(arguments: [
    (Int64(0), F_WRLCK, false, false), (last, F_WRLCK, false, false),
    (gate, F_WRLCK, true, false), (announcement, F_RDLCK, true, false),
    (gate + 1, F_WRLCK, true, true),
  ])
  func `A stranger waits for the lock, the gate and for known places, these for the lock alone`(
    byte: Int64, kind: Int32, known: Bool, stranger: Bool
  ) throws {
    defer { sys_close(other) }
    try #require(sys_lock(other, kind, byte, 1) == 0)
    #expect(try saves(asKnown: true) == known)
    #expect(try saves(asKnown: false) == stranger)
    sys_unlock(other)
    #expect(try saves(asKnown: true))
    #expect(try saves(asKnown: false))
  }

  @Test func `Inside, the lock alone is held: the gate is open for the next one, and nobody waits`()
    throws
  {
    defer { sys_close(other) }
    for isKnown in [true, false] {
      let held = try scratch.store.transact(record, asKnown: isKnown) { _, state in
        ([0, last, announcement, gate].map { sys_is_locked(other, $0) }, state)
      }
      #expect(verdict(held) == [1, 1, 0, 0])
      #expect([0, last, announcement, gate].allSatisfy { sys_is_locked(other, $0) == 0 })
    }
  }

  @Test func `Who has waited at a known place does not say so any longer`() throws {
    defer { sys_close(other) }
    let (store, record, other, held) = (scratch.store(), record, other, Outcome())
    try #require(sys_lock(other, F_WRLCK, 0, 1) == 0)
    let waiter = Thread.started {
      let inside = try? store.transact(record, asKnown: true) { _, state in
        (sys_is_locked(other, announcement) == 0, state)
      }
      held.set(inside.flatMap { verdict($0) })
    }
    let isSaid = someoneWaits(other)
    sys_unlock(other)
    waiter.wait()
    #expect(isSaid)
    #expect(held.value == true)
  }

  @Test func `Several known places can say at once that they wait`() throws {
    defer { sys_close(other) }
    let (store, record, held) = (scratch.store(), record, Outcome())
    try #require(sys_lock(other, F_WRLCK, 0, 1) == 0)
    let waiter = Thread.started {
      let saved = try? accept(step: 50, record, in: store, asKnown: true)
      held.set(saved.map { !isChanged($0) })
    }
    let isSaid = someoneWaits(other)
    let isSharable = sys_lock(other, F_RDLCK, announcement, 1) == 0
    sys_unlock(other)
    waiter.wait()
    #expect(isSaid && isSharable)
    #expect(held.value == true)
  }

  @Test func `Who gives up waiting leaves nothing locked`() throws {
    defer { sys_close(other) }
    let third = try opened(scratch.file("alice", "state"))
    defer { sys_close(third) }
    try #require(sys_lock(other, F_WRLCK, 0, 1) == 0)
    for isKnown in [true, false] {
      #expect(throws: StoreTrouble.busy(path: "/x")) {
        try LockBytes.own.acquire(third, asKnown: isKnown, scratch.store.timeout, "/x")
      }
      #expect([announcement, gate].allSatisfy { sys_is_locked(other, $0) == 0 })
    }
  }

  // shows: owner-waits
  @Test func `Of strangers who wait, none comes before a known place that waits`() throws {
    defer { sys_close(other) }
    let (store, record, order) = (scratch.store(), record, Order())
    try #require(sys_lock(other, F_WRLCK, 0, 1) == 0)
    let save = { @Sendable (isKnown: Bool) in
      _ = try? store.transact(record, asKnown: isKnown) { _, state in
        order.add(isKnown)
        return (true, state)
      }
    }
    let owner = Thread.started { save(true) }
    let isSaid = someoneWaits(other)
    let strangers = (0..<8).map { _ in Thread.started { save(false) } }
    // One of them is as near as a stranger comes.
    let isNear = soon { sys_is_locked(other, gate) == 1 }
    sys_unlock(other)
    for waiter in strangers + [owner] { waiter.wait() }
    #expect(isSaid && isNear)
    #expect(order.value == [true] + [Bool](repeating: false, count: 8))
  }

  @Test func `A stranger does not stand back for ever`() throws {
    let patient = try Scratch(timeout: LockTimeout(nanoseconds: 60_000_000_000))
    try patient.enroll("alice")
    let announcing = try opened(patient.file("alice", "state"))
    defer { sys_close(announcing) }
    try #require(sys_lock(announcing, F_RDLCK, announcement, 1) == 0)
    let start = sys_monotonic()
    let loaded = try patient.loaded("alice")
    let saved = try accept(step: 50, loaded, in: patient.store, asKnown: false)
    #expect(verdict(saved) != nil)
    #expect((50_000_000...30_000_000_000).contains(sys_monotonic() - start))
  }

  @Test func `There is one bound for the gate and the lock together`() throws {
    defer { sys_close(other) }
    var (start, tries) = (UInt64(0), 0)
    let third = { () -> Int32 in
      tries += 1
      return tries == 3 ? 0 : -EAGAIN
    }
    #expect(LockTimeout.ofTests.poll(since: &start, third) == 0)
    #expect(tries == 3 && start != 0)
    // It began when the machine did.
    (start, tries) = (1, 0)
    let bound = LockTimeout(nanoseconds: sys_monotonic() - start)
    #expect(bound.poll(since: &start, third) == -EAGAIN)
    #expect(tries == 1 && start == 1)
  }

  @Test func `Calls that are always interrupted are given up`() {
    defer { sys_close(other) }
    var start: UInt64 = 0
    #expect(scratch.store.timeout.poll(since: &start) { -EINTR } == -EINTR)
    var tries: Int32 = 0
    errno = EINTR
    // SAFETY: counted within the calls.
    let isGivenUp = (0..<1000).contains { _ in unsafe sys_again(-1, &tries) == 0 }
    #expect(isGivenUp && tries > 1)
  }
}

@Suite struct `A file that changes while it is read` {
  /// It is as long as it was when it was opened, or it is not taken.
  // shows: exchanged-files
  @Test(arguments: [-1, 0, 1])
  func `An enrollment that grows or shrinks meanwhile is not parsed`(change: Int) throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let path = scratch.file("alice", "enrollment")
    let store = scratch.store
    let place = UserDirectory(parent: store.users, name: "alice")
    guard
      let directory = try OpenUserDirectory.open(
        place, on: try store.openParent(store.users), store.checks),
      let file = try StoredFile.open("enrollment", sys_for_reading, in: directory, store.checks)
    else {
      Issue.record("there is none")
      return
    }
    let size = try contents(path).count
    // SAFETY: the C string lives for the call.
    try #require(unsafe truncate(path, off_t(size + change)) == 0)
    let isTaken = try file.secret() != nil
    #expect(isTaken == (change == 0))
  }
}

/// Who came one after the other.
private final class Order: @unchecked Sendable {
  private let lock = NSLock()
  private var found: [Bool] = []

  var value: [Bool] { lock.withLock { found } }
  func add(_ one: Bool) { lock.withLock { found.append(one) } }
}

extension Thread {
  /// Runs `body` on a thread of its own; the group tells when it is done.
  fileprivate static func started(_ body: @escaping @Sendable () -> Void) -> DispatchGroup {
    let done = DispatchGroup()
    done.enter()
    detachNewThread {
      body()
      done.leave()
    }
    return done
  }
}
