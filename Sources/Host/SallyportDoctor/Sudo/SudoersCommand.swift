import SallyportCore
import SallyportSupport

/// One command of a sudoers rule, with what precedes it: `(root) NOPASSWD: /bin/ls`.
/// All of that also applies to the commands that follow.
struct SudoersCommand: Equatable {
  struct Runas: Equatable {
    /// In the words of the file; none in `()`, which means the caller himself.
    let users: [String]
    /// `(:group)`, which means no other user.
    let isGroupOnly: Bool
    let items: [SudoersItem]
  }

  /// nil: the account that `runas_default` names.
  private(set) var runas: Runas?
  /// NOPASSWD or PASSWD; nil without a tag.
  private(set) var asksNothing: Bool?
  private var notBefore: UnixTime?
  private var notAfter: UnixTime?
  /// Whether a time cannot be parsed: sudo then does not take the line.
  private var isWrong = false
  let item: SudoersItem

  init(_ text: String, after previous: SudoersCommand?) {
    (runas, asksNothing) = (previous?.runas, previous?.asksNothing)
    (notBefore, notAfter) = (previous?.notBefore, previous?.notAfter)
    var rest = text[...]
    var (options, isCommand) = ([(String, String)](), false)
    while !isCommand {
      rest = rest.drop(while: \.isWhitespace)
      if rest.first == "(", let end = rest.firstIndex(of: ")") {
        runas = SudoersCommand.runas(rest[..<end].dropFirst())
        rest = rest[end...].dropFirst()
      } else if let (name, value, tail) = SudoersCommand.option(rest) {
        options.append((name, value))
        rest = tail
      } else {
        isCommand = true
      }
    }
    item = SudoersItem(trimmed(String(rest)), isCommand: true)
    for (name, value) in options {
      switch name {
      case "NOPASSWD": asksNothing = true
      case "PASSWD": asksNothing = false
      case "NOTBEFORE": notBefore = time(value)
      case "NOTAFTER": notAfter = time(value)
      case _: continue
      }
    }
  }

  private mutating func time(_ value: String) -> UnixTime? {
    let time = SudoersCommand.time(value)
    isWrong = isWrong || time == nil
    return time
  }

  /// Whether it is every command as every user, at any time, and asks.
  var isAllAsked: Bool {
    item == SudoersItem("ALL") && runas?.users == ["ALL"] && asksNothing != true && !isLimited
  }

  private var isLimited: Bool { isWrong || notBefore != nil || notAfter != nil }

  func isValid(at now: UnixTime) -> Bool {
    if isWrong { return false }
    if let notBefore, now < notBefore { return false }
    return notAfter.map { now > $0 } != true
  }

  private static func runas(_ text: Substring) -> Runas {
    let sides = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let users = SudoersLine.parts(String(sides.first ?? "")) { $0 == "," }.filter { !$0.isEmpty }
    let hasGroups = sides.count > 1 && sides[1].contains { !$0.isWhitespace }
    return Runas(
      users: users, isGroupOnly: users.isEmpty && hasGroups, items: users.map { SudoersItem($0) })
  }

  /// A tag with its colon, or `NAME=value`; nil if a command begins here.
  private static func option(_ text: Substring) -> (String, value: String, rest: Substring)? {
    let name = text.prefix { $0.isASCII && $0.isUppercase || $0 == "_" }
    let after = text[name.endIndex...].drop(while: \.isWhitespace)
    guard !name.isEmpty, let sign = after.first, sign == ":" || sign == "=" else { return nil }
    let tail = after.dropFirst()
    if sign == ":" { return (String(name), "", tail) }
    let value = tail.drop(while: \.isWhitespace).prefix { !$0.isWhitespace }
    return (String(name), String(value), tail[value.endIndex...])
  }

  /// Whether it is `sha256:…` without a command.
  static func isChecksum(_ text: String) -> Bool {
    guard text.hasPrefix("sha"), let colon = text.firstIndex(of: ":") else { return false }
    let digest = text[colon...].dropFirst().drop(while: \.isWhitespace)
    return text[..<colon].dropFirst(3).allSatisfy { $0.isNumber || $0.isWhitespace }
      && !digest.contains(where: \.isWhitespace)
  }

  /// `yyyymmddHH[MM[SS]][.f][Z|±hh[mm]]`, without a zone in local time; nil if it is wrong.
  private static func time(_ text: String) -> UnixTime? {
    let digits = text.prefix(while: \.isNumber).map(String.init)
    let part = { (start: Int, count: Int) in digits.dropFirst(start).prefix(count).joined() }
    let day = "\(part(0, 4))-\(part(4, 2))-\(part(6, 2))"
    guard (10...14).contains(digits.count), let midnight = UnixTime(date: Array(day.utf8)) else {
      return nil
    }
    let (hour, minute, second) = (Int(part(8, 2)), Int(part(10, 2)) ?? 0, Int(part(12, 2)) ?? 0)
    var zone = text.dropFirst(digits.count)
    if let point = zone.first, point == "." || point == "," { zone = zone.dropFirst(2) }
    guard let sign = zone.first else {
      let date = CalendarDate(midnight, inUTC: true)
      return date.flatMap { date in
        moments(
          of: CalendarDate(
            year: date.year, month: date.month, day: date.day, hour: hour ?? 0, minute: minute,
            second: second)
        ).first
      }
    }
    let east = (Int(zone.dropFirst().prefix(2)) ?? 0) * 60 + (Int(zone.dropFirst(3)) ?? 0)
    let minutes = (hour ?? 0) * 60 + minute - (sign == "-" ? -east : east)
    return UnixTime(midnight.seconds + Int64(minutes * 60 + second))
  }
}
