internal import CSystem
internal import SallyportCore

/// How long to try for a lock, in nanoseconds of the monotonic clock.
struct LockTimeout: Sendable {
  let nanoseconds: UInt64

  static let usual = LockTimeout(nanoseconds: 5_000_000_000)

  /// In nanoseconds: the first and the longest pause between two tries. A lock is held for about a
  /// millisecond.
  private static let pauses: ClosedRange<UInt32> = 200_000...5_000_000

  /// Tries until the result is not -EAGAIN, or until the time is over. `start` is the time at which
  /// waiting began, 0 if it has not; several locks share one limit.
  ///
  /// It polls because F_OFD_SETLKW has no timeout, and a timer would need a signal handler in the
  /// application. The pauses differ between processes, so that they do not all try at the same
  /// moments.
  func poll(since start: inout UInt64, _ attempt: () -> Int32) -> Int32 {
    var result = attempt()
    if !LockTimeout.mayPass(result) { return result }
    if start == 0 { start = sys_monotonic() }
    var pause = LockTimeout.pauses.lowerBound
    var variation = UInt32(bitPattern: getpid()) &+ UInt32(truncatingIfNeeded: start)
    while LockTimeout.mayPass(result), sys_monotonic() &- start < nanoseconds {
      variation = variation &* 1_664_525 &+ 1_013_904_223
      sys_sleep(pause / 2 + (variation >> 8) % (pause / 2))
      pause = min(pause + pause / 2, LockTimeout.pauses.upperBound)
      result = attempt()
    }
    return result
  }

  private static func mayPass(_ result: Int32) -> Bool {
    result == -EAGAIN || result == -EINTR
  }

  /// As `poll`, but throws an error with `path` on failure.
  func acquire(
    _ call: StaticString, _ path: @autoclosure () -> Path, since start: inout UInt64,
    _ attempt: () -> Int32
  ) throws(StoreTrouble) {
    let result = poll(since: &start, attempt)
    if LockTimeout.mayPass(result) { throw .busy(path: path().text) }
    if result < 0 { throw path().trouble(call, 0 - result) }
  }
}

/// The bytes of a state file that are used as locks. Bytes beyond the end of a file can be locked
/// too.
///
/// The lock proper is held during a save. A login from an unknown place first waits for the gate,
/// and then, with the gate, for the lock. While a login from a known place waits, which it
/// announces by a lock, the other lets it go first, but no longer than `patience`: somebody at a
/// known place could announce himself without end. So at most one login from an unknown place gets
/// in between in that time, however many there are. The order is gate, then lock: a thread that
/// holds the lock waits for nothing.
struct LockBytes: Sendable {
  let start: Int64
  let count: Int64

  /// For a user's own state: the whole file.
  static let own = LockBytes(start: 0, count: Int64(StateRecord.fileSize))

  /// For the decoy, lock only a name's own bytes, or all unknown users would wait for each other.
  /// `digest` is that of the name with a secret, so that nobody can find names that wait for each
  /// other.
  init(decoyDigest digest: [UInt8]) {
    let number = digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    // 63 bits, without the two lowest ones, so that gate and announcement have bytes of their own.
    start = Int64(number >> 1 & ~3)
    count = 1
  }

  private init(start: Int64, count: Int64) { (self.start, self.count) = (start, count) }

  private var announcement: Int64 { start + count }
  private var gate: Int64 { start + count + 1 }

  /// Takes the lock of `file`. If it throws, nothing remains locked.
  func acquire(
    _ file: Int32, asKnown isKnown: Bool, _ timeout: LockTimeout, _ path: @autoclosure () -> Path
  ) throws(StoreTrouble) {
    var (start, stoodBack): (UInt64, UInt64) = (0, 0)
    do throws(StoreTrouble) {
      if !isKnown {
        try timeout.acquire("fcntl", path(), since: &start) {
          sys_lock(file, F_WRLCK, gate, 1)
        }
      }
      try timeout.acquire("fcntl", path(), since: &start) {
        isKnown ? lockAnnounced(file) : lockStandingBack(file, since: &stoodBack)
      }
    } catch {
      sys_unlock(file)
      throw error
    }
    // Release the gate and the announcement.
    if !isKnown { _ = sys_lock(file, F_UNLCK, gate, 1) }
    if isKnown, start != 0 { _ = sys_lock(file, F_UNLCK, announcement, 1) }
  }

  private func lock(_ file: Int32) -> Int32 { sys_lock(file, F_WRLCK, start, count) }

  /// Announces that it waits. If that fails it waits like any other.
  private func lockAnnounced(_ file: Int32) -> Int32 {
    let result = lock(file)
    if result == -EAGAIN { _ = sys_lock(file, F_RDLCK, announcement, 1) }
    return result
  }

  /// Nanoseconds: some saves.
  private static let patience: UInt64 = 50_000_000

  /// `start`: since when it has stood back; 0 if it has not.
  private func lockStandingBack(_ file: Int32, since start: inout UInt64) -> Int32 {
    guard sys_is_locked(file, announcement) == 1 else { return lock(file) }
    let now = sys_monotonic()
    if start == 0 { start = now }
    return now &- start < LockBytes.patience ? -EAGAIN : lock(file)
  }
}
