internal import CSystem

/// This thread while others may be waiting for a lock that it holds.
///
/// Stop signals and SIGXFSZ are blocked, and in a set-uid host (su, sudo) the real uid is root's
/// and a schedule below the ordinary one is put aside: else whoever started it could stop it, or
/// starve it of the CPU, and everybody else's login with it. What kills is let through: a save is
/// one write. All of it is of this thread alone, and is put back.
struct CriticalSection {
  private let signals: BlockedSignals
  private let users: RaisedUser

  /// Whoever has made one puts it back.
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

  static func during<R>(_ body: () throws(StoreTrouble) -> R) throws(StoreTrouble) -> R {
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

  /// A SIGXFSZ of our own write would kill the host once it is unblocked: it is taken first.
  func putBack() {
    if wasPending == 0, sys_file_size_signal_waits() == 1 { sys_take_file_size_signal() }
    if ours != 0 { sys_unblock_signals(ours) }
  }
}

private struct RaisedUser {
  private var before = sys_users()
  private let isRaised: Bool
  private var schedule: LowSchedule?

  /// Nothing to do for a real root, nothing that could be undone without CAP_SETUID.
  init() throws(StoreTrouble) {
    // SAFETY: filled within the call.
    try check(unsafe sys_get_users(&before), "getresuid", .none)
    let isSetUID = before.effective == 0 && (before.real != 0 || before.saved != 0)
    isRaised = isSetUID && sys_may_change_users() == 1
    guard isRaised else { return }
    try check(sys_set_real_and_saved_user(0, 0), "setresuid", .none)
    schedule = LowSchedule.putAside()
  }

  /// A host that went on as root where it was a user's could let him do anything, so one that
  /// cannot be put back (the kernel may be short of memory for a second) is ended: in no case does
  /// the login go on.
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
    sys_die()
  }

  private var usersArePutBack: Bool {
    var now = sys_users()
    // SAFETY: filled within the call.
    return unsafe sys_get_users(&now) == 0 && now.real == before.real
      && now.effective == before.effective && now.saved == before.saved
      && now.files == before.files
  }
}

/// A schedule below the ordinary one, of the processor or the disk, that was put aside.
private struct LowSchedule {
  private let before: sys_schedule
  private let wasRaised: Bool
  private let wasDiskRaised: Bool

  /// As far as the kernel allows; nil where all is as it was. What is ordinary or above stays.
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
    // Half of it may have been done.
    _ = sys_set_schedule(found.policy, found.nice)
    return false
  }

  /// Nobody is ended where that fails: to have less takes no right.
  @inline(never) func putBack() {
    if wasRaised { _ = sys_set_schedule(before.policy, before.nice) }
    if wasDiskRaised { sys_set_disk_priority(before.disk) }
  }
}
