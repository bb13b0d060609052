import OneTimePassword
import SallyportCore
import TestSupport
import Testing

/// Two services with policies of their own, and somebody who guesses in both for a year.
private struct TwoServices: CustomTestStringConvertible, Sendable {
  /// What a section of a policy file sets.
  struct Settings: Equatable, Sendable {
    var adjacent = 5
    var budget = "1 %"
    var isTOTPOff = false

    var text: String {
      "adjacent_intervals = \(adjacent)\nguess_budget = \(budget)\n"
        + (isTOTPOff ? "factor_totp = off\n" : "")
    }
    var units: Double { (Double(budget.dropLast(2)) ?? 0) * 1e10 }
  }

  /// In which of the two services the guesser tries next.
  enum Strategy: Int, CaseIterable {
    case first, second, firstThenSecond, secondThenFirst, fillsFirst, fillsSecond, changes
  }

  var authenticators = 1
  var digits = Digits.six
  /// One more of another kind and with as many digits, so that something counts in a service
  /// without TOTP.
  var hasHOTP = false
  var one = Settings()
  var two = Settings()

  var testDescription: String {
    "\(authenticators) of \(digits.rawValue) digits\(hasHOTP ? " and an HOTP" : ""): "
      + "\(one.text.split(separator: "\n")) \(two.text.split(separator: "\n"))"
  }

  /// That of the services in which a code of the enrollment counts.
  var budget: Double {
    let counts = [one, two].filter { hasHOTP || !$0.isTOTPOff }
    return counts.map(\.units).min() ?? 0
  }

  func enrollment() throws -> [Authenticator] {
    let key = try secret((0..<20).map { UInt8($0) })
    let all = try (1...authenticators).map {
      try authenticator(
        UInt64($0), "a\($0)", parameters(.totp(period: 30), .sha1, digits), secret: key)
    }
    guard hasHOTP else { return all }
    return all + [try authenticator(9, "token", parameters(.hotp, .sha1, digits), secret: key)]
  }

  /// What the policy file says of a login in one of them.
  func policy(in service: String) throws -> Policy {
    let text =
      "[rule one]\nmatch_service = one\n\(one.text)[rule two]\nmatch_service = two\n\(two.text)"
    let login = PolicyRequest(
      service: Array(service.utf8), user: Array("alice".utf8), isRemote: false, address: nil,
      parse: { _ in nil }, membership: { _ in .no })
    let file = PolicyFile(try secret(Array(text.utf8)), base: Policy(), login)
    #expect(file.problem == nil)
    return file.policy(Policy())
  }

  /// The chance of a year of guesses against one bucket, in units.
  func year(_ strategy: Strategy) throws -> Double {
    let all = try enrollment()
    let throttles = try ["one", "two"].map { Throttle(for: all, under: try policy(in: $0)) }
    var (bucket, luck) = (Bucket.full, 0.0)
    let start: Int64 = 1_700_000_000
    let steps: Int64 = 365
    for step in 0...steps {
      // The last moment of the year counts.
      let now = UnixTime(start + step * 31_557_600 / steps)
      for service in strategy.order(at: step) {
        let throttle = throttles[service]
        let cost = throttle.cost(of: digits).units
        guard !throttle.isThrottled(bucket, digits: digits, at: now) else { continue }
        // Where no code counts, a guess is worth nothing, and the bucket is drained all the same.
        let count = cost == 0 ? 1 : throttle.available(in: bucket, at: now).units / cost
        bucket = throttle.charge(bucket, digits: digits, at: now)
        // Each of the others is charged at the same moment.
        let spent = bucket.spent.units + (count - 1) * cost
        bucket = Bucket(spent: GuessProbability(units: spent), since: now)
        luck += Double(count * cost)
      }
    }
    return luck
  }

  static let grid: [TwoServices] = {
    let windows = [0, 1, 5, 10]
    let settings = windows.flatMap { adjacent in
      ["1 %", "0.1 %"].map { Settings(adjacent: adjacent, budget: $0) }
    }
    var pairs: [(Settings, Settings)] = []
    for one in settings { for two in settings where one != two { pairs.append((one, two)) } }
    for adjacent in windows {
      for budget in ["10 %", "0.1 %"] {
        pairs.append((Settings(adjacent: adjacent), Settings(budget: budget, isTOTPOff: true)))
      }
    }
    return pairs.flatMap { one, two in
      [1, 8].flatMap { count in
        Digits.allCases.flatMap { digits in
          (two.isTOTPOff ? [false, true] : [false]).map {
            TwoServices(
              authenticators: $0 ? count - count / 8 : count, digits: digits, hasHOTP: $0, one: one,
              two: two)
          }
        }
      }
    }
  }()
}

