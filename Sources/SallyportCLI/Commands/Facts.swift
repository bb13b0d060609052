import OneTimePassword
import SallyportCore
import SallyportSystem
import SallyportText

/// An authenticator for programs. `counter`: the next one of an HOTP.
func facts(of parameters: CodeParameters, name: Label, counter: UInt64) -> [(String, JSON)] {
  let algorithm = AlgorithmOption(parameters.algorithm).rawValue
  var members: [(String, JSON)] = [("name", .text(name.text))]
  switch parameters.type {
  case .totp: members.append(("type", .text(TypeOption.totp.rawValue)))
  case .hotp: members.append(("type", .text(TypeOption.hotp.rawValue)))
  }
  members.append(("algorithm", .text(algorithm)))
  members.append(("digits", .number(Int64(parameters.digits.rawValue))))
  switch parameters.type {
  case .totp(let period): members.append(("period", .number(Int64(period))))
  case .hotp: members.append(("counter", .counter(counter)))
  }
  return members
}

/// A moment for programs, in UTC.
func fact(_ time: UnixTime) -> JSON { .maybe(CalendarDate(time, inUTC: true)?.internetText) }

/// A use for programs.
func fact(_ use: Use?) -> JSON {
  guard let use else { return .null }
  return .object([
    ("time", fact(use.time)), ("service", .maybe(use.service?.text)),
    ("origin", .maybe(originText(use.origin))),
  ])
}

/// A remembered origin for programs.
func fact(_ pair: RememberedOrigin) -> JSON {
  .object([
    ("origin", .text(Addresses.text(pair.origin))), ("service", .text(pair.service.text)),
    ("granted", fact(pair.granted)),
  ])
}

/// What root said of a user alone, for programs.
func fact(_ level: UserNote.Level?) -> JSON {
  switch level {
  case nil: .null
  case .exempt: .object([("name", .text("exempt"))])
  case .required(let from):
    .object([("name", .text("required")), ("from", from.map { fact($0) } ?? .null)])
  }
}

/// `required from 2027-03-01 on`: days as `--by` takes them.
func levelText(_ level: UserNote.Level) -> String {
  switch level {
  case .exempt: return "exempt"
  case .required(nil): return "required"
  case .required(let from?):
    let day = CalendarDate(from, inUTC: true)?.isoDay ?? "\(from.seconds)"
    return "required from \(day) on"
  }
}

/// `192.0.2.7`, `this machine`; nil where it is unknown.
func originText(_ origin: Origin) -> String? {
  switch origin {
  case .address(let address): Addresses.text(address)
  case .local: "this machine"
  case .unknown: nil
  }
}
