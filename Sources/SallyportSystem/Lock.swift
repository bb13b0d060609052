internal import CSystem

/// How long a lock is waited for, in nanoseconds of the monotonic clock.
struct Patience: Sendable {
  let nanoseconds: UInt64

  static let usual = Patience(nanoseconds: 5_000_000_000)

  /// The first pause between two tries, and the longest: a lock is held for about a millisecond.
  private static let pauses: ClosedRange<UInt32> = 200_000...5_000_000

  /// Tries until the result is something else than -EAGAIN, or the time is over.
  ///
  /// Polled, because F_OFD_SETLKW knows no time limit and a timer would need a signal handler in
  /// the host. The pauses differ between processes, so that a crowd does not march in step.
  func poll(_ attempt: () -> Int32) -> Int32 {
    var result = attempt()
    if !Patience.mayPass(result) { return result }
    let start = sys_monotonic()
    var pause = Patience.pauses.lowerBound
    var variation = UInt32(bitPattern: sys_process()) &+ UInt32(truncatingIfNeeded: start)
    while Patience.mayPass(result), sys_monotonic() &- start < nanoseconds {
      variation = variation &* 1_664_525 &+ 1_013_904_223
      sys_sleep(pause / 2 + (variation >> 8) % (pause / 2))
      pause = min(pause + pause / 2, Patience.pauses.upperBound)
      result = attempt()
    }
    return result
  }

  private static func mayPass(_ result: Int32) -> Bool {
    result == -sys_EAGAIN || result == -sys_EINTR
  }

  /// `poll`, with its failure told as trouble with `path`.
  func acquire(_ call: StaticString, _ path: @autoclosure () -> Path, _ attempt: () -> Int32)
    throws(StoreTrouble)
  {
    let result = poll(attempt)
    if Patience.mayPass(result) { throw .busy(path: path().text) }
    if result < 0 { throw path().trouble(call, 0 - result) }
  }
}
