import OneTimePassword
import SallyportCore
import TestSupport
import Testing

/// A year of an owner who logs in at a known place, and of somebody who guesses from there too.
private struct Year {
  enum Guesser {
    /// None.
    case nobody
    /// Types at random.
    case blind
    /// Knows every code that was accepted, and types what is a slip of the latest.
    case knowsUsed
    /// Sees each code before it is verified, and types a slip of it first.
    case seesLive
  }

  var authenticators = 1
  var isHOTP = false
  /// Seconds by which its clock is ahead; it gains two a day, within 200 steps. nil: no token.
  var token: Int64?
  var guesser = Guesser.blind
  /// With each authenticator in turn.
  var loginsADay = 4
  /// The owner mistypes one code in this number, by chance; 0: never.
  var slipsOneIn = 0
  /// For one login after the other.
  var policies = [Policy()]
  /// Seconds by which the clock jumps back, and as far forward a few logins later.
  var jump: Int64 = 0
  var days = 365

  struct Result {
    /// The chance that the guesses which were verified had.
    var luck = 0.0
    var verified = 0
    var refunds = 0
    /// How often the owner's right code was refused.
    var lockedOut = 0
    var logins = 0
    /// Seconds that the clock went forward, all told.
    var forward: Int64 = 0
    var mostRefundsADay = 0
  }

  func run(seed: UInt64) throws -> Result {
    var (random, result) = (Seeded(seed), Result())
    let keys = try (1...authenticators).map { one in
      try secret((0..<20).map { [one = UInt8(one)] in one &* 31 &+ UInt8($0) })
    }
    let list = try keys.enumerated().map { index, key in
      try authenticator(
        UInt64(index + 1), "a\(index)", parameters(isHOTP ? .hotp : .totp(period: 30)), secret: key,
        clockOffset: token.map { Int32($0) })
    }
    let enrollment = try enrollment(list)
    let generators = try keys.map {
      try CodeGenerator(secret: $0, algorithm: .sha1, digits: .six)
    }
    var state = LoginState(initialFor: enrollment)
    var (now, used) = (Int64(1_700_000_000), UInt32(0))
    var counters = [UInt64](repeating: 0, count: authenticators)
    var refundTimes: [Int64] = []

    func typed(_ code: UInt32, at time: Int64, _ policy: Policy) throws -> Decision {
      let decision = try decide(
        on: .code(code, .six), enrollment: enrollment, state: state, from: .local(own: true),
        through: nil, at: UnixTime(time), under: policy)
      state = decision.state
      return decision
    }

    for login in 0..<days * loginsADay {
      let step = Int64(86_400 / loginsADay)
      (now, result.forward) = (now + step, result.forward + step)
      if jump > 0, login % 7 == 3 { now -= jump }
      if jump > 0, login % 7 == 6 { (now, result.forward) = (now + jump, result.forward + jump) }
      let policy = policies[login % policies.count]
      let which = login % authenticators
      let ahead = (token ?? 0) + (token == nil ? 0 : 2 * Int64(login / loginsADay))
      let position = isHOTP ? counters[which] : UInt64((now + ahead) / 30)
      let live = try generators[which].code(at: position)
      let throttle = Throttle(for: enrollment, state, under: policy)
      var tries = guesser == .nobody ? 0 : 3
      // The last response is the owner's: without his login nothing is given back.
      while tries > 0, throttle.responsesLeft(in: state.known, at: UnixTime(now)) > 1 {
        tries -= 1
        let guess: UInt32
        switch guesser {
        case .seesLive: guess = slip(of: live, &random)
        case .knowsUsed: guess = slip(of: used, &random)
        case .blind, .nobody: guess = UInt32(random.number(0...999_999))
        }
        let decision = try typed(guess, at: now, policy)
        if case .wrongCode(let charge?) = decision.refusal {
          result.verified += 1
          result.luck += Double(charge.amount.units) / 1e12
        }
      }
      if slipsOneIn > 0, random.number(1...slipsOneIn) == 1 {
        _ = try typed(slip(of: live, &random), at: now, policy)
      }
      let before = state
      let decision = try typed(live, at: now + Int64(random.number(0...20)), policy)
      result.logins += 1
      if decision.proof != nil {
        (used, counters[which]) = (live, counters[which] + 1)
      } else if decision.refusal == .throttled {
        result.lockedOut += 1
      }
      if state.refunds != before.refunds, decision.proof != nil {
        result.refunds += 1
        refundTimes.append(state.refunds.last.seconds)
      }
    }
    for (index, time) in refundTimes.enumerated() {
      let day = refundTimes[index...].prefix { $0 - time < 86_400 && $0 >= time }.count
      result.mostRefundsADay = max(result.mostRefundsADay, day)
    }
    return result
  }

