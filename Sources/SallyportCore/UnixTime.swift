/// A moment, in whole seconds since 1970-01-01T00:00:00Z; before it is negative.
///
/// The core has no clock: every function that needs the time is given it.
package struct UnixTime: Equatable, Comparable, Sendable {
  package let seconds: Int64

  package init(_ seconds: Int64) { self.seconds = seconds }

  package static func < (a: UnixTime, b: UnixTime) -> Bool { a.seconds < b.seconds }

  /// Seconds from `earlier` to here; 0 where `earlier` lies in the future, so that a clock set
  /// back never earns anybody credit.
  package func elapsed(since earlier: UnixTime) -> UInt64 {
    let (difference, overflow) = seconds.subtractingReportingOverflow(earlier.seconds)
    if overflow { return earlier.seconds < seconds ? UInt64(Int64.max) : 0 }
    return difference > 0 ? UInt64(difference) : 0
  }
}
