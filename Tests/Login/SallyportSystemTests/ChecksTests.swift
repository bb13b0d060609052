import CSystem
import Foundation
import SallyportCore
import Testing

@testable import SallyportSystem

/// One thing done to a good store, and the trouble that it must be.
struct Damage: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let inflict: @Sendable (Scratch) throws -> Void
  /// From the path of the scratch directory.
  let expected: @Sendable (String) -> StoreTrouble
}

private let user = "/store/users/alice"
private let enrollment = "/store/users/alice/enrollment"
private let state = "/store/users/alice/state"

private func mode(_ mode: mode_t, _ path: String, of kind: String = "") -> Damage {
  Damage(
    testDescription: "mode \(String(mode, radix: 8)) of \(path)",
    inflict: { setMode($0.path + path, mode) },
    expected: { .unsafe(path: $0 + path, .mode(UInt32(mode))) })
}

private func replaced(
  _ path: String, by what: String, _ flaw: StoreTrouble.Flaw,
  _ make: @escaping @Sendable (String) throws -> Void
) -> Damage {
  Damage(
    testDescription: "\(what) in the place of \(path)",
    inflict: {
      try FileManager.default.moveItem(atPath: $0.path + path, toPath: $0.path + "/aside")
      try make($0.path + path)
    }, expected: { .unsafe(path: $0 + path, flaw) })
}

private func link(_ path: String) throws {
  let aside = (path.components(separatedBy: "/store")[0]) + "/aside"
  try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: aside)
}

private func directory(_ path: String) throws {
  try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
}

private func content(_ path: String, _ what: String, _ bytes: [UInt8], _ trouble: StoreTrouble)
  -> Damage
{
  Damage(
    testDescription: "\(what) in \(path)",
    inflict: { try Data(bytes).write(to: URL(fileURLWithPath: $0.path + path)) },
    expected: { $0.isEmpty ? trouble : trouble.moved(under: $0) })
}

extension StoreTrouble {
  /// The same trouble with a path that starts with `root`.
  fileprivate func moved(under root: String) -> StoreTrouble {
    switch self {
    case .malformed(let path, let error): .malformed(path: root + path, error)
    case .state(let path, let problem): .state(path: root + path, problem)
    case .unsafe(let path, let flaw): .unsafe(path: root + path, flaw)
    case _: self
    }
  }
}

private let damages: [Damage] = [
  mode(0o770, ""),
  mode(0o720, "/store"),
  mode(0o702, "/store"),
  mode(0o720, "/store/users"),
  mode(0o1777, "/store/users"),
  mode(0o750, user),
  mode(0o701, user),
  mode(0o640, enrollment),
  mode(0o604, enrollment),
  mode(0o644, state),
  mode(0o620, state),
  replaced("/store", by: "a link", .symbolicLink, link),
  replaced("/store", by: "a file", .notADirectory, makeEmpty),
  replaced("/store/users", by: "a link", .symbolicLink, link),
  replaced("/store/users", by: "a pipe", .notADirectory, makePipe),
  replaced(user, by: "a link", .symbolicLink, link),
  replaced(user, by: "a file", .notADirectory, makeEmpty),
  replaced(user, by: "a pipe", .notADirectory, makePipe),
  replaced(enrollment, by: "a link", .symbolicLink, link),
  replaced(enrollment, by: "a directory", .notRegular, directory),
  replaced(enrollment, by: "a pipe", .notRegular, makePipe),
  replaced(state, by: "a link", .symbolicLink, link),
  replaced(state, by: "a directory", .notRegular, directory),
  replaced(state, by: "a pipe", .notRegular, makePipe),
  Damage(
    testDescription: "a second name of the enrollment",
    inflict: { addName($0.path + "/second", to: $0.path + enrollment) },
    expected: { .unsafe(path: $0 + enrollment, .links(2)) }),
  Damage(
    testDescription: "a second name of the state",
    inflict: { addName($0.path + "/second", to: $0.path + state) },
    expected: { .unsafe(path: $0 + state, .links(2)) }),
  Damage(
    testDescription: "no enrollment", inflict: { removeName($0.path + enrollment) },
    expected: { .incomplete(path: $0 + enrollment) }),
  Damage(
    testDescription: "no state", inflict: { removeName($0.path + state) },
    expected: { .incomplete(path: $0 + state) }),
  Damage(
    testDescription: "no users directory",
    inflict: { try FileManager.default.removeItem(atPath: $0.users) },
    expected: { .noStore(path: $0 + "/store/users") }),
  Damage(
    testDescription: "no store",
    inflict: { try FileManager.default.removeItem(atPath: $0.root) },
    expected: { .noStore(path: $0 + "/store") }),
  content(
    enrollment, "64 KiB and a byte", [UInt8](repeating: 0x23, count: 65537),
    .unsafe(path: enrollment, .tooLong)),
  content(
    enrollment, "nothing", [],
    .malformed(path: enrollment, SettingsError(line: 1, .missing("[end]")))),
  content(
    enrollment, "NUL bytes", [0, 0, 0],
    .malformed(path: enrollment, SettingsError(line: 1, .notASetting))),
  content(state, "nothing", [], .state(path: state, .size)),
  content(state, "a page", [UInt8](repeating: 0, count: 4096), .state(path: state, .size)),
  content(state, "8193 bytes", [UInt8](repeating: 0, count: 8193), .state(path: state, .size)),
  content(
    state, "zeros", [UInt8](repeating: 0, count: 8192), .state(path: state, .bothSlotsBroken)),
]

