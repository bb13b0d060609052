import OneTimePassword
import SallyportCore
import TestSupport
import Testing

/// What the owner of an enrollment is told at her next login.
@Suite struct `The owner` {
  private static let enrolled: Int64 = 1_700_000_000
  private static let day: Int64 = 86_400
  private let home = NetworkAddress(high: 0, low: 0xffff_c000_0207)
  private let elsewhere = NetworkAddress(high: 0, low: 0xffff_c633_6407)

  /// A login of alice with the code that an authenticator shows then, or with another response.
  private struct Steps {
    var enrollment: Enrollment
    var state: LoginState
    var policy = Policy()

    mutating func respond(
      _ typed: String, after seconds: Int64, from origin: NetworkAddress
    ) throws -> Decision {
      let decision = try decide(
        on: try .classify(secret(typed.utf8), for: enrollment), enrollment: enrollment,
        state: state, from: .address(origin), through: nil,
        at: UnixTime(`The owner`.enrolled + seconds), under: policy)
      state = decision.state
      return decision
    }

    /// What is told at the login with a code of that authenticator.
    mutating func logIn(
      with name: String = "phone", after seconds: Int64, from origin: NetworkAddress
    ) throws -> [OwnerNotice] {
      let one = try #require(enrollment.authenticators.first { $0.name == (try? label(name)) })
      let generator = try CodeGenerator(
        secret: one.secret, algorithm: one.parameters.algorithm, digits: one.parameters.digits)
      let now = `The owner`.enrolled + seconds
      let number = try generator.code(at: UInt64(now / 30))
      let code = String(String(number + 1_000_000).dropFirst())
      return try told(code, after: seconds, from: origin)
    }

    /// What is told at the login with this response.
    mutating func told(
      _ typed: String, after seconds: Int64, from origin: NetworkAddress
    ) throws -> [OwnerNotice] {
      let proof = try #require(try respond(typed, after: seconds, from: origin).proof)
      let notices = state.notices(
        of: enrollment, at: UnixTime(`The owner`.enrolled + seconds))
      state.settle(notices, by: proof.authenticator, of: enrollment)
      return notices
    }

    mutating func add(_ name: String, after seconds: Int64) throws {
      let other = try secret((name + String(repeating: "x", count: 20)).utf8)
      enrollment.authenticators.append(
        Authenticator(
          id: UInt64(seconds) + 2, name: try label(name), parameters: .standard, secret: other,
          initialLastAccepted: nil, created: UnixTime(`The owner`.enrolled + seconds)))
    }
  }

  private func alice() throws -> Steps {
    let enrollment = try enrollment(
      [try authenticator()], backupCodes: try backupCodes(["7KMF2X9QD4TW0HZA"]))
    return Steps(enrollment: enrollment, state: LoginState(initialFor: enrollment))
  }

  private func added(_ name: String, after seconds: Int64) throws -> OwnerNotice {
    .added(try label(name), UnixTime(Self.enrolled + seconds))
  }

  @Test func `is told nothing where nothing happened`() throws {
    var alice = try alice()
    #expect(try alice.logIn(after: 60, from: home) == [])
    #expect(try alice.logIn(after: 120, from: elsewhere) == [])
  }

