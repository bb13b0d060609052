import OneTimePassword
import SallyportCore
import SallyportSupport

/// How many more wrong codes of a user are checked before a wait.
struct Allowances: Equatable, Encodable {
  let known: Allowance
  let other: Allowance

  /// Counts codes of the length that costs most.
  init(_ enrollment: Enrollment, _ state: LoginState, under policy: Policy, at now: UnixTime) {
    let throttle = Throttle(for: enrollment, state, under: policy)
    let digits =
      enrollment.authenticators.map(\.parameters.digits)
      .max { throttle.cost(of: $0) < throttle.cost(of: $1) } ?? .six
    known = Allowance(throttle, state.known, digits, at: now)
    other = Allowance(throttle, state.other, digits, at: now)
  }

  var text: String {
    let rest = known.left > 0 && other.left > 0 ? "\(other.left)" : other.text
    return "\(known.text) from known places, \(rest) from elsewhere"
  }
}

/// How many more wrong codes are checked before a wait, from one kind of origin.
struct Allowance: Equatable, Encodable {
  let left: UInt64
  /// Seconds until the next code is checked; nil for never.
  @OrNull private(set) var wait: UInt64?

  init(_ throttle: Throttle, _ bucket: Bucket, _ digits: Digits, at now: UnixTime) {
    let cost = throttle.cost(of: digits).units
    left = cost > 0 ? throttle.available(in: bucket, at: now).units / cost : 0
    wait = throttle.wait(for: bucket, digits: digits, at: now)
  }

  var text: String {
    if left > 0 { return "\(left) more before a wait" }
    return wait.map { "next in \(durationText($0))" } ?? "no more"
  }
}
