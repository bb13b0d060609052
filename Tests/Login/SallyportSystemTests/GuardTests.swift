import CSystem
import Foundation
import SallyportCore
import Testing

@testable import SallyportSystem

/// The signals that a guard blocks, and some that it does not.
private let signals = [SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ, SIGINT, SIGHUP, SIGALRM, SIGTERM]

/// Those of them that this thread has blocked.
private func blockedSignals() -> [Int32] {
  var set = sigset_t()
  // SAFETY: filled within the call.
  _ = unsafe pthread_sigmask(SIG_BLOCK, nil, &set)
  return signals.filter { unsafe sigismember(&set, $0) == 1 }
}

/// Of sched(7); not all are shown to Swift by Glibc.
private let (schedOther, schedFIFO) = (Int32(0), Int32(1))
private let (schedBatch, schedIdle) = (Int32(3), Int32(5))
private let resetOnFork: Int32 = 0x4000_0000

/// How this thread is scheduled.
struct Way: Equatable, Codable, Sendable {
  let policy: Int32
  let nice: Int32

  init(_ policy: Int32, _ nice: Int32) { (self.policy, self.nice) = (policy, nice) }

  static var now: Way {
    let found = sys_get_schedule()
    return Way(found.policy, found.nice)
  }

  func choose() {
    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, nice)
    var parameters = sched_param(sched_priority: policy == schedFIFO ? 1 : 0)
    // SAFETY: read within the call.
    _ = unsafe sched_setscheduler(0, policy, &parameters)
  }
}

private func setMask(_ how: Int32, _ signal: Int32) {
  var set = sigset_t()
  // SAFETY: filled and read within the calls.
  unsafe sigemptyset(&set)
  unsafe sigaddset(&set, signal)
  _ = unsafe pthread_sigmask(how, &set, nil)
}

private func isPending(_ signal: Int32) -> Bool {
  var set = sigset_t()
  // SAFETY: filled and read within the calls.
  return unsafe sigpending(&set) == 0 && sigismember(&set, signal) == 1
}

private func users() -> [UInt32] {
  var users = sys_users()
  // SAFETY: filled within the call.
  _ = unsafe sys_get_users(&users)
  return [users.real, users.effective, users.saved]
}

private func filesUser() -> UInt32 {
  var users = sys_users()
  // SAFETY: filled within the call.
  _ = unsafe sys_get_users(&users)
  return users.files
}

