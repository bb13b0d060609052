import CService
import Glibc

/// Waiting by `CLOCK_MONOTONIC`.
enum Waiting {
  /// As poll(2), which is begun again where a signal interrupts it; 0 at `deadline`.
  static func poll(_ watched: inout [pollfd], until deadline: UInt64) -> Int32 {
    while true {
      let now = sys_monotonic()
      let left = now < deadline ? (deadline - now) / 1_000_000 + 1 : 0
      // SAFETY: as many as are said.
      let count = unsafe Glibc.poll(&watched, nfds_t(watched.count), Int32(clamping: left))
      if count != -1 || errno != EINTR { return count }
      if left == 0 { return 0 }
    }
  }
}
