import OneTimePassword

// What is stricter, for every key: the one place that says so.

extension PolicyKey {
  /// The stricter of two values; the first for a key of which no value is stricter, and for
  /// `required_from`, which depends on the level beside it.
  @inline(never) func stricter(_ one: UInt64, _ other: UInt64) -> UInt64 {
    switch self {
    case .state, .adjacentIntervals, .lookAhead, .guessBudget, .enrollment, .remember,
      .selfService, .verification, .away, .reserveFor, .tries, .factorPass, .remindEvery, .hints:
      return min(one, other)
    case .minimumFactors: return max(one, other)
    case .factorTOTP, .factorHOTP, .factorBackupCode:
      let off = UInt64(FactorUse.off.rawValue)
      return one == off || other == off ? off : max(one, other)
    case .requiredFrom, .factorOrder, .tell, .language, .localServices, .sshdServices,
      .matchService, .matchUser, .matchGroup, .matchOrigin:
      return one
    }
  }
}

extension PolicyKey {
  /// What holds for a key of which the value cannot be read.
  var strictest: UInt64 {
    switch self {
    case .factorTOTP, .factorHOTP, .factorBackupCode: UInt64(FactorUse.off.rawValue)
    case .minimumFactors: bounds.upperBound
    case .state, .adjacentIntervals, .lookAhead, .guessBudget, .enrollment, .remember,
      .selfService, .verification, .away, .reserveFor, .tries, .factorPass, .remindEvery,
      .requiredFrom, .factorOrder, .hints, .tell, .language, .localServices, .sshdServices,
      .matchService, .matchUser, .matchGroup, .matchOrigin:
      bounds.lowerBound
    }
  }
}

extension Policy {
  /// Takes the stricter value of each key, and the shorter lists of services: the result is never
  /// looser than either policy. Who verifies the codes (`verification`) stays as it is, and so does
  /// what the throttle goes by in all services.
  @inline(never) package mutating func tighten(by other: Policy) {
    // At every moment the stricter of the two levels: an earlier day only tightens `required`.
    if other.enrollment == .required, enrollment != .required || other.requiredFrom < requiredFrom {
      requiredFrom = other.requiredFrom
    }
    // What a bucket holds and regains is no matter of one login.
    shared = shared ?? SharedBudgetBox(SharedBudget(of: self))
    let wasFleet = isFleet
    for index in 0..<PolicyKey.scalars {
      guard let key = PolicyKey(rawValue: UInt8(truncatingIfNeeded: index)) else { continue }
      self[key] = key.stricter(self[key], other[key])
    }
    isFleet = wasFleet
    isRefusedByRule = isRefusedByRule || other.isRefusedByRule
    localServices = common(localServices, other.localServices)
    if other.sshdServices != nil || sshdServices != nil {
      let usual = [bytes(of: "sshd")]
      sshdServices = common(sshdServices ?? usual, other.sshdServices ?? usual)
    }
  }

  /// What applies where the administrator's settings cannot be understood in full: these,
  /// tightened. What buckets hold and regain stays as they say.
  @inline(never) package mutating func tighten() {
    shared = SharedBudgetBox(sharedBudget)
    tighten(by: .strict)
  }
}

@inline(never) private func common(_ some: [[UInt8]], _ others: [[UInt8]]) -> [[UInt8]] {
  var names: [[UInt8]] = []
  for name in some where others.contains(name) { names.append(name) }
  return names
}