  @Test func `is told of wrong codes from elsewhere, once`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    for _ in 0..<3 { _ = try alice.respond("000000", after: 90, from: elsewhere) }
    // Her own typing error is none of them.
    _ = try alice.respond("000000", after: 100, from: home)
    #expect(try alice.logIn(after: 150, from: home) == [.wrongCodes(3)])
    #expect(try alice.logIn(after: 210, from: home) == [])
  }

  @Test func `is told by no more than the number's greatest value`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    alice.state.notices.wrongCodes = UInt16.max
    _ = try alice.respond("000000", after: 90, from: elsewhere)
    #expect(try alice.logIn(after: 150, from: home) == [.wrongCodes(UInt16.max)])
  }

  // shows: owner-notice
  @Test func `is told of a new authenticator by each login until an older one was used`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    try alice.add("pixel", after: 1000)
    let notice = try added("pixel", after: 1000)
    // The thief's own login does not use it up.
    for after: Int64 in [2000, 3000] {
      #expect(try alice.logIn(with: "pixel", after: after, from: elsewhere) == [notice])
    }
    #expect(try alice.logIn(after: 4000, from: home) == [notice])
    #expect(try alice.logIn(after: 5000, from: home) == [])
    #expect(try alice.logIn(with: "pixel", after: 6000, from: elsewhere) == [])
  }

  @Test func `is told for fourteen days where no older authenticator is left`() throws {
    var alice = try alice()
    try alice.add("pixel", after: 1000)
    alice.enrollment.authenticators.removeFirst()
    let (last, notice) = (1000 + 14 * Self.day, try added("pixel", after: 1000))
    for after in [2000, Self.day, last - 60] {
      #expect(try alice.logIn(with: "pixel", after: after, from: home) == [notice])
    }
    #expect(try alice.logIn(with: "pixel", after: last, from: home) == [])
  }

  /// What came between the notice and its settling is told the next time.
  @Test func `is told what happened meanwhile later`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    _ = try alice.respond("000000", after: 90, from: elsewhere)
    try alice.add("pixel", after: 100)
    let now = UnixTime(Self.enrolled + 200)
    let shown = alice.state.notices(of: alice.enrollment, at: now)
    _ = try alice.respond("000000", after: 201, from: elsewhere)
    try alice.add("tablet", after: 202)
    alice.state.settle(shown, by: try label("phone"), of: alice.enrollment)
    let later = try added("tablet", after: 202)
    #expect(try alice.logIn(after: 300, from: home) == [.wrongCodes(1), later])
  }

  @Test func `is told by a backup code, which uses nothing up but wrong codes`() throws {
    var alice = try alice()
    try alice.add("pixel", after: 1000)
    _ = try alice.respond("000000", after: 1100, from: elsewhere)
    let notice = try added("pixel", after: 1000)
    #expect(
      try alice.told("7KMF-2X9Q-D4TW-0HZA", after: 2000, from: home) == [.wrongCodes(1), notice])
    #expect(try alice.logIn(after: 3000, from: home) == [notice])
  }

  // shows: owner-notice
  @Test func `is told of a pass, and of where it was used`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    let made = UnixTime(Self.enrolled + 1000)
    let digest = try Pass.digest(secret("P7KMF2X9QD4TW0HZA".utf8), of: 0xe0e0)
    alice.enrollment.passes = [
      Pass(id: 7, digest: digest, created: made, expires: UnixTime(made.seconds + 7200), uses: 1)
    ]
    let proof = try alice.respond("P7KM-F2X9-QD4T-W0HZ-A", after: 1500, from: elsewhere).proof
    #expect(proof == .pass(left: 0))
    let used = OwnerNotice.passUsed(UnixTime(Self.enrolled + 1500), from: elsewhere)
    #expect(try alice.logIn(after: 2000, from: home) == [.passGiven(made), used])
    #expect(try alice.logIn(after: 3000, from: home) == [])
  }

  @Test func `is told that what a pass had replaced was restored`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    alice.state.notices.restored = UnixTime(Self.enrolled + 1000)
    let notice = OwnerNotice.restored(UnixTime(Self.enrolled + 1000))
    #expect(try alice.told("7KMF-2X9Q-D4TW-0HZA", after: 1500, from: home) == [notice])
    #expect(try alice.logIn(after: 2000, from: home) == [notice])
    #expect(try alice.logIn(after: 3000, from: home) == [])
  }

  @Test func `is told once more after the clock was set back`() throws {
    var alice = try alice()
    try alice.add("pixel", after: 50 * Self.day)
    _ = try alice.logIn(after: 50 * Self.day, from: home)
    alice.state.authenticators[0].lastAccepted = nil
    try alice.add("tablet", after: 1000)
    let (pixel, tablet) = (
      try added("pixel", after: 50 * Self.day), try added("tablet", after: 1000)
    )
    #expect(try alice.logIn(after: 2000, from: home) == [pixel, tablet])
  }

  // MARK: who asks

  @Test func `is told there alone where she has just logged in`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    func isTold(_ name: String?, _ origin: Origin, after seconds: Int64) throws -> Bool {
      alice.state.hasJustUsed(
        try name.map { try label($0) }, of: alice.enrollment, from: origin,
        at: UnixTime(Self.enrolled + seconds))
    }
    for seconds: Int64 in [60, 359, -239] {
      #expect(try isTold("phone", .address(home), after: seconds))
      #expect(try !isTold("phone", .address(elsewhere), after: seconds))
      #expect(try !isTold("pixel", .address(home), after: seconds))
      #expect(try !isTold(nil, .address(home), after: seconds))
    }
    for seconds: Int64 in [360, -240] {
      #expect(try !isTold("phone", .address(home), after: seconds))
    }
    _ = try alice.told("7KMF-2X9Q-D4TW-0HZA", after: 600, from: elsewhere)
    #expect(try isTold(nil, .address(elsewhere), after: 600))
    // Which other logins share.
    for origin in [Origin.unknown, .local(own: false)] {
      let use = Use(time: UnixTime(Self.enrolled + 700), origin: origin, service: nil)
      alice.state.backupCodes?.lastUse = use
      #expect(try !isTold(nil, origin, after: 700))
    }
  }

  // MARK: on disk

  @Test func `is told what the state's file keeps, whichever slot counts`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    _ = try alice.respond("000000", after: 90, from: elsewhere)
    (alice.state.notices.told, alice.state.notices.passUsed) = (UnixTime(5), UnixTime(6))
    alice.state.notices.passOrigin = elsewhere
    alice.state.notices.restored = UnixTime(7)
    let current = try StateRecord.read(try StateRecord.fresh(alice.state))
    #expect(current.state == alice.state)
  }

  /// The version before writes zeros there.
  @Test func `is told nothing by a file of the version before`() throws {
    var alice = try alice()
    _ = try alice.logIn(after: 60, from: home)
    var file = try StateRecord.fresh(alice.state)
    for slot in [0, StateRecord.slotSize] {
      for place in StateRecord.slotSize - 92..<StateRecord.slotSize - 32 { file[slot + place] = 0 }
    }
    let state = try StateRecord.read(file).state
    #expect(state.notices == OwnerNotices() && state.authenticators == alice.state.authenticators)
  }

  /// A state so large that it reaches them loses its notices, and nothing else.
  @Test func `is told nothing where there is no room`() throws {
    var state = try largestState()
    state.notices.wrongCodes = 3
    let read = try StateRecord.read(try StateRecord.fresh(state)).state
    #expect(read.passes == state.passes && read.origins == state.origins)
  }
}
