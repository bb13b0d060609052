import CSystem
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@testable import SallyportSystem

/// alice, whose enrollment is suspended by logins with passes.
@Suite struct `What a pass has replaced` {
  private static let now = UnixTime(1_772_530_000)
  private static let step = timeStep(at: now.seconds, period: 30)
  private static let day: Int64 = 86_400
  private let scratch: Scratch
  private var store: Store { scratch.store }

  init() throws {
    scratch = try Scratch()
    var first = try enrollment(
      [
        try authenticator(1, "phone", last: 41),
        try authenticator(2, "token", try parameters(.hotp), last: 9),
      ], backupCodes: try backupCodes(["A", "B", "C"].map { $0 + "AAAAAAAAAAAAAAA" }))
    first.passes = [pass(7, 77)]
    try store.create(first, LoginState(initialFor: first))
    try change { state in
      state.authenticators[1].lastAccepted = 12
      state.backupCodes?.used = 0b010
      state.passes[0] = PassState(id: 7, used: 1, claim: 77)
      state.origins = [KnownOrigin(origin: NetworkAddress(high: 1, low: 0), lastSeen: Self.now)]
      state.other = Bucket(spent: GuessProbability(units: 5), since: Self.now)
    }
  }

  private func pass(_ id: UInt64, _ claim: UInt64) -> Pass {
    Pass(
      id: id, digest: [UInt8](repeating: 1, count: 32), created: Self.now,
      expires: UnixTime(Self.now.seconds + 9 * Self.day), uses: 3, enrolls: true)
  }

  // MARK: steps

  private func alice() throws -> Account { try account("alice", uid: 1000) }

