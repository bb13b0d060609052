import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportSystem

/// `sallyport status`
struct Status: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Show a user's authenticators, backup codes and wrong codes.")

  @Option(help: ArgumentHelp("Whose enrollment. (default: who called sudo)", valueName: "name"))
  var user: String?

  @OptionGroup var users: UserOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { user ?? context.sudoUser }

  func run(in context: Context) throws(Complaint) {
    let place = try context.store(store)
    guard let user = user(in: context) else { throw .nobodyNamed }
    let record = try context.record(user, users, in: place)
    let report = StatusReport(record, at: try context.time())
    context.voice(store).answer(report.json, report.text)
  }
}

/// What there is to say about one enrollment.
struct StatusReport {
  private let enrollment: Enrollment
  private let state: LoginState
  private let backupCodes: (left: Int, all: Int)
  private let throttle: Throttle
  private let now: UnixTime

  init(_ record: Record, at now: UnixTime) {
    (enrollment, self.now) = (record.enrollment, now)
    var state = record.state
    state.reconcile(with: record.enrollment)
    self.state = state
    backupCodes = backupCodeCount(record)
    throttle = Throttle(for: record.enrollment, state, under: Policy())
  }

  // MARK: for people

  var text: String {
    let rows =
      authenticatorRows + [["backup codes", backupCodeText], ["wrong codes", wrongCodeText]]
    return ([heading, ""] + table(rows).map { "  \($0)" }).joined(separator: "\n")
  }

  private var heading: String {
    let day = CalendarDate(enrollment.created).map { ", enrolled \($0.dayText)" } ?? ""
    return "\(enrollment.user.text)\(day)"
  }

  private var authenticatorRows: [[String]] {
    zip(enrollment.authenticators, state.authenticators).flatMap { authenticator, values in
      let lines = wrapped(details(of: values), width: 40)
      return lines.enumerated().map { index, line in
        index > 0
          ? ["", "", line]
          : [authenticator.name.text, description(of: authenticator.parameters), line]
      }
    }
  }

  private func details(of values: AuthenticatorState) -> [String] {
    let use = values.lastUse
    let parts = [
      use.map { "used \(whenText($0.time, seenFrom: now))" } ?? "never used", use?.service?.text,
      use.flatMap { originText($0.origin) }, driftText(values.drift).map { "clock \($0)" },
    ]
    return parts.compactMap { $0 }
  }

  private var backupCodeText: String {
    if backupCodes.all == 0 { return "none" }
    let weak =
      scratchCodesLeft > 0 ? ", \(counted(scratchCodesLeft, "weak scratch code")) among them" : ""
    return "\(backupCodes.left) of \(backupCodes.all) left\(weak)"
  }

  private var scratchCodesLeft: Int {
    enrollment.backupCodes?.scratchCodesLeft(state.backupCodes) ?? 0
  }

  private var wrongCodeText: String {
    let (known, other) = (allowance(state.known), allowance(state.other))
    let rest = known.left > 0 && other.left > 0 ? "\(other.left)" : other.text
    return "\(known.text) from known places, \(rest) from elsewhere"
  }

  // MARK: for programs

  var json: JSON {
    .object([
      ("user", .text(enrollment.user.text)),
      ("uid", enrollment.uid.map { .number(Int64($0)) } ?? .null),
      ("enrolled", fact(enrollment.created)),
      ("authenticators", .list(zip(enrollment.authenticators, state.authenticators).map(json))),
      (
        "backupCodes",
        .object([
          ("left", .number(Int64(backupCodes.left))), ("total", .number(Int64(backupCodes.all))),
          ("scratchLeft", .number(Int64(scratchCodesLeft))),
          ("lastUse", fact(state.backupCodes?.lastUse)),
        ])
      ),
      (
        "wrongCodes",
        .object([
          ("known", allowance(state.known).json), ("other", allowance(state.other).json),
        ])
      ),
      ("lastLogin", fact(lastUse(state))),
    ])
  }

  private func json(_ authenticator: Authenticator, _ values: AuthenticatorState) -> JSON {
    let next = values.lastAccepted.map { $0 &+ 1 } ?? 0
    return .object(
      facts(of: authenticator.parameters, name: authenticator.name, counter: next) + [
        ("created", fact(authenticator.created)), ("drift", .number(Int64(values.drift))),
        ("lastUse", fact(values.lastUse)),
      ])
  }

  // MARK: the throttle

  /// For codes of the length that costs most.
  private func allowance(_ bucket: Bucket) -> Allowance {
    let digits =
      enrollment.authenticators.map(\.parameters.digits)
      .max { throttle.cost(of: $0) < throttle.cost(of: $1) } ?? .six
    return Allowance(throttle, bucket, digits, at: now)
  }
}

/// How many more wrong codes are judged.
struct Allowance: Equatable {
  let left: UInt64
  /// Seconds until the next one is judged; nil: never.
  let wait: UInt64?

  init(_ throttle: Throttle, _ bucket: Bucket, _ digits: Digits, at now: UnixTime) {
    let cost = throttle.cost(of: digits).units
    left = cost > 0 ? throttle.available(in: bucket, at: now).units / cost : 0
    wait = throttle.wait(for: bucket, digits: digits, at: now)
  }

  var text: String {
    if left > 0 { return "\(left) more before a wait" }
    return wait.map { "next in \(durationText($0))" } ?? "no more"
  }

  var json: JSON {
    .object([
      ("left", .counter(left)), ("wait", wait.map { .counter($0) } ?? .null),
    ])
  }
}

/// A moment in the reader's time zone.
func whenText(_ time: UnixTime, seenFrom now: UnixTime) -> String {
  guard let date = CalendarDate(time), let today = CalendarDate(now) else { return "some day" }
  return date.text(seenFrom: today)
}
