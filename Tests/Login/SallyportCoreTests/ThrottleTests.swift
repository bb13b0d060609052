import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

/// One combination of what the throttle's arithmetic depends on, and that arithmetic done here once
/// more: in chances, not in units, and not by the code under test.
struct Setting: CustomTestStringConvertible, Sendable {
  var authenticators = 1
  var isHOTP = false
  var digits = Digits.six
  /// Adjacent intervals, or the look-ahead.
  var window: UInt8 = 5
  var budget = 0.01

  static let secondsPerYear = 365.25 * 86400

  var testDescription: String {
    "\(authenticators) \(isHOTP ? "HOTP" : "TOTP"), \(digits.rawValue) digits, window \(window)"
  }
  var policy: Policy {
    var policy = Policy()
    if isHOTP { policy.lookAhead = window } else { policy.adjacentIntervals = window }
    policy.guessBudget = GuessProbability(units: UInt64(budget * 1e12))
    return policy
  }
  func throttle() throws -> Throttle { Throttle(for: try list(), under: policy) }

  func list() throws -> [Authenticator] {
    try (1...authenticators).map {
      try authenticator(
        UInt64($0), "a\($0)", parameters(isHOTP ? .hotp : .totp(period: 30), .sha1, digits),
        secret: secret((0..<20).map { [name = UInt8($0)] byte in name &* 7 &+ UInt8(byte) }))
    }
  }

  /// The window after narrowing: five wrong responses cost at most a quarter of the budget.
  var narrowed: Int {
    var window = Int(window)
    while window > 0, 5 * chance(window) > budget / 4 { window -= 1 }
    return window
  }
  /// The chance that one response is right by luck.
  func chance(_ window: Int) -> Double {
    var modulus = 1.0
    for _ in 0..<digits.rawValue { modulus *= 10 }
    return Double(authenticators * (isHOTP ? window + 1 : 2 * window + 1)) / modulus
  }
  var cost: Double { chance(narrowed) }
  var held: Double { max(min(20 * cost, budget / 4), 5 * cost) }
  var responsesAtOnce: Int { Int(held / cost + 1e-6) }
  /// Seconds between two wrong responses of one bucket once the first filling is gone.
  var pace: Double { cost / (budget / 2 - held) * Setting.secondsPerYear }

  static let all: [Setting] = [1, 2, 8].flatMap { count in
    [Digits.six, .eight].flatMap { digits in
      [UInt8(0), 1, 5, 10].map { Setting(authenticators: count, digits: digits, window: $0) }
        + [UInt8(0), 1, 5, 10, 100].map {
          Setting(authenticators: count, isHOTP: true, digits: digits, window: $0)
        }
    }
  }
}

@Suite struct `The throttle` {
  static let start = UnixTime(1_700_000_000)

  private func decision(_ setting: Setting, _ state: LoginState, _ now: UnixTime, typed: String)
    throws -> Decision
  {
    let enrollment = try enrollment(
      setting.list(), backupCodes: backupCodes(["7KMF2X9QD4TW0HZA"]))
    return try decide(
      on: Response.classify(secret(typed), for: enrollment), enrollment: enrollment, state: state,
      from: .unknown, through: nil, at: now, under: setting.policy)
  }

  @Test(arguments: [
    (Setting(), 20, 20.2), (Setting(authenticators: 2), 20, 42.3), (Setting(window: 1), 20, 5.3),
    (Setting(digits: .eight), 20, 0.193), (Setting(isHOTP: true, window: 10), 20, 20.2),
    (Setting(window: 0), 20, 1.76), (Setting(authenticators: 8, window: 10), 14, 589.1),
  ]) func `lets a number of wrong codes through at once and then keeps its pace`(
    setting: Setting, atOnce: Int, hours: Double
  ) throws {
    #expect(setting.responsesAtOnce == atOnce)
    #expect(abs(setting.pace / 3600 - hours) / hours < 0.005, "\(setting.pace / 3600)")
    let wrong = setting.digits == .six ? "000000" : "00000000"
    var (state, now) = (LoginState(enrollmentID: 0xe0e0), Self.start)
    for _ in 1...atOnce {
      let one = try decision(setting, state, now, typed: wrong)
      #expect(one.isWrongCode)
      state = one.state
    }
    #expect(try decision(setting, state, now, typed: wrong).refusal == .throttled)
    // What did not fill a whole response at first shortens the first wait.
    let rest = setting.held - Double(atOnce) * setting.cost
    var due = Double(now.seconds) + setting.pace * (1 - rest / setting.cost)
    for _ in 1...5 {
      let early = try decision(setting, state, UnixTime(Int64(due) - 2), typed: wrong)
      #expect(early.refusal == .throttled)
      now = UnixTime(Int64(due) + 2)
      let verified = try decision(setting, state, now, typed: wrong)
      #expect(verified.isWrongCode)
      state = verified.state
      // It may be two seconds late each time: those count towards the next.
      due += setting.pace
    }
  }

