import CSystem
import Foundation
import SallyportCore
import Testing

@testable import SallyportSystem

/// The signals that a guard blocks, of those that this thread has blocked.
private func blockedSignals() -> [Int32] {
  var set = sigset_t()
  // SAFETY: filled within the call.
  _ = unsafe pthread_sigmask(SIG_BLOCK, nil, &set)
  return [SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ, SIGINT, SIGHUP, SIGALRM, SIGTERM].filter {
    unsafe sigismember(&set, $0) == 1
  }
}

/// SCHED_IDLE of sched(7), which Glibc does not show to Swift.
private let schedIdle: Int32 = 5

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

/// Every write of this process beyond so many bytes of a file fails from now on.
func limitFileSize(_ bytes: UInt) {
  var limit = rlimit(rlim_cur: bytes, rlim_max: rlim_t.max)
  // SAFETY: read within the call.
  _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
}

@Suite("The thread while it holds a lock") struct GuardTests {
  @Test("Stop signals and SIGXFSZ are blocked inside, and only there; what kills is not")
  func mask() throws {
    setMask(SIG_BLOCK, SIGTTIN)
    defer { setMask(SIG_UNBLOCK, SIGTTIN) }
    let before = blockedSignals()
    let inside = try Guard.during { () throws(StoreTrouble) in blockedSignals() }
    #expect(Set(inside) == Set(before + [SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ]))
    #expect(blockedSignals() == before)
    #expect(throws: StoreTrouble.outOfMemory) {
      try Guard.during { () throws(StoreTrouble) in throw .outOfMemory }
    }
    #expect(blockedSignals() == before)
  }

  @Test("A SIGXFSZ of ours is taken; one that waited before us still waits")
  func pending() async {
    await #expect(processExitsWith: .success) {
      try Guard.during { () throws(StoreTrouble) in _ = pthread_kill(pthread_self(), SIGXFSZ) }
      #expect(!isPending(SIGXFSZ))
      setMask(SIG_BLOCK, SIGXFSZ)
      _ = pthread_kill(pthread_self(), SIGXFSZ)
      try Guard.during { () throws(StoreTrouble) in }
      #expect(isPending(SIGXFSZ))
    }
  }

  @Test(
    "In a set-uid host the real and saved uid are root's inside, of this thread alone",
    .enabled(if: isRoot, "needs root"))
  func realUser() throws {
    try #require(sys_set_real_and_saved_user(65534, 65533) == 0)
    defer { _ = sys_set_real_and_saved_user(0, 0) }
    #expect(users() == [65534, 0, 65533])
    let inside = try Guard.during { () throws(StoreTrouble) -> [[UInt32]] in
      let other = Elsewhere()
      atOnce(1) { _ in other.found = users() }
      return [users(), other.found]
    }
    #expect(inside[0] == [0, 0, 0])
    #expect(inside[1] != [])
    #expect(users() == [65534, 0, 65533])
    #expect(throws: StoreTrouble.outOfMemory) {
      try Guard.during { () throws(StoreTrouble) in throw .outOfMemory }
    }
    #expect(users() == [65534, 0, 65533])
  }

  @Test(
    "A schedule that starves it is put aside inside, and put back",
    .enabled(if: isRoot, "needs root"))
  func schedule() async {
    await #expect(processExitsWith: .success) {
      try #require(sys_set_real_and_saved_user(65534, 0) == 0)
      var parameters = sched_param()
      // SAFETY: read within the call.
      try #require(unsafe sched_setscheduler(0, schedIdle, &parameters) == 0)
      let policies = { (sched_getscheduler(0) & ~0x4000_0000, sched_getscheduler(0) >> 30) }
      let inside = try Guard.during { () throws(StoreTrouble) in policies() }
      // Real-time, and not for children.
      #expect(inside == (SCHED_FIFO, 1))
      #expect(policies() == (schedIdle, 0))
    }
  }

  @Test(
    "Without the right to put the uid back it is left alone", .enabled(if: isRoot, "needs root"))
  func withoutCapability() async {
    await #expect(processExitsWith: .success) {
      try #require(sys_set_real_and_saved_user(65534, 0) == 0)
      dropSetUID()
      try #require(sys_may_change_users() == 0)
      let inside = try Guard.during { () throws(StoreTrouble) in users() }
      #expect(inside == [65534, 0, 0])
      #expect(users() == [65534, 0, 0])
    }
  }

  /// One that ends within the page as well: half a page would cost the owner the codes of now.
  @Test(
    "A limit on file sizes is trouble, not a signal and no torn page, whatever was decided",
    arguments: [UInt(0), 1, 4095, 4096, 6000, 8191])
  func fileSizeLimit(limit: UInt) async {
    await #expect(processExitsWith: .success) { [limit] in
      let scratch = try Scratch()
      try scratch.enroll("alice")
      let path = scratch.file("alice", "state")
      let record = try scratch.loaded("alice")
      let before = try contents(path)
      limitFileSize(limit)
      let trouble = StoreTrouble.system("pwrite", path: path, errno: sys_EFBIG)
      #expect(throws: trouble) { try accept(step: 50, record, in: scratch.store) }
      #expect(throws: trouble) { try accept(step: 41, record, in: scratch.store) }
      #expect(try contents(path) == before)
      limitFileSize(8192)
      #expect(verdict(try accept(step: 50, record, in: scratch.store)) == 41)
    }
  }
}

final class Elsewhere: @unchecked Sendable { var found: [UInt32] = [] }

/// Takes CAP_SETUID from this thread.
private func dropSetUID() {
  var header: [UInt32] = [0x2008_0522, 0]
  var sets = [UInt32](repeating: 0, count: 6)
  // SAFETY: both arrays have the kernel's layout and live for the calls.
  unsafe header.withUnsafeMutableBytes { header in
    unsafe sets.withUnsafeMutableBytes { sets in
      _ = unsafe syscall125(header.baseAddress, sets.baseAddress)
      let effective = unsafe sets.load(as: UInt32.self) & ~(1 << 7)
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
