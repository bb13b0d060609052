/// A time in whole seconds since 1970-01-01T00:00:00Z, negative before it.
///
/// The core has no clock: every function that needs the time gets it as an argument.
package struct UnixTime: Equatable, Comparable, Sendable {
  package let seconds: Int64

  package init(_ seconds: Int64) { self.seconds = seconds }

  package static func < (a: UnixTime, b: UnixTime) -> Bool { a.seconds < b.seconds }

  /// Seconds since `earlier`; 0 if `earlier` is in the future, so that setting the clock back never
  /// earns credit.
  package func elapsed(since earlier: UnixTime) -> UInt64 {
    let (difference, overflow) = seconds.subtractingReportingOverflow(earlier.seconds)
    if overflow { return earlier.seconds < seconds ? UInt64(Int64.max) : 0 }
    return difference > 0 ? UInt64(difference) : 0
  }
}

extension UnixTime {
  /// The midnight, in UTC, at which a day begins; nil unless the text is a date from 1970 to 2999
  /// in the form 2027-01-31 (RFC 3339 §5.6).
  package init?(date text: [UInt8]) {
    guard text.count == 10, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
      let year = UnixTime.number(text[0..<4]), let month = UnixTime.number(text[5..<7]),
      let day = UnixTime.number(text[8..<10]),
      (1970...2999).contains(year), (1...12).contains(month), day >= 1
    else { return nil }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let isShort = month == 4 || month == 6 || month == 9 || month == 11
    let length: Int64 = month == 2 ? (isLeap ? 29 : 28) : isShort ? 30 : 31
    guard day <= length else { return nil }
    // The year begins in March, so that a leap day is its last day.
    let (shifted, months) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
    let leaps = shifted / 4 - shifted / 100 + shifted / 400
    let days = shifted * 365 + leaps + (months * 153 + 2) / 5 + day - 1 - 719_468
    self.init(days * 86_400)
  }

  @inline(never) private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    decimal([UInt8](digits)).map { Int64(clamping: $0) }
  }
}