private let owned = ["", "/store", "/store/users", user, enrollment, state]

@Suite struct `What a store must look like` {
  /// The stricter rule can be kept by root alone.
  @Test(arguments: isRoot ? [Store.Owner.effectiveUser, .root] : [.effectiveUser])
  func `A good store is read`(owner: Store.Owner) throws {
    let scratch = try Scratch()
    let enrollment = try scratch.enroll("alice")
    let store = Store(root: scratch.root, owner: owner)
    let record = try #require(try store.load(account("alice")))
    #expect(record.enrollment.id == enrollment.id)
    #expect(record.path == scratch.directory("alice"))
    #expect(!record.isDecoy)
  }

  // shows: store-closed, wrong-owner
  @Test(arguments: damages)
  func `A damaged store is trouble that names the file and the flaw`(damage: Damage) throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    _ = try scratch.loaded("alice")
    try damage.inflict(scratch)
    #expect(throws: damage.expected(scratch.path)) { try scratch.loaded("alice") }
  }

  @Test(arguments: damages)
  func `A login that loaded before the damage saves nothing`(damage: Damage) throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let record = try scratch.loaded("alice")
    try damage.inflict(scratch)
    let expected = damage.expected(scratch.path)
    // Directories above were walked when it was loaded: only their owner can have changed them
    // since.
    guard expected.path.hasPrefix(record.path) else { return }
    do {
      #expect(isChanged(try accept(step: 99, record, in: scratch.store)))
    } catch {
      #expect(error as? StoreTrouble == expected)
    }
  }

  // shows: wrong-owner, store-closed
  @Test(
    .enabled(if: isRoot, "needs root"),
    arguments: owned)
  func `Another owner anywhere is trouble`(path: String) throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    setOwner(scratch.path + path, 65534)
    let flaw = StoreTrouble.Flaw.owner(65534, wanted: 0)
    #expect(throws: StoreTrouble.unsafe(path: scratch.path + path, flaw)) {
      try scratch.loaded("alice")
    }
  }

  // decisive
  // shows: store-closed
  @Test(.enabled(if: isRoot, "needs root"))
  func `A device is never waited for`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let path = scratch.file("alice", "state")
    removeName(path)
    makeDevice(path)
    #expect(throws: StoreTrouble.unsafe(path: path, .notRegular)) { try scratch.loaded("alice") }
  }

  @Test(arguments: ["store", "", "./store", "/tmp/../tmp", "/.."])
  func `A path that is not absolute, or climbs, is refused`(root: String) throws {
    let store = Store(root: root, owner: .effectiveUser)
    #expect(throws: StoreTrouble.system("lstat", path: root, errno: EINVAL)) {
      try store.load(account("alice"))
    }
  }

  @Test(arguments: ["//", "/./", "/"])
  func `Slashes and dots too many change nothing`(between: String) throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    let store = Store(root: scratch.path + between + "store" + between, owner: .effectiveUser)
    #expect(try store.load(account("alice")) != nil)
  }

  @Test func `A sticky directory above the store may be open to all`() throws {
    let scratch = try Scratch()
    try scratch.enroll("alice")
    setMode(scratch.path, 0o1777)
    #expect(try scratch.store.load(account("alice")) != nil)
  }
}
