import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportSupport
import SallyportSystem

/// An authenticator in JSON.
struct AuthenticatorFacts: Encodable {
  let name, type, algorithm: String
  let digits: Int
  /// TOTP only, in seconds.
  var period: UInt32?
  /// HOTP only: the next counter.
  var counter: UInt64?

  /// `last`: the counter that was accepted last.
  init(_ parameters: CodeParameters, name: Label, after last: UInt64?) {
    self.name = name.text
    algorithm = AlgorithmOption(parameters.algorithm).rawValue
    digits = Int(parameters.digits.rawValue)
    switch parameters.type {
    case .totp(let period): (type, self.period) = (TypeOption.totp.rawValue, period)
    case .hotp: (type, counter) = (TypeOption.hotp.rawValue, HeldCounter.next(after: last) ?? 0)
    }
  }
}

/// A time in JSON, in UTC; nil for a year out of the calendar's range.
package func fact(_ time: UnixTime) -> String? { CalendarDate(time, inUTC: true)?.internetText }

/// A use in JSON.
struct UseFacts: Encodable {
  @OrNull var time: String?
  @OrNull var service: String?
  @OrNull var origin: String?

  init?(_ use: Use?) {
    guard let use else { return nil }
    (time, service, origin) = (fact(use.time), use.service?.text, originText(use.origin))
  }
}

/// A remembered origin in JSON.
struct RememberedFacts: Encodable {
  let origin, service: String
  @OrNull var granted: String?

  init(_ pair: RememberedOrigin) {
    (origin, service) = (Addresses.text(pair.origin), pair.service.text)
    granted = fact(pair.granted)
  }
}

/// A user's own level, which root set, in JSON.
struct LevelFacts: Encodable {
  let name: String
  /// Only if the level is `required`.
  var from: OrNull<String>?
  /// Only if the level is `exempt`.
  var until: OrNull<String>?

  init?(_ level: UserNote.Level?) {
    switch level {
    case nil: return nil
    case .exempt(let until):
      (name, self.until) = ("exempt", OrNull(wrappedValue: until.flatMap { fact($0) }))
    case .required(let from):
      (name, self.from) = ("required", OrNull(wrappedValue: from.flatMap { fact($0) }))
    }
  }
}

/// That a user is blocked, in JSON.
struct BlockFacts: Encodable {
  @OrNull var since: String?
  @OrNull var until: String?
  /// The member of the helpdesk who did it; nil: root did.
  @OrNull var helper: String?

  init?(_ blocked: Store.Blocked?) {
    guard let blocked else { return nil }
    (since, until) = (blocked.block.flatMap { fact($0.since) }, blocked.block?.until.flatMap(fact))
    helper = blocked.block?.helper?.text
  }
}

/// `since 3 Dec, up to 2027-03-01, by the helper carol`, of a block.
func blockText(_ blocked: Store.Blocked, seenFrom now: UnixTime) -> String {
  guard let block = blocked.block else {
    return "for good: \(printable(blocked.path.utf8, limit: 300)) is not understood"
  }
  let end = block.until.map { ", up to \(endText($0))" } ?? ""
  let helper = block.helper.map { ", by the helper \($0.text)" } ?? ""
  let place = blocked.isInFleet ? "in the fleet, " : ""
  return "\(place)since \(whenText(block.since, seenFrom: now))\(end)\(helper): nothing is accepted"
}

/// `required from 2027-03-01 on`, with the date as `--by` and `--until` take it.
func levelText(_ level: UserNote.Level) -> String {
  switch level {
  case .exempt(nil): "exempt"
  case .exempt(let until?): "exempt until \(endText(until))"
  case .required(nil): "required"
  case .required(let from?): "required from \(dayText(from)) on"
  }
}

/// `2027-03-01 00:00 UTC`, of a block or an exemption: it ends with the first minute of that day.
func endText(_ end: UnixTime) -> String {
  dayText(end) + (end.seconds % 86_400 == 0 ? " 00:00 UTC" : " UTC")
}

func dayText(_ time: UnixTime) -> String {
  CalendarDate(time, inUTC: true)?.isoDay ?? "\(time.seconds)"
}

/// `192.0.2.7` or `this machine`; nil if unknown.
func originText(_ origin: Origin) -> String? {
  switch origin {
  case .address(let address): Addresses.text(address)
  case .local: "this machine"
  case .unknown: nil
  }
}

/// A time in the local time zone.
func whenText(_ time: UnixTime, seenFrom now: UnixTime) -> String {
  guard let date = CalendarDate(time), let today = CalendarDate(now) else { return "some day" }
  return date.text(seenFrom: today)
}