  /// From known and from other origins at once, each as fast as it may.
  // shows: guesses
  @Test(arguments: Setting.all)
  func `gives a year of guessing at most the budget`(setting: Setting) throws {
    let throttle = try setting.throttle()
    let effective = setting.isHOTP ? throttle.lookAhead : throttle.adjacentIntervals
    #expect(Int(effective) == setting.narrowed)
    let verified = 2 * guesses(throttle, setting.digits, until: Self.start.seconds + 31_557_600)
    let chance = Double(verified) * setting.chance(Int(effective))
    #expect(chance <= 0.01)
    // Nor is it stricter than it says.
    #expect(chance > 0.0099 - 2 * setting.cost, "\(verified) guesses")
  }

  /// From both origins at once, and each time that one may not guess it is lent what the other has.
  // decisive
  // shows: climb-unlock
  @Test(arguments: Setting.all.filter { $0.digits == .six })
  func `gives a year of guessing no more by lending from one bucket to the other`(
    setting: Setting
  ) throws {
    let throttle = try setting.throttle()
    var (buckets, now) = ([Bucket.full, .full], Self.start)
    var (verified, lent) = (0, UInt64(0))
    let end = Self.start.seconds + 31_557_600
    while now.seconds < end {
      for index in [0, 1] {
        while !throttle.isThrottled(buckets[index], digits: setting.digits, at: now) {
          buckets[index] = throttle.charge(buckets[index], digits: setting.digits, at: now)
          verified += 1
        }
        var (giver, taker) = (buckets[1 - index], buckets[index])
        lent += throttle.lend(5, from: &giver, to: &taker, at: now)
        (buckets[1 - index], buckets[index]) = (giver, taker)
      }
      // Not longer than one bucket takes for a guess, that the other may be lent it.
      now = UnixTime(now.seconds + max(Int64(setting.pace / 2), 60))
    }
    #expect(lent > 0)
    #expect(Double(verified) * setting.chance(setting.narrowed) <= 0.01)
  }

  @Test func `lends what a bucket has, five responses at most, and makes nothing`() throws {
    let throttle = try Setting().throttle()
    let spent = Bucket(spent: throttle.capacity, since: Self.start)
    for (before, wanted) in [(Bucket.full, UInt64(5)), (spent, 0)] {
      var (giver, taker) = (before, spent)
      #expect(throttle.lend(5, from: &giver, to: &taker, at: Self.start) == wanted)
      #expect(throttle.responsesLeft(in: taker, at: Self.start) == wanted)
      let left = throttle.responsesLeft(in: before, at: Self.start)
      #expect(throttle.responsesLeft(in: giver, at: Self.start) == left - wanted)
      // Back again.
      _ = throttle.lend(5, from: &taker, to: &giver, at: Self.start)
      #expect(throttle.responsesLeft(in: taker, at: Self.start) == 0)
      #expect(giver.spent == before.spent)
    }
    // Nothing that was not spent.
    var (giver, taker) = (Bucket.full, Bucket.full)
    #expect(throttle.lend(5, from: &giver, to: &taker, at: Self.start) == 0)
  }

  /// However many are left; both buckets, each as fast as it may.
  @Test(arguments: [1, 5, 10, 32], [Digits.six, .eight])
  func `gives a year of guessing at scratch codes at most the budget`(
    scratchCodes: Int, digits: Digits
  ) throws {
    let throttle = Throttle(
      for: try Setting(digits: digits).list(), scratchCodes: scratchCodes, under: Policy())
    let verified = 2 * guesses(throttle, .eight, until: Self.start.seconds + 31_557_600)
    let codes = digits == .eight ? 11e-8 : 0
    let chance = Double(verified) * (codes + Double(scratchCodes) / 9e7)
    #expect(chance <= 0.01)
    #expect(chance > 0.0099, "\(verified) guesses")
    #expect(throttle.adjacentIntervals == 5)
  }