extension TwoServices.Strategy {
  /// The services that are tried at this step, one after the other.
  fileprivate func order(at step: Int64) -> [Int] {
    switch self {
    case .first: [0]
    case .second: [1]
    case .firstThenSecond: [0, 1]
    case .secondThenFirst: [1, 0]
    case .fillsFirst: step == 0 ? [0] : [1]
    case .fillsSecond: step == 0 ? [1] : [0]
    case .changes: step / 30 % 2 == 0 ? [0] : [1]
    }
  }
}

@Suite struct `A year of guesses in two services` {
  @Test func `is at most half the budget for each bucket, whatever the two policies`() throws {
    var worst = (share: 0.0, what: "")
    for services in TwoServices.grid {
      var best = 0.0
      for strategy in TwoServices.Strategy.allCases {
        best = max(best, try services.year(strategy))
      }
      let share = best / services.budget
      if share > worst.share { worst = (share, "\(services)") }
      // Five responses and a pace are left to the owner, too.
      let most = try ["one", "two"].map {
        try Throttle(for: services.enrollment(), under: services.policy(in: $0))
      }
      for throttle in most {
        let cost = throttle.cost(of: services.digits).units
        #expect(cost * 5 <= throttle.capacity.units, "\(services)")
        #expect(throttle.refillPerYear.units > 0)
      }
      #expect(most[0].capacity == most[1].capacity, "\(services)")
      #expect(most[0].refillPerYear == most[1].refillPerYear, "\(services)")
    }
    #expect(worst.share <= 0.5, "\(worst)")
    #expect(worst.share > 0.49, "\(worst)")
  }

  /// Guesses in the service whose budget is ten times the other's are spent there no faster.
  @Test func `is at most one per cent where another service without TOTP has ten`() throws {
    let services = TwoServices(
      one: .init(), two: .init(adjacent: 5, budget: "10 %", isTOTPOff: true))
    for strategy in TwoServices.Strategy.allCases {
      let luck = try services.year(strategy)
      #expect(luck <= 5e9, "\(strategy): \(luck / 1e10) %")
    }
  }
}

/// What the throttle goes by in a policy file, for alice, who is in the group `ops`; nothing is
/// known of the group `away`.
private func shared(_ text: String, service: String = "elsewhere", user: String? = "alice") throws
  -> (policy: Policy, lookUps: [String])
{
  var lookUps: [String] = []
  let login = PolicyRequest(
    service: Array(service.utf8), user: user.map { Array($0.utf8) }, isRemote: false, address: nil,
    parse: { _ in nil },
    membership: { group in
      lookUps.append(String(decoding: group, as: UTF8.self))
      return lookUps.last == "ops" ? .yes : lookUps.last == "away" ? .unknown : .no
    })
  let file = PolicyFile(try secret(Array(text.utf8)), base: Policy(), login)
  #expect(file.problem == nil, "\(text)")
  return (file.policy(Policy()), lookUps)
}

@Suite struct `The budget that all services share` {
  /// The budgets of a user with a TOTP and with an HOTP, in hundredths of a per cent; the first
  /// lines of each text are those of `[default]`.
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let text: String
    let totp, hotp: UInt64
    var isRemote = false

