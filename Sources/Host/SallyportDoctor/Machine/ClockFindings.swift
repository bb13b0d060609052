import CCommand
import SallyportCore
import SallyportSupport
import SallyportSystem

/// The state of the machine's clock.
struct ClockFacts: Equatable {
  /// Whether the kernel says so.
  var isSynchronised: Probe<Bool>
  /// The program that keeps it correct, with the offset in seconds that it reports.
  var source: Source?
  /// Whether timedatectl exists, to turn synchronization on.
  var hasTimedate = false
  var now: UnixTime

  struct Source: Equatable {
    let name: String
    /// In seconds; only the absolute value counts.
    var offset: Double?
    var isSynchronised = true
    /// Whether nobody on the network can set it: a receiver of this machine's own, or signed
    /// answers (NTS, RFC 8915, or a shared key). nil if unknown.
    var isAuthenticated: Bool?
  }
}

extension ClockFacts {
  init(of machine: Machine, _ now: UnixTime) {
    let kernel = inspect_clock()
    isSynchronised = kernel < 0 ? .unseen("adjtimex: \(errnoText(-kernel))") : .seen(kernel == 1)
    self.now = now
    let answers = ClockFacts.questions.map { question in
      (question.program, machine.answer(question.words))
    }
    hasTimedate = answers.contains { $0.0 == "timedatectl" && $0.1 != nil }
    let found = answers.lazy.compactMap { program, answer in
      answer.flatMap { ClockFacts.source(program, $0) }.map { (program, answer ?? "", $0) }
    }.first
    guard let (program, answer, source) = found else { return }
    self.source = source
    let more = ClockFacts.vouchers[program].flatMap { machine.answer($0) }
    self.source?.isAuthenticated = ClockFacts.isAuthenticated(program, answer, more)
  }

  private static let questions = [
    (program: "chronyc", words: ["chronyc", "-n", "tracking"]),
    (program: "ntpq", words: ["ntpq", "-c", "rv"]),
    (program: "timedatectl", words: ["timedatectl", "timesync-status"]),
  ]

  /// The commands that tell which servers sign their answers.
  private static let vouchers = [
    "chronyc": ["chronyc", "-n", "authdata"], "ntpq": ["ntpq", "-c", "associations"],
  ]

  /// Whether the server that the clock follows signs its answers. `more` is the output of the
  /// command in `vouchers`.
  static func isAuthenticated(_ program: String, _ answer: String, _ more: String?) -> Bool? {
    let rows = (more ?? "").split(separator: "\n").map { row in
      row.split(whereSeparator: \.isWhitespace).map(String.init)
    }
    switch program {
    case "chronyc":
      let reference = value(of: "Reference ID", in: answer, ":") ?? ""
      guard more != nil, !["", "00000000 ()"].contains(reference) else { return nil }
      let server = reference.split(separator: "(").last?.split(separator: ")").first ?? ""
      // Each NTP server has a row; a receiver has none.
      let row = rows.first { $0.count > 1 && $0[0] == server }
      return row.map { $0[1] != "-" } ?? true
    case "ntpq":
      if value(of: "stratum", in: answer, "=") == "1" { return true }
      let row = rows.first { $0.contains("sys.peer") }
      guard let row, row.count > 5 else { return nil }
      return row[5] == "ok"
    // systemd-timesyncd supports only SNTP.
    case _: return false
    }
  }

  /// Parses the output of a time daemon; nil if it is not understood.
  static func source(_ program: String, _ answer: String) -> Source? {
    switch program {
    case "chronyc":
      guard let leap = value(of: "Leap status", in: answer, ":") else { return nil }
      let offset = value(of: "System time", in: answer, ":").flatMap { number($0) }
      return Source(name: "chrony", offset: offset, isSynchronised: leap != "Not synchronised")
    case "ntpq":
      guard let system = value(of: "offset", in: answer, "=").flatMap({ number($0) }) else {
        return nil
      }
      return Source(
        name: "ntpd", offset: system / 1000, isSynchronised: !answer.contains("leap_alarm"))
    case _:
      guard let offset = value(of: "Offset", in: answer, ":").flatMap({ duration($0) }) else {
        return nil
      }
      return Source(name: "systemd-timesyncd", offset: offset)
    }
  }