  private func guesses(_ throttle: Throttle, _ digits: Digits, until end: Int64) -> Int {
    var (bucket, now, verified) = (Bucket.full, Self.start, 0)
    while now.seconds < end {
      guard let wait = throttle.wait(for: bucket, digits: digits, at: now) else { return verified }
      if wait > 0 {
        now = UnixTime(now.seconds + Int64(wait))
        continue
      }
      if throttle.isThrottled(bucket, digits: digits, at: now) { return -1 }
      bucket = throttle.charge(bucket, digits: digits, at: now)
      verified += 1
    }
    return verified
  }

  /// The whole decision, a login every hour of a year; the backup code is tried on a copy.
  // shows: owner-throttled
  @Test func `leaves known places and backup codes alone for a year of guesses from elsewhere`()
    throws
  {
    let setting = Setting()
    var state = LoginState(enrollmentID: 0xe0e0)
    var verified = 0
    for hour in 0..<Int64(8766) {
      let now = UnixTime(Self.start.seconds + hour * 3600)
      for _ in 0..<(hour == 0 ? 25 : 1) {
        let one = try decision(setting, state, now, typed: "000000")
        if one.isWrongCode { verified += 1 }
        state = one.state
      }
      #expect(state.known == Bucket.full)
      guard hour % 100 == 0 else { continue }
      let backup = try decision(setting, state, now, typed: "7KMF-2X9Q-D4TW-0HZA")
      #expect(backup.proof == .backupCode(left: 0))
    }
    #expect((400...454).contains(verified), "\(verified)")
    #expect(Double(verified) * setting.cost <= 0.005)
  }

  @Test(arguments: [
    (Setting(authenticators: 8, window: 5, budget: 0.0001), 0),
    (Setting(authenticators: 8, window: 0, budget: 0.0001), 0),
    (Setting(authenticators: 8, isHOTP: true, window: 100), 61),
    (Setting(authenticators: 8, window: 10), 10),
    (Setting(authenticators: 1, window: 10, budget: 0.0001), 2),
    (Setting(authenticators: 8, digits: .eight, window: 10, budget: 0.0001), 10),
  ]) func `narrows what is accepted until five wrong responses fit`(setting: Setting, window: Int)
    throws
  {
    let throttle = try setting.throttle()
    #expect(setting.narrowed == window)
    #expect(Int(setting.isHOTP ? throttle.lookAhead : throttle.adjacentIntervals) == window)
    let left = throttle.responsesLeft(in: .full, at: Self.start)
    #expect(left >= 5)
    #expect(throttle.wait(for: .full, digits: setting.digits, at: Self.start) == 0)
    let empty = Bucket(spent: throttle.capacity, since: Self.start)
    let wait = try #require(throttle.wait(for: empty, digits: setting.digits, at: Self.start))
    #expect(wait < 31_557_600)
  }

  // decisive
  @Test func `never traps and never gives more than it has, whatever is stored`() throws {
    var random = Seeded(1)
    for _ in 0..<20_000 {
      let setting = random.pick(Setting.all)
      var policy = setting.policy
      policy.guessBudget = GuessProbability(units: random.number64())
      (policy.adjacentIntervals, policy.lookAhead) = (random.byte(), random.byte())
      let throttle = Throttle(for: try setting.list(), under: policy)
      let bucket = Bucket(spent: GuessProbability(units: random.number64()), since: random.time())
      let now = random.time()
      #expect(throttle.capacity <= GuessProbability(units: 50_000_000_000))
      #expect(throttle.available(in: bucket, at: now) <= throttle.capacity)
      for digits in Digits.allCases {
        let charged = throttle.charge(bucket, digits: digits, at: now)
        #expect(charged.spent <= GuessProbability.budgets.upperBound && charged.since == now)
        #expect(throttle.available(in: charged, at: now) <= throttle.available(in: bucket, at: now))
        let wait = throttle.wait(for: bucket, digits: digits, at: now)
        #expect((wait == 0) == !throttle.isThrottled(bucket, digits: digits, at: now))
      }
    }
  }

  @Test func `says how long to wait, to the second`() throws {
    let (throttle, now) = (try Setting().throttle(), Self.start)
    var random = Seeded(2)
    for _ in 0..<1000 {
      let spent = UInt64(random.number(209_000_001...220_000_000))
      let bucket = Bucket(spent: GuessProbability(units: spent), since: now)
      let wait = try #require(throttle.wait(for: bucket, digits: .six, at: now))
      let then = UnixTime(now.seconds + Int64(wait))
      #expect(!throttle.isThrottled(bucket, digits: .six, at: then))
      #expect(throttle.isThrottled(bucket, digits: .six, at: UnixTime(then.seconds - 2)))
    }
  }