    init(_ what: String, _ totp: UInt64, _ hotp: UInt64, _ text: String) {
      (testDescription, self.totp, self.hotp) = (what, totp, hotp)
      self.text = text.split(separator: ";").map { $0.drop { $0 == " " } }.joined(separator: "\n")
    }
  }

  static let rows = [
    Row("nothing set", 100, 100, "[default]"),
    Row("one section", 10, 10, "[default]; guess_budget = 0.1 %"),
    Row(
      "a smaller one in a service", 10, 10,
      "[default]; [rule a]; match_service = sudo; guess_budget = 0.1 %"),
    Row(
      "a greater one in a service", 100, 100,
      "[default]; [rule a]; match_service = sudo; guess_budget = 10 %"),
    Row(
      "a smaller one for an origin", 10, 10,
      "[default]; [rule a]; match_origin = network; guess_budget = 0.1 %"),
    Row(
      "a smaller one for somebody else", 100, 100,
      "[default]; [rule a]; match_user = bob; guess_budget = 0.1 %"),
    Row(
      "a smaller one for another group, in a service", 100, 100,
      "[default]; [rule a]; match_service = sudo; match_group = dev; guess_budget = 0.1 %"),
    Row(
      "a smaller one for a group that cannot be looked up, in a service", 10, 10,
      "[default]; [rule a]; match_service = sudo; guess_budget = 0.1 %; match_group = away"),
    Row(
      "a greater one for the user everywhere", 500, 500,
      "[default]; guess_budget = 0.1 %; [rule a]; match_user = alice; guess_budget = 5 %"),
    Row(
      "a greater one for the group everywhere, before a smaller one in a service", 500, 500,
      "[default]; [rule a]; match_group = ops; guess_budget = 5 %;"
        + "[rule b]; match_service = sudo; guess_budget = 0.1 %"),
    Row(
      "a greater one for the group everywhere, after a smaller one in a service", 10, 10,
      "[default]; [rule b]; match_service = sudo; guess_budget = 0.1 %;"
        + "[rule a]; match_group = ops; guess_budget = 5 %"),
    Row(
      "a greater one for a group that cannot be looked up", 100, 100,
      "[default]; [rule a]; match_group = away; guess_budget = 5 %"),
    Row(
      "a smaller one where TOTP is off", 100, 10,
      "[default]; [rule a]; match_service = sudo; factor_totp = off; guess_budget = 0.1 %"),
    Row(
      "a smaller one where TOTP is off, but an earlier rule may have it on", 10, 10,
      "[default]; [rule b]; match_origin = network; factor_totp = mandatory;"
        + "[rule a]; match_service = sudo; factor_totp = off; guess_budget = 0.1 %"),
    Row(
      "a smaller one where TOTP is off, and a later rule has it on", 100, 10,
      "[default]; [rule a]; match_service = sudo; factor_totp = off; guess_budget = 0.1 %;"
        + "[rule b]; match_origin = network; factor_totp = mandatory"),
    Row(
      "a smaller one by default, where TOTP is off by default and nowhere on", 0, 10,
      "[default]; factor_totp = off; guess_budget = 0.1 %"),
    Row(
      "a smaller one by default, where TOTP is off by default and a rule has it on", 10, 10,
      "[default]; factor_totp = off; guess_budget = 0.1 %; [rule a]; match_service = sudo;"
        + "factor_totp = on"),
    Row(
      "a smaller one in a rule, where TOTP is off for the user", 0, 10,
      "[default]; [rule c]; match_user = alice; factor_totp = off;"
        + "[rule a]; match_service = sudo; guess_budget = 0.1 %"),
    Row(
      "a smaller one where the module is off", 100, 100,
      "[default]; [rule a]; match_service = sudo; state = disabled; guess_budget = 0.1 %"),
    Row(
      "a smaller one by default, where the module is off by default", 100, 100,
      "[default]; state = disabled; guess_budget = 0.1 %;"
        + "[rule a]; match_user = alice; state = enabled; guess_budget = 1 %"),
  ]

  @Test(arguments: rows) func `is the least that can match where a code counts`(row: Row) throws {
    for service in ["sshd", "sudo", "elsewhere"] {
      let policy = try shared(row.text, service: service).policy
      for (type, wanted) in [(AuthenticatorType.totp(period: 30), row.totp), (.hotp, row.hotp)] {
        // Nothing counts anywhere.
        if wanted == 0 { continue }
        let throttle = Throttle(for: [try authenticator(1, "one", parameters(type))], under: policy)
        let year = throttle.capacity.units + throttle.refillPerYear.units
        #expect(year == wanted * 50_000_000, "\(service)")
      }
    }
  }

  @Test func `holds twenty of the dearest wrong codes of all services`() throws {
    let text =
      "[default]\n[rule a]\nmatch_service = sudo\nadjacent_intervals = 10\nlook_ahead = 99\n"
    let totp = [try authenticator()]
    let hotp = [try authenticator(1, "token", parameters(.hotp))]
    for service in ["sudo", "sshd"] {
      let policy = try shared(text, service: service).policy
      #expect(Throttle(for: totp, under: policy).capacity.units == 20 * 21_000_000)
      #expect(Throttle(for: hotp, under: policy).capacity.units == 20 * 100_000_000)
    }
    let sshd = Throttle(for: totp, under: try shared(text, service: "sshd").policy)
    #expect(sshd.cost(of: .six).units == 11_000_000 && sshd.adjacentIntervals == 5)
  }

  /// The budget of the one narrows the windows of the other, so that five responses fit.
  @Test func `narrows every service to the least budget`() throws {
    let text = "[default]\n[rule a]\nmatch_service = sudo\nguess_budget = 0.01 %\n"
    for service in ["sudo", "sshd"] {
      let throttle = Throttle(
        for: [try authenticator()], under: try shared(text, service: service).policy)
      #expect(throttle.adjacentIntervals == 2)
      #expect(throttle.responsesLeft(in: .full, at: UnixTime(1_700_000_000)) == 5)
    }
  }

  @Test func `asks for a group only where the rule can change it`() throws {
    let text = "[default]\n[rule a]\nmatch_service = sudo\nmatch_group = dev\nhints = yes\n"
    #expect(try shared(text).lookUps == [])
    #expect(try shared(text + "guess_budget = 2 %\n").lookUps == ["dev"])
    #expect(try shared(text + "guess_budget = 2 %\n", service: "sudo").lookUps == ["dev"])
    #expect(try shared(text + "match_user = bob\nguess_budget = 2 %\n").lookUps == [])
  }

  /// A section that accepts no code of an app has a smaller budget.
  @Test func `is said as its least budget, and kept of each kind where the file is the same`()
    throws
  {
    let text =
      "[default]\n[rule a]\nmatch_service = sudo\nfactor_totp = off\nguess_budget = 0.1 %\n"
    let policy = try shared(text).policy
    #expect(policy.guessBudget == Policy().guessBudget)
    let request = LoginQuestion(
      name: [97], service: [98], origin: .local, policy: policy, millisecondsLeft: 1, verb: .level)
    let frame = try #require(request.encoded())
    let stated = try #require(LoginQuestion.decode(frame)).policy
    #expect(stated.guessBudget.units == 1_000_000_000)
    var found = policy.sharedBudget
    found.include(stated: stated)
    #expect(SharedBudgetBox(found) == SharedBudgetBox(policy.sharedBudget))
    // Of another file, whose least budget is another one.
    for units: UInt64 in [500_000_000, 5_000_000_000] {
      var other = Policy()
      other.guessBudget = GuessProbability(units: units)
      var found = policy.sharedBudget
      found.include(stated: other)
      var wanted = policy.sharedBudget
      wanted.include(SharedBudget(of: other))
      #expect(SharedBudgetBox(found) == SharedBudgetBox(wanted))
      #expect(SharedBudgetBox(found) != SharedBudgetBox(policy.sharedBudget))
    }
  }

  /// Of a line with a file of its own, in a service where the usual file has that kind off.
  // decisive
  @Test(arguments: [UInt64(1_000_000_000), 10_000_000_000, 50_000_000_000])
  func `allows a kind that only the stated policy accepts`(budget: UInt64) throws {
    let own = try shared("[default]\nfactor_hotp = off\n").policy
    var stated = Policy()
    stated.guessBudget = GuessProbability(units: budget)
    var found = own.sharedBudget
    found.include(stated: stated)
    stated.shared = SharedBudgetBox(found)
    let token = try authenticator(9, "token", parameters(.hotp, .sha1, .six))
    #expect(Throttle(for: [token], under: stated).capacity > .none)
  }

  @Test func `changes nothing where there is one policy`() throws {
    for setting in Setting.all {
      let policy = setting.policy
      var stated = policy
      stated.shared = SharedBudgetBox(SharedBudget(of: policy))
      let all = try setting.list()
      #expect(Throttle(for: all, under: policy) == Throttle(for: all, under: stated))
    }
  }

  /// What was spent under wider policies of before is not forgotten, and no year gives more.
  // decisive
  @Test(arguments: [UInt64(0), 219_000_000, 300_000_000, 5_000_000_000, 100_000_000_000, .max])
  func `takes over what was spent before, never for the guesser`(spent: UInt64) throws {
    let text = "[default]\n[rule a]\nmatch_service = sudo\nguess_budget = 10 %\n"
    let throttle = Throttle(for: [try authenticator()], under: try shared(text).policy)
    let start: Int64 = 1_700_000_000
    var bucket = Bucket(spent: GuessProbability(units: spent), since: UnixTime(start))
    let before = throttle.available(in: bucket, at: UnixTime(start)).units
    #expect(before == throttle.capacity.units - min(spent, throttle.capacity.units))
    var verified: UInt64 = 0
    for hour in 0..<Int64(8766) {
      let now = UnixTime(start + hour * 3600)
      guard !throttle.isThrottled(bucket, digits: .six, at: now) else { continue }
      bucket = throttle.charge(bucket, digits: .six, at: now)
      verified += 1
    }
    #expect(verified * 11_000_000 <= before + throttle.refillPerYear.units)
    // Nor is the owner kept out.
    #expect(verified > 300)
  }
}
