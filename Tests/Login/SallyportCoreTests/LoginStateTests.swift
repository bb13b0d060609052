import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `The login state` {
  private func state(_ ids: [UInt64], set: UInt64? = nil) -> LoginState {
    LoginState(
      enrollmentID: 0xe0e0,
      authenticators: ids.map { AuthenticatorState(id: $0, lastAccepted: 100 + $0, drift: 2) },
      backupCodes: set.map { BackupCodeState(setID: $0, used: 0b11) })
  }

  private func enrollment(_ ids: [UInt64], set: UInt64? = nil) throws -> Enrollment {
    try SallyportCoreTests.enrollment(
      ids.map { try authenticator($0, "a\($0)", last: 7) },
      backupCodes: set.map { try backupCodes(["7KMF2X9QD4TW0HZA"], id: $0) })
  }

  // shows: one-use
  @Test(arguments: [
    ([UInt64(1), 2], [UInt64(1), 2], [UInt64(101), 102]),
    ([1, 2], [1], [101, 7]), ([1, 2], [2], [7, 102]), ([1, 2], [], [7, 7]),
    ([1, 2], [2, 1], [101, 102]), ([2], [1, 2, 3], [102]), ([1], [2, 3], [7]),
    ([1, 2], [1, 1, 2], [101, 102]),
  ]) func `has the initial values of an id it lacks and drops one that is not enrolled`(
    enrolled: [UInt64], stored: [UInt64], last: [UInt64]
  ) throws {
    var state = state(stored)
    state.reconcile(with: try enrollment(enrolled))
    #expect(state.authenticators.map(\.id) == enrolled)
    #expect(state.authenticators.map(\.lastAccepted) == last)
  }

  @Test(arguments: [
    (UInt64?.some(5), UInt64?.some(5), UInt64?.some(0b11)), (5, 6, 0), (5, nil, 0), (nil, 5, nil),
    (nil, nil, nil),
  ]) func `knows used backup codes of the enrolled set alone`(
    enrolled: UInt64?, stored: UInt64?, used: UInt64?
  ) throws {
    var state = state([1], set: stored)
    state.reconcile(with: try enrollment([1], set: enrolled))
    #expect(state.backupCodes?.used == used)
    #expect(state.backupCodes?.setID == enrolled)
  }

  @Test func `of somebody just enrolled has the initial values and full buckets`() throws {
    let state = LoginState(initialFor: try enrollment([1, 2], set: 5))
    #expect(state.enrollmentID == 0xe0e0)
    #expect(state.authenticators.map(\.lastAccepted) == [7, 7])
    #expect(state.backupCodes == BackupCodeState(setID: 5, used: 0))
    #expect(state.known == .full && state.other == .full && state.origins.isEmpty)
  }

  /// The code typed while enrolling is not good for a login.
  @Test func `of somebody just enrolled refuses the code that confirmed it`() throws {
    let enrollment = try SallyportCoreTests.enrollment([authenticator(last: 5)])
    let decision = try decide(
      on: Response.classify(secret("254676"), for: enrollment), enrollment: enrollment,
      state: LoginState(initialFor: enrollment), from: .unknown, through: nil, at: UnixTime(150),
      under: Policy())
    // Step 5 ends then.
    #expect(decision.refusal == .replayed(until: UnixTime(180)))
  }

  @Test func `notes when, where and through what a code was accepted, of what matched alone`()
    throws
  {
    let enrollment = try SallyportCoreTests.enrollment([
      authenticator(1, "phone"), authenticator(2, "tablet", secret: secret("abcdefghijabcdefghij")),
    ])
    let decision = try decide(
      on: Response.classify(secret("254676"), for: enrollment), enrollment: enrollment,
      state: LoginState(initialFor: enrollment), from: .local(own: true), through: label("sudo"),
      at: UnixTime(150), under: Policy())
    let use = Use(time: UnixTime(150), origin: .local(own: true), service: try label("sudo"))
    #expect(decision.state.authenticators.map(\.lastUse) == [use, nil])
  }

  @Test func `with more origins than are kept loses the oldest at the next login`() throws {
    let enrollment = try SallyportCoreTests.enrollment([authenticator()])
    let state = LoginState(
      enrollmentID: 0xe0e0, authenticators: [AuthenticatorState(id: 1, lastAccepted: nil)],
      origins: (1...32).map {
        KnownOrigin(origin: NetworkAddress(high: $0, low: 0), lastSeen: UnixTime(0))
      })
    let generator = try CodeGenerator(
      secret: enrollment.authenticators[0].secret, algorithm: .sha1, digits: .six)
    let cases: [(UInt64, [UInt64])] = [(1000, [99] + (1...9)), (1100, Array(1...32))]
    for (step, origins) in cases {
      let decision = try decide(
        on: .code(generator.code(at: step), .six), enrollment: enrollment, state: state,
        from: .address(NetworkAddress(high: 99, low: 0)), through: nil, at: UnixTime(30 * 1000),
        under: Policy())
      #expect((decision.refusal == nil) == (step == 1000))
      #expect(decision.state.origins.map(\.origin.high) == origins)
    }
  }

  // decisive
  // shows: clock-jump
  @Test func `never believes a time of the future`() {
    let (now, then) = (UnixTime(1000), UnixTime(1001))
    let slip = Slip(authenticator: 1, position: 5, time: then, amount: GuessProbability(units: 5))
    var state = LoginState(
      enrollmentID: 1, known: Bucket(spent: GuessProbability(units: 5), since: then),
      other: Bucket(spent: GuessProbability(units: 6), since: UnixTime(999)),
      slip: slip, refunds: Refunds(last: then, second: then, third: UnixTime(999)),
      origins: [then, now].map {
        KnownOrigin(origin: NetworkAddress(high: UInt64($0.seconds), low: 0), lastSeen: $0)
      })
    state.distrustFuture(now)
    #expect(state.known == Bucket(spent: GuessProbability(units: 5), since: now))
    #expect(state.other == Bucket(spent: GuessProbability(units: 6), since: UnixTime(999)))
    #expect(state.origins.count == 2)
    #expect(state.slip == nil)
    #expect(state.refunds == Refunds(last: now, second: now, third: UnixTime(999)))
    state.slip = slip
    (state.known, state.other) = (
      state.other, Bucket(spent: GuessProbability(units: 5), since: then)
    )
    state.refunds = Refunds(last: then, second: then, third: then)
    state.distrustFuture(now)
    #expect(state.known == Bucket(spent: GuessProbability(units: 6), since: UnixTime(999)))
    #expect(state.other == Bucket(spent: GuessProbability(units: 5), since: now))
    #expect(state.refunds == Refunds(last: now, second: now, third: now))
    state.slip = Slip(authenticator: 1, position: 5, time: now, amount: GuessProbability(units: 5))
    state.distrustFuture(now)
    #expect(state.slip != nil)
  }

  /// Whatever was accepted up to now, by a clock however fast and under any policy.
  // shows: lost-record
  @Test func `takes every code until now for used where a later state may be lost`() throws {
    let minute = try #require(
      CodeParameters(type: .totp(period: 60), algorithm: .sha1, digits: .six))
    let counting = try #require(CodeParameters(type: .hotp, algorithm: .sha1, digits: .eight))
    let enrollment = try SallyportCoreTests.enrollment([
      authenticator(1, last: 7), authenticator(2, "minute", minute, last: 7),
      authenticator(3, "token", counting, last: 7), authenticator(4, "fresh", counting),
      authenticator(5, "worn", counting, last: UInt64.max), authenticator(6, "ahead", last: 7),
    ])
    let now = UnixTime(30 * 1000 + 29)
    var state = LoginState(
      enrollmentID: 0xe0e0, authenticators: [AuthenticatorState(id: 6, lastAccepted: 2000)])
    let there = NumericAddress(high: 0x2001_0db8 << 32, low: 0)
    state.grant(there, service: Label("sshd"), at: now)
    try #require(state.remembered.count == 1)
    state.slip = Slip(
      authenticator: 1, position: 990, time: now, amount: GuessProbability(units: 5))
    state.distrustLoss(of: enrollment, at: now)
    #expect(state.remembered.isEmpty && state.slip == nil)
    #expect(
      state.authenticators.map(\.lastAccepted) == [1010, 510, 8, 0, UInt64.max, 2000])
    var policy = Policy()
    policy.adjacentIntervals = 255
    let generator = try CodeGenerator(
      secret: enrollment.authenticators[0].secret, algorithm: .sha1, digits: .six)
    for step in UInt64(900)...1100 {
      let decision = try decide(
        on: .code(generator.code(at: step), .six), enrollment: enrollment, state: state,
        from: .unknown, through: nil, at: now, under: policy)
      #expect(decision.refusal != nil, "step \(step)")
    }
  }

  /// Whatever a state file holds: a decision, no trap, no more accepted than enrolled.
  @Test func `of any content is decided on`() throws {
    var random = Seeded(40)
    for _ in 0..<1000 {
      let enrollment = try random.enrollment()
      var state = random.loginState()
      for index in state.authenticators.indices where random.flip() {
        guard index < enrollment.authenticators.count else { continue }
        let old = state.authenticators[index]
        state.authenticators[index] = AuthenticatorState(
          id: enrollment.authenticators[index].id, lastAccepted: old.lastAccepted, drift: old.drift)
      }
      var policy = Policy()
      (policy.adjacentIntervals, policy.lookAhead) = (random.byte() % 12, random.byte() % 12)
      let typed = String(random.number(100_000...999_999))
      let decision = try decide(
        on: Response.classify(secret(typed), for: enrollment), enrollment: enrollment, state: state,
        from: random.origin(), through: random.label(), at: random.anyTime(), under: policy)
      #expect(decision.state.authenticators.map(\.id) == enrollment.authenticators.map(\.id))
      #expect(decision.state.origins.count <= 10)
    }
  }
}