/// One after the other: each process of its own is one more of this size.
@Suite(.serialized) struct `The thread while it holds a lock` {
  // shows: host-state
  @Test func `Stop signals and SIGXFSZ are blocked inside, and only there; what kills is not`()
    throws
  {
    // The threads that tests run on have all of them blocked.
    let usual = blockedSignals()
    defer { for signal in usual { setMask(SIG_BLOCK, signal) } }
    for signal in signals { setMask(SIG_UNBLOCK, signal) }
    setMask(SIG_BLOCK, SIGTTIN)
    let inside = try CriticalSection.during { () throws(StoreTrouble) in blockedSignals() }
    #expect(inside == [SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ])
    #expect(blockedSignals() == [SIGTTIN])
    #expect(throws: StoreTrouble.outOfMemory) {
      try CriticalSection.during { () throws(StoreTrouble) in throw .outOfMemory }
    }
    #expect(blockedSignals() == [SIGTTIN])
  }

  @Test func `A SIGXFSZ of ours is taken; one that waited before us still waits`() async {
    await #expect(processExitsWith: .success) {
      try CriticalSection.during { () throws(StoreTrouble) in
        _ = pthread_kill(pthread_self(), SIGXFSZ)
      }
      #expect(!isPending(SIGXFSZ))
      setMask(SIG_BLOCK, SIGXFSZ)
      _ = pthread_kill(pthread_self(), SIGXFSZ)
      try CriticalSection.during { () throws(StoreTrouble) in }
      #expect(isPending(SIGXFSZ))
    }
  }

  @Test(.enabled(if: isRoot, "needs root"))
  func `In a set-uid host the real and saved uid are root's inside, of this thread alone`() throws {
    try #require(sys_set_real_and_saved_user(65534, 65533) == 0)
    defer { _ = sys_set_real_and_saved_user(0, 0) }
    #expect(users() == [65534, 0, 65533])
    let inside = try CriticalSection.during { () throws(StoreTrouble) -> [[UInt32]] in
      let other = Elsewhere()
      atOnce(1) { _ in other.found = users() }
      return [users(), other.found]
    }
    #expect(inside[0] == [0, 0, 0])
    #expect(inside[1] != [])
    #expect(users() == [65534, 0, 65533])
    #expect(throws: StoreTrouble.outOfMemory) {
      try CriticalSection.during { () throws(StoreTrouble) in throw .outOfMemory }
    }
    #expect(users() == [65534, 0, 65533])
  }

  @Test(.enabled(if: isRoot, "needs root"))
  func `The uid for files is put back, whichever it was`() async {
    await #expect(processExitsWith: .success) {
      try #require(sys_set_real_and_saved_user(65534, 65533) == 0)
      sys_set_file_user(65532)
      let inside = try CriticalSection.during { () throws(StoreTrouble) in filesUser() }
      #expect(inside == 0)
      #expect(filesUser() == 65532)
    }
  }

  // shows: stopped-su
  @Test(
    .enabled(if: isRoot, "needs root"),
    arguments: [
      (Way(schedOther, 0), Way(schedOther, 0)), (Way(schedOther, 7), Way(schedOther, 0)),
      (Way(schedOther, -3), Way(schedOther, -3)), (Way(schedIdle, 0), Way(schedOther, 0)),
      (Way(schedIdle, 19), Way(schedOther, 0)), (Way(schedBatch, 5), Way(schedOther, 0)),
      (Way(schedBatch, -3), Way(schedOther, -3)), (Way(schedFIFO, 0), Way(schedFIFO, 0)),
      (Way(schedIdle | resetOnFork, 1), Way(schedOther | resetOnFork, 0)),
    ])
  func `A schedule below the ordinary one is put aside inside, and put back`(
    before: Way, wanted: Way
  ) async {
    await #expect(processExitsWith: .success) { [before, wanted] in
      try #require(sys_set_real_and_saved_user(65534, 0) == 0)
      before.choose()
      try #require(Way.now == before)
      sys_set_disk_priority(3 << 13)
      let inside = try CriticalSection.during { () throws(StoreTrouble) in
        (Way.now, sys_get_schedule().disk)
      }
      #expect(inside.0 == wanted)
      #expect(inside.1 == 2 << 13 | 4)
      #expect(Way.now == before)
      #expect(sys_get_schedule().disk == 3 << 13)
    }
  }

  // shows: stopped-su
  @Test(
    .enabled(if: isRoot, "needs root"),
    arguments: [Way(schedIdle, 3), Way(schedOther, 7), Way(schedBatch, 7)])
  func `Where it cannot be put aside nothing changes and nobody is ended`(before: Way) async {
    await #expect(processExitsWith: .success) { [before] in try expectUnchanged(before) }
  }

  /// The caller of su sets its limits: real-time was allowed, and putting it back was not.
  @Test(
    .enabled(if: isRoot && limit(14, 1), "needs root and the right to raise limits"),
    arguments: [Way(schedIdle, 3), Way(schedOther, 7), Way(schedBatch, 7)])
  func `A limit of real-time priorities changes nothing about it`(before: Way) async {
    await #expect(processExitsWith: .success) { [before] in
      try #require(limit(14, 1))
      try expectUnchanged(before)
    }
  }

  // shows: host-state
  @Test(.enabled(if: isRoot, "needs root"))
  func `A uid that is put back in name only ends the process`() async {
    await #expect(processExitsWith: .signal(SIGKILL)) {
      try #require(sys_set_real_and_saved_user(65534, 0) == 0)
      try CriticalSection.during { () throws(StoreTrouble) in pretendToSetUsers() }
    }
  }

  @Test(.enabled(if: isRoot, "needs root"))
  func `Without the right to put the uid back it is left alone`() async {
    await #expect(processExitsWith: .success) {
      try #require(sys_set_real_and_saved_user(65534, 0) == 0)
      drop(capability: 7)
      try #require(sys_may_change_users() == 0)
      let inside = try CriticalSection.during { () throws(StoreTrouble) in users() }
      #expect(inside == [65534, 0, 0])
      #expect(users() == [65534, 0, 0])
    }
  }

  /// One that ends within the page as well: half a page would cost the owner the codes of now.
  // shows: limits
  @Test(arguments: [UInt(0), 1, 4095, 4096, 6000, 8191])
  func `A limit on file sizes is trouble, not a signal and no torn page, whatever was decided`(
    limit: UInt
  ) async {
    await #expect(processExitsWith: .success) { [limit] in
      let scratch = try Scratch()
      try scratch.enroll("alice")
      let path = scratch.file("alice", "state")
      let record = try scratch.loaded("alice")
      let before = try contents(path)
      limitFileSize(limit)
      let trouble = StoreTrouble.system("pwrite", path: path, errno: EFBIG)
      #expect(throws: trouble) { try accept(step: 50, record, in: scratch.store) }
      #expect(throws: trouble) { try accept(step: 41, record, in: scratch.store) }
      #expect(try contents(path) == before)
      limitFileSize(8192)
      #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 41)
    }
  }
}