  /// The value in `key : value` on a line, or in `key=value` in a list.
  private static func value(of key: String, in text: String, _ sign: Character) -> String? {
    for part in text.split(whereSeparator: { $0 == "\n" || ($0 == "," && sign == "=") }) {
      let sides = part.split(separator: sign, maxSplits: 1).map { words(String($0)) }
      if sides.count == 2, sides[0] == key { return sides[1] }
    }
    return nil
  }

  /// With single spaces, and none at either end.
  private static func words(_ text: String) -> String {
    text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  private static func number(_ text: String) -> Double? {
    text.split(separator: " ").first.flatMap { Double($0) }.map(\.magnitude)
  }

  /// In seconds, from `+1.5ms`, `-23us` or `2min 3.5s`.
  private static func duration(_ text: String) -> Double? {
    let units = [
      ("min", 60.0), ("ms", 0.001), ("us", 0.000_001), ("ns", 0.000_000_001), ("h", 3600.0),
      ("s", 1.0),
    ]
    var sum = 0.0
    for word in text.split(separator: " ") {
      guard let unit = units.first(where: { word.hasSuffix($0.0) }),
        let number = Double(word.dropLast(unit.0.count))
      else { return nil }
      sum += number.magnitude * unit.1
    }
    return sum
  }
}

/// Problems of the clock, on which time-based codes depend. Pure.
struct ClockFindings {
  let clock: ClockFacts
  let packages: PackageTool?
  private let area = Area.clock
  /// In seconds: half a time step, beyond which the current code is that of an adjacent step.
  private static let noted = 15.0
  /// In seconds: five steps of 30 s, the most that are accepted.
  private static let refused = 150.0
  /// The start of 2026, before which this was not written: a clock that shows less is wrong.
  private static let earliest: Int64 = 1_767_225_600

  var all: [Finding] {
    if clock.now.seconds < ClockFindings.earliest {
      let day = CalendarDate(clock.now)?.dayText ?? "\(clock.now.seconds)"
      return [
        .error(
          "clock-past", area, "the clock says \(day): no code is accepted", fixes: [turnOn],
          effect: .locksOut("everybody with time-based codes"))
      ]
    }
    return [far ?? state] + [unauthenticated].compactMap { $0 }
  }

  /// Only a hint, as most machines have no other source. docs/threat-model.md says what it can
  /// cost.
  private var unauthenticated: Finding? {
    guard let source = clock.source, source.isAuthenticated == false else { return nil }
    return .ok(
      "clock-source", area,
      "\(source.name) takes the time from a server that does not sign it: anybody on the path "
        + "can set this clock",
      fixes: [.advice("chrony.conf(5), nts; ntp.conf(5), nts; or a receiver of its own")])
  }

  private var far: Finding? {
    guard let source = clock.source, let offset = source.offset, offset > ClockFindings.noted else {
      return nil
    }
    let isFar = offset > ClockFindings.refused
    return Finding(
      "clock-offset", area,
      "the clock is \(durationText(UInt64(offset))) off, says \(source.name)"
        + (isFar ? ": correct codes are refused" : ""), severity: isFar ? .error : .warning,
      fixes: [source.name == "chrony" ? .command("chronyc makestep") : turnOn],
      effect: isFar ? .locksOut("everybody with time-based codes") : nil)
  }

  private var state: Finding {
    let says = clock.source.map { " by \($0.name)" + offset($0) } ?? ""
    switch clock.isSynchronised {
    case .seen(true) where clock.source?.isSynchronised == false, .seen(false):
      return .warning(
        "clock-synchronised", area,
        "the clock is not synchronized: once it is some minutes off, codes are refused",
        fixes: [turnOn])
    case .seen(true): return .ok("clock-synchronised", area, "synchronized\(says)")
    case .absent, .unseen:
      return .unseen("clock-synchronised", area, "the kernel's clock cannot be queried")
    }
  }

  private var turnOn: Fix {
    if clock.source?.name == "chrony" { return .advice("chronyc sources") }
    return clock.hasTimedate
      ? .command("timedatectl set-ntp true")
      : packages.map { .command($0.install("chrony")) } ?? .advice("install chrony")
  }

  private func offset(_ source: ClockFacts.Source) -> String {
    guard let offset = source.offset else { return "" }
    let tenths = UInt64((offset * 10_000).rounded())
    return ", \(tenths / 10).\(tenths % 10) ms off"
  }
}
