import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@Suite struct `Codes of a token` {
  private static let now = UnixTime(1_772_530_000)
  private static let step = timeStep(at: now.seconds, period: 30)

  private func code(_ step: UInt64, of token: Authenticator) throws -> UInt32 {
    try CodeGenerator(secret: token.secret, algorithm: .sha1, digits: .six).code(at: step)
  }

  private func typed(_ away: Int64, of token: Authenticator) throws -> Secret {
    let code = try code(UInt64(Int64(Self.step) + away), of: token)
    return try secret((String(repeating: "0", count: 6) + "\(code)").suffix(6).utf8)
  }

  /// The step of the time that its clock has then.
  private func stepNow(_ state: AuthenticatorState) -> UInt64 {
    timeStep(at: state.time(at: Self.now).seconds, period: 30)
  }

  @Test(arguments: [0, 1, -1, 5, -5] as [Int64])
  func `that are accepted now tell its clock at once`(away: Int64) throws {
    let token = try authenticator(clockOffset: 0)
    let told = try token.start(
      by: typed(away, of: token), for: label("alice").user, at: Self.now, under: Policy())
    guard case .right(let state) = told else {
      Issue.record("\(told)")
      return
    }
    #expect(state.lastAccepted == UInt64(Int64(Self.step) + away))
    #expect(stepNow(state) == state.lastAccepted && state.clock?.since == Self.now)
    #expect(away != 0 || state.clock?.offset == 0)
  }

  @Test(arguments: [6, -6, 14, -14, 199, -199] as [Int64])
  func `that are off are asked for in a row`(away: Int64) throws {
    let token = try authenticator(clockOffset: 0)
    let (one, two) = (try typed(away, of: token), try typed(away + 1, of: token))
    let user = try label("alice").user
    #expect(try token.start(by: one, for: user, at: Self.now, under: Policy()) == .wantsNext)
    guard
      case .right(let state) = try token.start(
        by: one, then: two, for: user, at: Self.now, under: Policy())
    else {
      Issue.record("not right")
      return
    }
    #expect(state.lastAccepted == UInt64(Int64(Self.step) + away + 1))
    #expect(stepNow(state) == state.lastAccepted)
    for wrong in [one, try typed(away + 2, of: token), try typed(0, of: token)] {
      let told = try token.start(by: one, then: wrong, for: user, at: Self.now, under: Policy())
      #expect(told == .refused(.wrong))
    }
    let short = try token.start(
      by: one, then: secret("12345".utf8), for: user, at: Self.now, under: Policy())
    #expect(short == .refused(.malformed))
  }

  @Test func `that no token shows are none`() throws {
    let token = try authenticator(clockOffset: 0)
    let user = try label("alice").user
    let (far, next) = (try typed(201, of: token), try typed(202, of: token))
    #expect(
      try token.start(by: far, for: user, at: Self.now, under: Policy())
        == .refused(.clockOff(6030)))
    #expect(
      try token.start(by: far, then: next, for: user, at: Self.now, under: Policy())
        == .refused(.wrong))
    let backup = try secret("7KMF-2X9Q-D4TW-0HZA".utf8)
    #expect(
      try token.start(by: backup, for: user, at: Self.now, under: Policy())
        == .refused(.backupCode))
  }

  /// In steps from now: what is known of the clock, the last accepted step, the second code; what
  /// is stored, the clock and whether it was reopened; nil: replayed.
  private static let resyncs: [(known: Int64, last: Int64?, second: Int64, stored: Int64?)] = [
    (0, nil, 14, 14), (0, nil, -14, -14), (0, 0, 14, 14), (0, nil, 200, 200),
    (14, 13, 14, 14), (14, 14, 0, nil), (0, 0, -14, nil),
    // Codes of an hour ago, after which some were used: none of these is good again.
    (0, 3, -120, nil), (-120, -121, -120, -120), (200, 209, 30, nil), (0, 24, 14, nil),
    // Beyond what any token has shown: not below what it showed as it was known.
    (0, 211, 14, 14), (20, 100_000, 14, 20), (14, 100_000, -120, 14),
  ]

  @Test(arguments: resyncs) func `in a row set its clock, and give back none that was used`(
    known: Int64, last: Int64?, second: Int64, stored: Int64?
  ) throws {
    let token = try authenticator(clockOffset: 0)
    let enrollment = try enrollment([token])
    let at = { UInt64(Int64(Self.step) + $0) }
    var state = LoginState(initialFor: enrollment)
    state.authenticators[0].lastAccepted = last.map(at)
    state.authenticators[0].clock?.offset = Int32(known * 30)
    let before = state.authenticators[0]
    let pair = try CodePair(
      .code(code(at(second - 1), of: token), .six), .code(code(at(second), of: token), .six))
    let (result, after) = try resync(
      by: #require(pair), named: nil, enrollment: enrollment, state: state, at: Self.now,
      under: Policy())
    guard let stored else {
      #expect(result == .refused(.replayed(name: token.name)))
      #expect(after.authenticators[0] == before)
      return
    }
    let found = after.authenticators[0]
    let end = last.map { UnixTime((Int64(at($0)) + 11) * 30) }
    let reopened = (last ?? -1) >= second ? end.map { found.ours($0) } : nil
    #expect(result == .done(name: token.name, drift: Int32(second), reopened: reopened))
    #expect(found.lastAccepted == at(stored) && found.clock?.since == Self.now)
    #expect(stepNow(found) == at(second) && found.drift == 0)
  }

  /// As a record that was lost under a clock an hour ahead leaves it. In steps from now: what is
  /// known of the clock, the last accepted step, the second code; how long it waits.
  @Test(arguments: [(0, 130, 0, 131), (0, 210, 14, 197), (0, 25, 14, 12), (14, 130, -20, 117)])
  func `in a row wait for a last accepted step to come`(
    known: Int64, last: Int64, second: Int64, steps: Int64
  ) throws {
    let token = try authenticator(clockOffset: 0)
    let enrollment = try enrollment([token])
    let at = { UInt64(Int64(Self.step) + $0) }
    var state = LoginState(initialFor: enrollment)
    state.authenticators[0].lastAccepted = at(last)
    state.authenticators[0].clock?.offset = Int32(known * 30)
    let pair = try CodePair(
      .code(code(at(second - 1), of: token), .six), .code(code(at(second), of: token), .six))
    let (result, after) = try resync(
      by: #require(pair), named: nil, enrollment: enrollment, state: state, at: Self.now,
      under: Policy())
    let until = UnixTime(Self.now.seconds + steps * 30)
    #expect(result == .refused(.waits(name: token.name, until: until)))
    #expect(after == state)
  }

  @Test func `that were used are none, where a token begins with a last step`() throws {
    let token = try authenticator(last: Self.step + 15, clockOffset: 0)
    let (first, second) = (try typed(14, of: token), try typed(15, of: token))
    #expect(
      try token.start(
        by: first, then: second, for: label("alice").user, at: Self.now, under: Policy())
        == .refused(.wrong))
  }

  @Test func `in a row are not of a token that is further off`() throws {
    let token = try authenticator(clockOffset: 0)
    let enrollment = try enrollment([token])
    for second in [Self.step + 201, Self.step - 201] {
      let pair = try CodePair(
        .code(code(second - 1, of: token), .six), .code(code(second, of: token), .six))
      let (result, after) = try resync(
        by: #require(pair), named: nil, enrollment: enrollment,
        state: LoginState(initialFor: enrollment), at: Self.now, under: Policy())
      #expect(result == .refused(.notFound))
      #expect(after == LoginState(initialFor: enrollment))
    }
  }

  /// A token that is 200 steps ahead has shown codes of the time to come.
  @Test(arguments: [0, 6000, -6000] as [Int32])
  func `count as used in its own time where a save may be lost`(offset: Int32) throws {
    let token = try authenticator(clockOffset: offset)
    let enrollment = try enrollment([token])
    var state = LoginState(initialFor: enrollment)
    state.authenticators[0].clock?.since = UnixTime(Self.now.seconds - 86_400 * 30)
    state.distrustCopy(of: enrollment, at: Self.now)
    // In a month it may have gained 60 s, but nobody believes more than 200 steps.
    let own = Self.step + UInt64(10) + (offset == 6000 ? 0 : 2)
    #expect(state.authenticators[0].lastAccepted == UInt64(Int64(own) + Int64(offset) / 30))
  }

  /// What a pass had replaced, brought back; or a copy of it without secrets, as a fleet tells it.
  @Test func `come back by its own clock`() throws {
    let token = try authenticator(clockOffset: 0)
    let former = try enrollment([token])
    var state = LoginState(initialFor: former)
    state.authenticators[0].clock = TokenClock(offset: 420, since: Self.now)
    for (isLost, last) in [(false, Self.step + 14), (true, Self.step + 24)] {
      let restored = try former.restored(
        from: former, state, mayLackTheLatest: isLost, at: Self.now)
      #expect(restored.authenticators[0].clockOffset == 420)
      #expect(restored.authenticators[0].initialLastAccepted == last)
      #expect(restored.withoutSecrets?.authenticators[0].clockOffset == 420)
    }
  }
}

extension Label {
  fileprivate var user: UserName {
    get throws { try #require(UserName(bytes)) }
  }
}
