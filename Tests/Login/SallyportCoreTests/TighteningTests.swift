import OneTimePassword
import TestSupport
import Testing

@testable import SallyportCore

/// Two policies as one: the function behind every "stricter of the two".
@Suite struct `The stricter of two policies` {
  /// Values of a key, from the stricter to the looser one; nil for a key of which none is stricter.
  static func ranked(_ key: PolicyKey) -> [UInt64]? {
    switch key {
    case .state, .hints, .selfService, .away, .factorPass: [0, 1]
    case .adjacentIntervals: [0, 1, 5, 10]
    case .lookAhead: [0, 1, 10, 100]
    case .guessBudget: [100_000_000, 10_000_000_000, 100_000_000_000]
    case .enrollment: [0, 1, 2, 3, 4]
    case .remember, .reserveFor: [0, 3600, 366 * 86_400]
    case .remindEvery: [1, 3, 100]
    case .factorTOTP, .factorHOTP, .factorBackupCode:
      [FactorUse.off, .mandatory, .on].map { UInt64($0.rawValue) }
    case .minimumFactors: [3, 2, 1]
    case .tries: [1, 3, 5]
    // The first stays: who verifies, in which order factors are offered, and what owners are
    // told, is not strict or loose.
    case .verification, .factorOrder, .tell, .language: nil
    // Together with the level, below.
    case .requiredFrom: nil
    // No number, below.
    case .localServices, .sshdServices: nil
    case .matchService, .matchUser, .matchGroup, .matchOrigin: nil
    }
  }

  static func together(_ one: Policy, _ other: Policy) -> Policy {
    var policy = one
    policy.tighten(by: other)
    return policy
  }

  // decisive
  @Test(arguments: PolicyKey.allCases) func `is never looser than either in any key`(
    key: PolicyKey
  ) throws {
    guard let values = Self.ranked(key) else { return }
    for (stricter, looser) in values.indices.flatMap({ one in
      values.indices.filter { $0 >= one }.map { (values[one], values[$0]) }
    }) {
      var (one, other) = (Policy(), Policy())
      (one[key], other[key]) = (stricter, looser)
      #expect(one[key] == stricter && other[key] == looser, "no such value of \(key)")
      #expect(Self.together(one, other)[key] == stricter, "\(key): \(stricter), \(looser)")
      #expect(Self.together(other, one)[key] == stricter, "\(key): \(looser), \(stricter)")
    }
  }

  @Test func `leaves who verifies and the order of the factors as the first has them`() throws {
    for isFleet in [true, false] {
      var (one, other) = (Policy(), Policy())
      (one.isFleet, other.isFleet) = (isFleet, !isFleet)
      one.factorOrder = try #require(FactorOrder(number: isFleet ? 21 : 5))
      #expect(Self.together(one, other).isFleet == isFleet)
      #expect(Self.together(one, other).factorOrder == one.factorOrder)
    }
  }

  /// Every pair of levels and dates, with every note of a user, at every moment that matters.
  @Test func `is at every moment at the stricter level of the two`() {
    let dates = [Int64(0), 1000, 2000].map { UnixTime($0) }
    let levels = (0...4).compactMap { EnrollmentLevel(rawValue: $0) }
    let all = levels.flatMap { level in
      dates.flatMap { date in
        [true, false].map { isByRule in
          var policy = Policy()
          (policy.enrollment, policy.requiredFrom) = (level, date)
          policy.isRefusedByRule = isByRule && level == .refuse
          return policy
        }
      }
    }
    let notes: [UserNote.Level?] = [
      nil, .exempt(until: nil), .required(from: nil), .required(from: UnixTime(1500)),
    ]
    for (one, other) in all.flatMap({ one in all.map { (one, $0) } }) {
      let both = Self.together(one, other)
      for (note, now) in notes.flatMap({ note in [0, 1500, 2500].map { (note, UnixTime($0)) } }) {
        let wanted = min(
          one.level(of: note, at: now).rawValue, other.level(of: note, at: now).rawValue)
        #expect(both.level(of: note, at: now).rawValue == wanted, "\(one) \(other)")
      }
    }
  }

  /// What a file says of a login of alice's.
  private static func policy(_ text: String, service: String) throws -> Policy {
    let login = PolicyRequest(
      service: Array(service.utf8), user: Array("alice".utf8), isRemote: false, address: nil,
      parse: { _ in nil }, membership: { _ in .no })
    return PolicyFile(try secret(Array(text.utf8)), base: Policy(), login).policy(Policy())
  }

  /// A line with a misspelt word asks there, and so do sallyport-session and a fleet.
  // decisive
  @Test(arguments: [
    "[default]\nstate = disabled\n",
    "[default]\n[rule a]\nmatch_user = alice\nstate = disabled\n",
    "[default]\nfactor_totp = off\n[rule a]\nmatch_service = sudo\nstate = disabled\n"
      + "factor_totp = on\n",
  ]) func `holds twenty wrong codes where the file itself would not ask`(text: String) throws {
    let policy = try Self.policy(text, service: "sudo")
    #expect(!policy.isEnabled)
    var (misspelt, session, fleet) = (policy, policy, Policy())
    misspelt.tighten()
    session.isEnabled = true
    fleet.tighten(by: policy)
    fleet.shared = SharedBudgetBox(policy.sharedBudget)
    for asking in [misspelt, session, fleet] {
      #expect(asking.isEnabled)
      let throttle = Throttle(for: [try authenticator()], under: asking)
      #expect(throttle.responsesLeft(in: .full, at: UnixTime(1_700_000_000)) >= 20)
      #expect(throttle.wait(for: .full, digits: .six, at: UnixTime(1_700_000_000)) == 0)
    }
  }

  @Test func `believes the services that both believe`() {
    func names(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }
    let lists: [[String]?] = [nil, [], ["sshd"], ["sshd", "sshd-git"], ["sshd-git"]]
    for (a, b) in lists.flatMap({ a in lists.map { (a, $0) } }) {
      var (one, other) = (Policy(), Policy())
      (one.sshdServices, other.sshdServices) = (a.map(names), b.map(names))
      (one.localServices, other.localServices) = (names(a ?? ["sudo"]), names(b ?? ["sudo"]))
      let both = Self.together(one, other)
      for service in names(["sshd", "sshd-git", "sudo", "other"]) {
        let isBelieved = one.isSSHD(service: service) && other.isSSHD(service: service)
        #expect(both.isSSHD(service: service) == isBelieved, "\(a ?? []) \(b ?? [])")
        let isLocal = one.isLocal(service: service) && other.isLocal(service: service)
        #expect(both.isLocal(service: service) == isLocal)
      }
    }
  }

  @Test func `is one of any two of which each has what the other lacks`() {
    var random = Seeded(9)
    for _ in 0..<2_000 {
      let (one, other) = (random.policy(), random.policy())
      let both = Self.together(one, other)
      for key in PolicyKey.allCases {
        guard let values = Self.ranked(key), values.count < 6, key != .enrollment else { continue }
        #expect(both[key] == Self.together(other, one)[key], "\(key)")
      }
      for part in [one, other] {
        var again = Self.together(both, part)
        // A day means nothing at another level.
        if both.enrollment != .required { again.requiredFrom = both.requiredFrom }
        #expect(again == both)
      }
      #expect(both.isRefusedByRule == (one.isRefusedByRule || other.isRefusedByRule))
    }
  }
}
