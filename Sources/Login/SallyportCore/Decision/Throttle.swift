package import OneTimePassword

/// The guess budget of one enrollment under one policy (RFC 4226 §7.3).
///
/// Each wrong response that is checked costs the probability of guessing it right under the policy
/// that checked it. Two buckets (known origins, others) hold a first filling and refill evenly, so
/// that both together, first filling included, spend the budget in a year. What they hold and
/// regain is the same under all policies of a person (`SharedBudget`). A success refunds nothing
/// but what `LoginState.settle` does: a refund of everything would give malware beside a busy owner
/// many times the budget.
package struct Throttle: Equatable, Sendable {
  /// The number of wrong responses that a bucket holds, if a quarter of the budget allows it …
  package static let responsesHeld: UInt64 = 20
  /// … and the number that it holds at least.
  package static let fewestResponses: UInt64 = 5
  package static let secondsPerYear: UInt64 = 31_557_600

  /// The capacity of one bucket.
  package let capacity: GuessProbability
  /// How much one bucket regains in a year.
  package let refillPerYear: GuessProbability
  /// The policy's accepted intervals and look-ahead, narrowed until five responses fit into a
  /// quarter of the budget.
  package let adjacentIntervals: UInt8
  package let lookAhead: UInt8
  private let accepted: AcceptedCodes

  /// As it is now: each scratch code that has been used makes guessing harder.
  package init(for enrollment: Enrollment, _ state: LoginState, under policy: Policy) {
    let left = enrollment.backupCodes?.scratchCodesLeft(state.backupCodes) ?? 0
    self.init(for: enrollment.authenticators, scratchCodes: left, under: policy)
  }

  package init(
    for authenticators: [Authenticator], scratchCodes: Int = 0, under policy: Policy
  ) {
    let own = SharedBudget(of: policy)
    let shared = policy.shared?.budget
    let all = (list: authenticators, scratchCodes: UInt64(scratchCodes.magnitude))
    let least = (shared ?? own).least(of: all) ?? policy.guessBudget
    let budget = min(
      max(least, GuessProbability.budgets.lowerBound), GuessProbability.budgets.upperBound
    ).units
    let narrowed = Narrowed(own, all, to: budget / 4)
    (adjacentIntervals, lookAhead) = (narrowed.adjacent, narrowed.ahead)
    accepted = narrowed.codes
    // Of what is accepted anywhere, so that five responses fit in each service. The file may accept
    // nothing where somebody is asked all the same: by a line with a misspelt word.
    let anywhere = shared.map { Narrowed($0, all, to: budget / 4) } ?? narrowed
    let dearest = max(narrowed.codes.dearest, anywhere.codes.dearest)
    let wanted = min(dearest.units * Throttle.responsesHeld, budget / 4)
    let held = max(wanted, dearest.units * Throttle.fewestResponses)
    capacity = GuessProbability(units: min(held, budget / 2))
    refillPerYear = GuessProbability(units: budget / 2 - capacity.units)
  }

  /// The cost of one wrong response with this number of digits.
  package func cost(of digits: Digits) -> GuessProbability { accepted.probability(of: digits) }

  /// What is left in `bucket` at `now`.
  package func available(in bucket: Bucket, at now: UnixTime) -> GuessProbability {
    GuessProbability(units: capacity.units - spent(of: bucket, at: now))
  }

  /// How many wrong responses of the most expensive kind `bucket` still allows.
  package func responsesLeft(in bucket: Bucket, at now: UnixTime) -> UInt64 {
    let price = accepted.dearest.units
    return price == 0 ? 0 : available(in: bucket, at: now).units / price
  }

  /// Whether a response with this number of digits is refused without being verified.
  package func isThrottled(_ bucket: Bucket, digits: Digits, at now: UnixTime) -> Bool {
    available(in: bucket, at: now) < cost(of: digits)
  }

  /// `bucket` after a wrong response.
  ///
  /// What was spent beyond this policy's capacity, through a line with another policy, stays spent.
  /// Otherwise a guess through one line would give back guesses through the other.
  package func charge(_ bucket: Bucket, digits: Digits, at now: UnixTime) -> Bucket {
    let most = GuessProbability.budgets.upperBound.units
    let total = spent(min(bucket.spent.units, most), bucket, at: now) + cost(of: digits).units
    return Bucket(spent: GuessProbability(units: min(total, most)), since: now)
  }

  /// Up to that many responses, of the most expensive kind, from one bucket to the other, which has
  /// none left: nothing is made, so that a year's budget holds. How many; 0 where `giver` has none.
  package func lend(
    _ responses: UInt64, from giver: inout Bucket, to taker: inout Bucket, at now: UnixTime
  ) -> UInt64 {
    let most = GuessProbability.budgets.upperBound.units
    let lent = min(responses, responsesLeft(in: giver, at: now))
    let price = lent * accepted.dearest.units
    let debt = spent(min(taker.spent.units, most), taker, at: now)
    // What was spent beyond the capacity stays spent.
    guard price > 0, price <= debt else { return 0 }
    let relieved = Bucket(spent: GuessProbability(units: debt - price), since: now)
    if responsesLeft(in: relieved, at: now) == 0 { return 0 }
    let given = spent(min(giver.spent.units, most), giver, at: now)
    giver = Bucket(spent: GuessProbability(units: given + price), since: now)
    taker = relieved
    return lent
  }

  /// Seconds from `now` until a response with this number of digits is verified again; 0 if it is
  /// verified now, nil if never (the budget is too small for these authenticators).
  package func wait(for bucket: Bucket, digits: Digits, at now: UnixTime) -> UInt64? {
    let (price, left) = (cost(of: digits).units, available(in: bucket, at: now).units)
    if left >= price { return 0 }
    guard refillPerYear.units > 0 else { return nil }
    let (product, overflow) = (price - left).multipliedReportingOverflow(
      by: Throttle.secondsPerYear)
    return overflow ? nil : product / refillPerYear.units + 1
  }

  private func spent(of bucket: Bucket, at now: UnixTime) -> UInt64 {
    spent(min(bucket.spent.units, capacity.units), bucket, at: now)
  }

  @inline(never) private func spent(_ spent: UInt64, _ bucket: Bucket, at now: UnixTime) -> UInt64 {
    let elapsed = min(now.elapsed(since: bucket.since), 2 * Throttle.secondsPerYear)
    // Cannot overflow: at most 6.4·10⁷ s · 5·10¹⁰.
    let credit = elapsed * refillPerYear.units / Throttle.secondsPerYear
    return spent > credit ? spent - credit : 0
  }
}

