import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportAdministration

@Suite struct `A state that another machine has too` {
  private static let now = UnixTime(1_772_530_000)
  private static let step = timeStep(at: now.seconds, period: 30)

  private func code(_ authenticator: Authenticator, at position: UInt64) throws -> Response {
    let generator = try CodeGenerator(
      secret: authenticator.secret, algorithm: authenticator.parameters.algorithm,
      digits: authenticator.parameters.digits)
    return .code(try generator.code(at: position), authenticator.parameters.digits)
  }

  private func copied(_ enrollment: Enrollment, last: UInt64? = nil) -> LoginState {
    var state = LoginState(initialFor: enrollment)
    for index in state.authenticators.indices {
      state.authenticators[index].lastAccepted = last
    }
    state.distrustCopy(of: enrollment, at: Self.now)
    return state
  }

  private func accepts(
    _ response: Response, _ enrollment: Enrollment, _ state: LoginState, after seconds: Int64 = 0,
    under policy: Policy = Policy()
  ) throws -> Bool {
    try decide(
      on: response, enrollment: enrollment, state: state, from: .unknown, through: nil,
      at: UnixTime(Self.now.seconds + seconds), under: policy
    ).proof != nil
  }

  // decisive
  @Test func `takes no code that any policy may have taken up to now, and the first one after`()
    throws
  {
    let phone = try authenticator()
    let enrollment = try enrollment([phone])
    let state = copied(enrollment)
    let most = Int64(Policy.mostAdjacentIntervals)
    var wide = Policy()
    wide.adjacentIntervals = Policy.mostAdjacentIntervals
    let latest = Self.step + UInt64(most)
    for position in Self.step - 6...latest {
      #expect(try !accepts(code(phone, at: position), enrollment, state, under: wide))
      #expect(try !accepts(code(phone, at: position), enrollment, state, after: 60, under: wide))
    }
    let next = try code(phone, at: latest + 1)
    #expect(try accepts(next, enrollment, state, after: 30, under: wide))
    #expect(try accepts(next, enrollment, state, after: (most - 4) * 30))
  }

  @Test func `never forgets what was used`() throws {
    let phone = try authenticator()
    let state = copied(try enrollment([phone]), last: Self.step + 100)
    #expect(state.authenticators[0].lastAccepted == Self.step + 100)
  }

  // decisive
  @Test func `takes no backup code`() throws {
    let set = try backupCodes(["7KMF2X9QD4TW0HZA"], scratch: ["12345678"])
    let enrollment = try enrollment([try authenticator()], backupCodes: set)
    let state = copied(enrollment)
    let response = Response.backupCode(digest: try #require(set.digests.first))
    #expect(try accepts(response, enrollment, LoginState(initialFor: enrollment)))
    #expect(try !accepts(response, enrollment, state))
    #expect(set.left(state.backupCodes) == 0)
  }

  // decisive
  @Test(arguments: [UInt64?.none, 0, 41, 1 << 40])
  func `takes no code of a counter before two in a row, and none of before them`(last: UInt64?)
    throws
  {
    let fob = try authenticator(1, "fob", parameters(.hotp))
    let enrollment = try enrollment([fob])
    var state = copied(enrollment, last: last)
    state.distrustCopy(of: enrollment, at: Self.now)
    let next = last.map { $0 + 1 } ?? 0
    #expect(HeldCounter.isHeld(state.authenticators[0].lastAccepted))
    for position in next..<next + 12 {
      #expect(try !accepts(code(fob, at: position), enrollment, state))
    }
    func resynced(from position: UInt64) throws -> (Resync, LoginState) {
      let codes = try #require(
        CodePair(code(fob, at: position), code(fob, at: position + 1)))
      return try resync(
        by: codes, named: nil, enrollment: enrollment, state: state, at: Self.now, under: Policy())
    }
    if let last {
      #expect(try resynced(from: last).0 == .refused(.notFound))
    }
    let (result, after) = try resynced(from: next)
    #expect(result == .done(name: fob.name, drift: 0, reopened: nil))
    #expect(try accepts(code(fob, at: next + 2), enrollment, after))
    #expect(try !accepts(code(fob, at: next + 1), enrollment, after))
  }

  @Test(arguments: [UInt64.max, UInt64.max - 1, 1 << 62, 3 << 62])
  func `takes nothing of a counter that no token reaches`(last: UInt64) throws {
    let fob = try authenticator(1, "fob", parameters(.hotp))
    let enrollment = try enrollment([fob])
    let state = copied(enrollment, last: last)
    for position in [0, last &+ 1, last &+ 2] {
      #expect(try !accepts(code(fob, at: position), enrollment, state))
    }
  }
}
