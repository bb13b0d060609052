import Glibc
package import SallyportCore

/// A moment on the calendar of some time zone (Gregorian, as localtime_r gives it).
package struct CalendarDate: Equatable, Sendable {
  package let year, month, day, hour, minute, second: Int

  package init(
    year: Int, month: Int, day: Int, hour: Int = 0, minute: Int = 0, second: Int = 0
  ) {
    (self.year, self.month, self.day) = (year, month, day)
    (self.hour, self.minute, self.second) = (hour, minute, second)
  }

  /// In the reader's time zone, or in UTC; nil for a year that no calendar has.
  package init?(_ time: UnixTime, inUTC: Bool = false) {
    // SAFETY: a structure of numbers and a text that is not used; the pointers live for the call.
    var fields = unsafe tm()
    var seconds = time_t(time.seconds)
    let done = unsafe inUTC ? gmtime_r(&seconds, &fields) : localtime_r(&seconds, &fields)
    guard unsafe done != nil else { return nil }
    unsafe self.init(
      year: Int(fields.tm_year) + 1900, month: Int(fields.tm_mon) + 1, day: Int(fields.tm_mday),
      hour: Int(fields.tm_hour), minute: Int(fields.tm_min), second: Int(fields.tm_sec))
  }

  private static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
  ]

  /// `2026-03-03`
  package var isoDay: String { String(internetText.prefix(10)) }

  /// `2026-03-03 09.12`: for the label of an authenticator, in which a colon ends the issuer.
  package var labelText: String { "\(isoDay) \(clock(separator: "."))" }

  /// `3 March 2026`
  package var dayText: String { "\(dayAndMonth) \(year)" }

  /// `today 09:12`, `yesterday 09:12`, `3 March 09:12` of the same year, or `3 March 2026`.
  package func text(seenFrom now: CalendarDate) -> String {
    let distance = now.dayNumber - dayNumber
    if distance == 0 { return "today \(clock)" }
    if distance == 1 { return "yesterday \(clock)" }
    return year == now.year ? "\(dayAndMonth) \(clock)" : dayText
  }

  /// `2026-03-03T09:12:00Z` (RFC 3339), where the date is in UTC.
  package var internetText: String {
    let year = String(year)
    let four = String(repeating: "0", count: max(0, 4 - year.count)) + year
    let two = CalendarDate.two
    return "\(four)-\(two(month))-\(two(day))T\(two(hour)):\(two(minute)):\(two(second))Z"
  }

  /// `09:12`
  package var clock: String { clock(separator: ":") }

  private func clock(separator: String) -> String {
    "\(CalendarDate.two(hour))\(separator)\(CalendarDate.two(minute))"
  }

  private var dayAndMonth: String {
    let known = CalendarDate.months.indices.contains(month - 1)
    return "\(day) \(known ? CalendarDate.months[month - 1] : "\(month)")"
  }

  /// Days since some day, for differences; the year begins in March so that leap days come last.
  private var dayNumber: Int {
    let (year, month) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
    return year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day
  }

  private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

/// `45 s`, `90 m`, `12 h`, `30 d`: in the largest unit that says it exactly.
package func exactDuration(_ seconds: UInt64) -> String {
  for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60)] as [(String, UInt64)] {
    if seconds % length == 0 { return "\(seconds / length) \(unit)" }
  }
  return "\(seconds) s"
}

/// `40 s`, `12 min`, `4 h`, `3 days`: rounded up, so that nobody comes back too early.
package func durationText(_ seconds: UInt64) -> String {
  switch seconds {
  case 0..<100: "\(seconds) s"
  case 100..<6000: "\((seconds + 59) / 60) min"
  case 6000..<172_800: "\((seconds + 3599) / 3600) h"
  case _: "\(seconds / 86400 + 1) days"
  }
}

/// `40 s`, `20 min`, `4 h`, `3 days`: rounded down, for how far a clock is off.
package func offsetText(_ seconds: UInt64) -> String {
  switch seconds {
  case 0..<100: "\(seconds) s"
  case 100..<6000: "\(seconds / 60) min"
  case 6000..<172_800: "\(seconds / 3600) h"
  case _: "\(seconds / 86400) days"
  }
}

/// `one step behind`, `3 steps ahead`; nil if the clock is right. `drift` is in time steps.
package func driftText(_ drift: Int32) -> String? {
  guard drift != 0 else { return nil }
  let steps = drift.magnitude == 1 ? "one step" : "\(drift.magnitude) steps"
  return "\(steps) \(drift < 0 ? "behind" : "ahead")"
}

/// `1 backup code`, `7 backup codes`: a number with its noun.
package func counted(_ number: Int, _ noun: String, _ plural: String = "s") -> String {
  "\(number) \(noun)\(number == 1 ? "" : plural)"
}