  private func loaded() throws -> Record { try #require(try store.load(try alice())) }

  private func change(_ body: (inout LoginState) -> Void) throws {
    let done: Transaction<Void> = try store.transact(try loaded()) {
      (enrollment, state) throws(StoreTrouble) -> (Void, LoginState) in
      var state = state
      state.reconcile(with: enrollment)
      body(&state)
      return ((), state)
    }
    guard case .committed = done else { throw StoreTrouble.outOfMemory }
  }

  /// As a login with a pass does. `id`: of the suspension.
  private func replace(_ id: UInt64, claim: UInt64 = 77, after days: Int64 = 0) throws -> Bool {
    let record = try loaded()
    let now = UnixTime(Self.now.seconds + days * Self.day)
    let new = try authenticator(id + 100, "new-\(id)", last: 50)
    var next = try EnrollmentChange.replace([new], backupCodes: nil, claim: claim)
      .applied(to: record.enrollment, record.state)
    next.suspended.append(Suspension(id: id, since: now))
    let done = try store.suspend(record, for: next, claim: claim, at: now)
    if case .committed = done { return true }
    return false
  }

  /// Another pass, which is claimed.
  private func give(_ id: UInt64) throws {
    let record = try loaded()
    var next = record.enrollment
    next.passes = [pass(id, 77)]
    _ = try store.rewrite(record, next) { $0 }
    try change { $0.passes[0].claim = 77 }
  }

  private func restore(_ index: Int = 0, after days: Int64 = 1) throws -> Bool {
    let enrollment = try loaded().enrollment
    let done: Void? = try store.restore(
      enrollment.suspended[index], of: try alice(), id: enrollment.id,
      at: UnixTime(Self.now.seconds + days * Self.day))
    return done != nil
  }

  private func files() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: scratch.directory("alice")).sorted()
  }

  private func names() throws -> [String] {
    try loaded().enrollment.authenticators.map(\.name.text)
  }

  // MARK: tests

  // decisive
  @Test func `comes back in one step, and no code up to now with it`() throws {
    let before = try loaded().enrollment
    #expect(try replace(1))
    #expect(try names() == ["new-1"] && files().count == 4)
    #expect(try restore())
    let (after, state) = (try loaded().enrollment, try loaded().state)
    #expect(try names() == ["phone", "token"] && files() == ["enrollment", "state"])
    #expect(after.passes.isEmpty && after.suspended.isEmpty && after.id == before.id)
    let last = state.authenticators.map(\.lastAccepted)
    #expect(last == [Self.step + UInt64(Self.day / 30), 12])
    #expect(state.notices.restored.seconds == Self.now.seconds + Self.day)
    #expect(after.authenticators.map(\.id) != before.authenticators.map(\.id))
    let digests = before.backupCodes?.digests ?? []
    #expect(after.backupCodes?.digests == [digests[0], digests[2]])
    #expect(state.backupCodes?.used == 0 && state.backupCodes?.setID == after.backupCodes?.id)
    #expect(state.origins.isEmpty && state.other.spent.units == 5)
  }

  // decisive
  @Test func `needs the random of the last claim, and a pass that has not ended`() throws {
    #expect(try !replace(1, claim: 78))
    #expect(try !replace(1, claim: 0))
    #expect(try !replace(1, after: 9))
    #expect(try names() == ["phone", "token"] && files().count == 2)
    #expect(try loaded().state.origins.count == 1)
    #expect(try replace(1))
    #expect(try loaded().state.origins.isEmpty)
    #expect(try !replace(2))
  }

  @Test func `is several, each for seven days, and one that comes back ends those after it`()
    throws
  {
    #expect(try replace(1))
    try give(8)
    #expect(try replace(2, after: 2))
    #expect(try files().count == 6)
    // The second alone: the first one stays.
    #expect(try restore(1, after: 3))
    #expect(try names() == ["new-1"] && loaded().enrollment.suspended.map(\.id) == [1])
    #expect(try files().count == 4)
    try give(9)
    #expect(try replace(3, after: 3))
    #expect(try restore(0, after: 4))
    #expect(try names() == ["phone", "token"] && files().count == 2)
  }

  @Test func `ends after seven days, with its files, and so do those of nobody`() throws {
    #expect(try replace(1))
    try give(8)
    #expect(try replace(2, after: 2))
    let text = try contents(scratch.file("alice", "suspended-0000000000000001"))
    for name in ["suspended-00000000000000ff", "suspended-00000000000000ff.state"] {
      let path = scratch.file("alice", name)
      try Data(text).write(to: URL(fileURLWithPath: path))
    }
    let old = try Descriptor(
      Path(scratch.file("alice", "suspended-00000000000000ff")), sys_for_updating)
    store.removeEnded(of: try alice(), at: UnixTime(Self.now.seconds + 7 * Self.day))
    #expect(try loaded().enrollment.suspended.map(\.id) == [2])
    let kept = ["suspended-0000000000000002", "suspended-0000000000000002.state"]
    #expect(try files() == ["enrollment", "state"] + kept)
    let isWiped = isZeroed(old.number)
    #expect(isWiped)
  }

  @Test func `is kept by who is adopted, and ends where the store is a copy`() throws {
    #expect(try replace(1))
    let record = try loaded()
    let done = try store.adopt(
      record, of: try userName("alice"), by: try account("alice", uid: 2000))
    guard case .committed = done else {
      Issue.record("not adopted")
      return
    }
    let adopted = try #require(try store.load(try account("alice", uid: 2000)))
    #expect(adopted.enrollment.suspended.count == 1 && adopted.enrollment.uid == 2000)
    let restored = try store.former(
      Suspension(id: 1, since: Self.now), of: try account("alice", uid: 2000),
      id: adopted.enrollment.id, at: Self.now)
    #expect(restored?.uid == 2000 && restored?.authenticators.count == 2)
    let name = try #require(try store.enrolledNames().first)
    let now = Self.now
    _ = try store.distrustCopy(stored: name) { () throws(StoreTrouble) in now }
    let copied = try #require(try store.load(try account("alice", uid: 2000)))
    #expect(copied.enrollment.suspended.isEmpty)
    #expect(try files() == ["enrollment", "state"])
  }

  @Test func `is wiped with what took its place`() throws {
    #expect(try replace(1))
    let old = try Descriptor(
      Path(scratch.file("alice", "suspended-0000000000000001")), sys_for_updating)
    guard case .committed = try store.remove(try loaded()) else {
      Issue.record("not removed")
      return
    }
    let isWiped = isZeroed(old.number)
    #expect(isWiped)
    #expect(try scratch.names().isEmpty)
  }

  @Test func `is not restored from files that are not its`() throws {
    #expect(try replace(1))
    let enrollment = try loaded().enrollment
    let path = scratch.file("alice", "suspended-0000000000000001")
    let whole = try contents(path)
    try Data(whole.prefix(whole.count - 8)).write(to: URL(fileURLWithPath: path))
    #expect(throws: StoreTrouble.self) { try restore() }
    try FileManager.default.removeItem(atPath: path)
    #expect(throws: StoreTrouble.self) { try restore() }
    #expect(try loaded().enrollment.suspended == enrollment.suspended)
    #expect(try names() == ["new-1"])
    let unknown: Void? = try store.restore(
      Suspension(id: 3, since: Self.now), of: try alice(), id: enrollment.id, at: Self.now)
    #expect(unknown == nil)
  }

  @Test func `gives no backup code back where a state may be lost`() throws {
    #expect(try replace(1))
    let path = scratch.file("alice", "suspended-0000000000000001.state")
    var bytes = try contents(path)
    // The slot before the one that counts.
    let second = StateRecord.slotSize
    let older = bytes[8] > bytes[second + 8] ? second : 0
    bytes.replaceSubrange(older..<older + 32, with: [UInt8](repeating: 0, count: 32))
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    #expect(try restore())
    #expect(try loaded().enrollment.backupCodes == nil)
    #expect(try loaded().state.authenticators[1].lastAccepted == 13)
  }
}
