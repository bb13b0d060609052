package import OneTimePassword

/// The guess budget of one enrollment under one policy (RFC 4226 §7.3).
///
/// Each wrong response that is checked costs the probability of guessing it right. Two buckets
/// (known origins, others) hold a first filling and refill evenly, so that both together, first
/// filling included, spend the policy's budget in a year. A success refunds nothing but what
/// `LoginState.settle` does: a refund of everything would give malware beside a busy owner many
/// times the budget.
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
    let budget = min(
      max(policy.guessBudget, GuessProbability.budgets.lowerBound),
      GuessProbability.budgets.upperBound)
    let quarter = budget.units / 4
    var adjacent = min(policy.adjacentIntervals, Policy.mostAdjacentIntervals)
    var ahead = min(policy.lookAhead, 100)
    let scratch = policy.backupCode != .off ? UInt64(scratchCodes.magnitude) : 0
    var codes = AcceptedCodes(authenticators, scratch, adjacent, ahead, policy)
    while codes.dearest.units * Throttle.fewestResponses > quarter, adjacent > 0 || ahead > 0 {
      if ahead > adjacent { ahead -= 1 } else { adjacent -= 1 }
      codes = AcceptedCodes(authenticators, scratch, adjacent, ahead, policy)
    }
    (adjacentIntervals, lookAhead, accepted) = (adjacent, ahead, codes)
    let wanted = min(codes.dearest.units * Throttle.responsesHeld, quarter)
    let held = max(wanted, codes.dearest.units * Throttle.fewestResponses)
    capacity = GuessProbability(units: min(held, budget.units / 2))
    refillPerYear = GuessProbability(units: budget.units / 2 - capacity.units)
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

  /// Whether a response with this number of digits is refused without being judged.
  package func isThrottled(_ bucket: Bucket, digits: Digits, at now: UnixTime) -> Bool {
    available(in: bucket, at: now) < cost(of: digits)
  }

  /// `bucket` after a wrong response was judged.
  ///
  /// What was spent beyond this policy's capacity, through a line with another policy, stays spent.
  /// Otherwise a guess through one line would give back guesses through the other.
  package func charge(_ bucket: Bucket, digits: Digits, at now: UnixTime) -> Bucket {
    let most = GuessProbability.budgets.upperBound.units
    let total = spent(min(bucket.spent.units, most), bucket, at: now) + cost(of: digits).units
    return Bucket(spent: GuessProbability(units: min(total, most)), since: now)
  }

  /// Seconds from `now` until a response with this number of digits is judged again; 0 if it is
  /// judged now, nil if never (the budget is too small for these authenticators).
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

/// The chance of hitting any accepted code, for each number of digits.
private struct AcceptedCodes: Equatable, Sendable {
  private var six = GuessProbability.none
  private var seven = GuessProbability.none
  private var eight = GuessProbability.none

  init(
    _ all: [Authenticator], _ scratchCodes: UInt64, _ adjacent: UInt8, _ ahead: UInt8,
    _ policy: Policy
  ) {
    let totp = policy.totp != .off ? 2 * UInt64(adjacent) + 1 : 0
    let hotp = policy.hotp != .off ? UInt64(ahead) + 1 : 0
    six = AcceptedCodes.sum(all, .six, totp, hotp)
    seven = AcceptedCodes.sum(all, .seven, totp, hotp)
    let some = AcceptedCodes.sum(all, .eight, totp, hotp)
    eight = GuessProbability(
      units: some.units + scratchCodes * GuessProbability.ofOneScratchCode.units)
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
    _ authenticators: [Authenticator], _ digits: Digits, _ totp: UInt64, _ hotp: UInt64
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
