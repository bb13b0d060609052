import CSystem
import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportSystem

/// A directory of its own for one test, removed with the value.
final class Scratch {
  let store: Store
  private let own: TemporaryDirectory
  private let limit = Limit()

  init(
    timeout: LockTimeout = .ofTests, exchanges: Bool = true, owner: Store.Owner = .effectiveUser
  ) throws {
    own = try TemporaryDirectory()
    store = Store(root: own.path + "/store", owner: owner, timeout: timeout, exchanges: exchanges)
    try makeEmptyStore(at: root)
  }

  var path: String { own.path }

  /// The same store with other settings.
  func store(timeout: LockTimeout = .ofTests, exchanges: Bool = true) -> Store {
    Store(root: root, owner: .effectiveUser, timeout: timeout, exchanges: exchanges)
  }

  /// The store's paths as text.
  var root: String { store.root.text }
  var users: String { store.users.text }

  func directory(_ user: String) -> String { users + "/" + user }

  func file(_ user: String, _ name: String) -> String { directory(user) + "/" + name }

  @discardableResult
  func enroll(_ user: String, uid: UInt32? = nil) throws -> Enrollment {
    let enrollment = try sample(user, uid: uid)
    try store.create(enrollment, LoginState(initialFor: enrollment))
    return enrollment
  }

  func loaded(_ user: String) throws -> Record {
    try #require(try store.load(account(user)))
  }

  /// Writes a note as a command does.
  func note(_ note: UserNote, on user: String) throws {
    try makeNote(note, on: try userName(user), at: root)
  }

  /// Names in the users directory, hidden ones too.
  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: users).sorted()
  }
}

extension LockTimeout {
  /// Never over on a loaded machine, where the usual one may be: a test that waits for the bound
  /// brings a short one, and frees what it held by `sys_unlock`. A child that another test is just
  /// starting keeps what is only closed here up to its exec.
  static let ofTests = LockTimeout(nanoseconds: 60_000_000_000)
}

/// The limit of a test that has a store. One that waits for what never comes, a lock or a pipe,
/// stands in a system call that nothing cancels: so the run ends, and says where.
final class Limit: @unchecked Sendable {
  private static let queue = DispatchQueue(label: "limit")
  private static let seconds = 180
  private let end: DispatchWorkItem

  init() {
    let test = Test.current?.name ?? "a test in a process of its own"
    end = DispatchWorkItem {
      // What the tests' runner prints, for those who look for it.
      let words = "✘ Test \(test) failed: not done after \(Limit.seconds) s\n"
      FileHandle.standardOutput.write(Data(words.utf8))
      _exit(1)
    }
    Limit.queue.asyncAfter(deadline: .now() + .seconds(Limit.seconds), execute: end)
  }

  deinit { end.cancel() }
}

func userName(_ text: String) throws -> UserName { try #require(UserName([UInt8](text.utf8))) }

func account(_ user: String, uid: UInt32? = nil) throws -> Account {
  Account(name: try userName(user), uid: uid)
}

func sample(_ user: String, uid: UInt32? = nil, id: UInt64? = nil) throws -> Enrollment {
  let authenticator = Authenticator(
    id: 7, name: try #require(Label("phone".utf8)), parameters: .standard,
    secret: try Random.secret(count: 20), initialLastAccepted: 41, created: UnixTime(1_000_000))
  return Enrollment(
    id: try id ?? Random.identifier(), user: try userName(user), uid: uid,
    created: UnixTime(1_000_000), authenticators: [authenticator], backupCodes: nil)
}

func contents(_ path: String) throws -> [UInt8] {
  [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
}

/// Of an open file, which may have lost its name.
func contents(of file: Int32) throws -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: 8192)
  // SAFETY: the buffer has its size.
  try #require(unsafe sys_read(file, &bytes, bytes.count, 0) == 8192)
  return bytes
}

func isZeroed(_ file: Int32) -> Bool {
  var bytes = [UInt8](repeating: 1, count: 65536)
  // SAFETY: the buffer has its size.
  let count = unsafe sys_read(file, &bytes, bytes.count, 0)
  return count > 100 && bytes.prefix(Int(count)).allSatisfy { $0 == 0 }
}

