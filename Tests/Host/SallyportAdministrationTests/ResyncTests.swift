import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@Suite struct `Two codes in a row` {
  private static let now = UnixTime(1_772_530_000)
  private static let step = timeStep(at: now.seconds, period: 30)

  private func pair(
    _ position: UInt64, _ other: UInt64? = nil, of authenticator: Authenticator
  ) throws -> CodePair {
    let generator = try CodeGenerator(
      secret: authenticator.secret, algorithm: authenticator.parameters.algorithm,
      digits: authenticator.parameters.digits)
    let digits = authenticator.parameters.digits
    return try #require(
      CodePair(
        .code(generator.code(at: position), digits),
        .code(generator.code(at: other ?? position + 1), digits)))
  }

  private func outcome(
    _ codes: CodePair, _ authenticators: [Authenticator], named name: String? = nil,
    last: UInt64? = nil
  ) throws -> (Resync, LoginState) {
    let enrollment = try enrollment(authenticators)
    var state = LoginState(initialFor: enrollment)
    for index in state.authenticators.indices { state.authenticators[index].lastAccepted = last }
    return try resync(
      by: codes, named: try name.map { try label($0) }, enrollment: enrollment, state: state,
      at: Self.now, under: Policy())
  }

  /// Second code, in steps from now; the last accepted step from now; what is stored after it.
  static let inStep: [(second: Int64, last: Int64?, stored: Int64, reopens: Bool)] = [
    (0, nil, 0, false), (0, -1, 0, false), (5, 4, 5, false), (-5, -6, -5, false),
    (0, -100_000, 0, false),
    // The clock ran ahead: down to the second code, and never below now.
    (0, 6, 0, true), (1, 6, 1, true), (5, 6, 5, true), (0, 100_000, 0, true), (-1, 120, 0, true),
    (-5, 120, 0, true),
  ]

  @Test(arguments: inStep) func `bring a TOTP in step that is nearly right`(
    second: Int64, last: Int64?, stored: Int64, reopens: Bool
  ) throws {
    let phone = try authenticator()
    let at = { UInt64(Int64(Self.step) + $0) }
    let (result, state) = try outcome(
      try pair(at(second - 1), of: phone), [phone], last: last.map(at))
    let end = last.map { UnixTime((Int64(at($0)) + 6) * 30) }
    #expect(
      result
        == .done(name: phone.name, drift: Int32(second), reopened: reopens ? end : nil))
    #expect(state.authenticators[0].lastAccepted == at(stored))
    #expect(state.authenticators[0].drift == Int32(second))
  }

  /// Neither these codes nor any for a moment up to now get in afterwards; the next code does.
  // shows: one-use
  @Test(arguments: inStep) func `are used up by that, the code after them is not`(
    second: Int64, last: Int64?, stored: Int64, reopens: Bool
  ) throws {
    let phone = try authenticator()
    let enrollment = try enrollment([phone])
    let at = { UInt64(Int64(Self.step) + $0) }
    let (_, state) = try outcome(try pair(at(second - 1), of: phone), [phone], last: last.map(at))
    let generator = try CodeGenerator(secret: phone.secret, algorithm: .sha1, digits: .six)
    for steps in Int64(-5)...5 {
      let decision = try decide(
        on: .code(generator.code(at: at(steps)), .six), enrollment: enrollment, state: state,
        from: .unknown, through: nil, at: Self.now, under: Policy())
      #expect((decision.proof != nil) == (steps > stored), "\(steps)")
    }
  }

  @Test(arguments: [Int64(6), -6, 120, -120, 2880, -2879])
  func `of a clock that is far off only tell how far`(second: Int64) throws {
    let phone = try authenticator()
    let position = UInt64(Int64(Self.step) + second)
    for last in [nil, Self.step - 9, Self.step + 9000] {
      let (result, state) = try outcome(
        try pair(position - 1, of: phone), [phone], last: last)
      #expect(
        result
          == .refused(
            .clockOff(name: phone.name, drift: Int32(second), period: 30, accepted: 5)))
      #expect(state.authenticators[0].lastAccepted == last)
      #expect(state.authenticators[0].drift == Int32(second))
    }
  }

  @Test(arguments: [(Int64(0), Int64(0)), (0, 1), (0, 5), (-3, -3), (-3, 5), (5, 5)])
  func `that were used already change nothing`(second: Int64, last: Int64) throws {
    let phone = try authenticator()
    let at = { UInt64(Int64(Self.step) + $0) }
    let (result, state) = try outcome(try pair(at(second - 1), of: phone), [phone], last: at(last))
    #expect(result == .refused(.replayed(name: phone.name)))
    #expect(state.authenticators[0] == AuthenticatorState(id: phone.id, lastAccepted: at(last)))
  }

  @Test(arguments: [Int64(2881), -2881, 100_000]) func `are not searched beyond a day`(
    second: Int64
  ) throws {
    let phone = try authenticator()
    let position = UInt64(Int64(Self.step) + second)
    #expect(try outcome(pair(position - 1, of: phone), [phone]).0 == .refused(.notFound))
  }

  @Test(arguments: [(UInt64(0), UInt64(0)), (0, 2), (1, 0)])
  func `have to be in a row and in order`(first: UInt64, second: UInt64) throws {
    for type in [AuthenticatorType.totp(period: 30), .hotp] {
      let one = try authenticator(1, "a", parameters(type))
      let base = type == .hotp ? 0 : Self.step
      let (result, state) = try outcome(pair(base + first, base + second, of: one), [one])
      #expect(result == .refused(.notFound))
      #expect(state == LoginState(initialFor: try enrollment([one])))
    }
  }

  // decisive
  @Test(arguments: [
    (UInt64?.none, UInt64(0), true), (nil, 1000, true), (nil, 1001, false), (41, 42, true),
    (41, 41, false), (41, 40, false), (41, 1042, true), (41, 1043, false),
    (UInt64.max - 2, UInt64.max - 1, true),
  ]) func `bring an HOTP in step, ahead and never back`(
    last: UInt64?, first: UInt64, found: Bool
  ) throws {
    let fob = try authenticator(1, "fob", parameters(.hotp, .sha256, .eight))
    let (result, state) = try outcome(pair(first, of: fob), [fob], last: last)
    #expect(
      result
        == (found
          ? .done(name: fob.name, drift: 0, reopened: nil) : .refused(.notFound)))
    #expect(state.authenticators[0].lastAccepted == (found ? first + 1 : last))
  }

  @Test func `find their authenticator among several, or the named one alone`() throws {
    let other = try secret((0..<20).map { UInt8($0) })
    let phone = try authenticator(1, "phone")
    let fob = try authenticator(2, "fob", parameters(.hotp), secret: other)
    let codes = try pair(700, of: fob)
    for name in [nil, "fob"] {
      let (result, state) = try outcome(codes, [phone, fob], named: name)
      #expect(result == .done(name: fob.name, drift: 0, reopened: nil))
      #expect(state.authenticators.map(\.lastAccepted) == [nil, 701])
    }
    #expect(try outcome(codes, [phone, fob], named: "phone").0 == .refused(.notFound))
    #expect(try outcome(codes, [phone, fob], named: "nobody").0 == .refused(.notFound))
  }

  @Test func `are two codes of the same length`() throws {
    #expect(CodePair(.code(1, .six), .code(2, .eight)) == nil)
    #expect(CodePair(.code(1, .six), .backupCode(digest: [])) == nil)
    #expect(CodePair(.malformed(.empty), .code(1, .six)) == nil)
    #expect(CodePair(.code(1, .six), .code(2, .six)) != nil)
  }

  /// Whatever the numbers, nothing traps and the disk can keep the state.
  @Test func `of odd clocks and states do no harm`() throws {
    var random = Seeded(7)
    let kinds = [
      try parameters(.totp(period: 15)), try parameters(.totp(period: 300)), try parameters(.hotp),
    ]
    for _ in 0..<60 {
      let one = try authenticator(1, "a", random.pick(kinds))
      let enrollment = try enrollment([one])
      var state = LoginState(initialFor: enrollment)
      state.authenticators[0].lastAccepted = random.number64()
      let now = UnixTime(random.pick([Int64.min, -1, 0, 1, 1 << 40, Int64.max]))
      let (_, after) = try resync(
        by: try pair(random.pick([0, 1, timeStep(at: now.seconds, period: 15)]), of: one),
        named: nil, enrollment: enrollment, state: state, at: now, under: Policy())
      #expect(try StateRecord.read(StateRecord.fresh(after)).state == after)
    }
  }

  @Test func `forget a code that was nearly right, whatever came of them`() throws {
    let enrollment = try enrollment([authenticator()])
    let now = UnixTime(1_111_111_111)
    let slip = Slip(
      authenticator: 1, position: 37_037_037, time: now,
      amount: GuessProbability(units: 11_000_000))
    let state = LoginState(enrollmentID: 0xe0e0, slip: slip)
    for codes in [["081804", "050471"], ["000000", "000001"]] {
      let pair = try #require(
        CodePair(
          Response.classify(secret(codes[0]), for: enrollment),
          Response.classify(secret(codes[1]), for: enrollment)))
      let (_, next) = try resync(
        by: pair, named: nil, enrollment: enrollment, state: state, at: now, under: Policy())
      #expect(next.slip == nil)
    }
  }
}