/// What can be guessed.
private typealias Guessable = (list: [Authenticator], scratchCodes: UInt64)

extension SharedBudget {
  /// The least budget of a login in which something of `all` counts; nil if nothing does anywhere.
  fileprivate func least(of all: Guessable) -> GuessProbability? {
    var least = all.scratchCodes > 0 ? budgets[2] : SharedBudget.nowhere
    for authenticator in all.list {
      least = min(least, budgets[Int(authenticator.parameters.type.factor.rawValue)])
    }
    return least == SharedBudget.nowhere ? nil : GuessProbability(units: least)
  }
}

/// Accepted intervals and look-ahead, narrowed until five responses fit, the larger first.
private struct Narrowed {
  var adjacent: UInt8
  var ahead: UInt8
  var codes: AcceptedCodes

  @inline(never)
  init(_ wide: SharedBudget, _ all: Guessable, to quarter: UInt64) {
    adjacent = UInt8(truncatingIfNeeded: min(wide.windows[0], UInt64(Policy.mostAdjacentIntervals)))
    ahead = UInt8(truncatingIfNeeded: min(wide.windows[1], 100))
    while true {
      codes = AcceptedCodes(all, in: wide, adjacent: adjacent, ahead: ahead)
      guard codes.dearest.units * Throttle.fewestResponses > quarter, adjacent > 0 || ahead > 0
      else { break }
      if ahead > adjacent { ahead -= 1 } else { adjacent -= 1 }
    }
  }
}

/// The chance of hitting any accepted code, for each number of digits.
private struct AcceptedCodes: Equatable, Sendable {
  private var six = GuessProbability.none
  private var seven = GuessProbability.none
  private var eight = GuessProbability.none

  init(_ all: Guessable, in accepted: SharedBudget, adjacent: UInt8, ahead: UInt8) {
    let totp = accepted.accepts(.totp) ? 2 * UInt64(adjacent) + 1 : 0
    let hotp = accepted.accepts(.hotp) ? UInt64(ahead) + 1 : 0
    let scratch = accepted.accepts(.backupCode) ? all.scratchCodes : 0
    six = AcceptedCodes.sum(all.list, .six, totp: totp, hotp: hotp)
    seven = AcceptedCodes.sum(all.list, .seven, totp: totp, hotp: hotp)
    let some = AcceptedCodes.sum(all.list, .eight, totp: totp, hotp: hotp)
    eight = GuessProbability(
      units: some.units + scratch * GuessProbability.ofOneScratchCode.units)
  }

  var dearest: GuessProbability { max(six, max(seven, eight)) }

  func probability(of digits: Digits) -> GuessProbability {
    switch digits {
    case .six: six
    case .seven: seven
    case .eight: eight
    }
  }

  @inline(never) private static func sum(
    _ authenticators: [Authenticator], _ digits: Digits, totp: UInt64, hotp: UInt64
  ) -> GuessProbability {
    var codes: UInt64 = 0
    for authenticator in authenticators where authenticator.parameters.digits == digits {
      switch authenticator.parameters.type {
      case .totp: codes += totp
      case .hotp: codes += hotp
      }
    }
    return GuessProbability(units: codes * GuessProbability(ofOneCodeWith: digits).units)
  }
}
