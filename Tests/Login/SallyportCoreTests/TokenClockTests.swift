import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `The clock of a token` {
  private static let start = UnixTime(1_700_000_000)
  private static let day: Int64 = 86_400

  /// An enrollment with one token, and what was learnt of its clock.
  private func token(_ offset: Int32 = 0, last: UInt64? = nil) throws -> (Enrollment, LoginState) {
    let enrollment = try enrollment([authenticator(last: last, clockOffset: offset)])
    return (enrollment, LoginState(initialFor: enrollment))
  }

  private func text(_ enrollment: Enrollment) throws -> String {
    let written = try #require(enrollment.written())
    return String(decoding: written.bytes(in: 0..<written.count), as: UTF8.self)
  }

  @Test(arguments: [0, 1, -1, 6000, -6000] as [Int32])
  func `is written where there is one, and read as it was`(offset: Int32) throws {
    let (one, _) = try token(offset)
    let (with, without) = (try text(one), try text(enrollment([try authenticator()])))
    let line = "\nclock_offset = \(offset)\n\n[end]"
    #expect(with == without.replacing("\n\n[end]", with: line))
    #expect(try Enrollment.read(secret(with.utf8)).authenticators[0].clockOffset == offset)
    #expect(try Enrollment.read(secret(without.utf8)).authenticators[0].clockOffset == nil)
  }

  private static let wrong = [
    "", "-", "+1", "-0", "00", "01", "-01", "6001", "-6001", "1 0", "1.5", "--1", "none", "0x1",
    "99999999999999999999", "-99999999999999999999", "4294967296", "\u{2212}1",
  ]

  @Test(arguments: wrong) func `is an error with a wrong value`(value: String) throws {
    let text = try text(token(7).0).replacing("clock_offset = 7", with: "clock_offset = \(value)")
    #expect(throws: SettingsError.self) { try Enrollment.read(secret(text.utf8)) }
  }

  @Test func `is none of a counter, and is given once`() throws {
    let text = try text(token(7).0)
    let counter = text.replacing("type = totp\nperiod = 30", with: "type = hotp")
    let twice = text.replacing("clock_offset = 7", with: "clock_offset = 7\nclock_offset = 7")
    let head = text.replacing("version = 1", with: "version = 1\nclock_offset = 7")
    for wrong in [counter, twice, head] {
      #expect(throws: SettingsError.self) { try Enrollment.read(secret(wrong.utf8)) }
    }
  }

  @Test func `begins with what the enrollment says, and ends with it`() throws {
    var (one, state) = try token(-90)
    let clock = TokenClock(offset: -90, since: one.authenticators[0].created)
    #expect(state.authenticators[0].clock == clock)
    state.authenticators[0].clock?.offset = 5
    state.reconcile(with: one)
    #expect(state.authenticators[0].clock?.offset == 5)
    one.authenticators = [try authenticator()]
    state.reconcile(with: one)
    #expect(state.authenticators[0].clock == nil)
  }

  /// The state of a user without a token is what it was.
  @Test func `lies in the state behind the places, and nothing where there is none`() throws {
    var random = Seeded(51)
    for _ in 0..<300 {
      var state = random.loginState()
      for index in state.authenticators.indices { state.authenticators[index].clock = nil }
      let bare = try record(state)
      guard let index = state.authenticators.indices.randomElement(using: &random) else { continue }
      state.authenticators[index].clock = TokenClock(offset: -2, since: UnixTime(3))
      var added: [UInt8] = [255]
      for other in state.authenticators.indices { added += other == index ? Self.clock : [0] }
      let whole = try record(state)
      state.passes = []
      let place = try record(state).count - added.count
      let parts: [[UInt8]] = [Array(bare[..<place]), added, Array(bare[place...])]
      #expect(whole == parts.flatMap(\.self))
      #expect(read(whole)?.authenticators == state.authenticators)
      // Cut before it, it is a state without tokens, which is not what a checksum lets by.
      for end in place + 1..<place + added.count { #expect(read(Array(whole[..<end])) == nil) }
    }
  }

  private static let clock: [UInt8] = [1, 254, 255, 255, 255, 3, 0, 0, 0, 0, 0, 0, 0]

  private func record(_ state: LoginState) throws -> [UInt8] {
    var writer = ByteWriter(count: 8192)
    writer.put(state)
    try #require(writer.isWhole)
    return Array(writer.bytes[..<writer.position])
  }

  private func read(_ bytes: [UInt8]) -> LoginState? {
    var reader = ByteReader(bytes, 0..<bytes.count)
    let state = reader.loginState()
    return reader.isWhole && reader.isAtEnd ? state : nil
  }

  @Test func `is not read where it says nothing, or what no clock is`() throws {
    let state = LoginState(
      enrollmentID: 1, authenticators: [AuthenticatorState(id: 1, lastAccepted: nil)])
    let bare = try record(state)
    #expect(read(bare + [255] + Self.clock) != nil)
    #expect(read(bare + [255, 0]) == nil, "no token at all")
    #expect(read(bare + [255, 2]) == nil && read(bare + [254]) == nil && read(bare + [4]) == nil)
    #expect(read(bare + [255] + Self.clock + [255] + Self.clock) == nil)
    #expect(read(bare + [255] + Self.clock + [0]) == nil)
    for (count, isRead) in [(3, true), (4, false), (254, false)] {
      let passes = [UInt8(count)] + [UInt8](repeating: 1, count: 17 * count)
      #expect((read(bare + passes) != nil) == isRead)
      #expect((read(bare + [255] + Self.clock + passes) != nil) == isRead)
    }
    let far = [1, 0x61, 0xea, 0, 0] + Self.clock[5...]
    #expect(read(bare + [255] + far) == nil, "60,001 s")
  }

  /// As of a state that was saved beside another period.
  @Test func `is off by 200 steps of its own period at most, whatever was stored`() throws {
    let (one, start) = try token()
    for (stored, believed) in [(60_000, 6000), (-60_000, -6000), (6000, 6000), (-5999, -5999)] {
      var state = start
      state.authenticators[0].clock?.offset = Int32(stored)
      state.reconcile(with: one)
      #expect(state.authenticators[0].clock?.offset == Int32(believed))
    }
  }

  /// However long nobody has logged in: 200 steps are the most, on either side.
  @Test(arguments: [1, -1] as [Int64]) func `is off by 200 steps at most`(side: Int64) throws {
    let (one, start) = try token(Int32(6000 * side))
    let generator = try CodeGenerator(
      secret: one.authenticators[0].secret, algorithm: .sha1, digits: .six)
    let now = UnixTime(Self.start.seconds + 365 * Self.day)
    let own = timeStep(at: now.seconds + 6000 * side, period: 30)
    let shown = UInt64(Int64(own) + 4 * side)
    let decision = try decide(
      on: .code(generator.code(at: shown), .six), enrollment: one, state: start,
      from: .local(own: true), through: nil, at: now, under: Policy())
    #expect(decision.proof != nil)
    let clock = TokenClock(offset: Int32(6000 * side), since: now)
    #expect(decision.state.authenticators[0].clock == clock)
  }

  /// In which all codes count as used where a state was lost: what it may have gained since it was
  /// known counts too, 2 s a day.
  @Test(
    arguments: [(0, 0, 0), (0, 30, 60), (90, 15, 120), (-90, 15, -60), (5990, 365, 6000)]
      as [(Int32, Int64, Int64)])
  func `may have shown what it gains at most`(offset: Int32, days: Int64, ahead: Int64) {
    let now = UnixTime(Self.start.seconds + days * Self.day)
    var state = AuthenticatorState(id: 1, lastAccepted: nil)
    state.clock = TokenClock(offset: offset, since: Self.start)
    let shown = timeStep(at: now.seconds + ahead, period: 30)
    #expect(
      state.latestStep(at: now, of: 30) == shown + UInt64(Policy.mostAdjacentIntervals))
  }

  @Test func `knows no time at which it stops`() throws {
    var state = AuthenticatorState(id: 1, lastAccepted: nil)
    state.clock = TokenClock(offset: -60_000, since: UnixTime(.min))
    #expect(state.ours(UnixTime(.max)) == UnixTime(.max))
    for seconds in [Int64.min, .min + 1, -1, 0, .max - 1, .max] {
      for step in [0, 1, UInt64.max / 600, .max] {
        state.clock?.set(to: step, of: 300, at: UnixTime(seconds))
        #expect(state.latestStep(at: UnixTime(seconds), of: 300) >= 10)
        #expect((state.clock?.offset.magnitude ?? 0) <= 60_000)
      }
    }
  }
}