/// A descriptor of a file, as another process would have it.
func opened(_ path: String) throws -> Int32 {
  // SAFETY: the C string lives for the call.
  let file = unsafe sys_open(AT_FDCWD, path, sys_for_updating)
  try #require(file >= 0)
  return file
}

/// Waits, no longer than a minute, until a known place waits for the lock of this state file.
func someoneWaits(_ file: Int32) -> Bool { soon { sys_is_locked(file, 8192) == 1 } }

/// Whether that comes true within a minute.
func soon(_ condition: () -> Bool) -> Bool {
  let start = sys_monotonic()
  while !condition() {
    if sys_monotonic() - start > 60_000_000_000 { return false }
    sched_yield()
  }
  return true
}

/// Overwrites in place: the same inode.
func overwrite(_ path: String, with bytes: [UInt8], at offset: UInt64) throws {
  let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
  try handle.seek(toOffset: offset)
  try handle.write(contentsOf: Data(bytes))
  try handle.close()
}

/// Inverts the last byte of both slots of a state file, which is one of their checksum.
func breakSlots(of path: String) throws {
  for end in [4095, 8191] {
    let byte = try contents(path)[end]
    try overwrite(path, with: [~byte], at: UInt64(end))
  }
}

/// A login's save that raises the last accepted step to `step`.
func accept(step: UInt64, _ record: Record, in store: Store, asKnown: Bool = true) throws
  -> Transaction<UInt64>
{
  try store.transact(record, asKnown: asKnown) { _, state throws(StoreTrouble) in
    var state = state
    let before = state.authenticators.first?.lastAccepted ?? 0
    for index in state.authenticators.indices { state.authenticators[index].lastAccepted = step }
    return (before, state)
  }
}

func isChanged<Verdict>(_ transaction: Transaction<Verdict>) -> Bool {
  switch transaction {
  case .changed: true
  case .committed: false
  }
}

func verdict<Verdict>(_ transaction: Transaction<Verdict>) -> Verdict? {
  switch transaction {
  case .changed: nil
  case .committed(let verdict): verdict
  }
}

let isRoot = geteuid() == 0

/// Runs `body` as often as said, all at once, each on a thread of its own.
func atOnce(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let done = DispatchGroup()
  for index in 0..<count {
    done.enter()
    Thread.detachNewThread {
      body(index)
      done.leave()
    }
  }
  done.wait()
}

// SAFETY, all of these: the C strings live for the calls.

func setMode(_ path: String, _ mode: mode_t) { _ = unsafe chmod(path, mode) }

/// When it was changed: this many seconds ago.
func setAge(_ path: String, _ seconds: Int) {
  let moment = timeval(tv_sec: time(nil) - seconds, tv_usec: 0)
  let times = [moment, moment]
  _ = unsafe utimes(path, times)
}

func setOwner(_ path: String, _ user: uid_t) { _ = unsafe chown(path, user, gid_t.max) }

func makePipe(_ path: String) { _ = unsafe mkfifo(path, 0o600) }

func makeSocket(_ path: String) { _ = unsafe mknod(path, S_IFSOCK | 0o600, 0) }

func makeDevice(_ path: String) { _ = unsafe mknod(path, S_IFCHR | 0o600, 0x0400) }

func makeEmpty(_ path: String) { close(unsafe creat(path, 0o600)) }

func addName(_ path: String, to file: String) { _ = unsafe link(file, path) }

func removeName(_ path: String) { _ = unsafe unlink(path) }

func rename(_ path: String, to other: String) { _ = unsafe Foundation.rename(path, other) }

/// Every write of this process beyond this many bytes of a file fails from now on.
func limitFileSize(_ bytes: UInt) {
  var limit = rlimit(rlim_cur: bytes, rlim_max: rlim_t.max)
  // SAFETY: read within the call.
  _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
}

final class Counter: @unchecked Sendable {
  private let lock = NSLock()
  private var count = 0

  var value: Int { lock.withLock { count } }
  func increment() { lock.withLock { count += 1 } }
}

/// One value from another thread.
final class Outcome: @unchecked Sendable {
  private let lock = NSLock()
  private var stored: Bool?

  var value: Bool? { lock.withLock { stored } }
  func set(_ value: Bool?) { lock.withLock { stored = value } }
}