  /// The clock may also go back: what is verified never exceeds the first filling and what the
  /// forward moves of the clock refill.
  @Test func `gives no credit for a clock set back`() throws {
    let (throttle, cost) = (try Setting().throttle(), 11_000_000.0)
    var random = Seeded(3)
    var (bucket, now, verified, forward) = (Bucket.full, Self.start, 0, 0)
    for _ in 0..<20_000 {
      let move = random.number(-50_000...50_000)
      (now, forward) = (UnixTime(now.seconds + Int64(move)), forward + max(move, 0))
      bucket.distrustFuture(now)
      if !throttle.isThrottled(bucket, digits: .six, at: now) {
        bucket = throttle.charge(bucket, digits: .six, at: now)
        verified += 1
      }
      let refilled = Double(throttle.refillPerYear.units) * Double(forward) / 31_557_600
      #expect(Double(verified) * cost <= Double(throttle.capacity.units) + refilled)
    }
    #expect(verified > 1000)
  }

  @Test func `verifies nothing of a length that no authenticator has, at no cost`() throws {
    let throttle = try Setting().throttle()
    #expect(throttle.cost(of: .eight) == .none)
    #expect(throttle.cost(of: .six) == GuessProbability(units: 11_000_000))
    let nobody = Throttle(for: [], under: Policy())
    #expect(nobody.capacity == .none)
    #expect(nobody.responsesLeft(in: .full, at: Self.start) == 0)
  }
}

extension Seeded {
  mutating func time() -> UnixTime {
    UnixTime(pick([0, -1, 1_700_000_000, .min, .max, Int64(bitPattern: next())]))
  }
}

@Suite struct `Elapsed time` {
  // decisive
  @Test(arguments: [
    (Int64(0), Int64(0), UInt64(0)), (100, 40, 60), (40, 100, 0), (.max, 0, UInt64(Int64.max)),
    (.max, .min, UInt64(Int64.max)), (.min, .max, 0), (0, .min, UInt64(Int64.max)), (.min, .min, 0),
    (-1, .min, UInt64(Int64.max)), (1, .min, UInt64(Int64.max)),
  ]) func `is never negative and never traps`(now: Int64, earlier: Int64, wanted: UInt64) {
    #expect(UnixTime(now).elapsed(since: UnixTime(earlier)) == wanted)
  }
}

@Suite struct `The table of paces in docs/decisions.md` {
  static func rows() throws -> [[String]] {
    try textOfSources("docs/decisions.md").split(separator: "\n").map(String.init)
      .filter { $0.hasPrefix("| TOTP |") || $0.hasPrefix("| HOTP |") }
      .map { $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
  }

  @Test func `has common settings`() throws {
    #expect(try Self.rows().count > 20)
  }

  @Test(arguments: try rows()) func `is what the throttle does`(row: [String]) throws {
    let percent = try #require(Double(row[4].dropLast(2)))
    let setting = Setting(
      authenticators: try value(row[1]), isHOTP: row[0] == "HOTP",
      digits: try #require(Digits(rawValue: value(row[2]))), window: try value(row[3]),
      budget: percent / 100)
    let (throttle, digits) = (try setting.throttle(), setting.digits)
    let window = Int(setting.isHOTP ? throttle.lookAhead : throttle.adjacentIntervals)
    #expect(row[5] == (window == Int(setting.window) ? "–" : "\(window)"))
    let now = UnixTime(1_700_000_000)
    #expect(throttle.responsesLeft(in: .full, at: now) == UInt64(row[6]))
    let empty = Bucket(spent: throttle.capacity, since: now)
    let wait = try #require(throttle.wait(for: empty, digits: digits, at: now))
    #expect(Self.text(Double(wait)) == row[7])
    let year = (throttle.capacity.units + throttle.refillPerYear.units)
    let verified = year / throttle.cost(of: digits).units
    #expect(verified == UInt64(row[8]))
    let chance = 2 * Double(verified) * setting.chance(window)
    #expect(String(format: "%.4f %%", chance * 100) == row[9])
    #expect(chance <= setting.budget)
  }

  private static func text(_ seconds: Double) -> String {
    if seconds >= 3 * 86400 { return String(format: "%.1f days", seconds / 86400) }
    if seconds >= 3600 { return String(format: "%.1f h", seconds / 3600) }
    return String(format: "%.1f min", seconds / 60)
  }
}