  private func slip(of code: UInt32, _ random: inout Seeded) -> UInt32 {
    let place = [UInt32(1), 10, 100, 1000, 10_000, 100_000][random.number(0...5)]
    let digit = code / place % 10
    return code - digit * place + (digit + UInt32(random.number(1...9))) % 10 * place
  }
}

@Suite struct `A year of slips` {
  private static let narrow = {
    var policy = Policy()
    policy.adjacentIntervals = 1
    return policy
  }()

  /// What a slip gives back is no guess that was free: its code must be accepted.
  // shows: slips
  @Test(arguments: [
    Year(), Year(authenticators: 8, policies: [narrow]), Year(isHOTP: true),
    Year(policies: [Policy(), narrow]), Year(guesser: .knowsUsed),
    Year(isHOTP: true, guesser: .knowsUsed), Year(jump: 40_000),
    Year(token: 5000), Year(token: -6000, guesser: .knowsUsed),
  ]) fileprivate func `gives a blind guesser, and who knows used codes, nothing to speak of`(
    year: Year
  ) throws {
    let result = try year.run(seed: 60)
    #expect(result.refunds <= 1)
    let forward = Double(result.forward) / 31_557_600
    #expect(result.luck <= 0.00022 + 0.005 * forward + Double(result.refunds) * 88e-6)
    // Nor is there little guessing to look at.
    #expect(result.luck > 0.0045 && result.verified > 200, "\(result)")
    if year.token != nil { #expect(result.lockedOut == 0) }
  }

  /// The figure of docs/decisions.md. Somebody who does so could type the code itself.
  // shows: slips
  @Test(arguments: [
    (Year(guesser: .seesLive), 0.01206), (Year(isHOTP: true, guesser: .seesLive), 0.01206),
    (Year(guesser: .seesLive, policies: [Policy(), narrow]), 0.01206),
    (Year(authenticators: 8, guesser: .seesLive, policies: [narrow]), 0.0264),
    (Year(guesser: .seesLive, jump: 40_000), 0.01206),
  ]) fileprivate func `gives three guesses a day to who sees each code before its use`(
    year: Year, more: Double
  ) throws {
    let result = try year.run(seed: 61)
    let forward = Double(result.forward) / 31_557_600
    #expect(result.luck <= 0.0052 * forward + 0.0003 + more * forward, "\(result)")
    #expect(Double(result.refunds) <= 3 * 365.25 * forward + 3)
    // A day of the clock is longer where it goes back in it.
    #expect(result.mostRefundsADay <= 3 || year.jump > 0)
    #expect(result.refunds > 300, "\(result)")
  }

  /// Two authenticators: 0.57 wrong codes a day. Without refunds he is locked out by the spring.
  @Test func `does not lock out an owner who mistypes one code in eight`() throws {
    let year = Year(authenticators: 2, guesser: .nobody, loginsADay: 6, slipsOneIn: 8)
    let result = try year.run(seed: 62)
    #expect(result.lockedOut == 0 && result.logins == 2190)
    #expect(result.refunds > 200)
  }
}
