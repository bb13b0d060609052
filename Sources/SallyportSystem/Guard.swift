internal import CSystem

/// This thread while others may be waiting for a lock that it holds.
///
/// Stop signals and SIGXFSZ are blocked, and in a set-uid host (su, sudo) the real uid is root's
/// and the schedule real-time: else whoever started it could stop it, or starve it of the CPU, and
/// everybody else's login with it. What kills is let through: a save is one write. All of it is of
/// this thread alone, and is put back.
struct Guard {
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
    let guarded = try Guard()
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
  private var schedule = sys_schedule()
  private let isRaised: Bool
  private var isHurried = false

  /// Nothing to do for a real root, nothing that could be undone without CAP_SETUID.
  init() throws(StoreTrouble) {
    // SAFETY: filled within the call.
    try check(unsafe sys_get_users(&before), "getresuid", .none)
    let isSetUID = before.effective == 0 && (before.real != 0 || before.saved != 0)
    isRaised = isSetUID && sys_may_change_users() == 1
    guard isRaised else { return }
    try check(sys_set_real_and_saved_user(0, 0), "setresuid", .none)
    hurry()
  }

  /// As far as the kernel allows; what is real-time already stays as it is.
  private mutating func hurry() {
    // SAFETY: filled within the calls, or read.
    unsafe sys_get_schedule(&schedule)
    let isOrdinary = schedule.policy == 0 || schedule.policy == 3 || schedule.policy == 5
    guard schedule.size != 0, isOrdinary else { return }
    isHurried = unsafe sys_hurry(&schedule) == 0
  }

  /// A host that went on as root where it was a user's could let him do anything, so one that
  /// cannot be put back (the kernel may be short of memory for a second) is ended: in no case does
  /// the login go on.
  func putBack() {
    guard isRaised else { return }
    for _ in 0..<100 {
      if scheduleIsPutBack, sys_set_real_and_saved_user(before.real, before.saved) == 0 {
        sys_set_file_user(before.files)
        if usersArePutBack { return }
      }
      sys_sleep(10_000_000)
    }
    sys_die()
  }

  private var scheduleIsPutBack: Bool {
    guard isHurried else { return true }
    var schedule = schedule
    // SAFETY: read within the call.
    return unsafe sys_put_back_schedule(&schedule) == 0
  }

  private var usersArePutBack: Bool {
    var now = sys_users()
    // SAFETY: filled within the call.
    return unsafe sys_get_users(&now) == 0 && now.real == before.real
      && now.effective == before.effective && now.saved == before.saved
      && now.files == before.files
  }
}
