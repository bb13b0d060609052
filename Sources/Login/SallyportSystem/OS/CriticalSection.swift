internal import CSystem

/// Protects this thread while other processes may wait for a lock that it holds.
///
/// Blocks stop signals and SIGXFSZ. In a set-uid program (su, sudo) it also sets the real uid to
/// root and raises a schedule that is below the default; otherwise the caller could stop the
/// process or starve it of the CPU, and so stall everybody's login. Signals that kill are not
/// blocked, as a save is a single write. All this affects only this thread, and is undone by
/// `putBack`.
package struct CriticalSection {
  private let signals: BlockedSignals
  private let users: RaisedUser

  /// The caller must call `putBack`.
  @inline(never) init() throws(StoreTrouble) {
    signals = try BlockedSignals()
    do throws(StoreTrouble) {
      users = try RaisedUser()
    } catch {
      signals.putBack()
      throw error
    }
  }

  @inline(never) func putBack() {
    users.putBack()
    signals.putBack()
  }

  package static func during<R>(_ body: () throws(StoreTrouble) -> R) throws(StoreTrouble) -> R {
    let guarded = try CriticalSection()
    defer { guarded.putBack() }
    return try body()
  }
}

private struct BlockedSignals {
  private var ours: UInt32 = 0
  private var wasPending: Int32 = 0

  init() throws(StoreTrouble) {
    // SAFETY: both are filled within the call.
    let result = unsafe sys_block_signals(&ours, &wasPending)
    try check(result, "pthread_sigmask", .none)
  }

  /// A SIGXFSZ from our own write would kill the application once it is unblocked, so it is taken
  /// first.
  func putBack() {
    if wasPending == 0, sys_file_size_signal_waits() == 1 { sys_take_file_size_signal() }
    if ours != 0 { sys_unblock_signals(ours) }
  }
}

private struct RaisedUser {
  private var before = sys_users()
  private let isRaised: Bool
  private var schedule: LowSchedule?

  /// Does nothing if the real user is root, and nothing that could not be undone without
  /// CAP_SETUID.
  init() throws(StoreTrouble) {
    // SAFETY: filled within the call.
    try check(unsafe sys_get_users(&before), "getresuid", .none)
    let isSetUID = before.effective == 0 && (before.real != 0 || before.saved != 0)
    isRaised = isSetUID && sys_may_change_users() == 1
    guard isRaised else { return }
    try check(sys_set_real_and_saved_user(0, 0), "setresuid", .none)
    schedule = LowSchedule.putAside()
  }

  /// Ends the process if the users cannot be restored (the kernel may be out of memory for a
  /// moment): an application that went on as root instead of as a user could let that user do
  /// anything.
  func putBack() {
    guard isRaised else { return }
    schedule?.putBack()
    for _ in 0..<100 {
      if sys_set_real_and_saved_user(before.real, before.saved) == 0 {
        sys_set_file_user(before.files)
        if usersArePutBack { return }
      }
      sys_sleep(10_000_000)
    }
    // At once: no handler runs, and nothing is flushed.
    kill(getpid(), SIGKILL)
    _exit(127)
  }

  private var usersArePutBack: Bool {
    var now = sys_users()
    // SAFETY: filled within the call.
    return unsafe sys_get_users(&now) == 0 && now.real == before.real
      && now.effective == before.effective && now.saved == before.saved
      && now.files == before.files
  }
}

/// A schedule for CPU or disk below the default, which was raised.
private struct LowSchedule {
  private let before: sys_schedule
  private let wasRaised: Bool
  private let wasDiskRaised: Bool

  /// Raises it as far as the kernel allows; returns nil if nothing changed. A default or higher
  /// schedule stays.
  @inline(never) static func putAside() -> LowSchedule? {
    let low = LowSchedule(sys_get_schedule())
    return low.wasRaised || low.wasDiskRaised ? low : nil
  }

  private init(_ found: sys_schedule) {
    before = found
    wasRaised = LowSchedule.raise(found)
    let (kind, level) = (found.disk >> 13, found.disk & 7)
    wasDiskRaised = kind == 3 || kind == 2 && level > 4
    if wasDiskRaised { sys_set_disk_priority(Int32(sys_disk_usual)) }
  }

  private static func raise(_ found: sys_schedule) -> Bool {
    guard found.policy >= 0 else { return false }
    let flag = found.policy & Int32(sys_reset_on_fork)
    let policy = found.policy ^ flag
    let isNiced = policy == Int32(sys_other) && found.nice > 0
    let isLow = policy == Int32(sys_batch) || policy == Int32(sys_idle)
    guard isNiced || isLow else { return false }
    if sys_set_schedule(Int32(sys_other) | flag, min(found.nice, 0)) == 0 { return true }
    // Half of it may have been set.
    _ = sys_set_schedule(found.policy, found.nice)
    return false
  }

  /// Does not end the process on failure: lowering a priority needs no privilege.
  @inline(never) func putBack() {
    if wasRaised { _ = sys_set_schedule(before.policy, before.nice) }
    if wasDiskRaised { sys_set_disk_priority(before.disk) }
  }
}
