import CService
import Glibc
import OneTimePassword
package import SallyportCore
import SallyportSystem

/// How long ago the fleet confirmed the reserve, without trust in the clock of this machine.
///
/// Within one boot the time that the machine has run counts, whatever the clock says meanwhile.
/// From one boot to the next only the clock can say how long the machine was off; if it is behind
/// the recorded time, the age is unknown. A clock that is ahead makes the reserve older.
package struct ReserveAge: Equatable, Sendable {
  /// When it was confirmed, by this machine's clock.
  package let confirmed: UnixTime
  /// Seconds since then that are known to have passed when this was noted.
  package let counted: UInt64
  /// When that was.
  package let noted: Moment

  /// A moment, by all clocks of this machine.
  package struct Moment: Equatable, Sendable {
    package let clock: UnixTime
    /// Of this boot, as the kernel has it; empty where that cannot be read, which is no boot.
    package let boot: [UInt8]
    /// Seconds since it, those of sleep included (CLOCK_BOOTTIME).
    package let uptime: UInt64

    package init(clock: UnixTime, boot: [UInt8], uptime: UInt64) {
      (self.clock, self.boot, self.uptime) = (clock, boot, uptime)
    }
  }

  package init(confirmed: UnixTime, counted: UInt64, noted: Moment) {
    (self.confirmed, self.counted, self.noted) = (confirmed, counted, noted)
  }

  /// Just confirmed.
  package init(confirmedAt moment: Moment) {
    self.init(confirmed: moment.clock, counted: 0, noted: moment)
  }

  /// In seconds; nil if unknown.
  package func age(at moment: Moment) -> UInt64? {
    guard let passed = passed(until: moment) else { return nil }
    return max(passed, moment.clock.elapsed(since: confirmed))
  }

  /// The same age, recorded then; unchanged if it is unknown.
  package func noted(at moment: Moment) -> ReserveAge {
    guard let passed = passed(until: moment) else { return self }
    return ReserveAge(confirmed: confirmed, counted: passed, noted: moment)
  }

  private func passed(until moment: Moment) -> UInt64? {
    let since: UInt64
    if !noted.boot.isEmpty, noted.boot == moment.boot {
      guard moment.uptime >= noted.uptime else { return nil }
      since = moment.uptime - noted.uptime
    } else {
      guard moment.clock >= noted.clock else { return nil }
      since = max(moment.clock.elapsed(since: noted.clock), moment.uptime)
    }
    let (sum, isTooMuch) = counted.addingReportingOverflow(since)
    return isTooMuch ? UInt64.max : sum
  }
}

// The file `confirmed` of the reserve (docs/enrollment-format.md).
extension ReserveAge {
  package func written() -> [UInt8] {
    let text = """
      # Kept by sallyportd(8).
      version = 1
      confirmed = \(max(confirmed.seconds, 0))
      counted = \(counted)
      noted = \(max(noted.clock.seconds, 0))
      boot = \(noted.boot.isEmpty ? "none" : String(decoding: noted.boot, as: UTF8.self))
      uptime = \(noted.uptime)

      """
    return Array(text.utf8)
  }

  /// Total: any bytes give what `written` gives, or nil, which is a reserve that was never
  /// confirmed.
  package static func read(_ text: [UInt8]) -> ReserveAge? {
    let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard lines.count == 8 else { return nil }
    let keys = ["confirmed = ", "counted = ", "noted = ", "boot = ", "uptime = "]
    var values: [[UInt8]] = []
    for (line, key) in zip(lines[2..<7], keys) {
      guard line.starts(with: key.utf8) else { return nil }
      values.append([UInt8](line.dropFirst(key.utf8.count)))
    }
    guard let confirmed = time(values[0]), let counted = number(values[1]),
      let noted = time(values[2]), let uptime = number(values[4])
    else { return nil }
    let boot = values[3] == Array("none".utf8) ? [] : values[3]
    let age = ReserveAge(
      confirmed: confirmed, counted: counted,
      noted: Moment(clock: noted, boot: boot, uptime: uptime))
    return age.written() == text ? age : nil
  }

  private static func number(_ text: [UInt8]) -> UInt64? {
    UInt64(String(decoding: text, as: UTF8.self))
  }

  private static func time(_ text: [UInt8]) -> UnixTime? {
    number(text).flatMap { Int64(exactly: $0) }.map { UnixTime($0) }
  }
}

extension ReserveAge.Moment {
  package static func now() -> ReserveAge.Moment {
    // Fails for no clock of Linux.
    let clock = (try? Clock.now()) ?? UnixTime(0)
    return ReserveAge.Moment(clock: clock, boot: bootID(), uptime: UInt64(Clock.uptime()))
  }

  /// 36 characters; empty where there is no /proc.
  private static func bootID() -> [UInt8] {
    let file = unsafe open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return [] }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 36)
    // SAFETY: the buffer has its size.
    guard unsafe read(file, &text, text.count) == text.count else { return [] }
    return text.allSatisfy { $0 > 0x20 && $0 < 0x7f } ? text : []
  }
}