/// Sets both limits of a resource, by its number in setrlimit(2).
private func limit(_ resource: UInt32, _ value: rlim_t) -> Bool {
  var limit = rlimit(rlim_cur: value, rlim_max: value)
  // SAFETY: read within the call.
  return unsafe setrlimit(__rlimit_resource_t(resource), &limit) == 0
}

/// Without CAP_SYS_NICE and RLIMIT_NICE.
private func expectUnchanged(_ before: Way) throws {
  try #require(sys_set_real_and_saved_user(65534, 0) == 0)
  before.choose()
  try #require(limit(13, 0))
  drop(capability: 23)
  let inside = try CriticalSection.during { () throws(StoreTrouble) in (Way.now, users()) }
  #expect(inside.0 == before)
  #expect(inside.1 == [0, 0, 0])
  #expect(Way.now == before)
  #expect(users() == [65534, 0, 0])
}

final class Elsewhere: @unchecked Sendable { var found: [UInt32] = [] }

/// From now on setresuid does nothing for this thread, and says that it did.
private func pretendToSetUsers() {
  // The number of the call; another one is let through; 0 in place of the call.
  let number = UInt32(setresuidNumber)
  var program: [Instruction] = [
    Instruction(code: 0x20, jt: 0, jf: 0, k: 0), Instruction(code: 0x15, jt: 0, jf: 1, k: number),
    Instruction(code: 0x06, jt: 0, jf: 0, k: 0x0005_0000),
    Instruction(code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000),
  ]
  // SAFETY: the filter lives for the call, which copies it.
  unsafe program.withUnsafeMutableBufferPointer { program in
    var filter = unsafe FilterProgram(len: 4, filter: program.baseAddress)
    _ = unsafe prctl22(22, 2, &filter, 0, 0)
  }
}

private struct Instruction { var code: UInt16, jt: UInt8, jf: UInt8, k: UInt32 }
@unsafe private struct FilterProgram { var len: UInt16, filter: UnsafeMutablePointer<Instruction>? }
@_silgen_name("prctl") private func prctl22(
  _ option: Int32, _ mode: UInt, _ filter: UnsafeMutableRawPointer?, _ a: UInt, _ b: UInt
) -> Int32
#if arch(x86_64)
  private let setresuidNumber = 117
#else
  private let setresuidNumber = 147
#endif

/// Takes a capability from this thread.
private func drop(capability: UInt32) {
  var header: [UInt32] = [0x2008_0522, 0]
  var sets = [UInt32](repeating: 0, count: 6)
  // SAFETY: both arrays have the kernel's layout and live for the calls.
  unsafe header.withUnsafeMutableBytes { header in
    unsafe sets.withUnsafeMutableBytes { sets in
      _ = unsafe syscall125(header.baseAddress, sets.baseAddress)
      let effective = unsafe sets.load(as: UInt32.self) & ~(1 << capability)
      unsafe sets.storeBytes(of: effective, as: UInt32.self)
      _ = unsafe syscall126(header.baseAddress, sets.baseAddress)
    }
  }
}
@_silgen_name("capget") private func syscall125(
  _ header: UnsafeMutableRawPointer?, _ sets: UnsafeMutableRawPointer?
) -> Int32
@_silgen_name("capset") private func syscall126(
  _ header: UnsafeMutableRawPointer?, _ sets: UnsafeMutableRawPointer?
) -> Int32
