internal import CSystem
package import SallyportCore

/// The time of day (CLOCK_REALTIME).
package enum Clock {
  /// The system's time, which may be wrong and may go back.
  @inline(never) package static func now() throws(StoreTrouble) -> UnixTime {
    var seconds: Int64 = 0
    // SAFETY: filled within the call.
    try check(unsafe sys_now(&seconds), "clock_gettime", .none)
    return UnixTime(seconds)
  }

  /// Milliseconds since some moment; never goes back (CLOCK_MONOTONIC).
  package static func monotonicMilliseconds() -> UInt64 { sys_monotonic() / 1_000_000 }

  /// Seconds since the machine started, also those in which it was suspended (CLOCK_BOOTTIME).
  package static func uptime() -> Double { Double(sys_clock(CLOCK_BOOTTIME)) / 1e9 }

  /// Returns at `end` of that clock, in milliseconds, or later.
  package static func wait(until end: UInt64) {
    // A signal ends one sleep early. Without a clock it ends as well.
    for _ in 0..<16 {
      let now = sys_monotonic() / 1_000_000
      guard now < end else { return }
      sys_sleep(UInt32(min(end - now, 999)) * 1_000_000)
    }
  }
}
