import OneTimePassword
import SallyportCore
import TestSupport
import Testing

/// A pass: its form, what it proves, and its end.
@Suite struct `A pass` {
  private static let made = UnixTime(1_700_000_000)
  private let code = "P7KMF2X9QD4TW0HZA"

  private func pass(
    _ id: UInt64 = 7, uses: UInt8 = 1, code: String? = nil, enrolls: Bool = false
  ) throws -> Pass {
    Pass(
      id: id, digest: try Pass.digest(secret((code ?? self.code).utf8), of: 0xe0e0),
      created: Self.made, expires: UnixTime(Self.made.seconds + 7200), uses: uses,
      enrolls: enrolls)
  }

  private func enrollment(_ passes: [Pass]) throws -> Enrollment {
    var enrollment = try SallyportCoreTests.enrollment([try authenticator()])
    enrollment.passes = passes
    return enrollment
  }

  private func decision(
    _ enrollment: Enrollment, _ state: LoginState? = nil, typing typed: String? = nil,
    after seconds: Int64 = 60, under policy: Policy = Policy()
  ) throws -> Decision {
    try decide(
      on: try .classify(secret((typed ?? code).utf8), for: enrollment), enrollment: enrollment,
      state: state ?? LoginState(initialFor: enrollment), from: .address(address),
      through: nil, at: UnixTime(Self.made.seconds + seconds), under: policy)
  }

  private let address = NetworkAddress(high: 1, low: 0)

  @Test func `is good for its logins, and replayed then`() throws {
    let enrollment = try enrollment([try pass(uses: 2)])
    let first = try decision(enrollment)
    #expect(first.proof == .pass(left: 1))
    let second = try decision(enrollment, first.state)
    #expect(second.proof == .pass(left: 0))
    #expect(try decision(enrollment, second.state).refusal == .replayed(until: UnixTime(0)))
  }

  @Test(arguments: ["p7km-f2x9-qd4t-w0hz-a", "P7KM F2X9 QD4T WOHZ A", "P7KMF2X9QD4TW0HZA"])
  func `is taken as it is typed`(_ typed: String) throws {
    #expect(try decision(try enrollment([try pass()]), typing: typed).proof == .pass(left: 0))
  }

  @Test(arguments: ["A7KMF2X9QD4TW0HZA", "P7KMF2X9QD4TW0HZAA", "P7KMF2X9QD4TW0HZU"])
  func `has no other form`(_ typed: String) throws {
    #expect(
      try decision(try enrollment([try pass()]), typing: typed).refusal == .malformed(.characters))
  }

  @Test func `costs nothing if it is wrong`() throws {
    let enrollment = try enrollment([try pass()])
    let decision = try decision(enrollment, typing: "P7KMF2X9QD4TW0HZB")
    #expect(decision.refusal == .wrongCode(nil))
    #expect(decision.state.known == .full && decision.state.other == .full)
  }

  @Test func `makes no place known, and gives back nothing`() throws {
    let enrollment = try enrollment([try pass()])
    var state = LoginState(initialFor: enrollment)
    state.other = Bucket(spent: GuessProbability(units: .max), since: Self.made)
    let decision = try decision(enrollment, state)
    #expect(decision.proof == .pass(left: 0))
    #expect(decision.state.origins.isEmpty && decision.state.other == state.other)
  }

  @Test func `is refused where the policy says so`() throws {
    let enrollment = try enrollment([try pass()])
    var off = Policy()
    off.acceptsPasses = false
    #expect(try decision(enrollment, under: off).refusal == .wrongCode(nil))
    for demand in [\Policy.totp, \.hotp, \.backupCode] {
      var policy = Policy()
      policy[keyPath: demand] = .mandatory
      #expect(try decision(enrollment, under: policy).refusal == .wrongCode(nil))
    }
  }

  /// Of somebody else, and of an earlier enrollment of the same user.
  @Test func `is good for one enrollment alone`() throws {
    let other = Enrollment(
      id: 0xe0e1, user: try #require(UserName("alice".utf8)), uid: 1000, created: Self.made,
      authenticators: [try authenticator()], backupCodes: nil, passes: [try pass()])
    #expect(try decision(other).refusal == .wrongCode(nil))
  }

  @Test func `is not renewed by a clock that is set back`() throws {
    let enrollment = try enrollment([try pass()])
    #expect(try decision(enrollment, after: 7199).proof != nil)
    let late = try decision(enrollment, typing: "123456", after: 7200)
    #expect(try decision(enrollment, late.state, after: 60).proof == nil)
    #expect(try decision(enrollment, after: 7200).refusal == .replayed(until: UnixTime(0)))
    // Verifiers' clocks differ; more than that is a clock that was set back.
    #expect(try decision(enrollment, after: -300).proof != nil)
    #expect(try decision(enrollment, after: -301).proof == nil)
  }

  @Test func `is over where uses may be lost`() throws {
    let enrollment = try enrollment([try pass(uses: 5)])
    var state = LoginState(initialFor: enrollment)
    state.distrustLoss(of: enrollment, at: Self.made)
    #expect(try decision(enrollment, state).refusal == .replayed(until: UnixTime(0)))
  }

  @Test func `is one of three that are open at most`() throws {
    let passes = try (1...3).map { try pass(UInt64($0)) }
    let full = try enrollment(passes)
    let state = LoginState(initialFor: full)
    let fourth = EnrollmentChange.give(try pass(4))
    #expect(throws: EnrollmentChange.Flaw.tooManyPasses) { try fourth.applied(to: full, state) }
    // One that is used up makes room.
    var used = state
    used.passes[1].used = 1
    let changed = try fourth.applied(to: full, used)
    #expect(changed.passes.map(\.id) == [1, 3, 4])
    let after = fourth.applied(to: used, of: changed)
    #expect(after.passes.map(\.id) == [1, 3, 4])
    #expect(try EnrollmentChange.revoke.applied(to: full, state).passes.isEmpty)
  }

  @Test func `is read as it was written`() throws {
    let passes = [try pass(1, uses: 5), try pass(2)]
    let text = try #require(try enrollment(passes).written())
    #expect(try Enrollment.read(text).passes == passes)
    var state = LoginState(initialFor: try enrollment(passes))
    state.passes[1] = PassState(id: 2, used: 1, seen: Self.made)
    let file = try StateRecord.fresh(state)
    #expect(try StateRecord.read(file).state == state)
  }

  @Test func `is read as it was written where it enrolls, and was claimed`() throws {
    var enrollment = try enrollment([try pass(1), try pass(2, enrolls: true)])
    enrollment.suspended = [
      Suspension(id: 3, since: Self.made), Suspension(id: 4, since: UnixTime(Int64.max)),
    ]
    let read = try Enrollment.read(try #require(enrollment.written()))
    #expect(read.passes == enrollment.passes && read.suspended == enrollment.suspended)
    #expect(read.suspended[0].until.seconds == Self.made.seconds + 604_800)
    #expect(read.suspended[1].until.seconds == Int64.max)
    var state = LoginState(initialFor: enrollment)
    let short = try StateRecord.fresh(state)
    state.passes[1].claim = 0xc1a1
    let long = try StateRecord.fresh(state)
    #expect(try StateRecord.read(long).state == state)
    // Only where one is claimed it is longer, by a number for each pass.
    #expect(long[16] - short[16] == 16)
    state.distrustLoss(of: enrollment, at: Self.made)
    #expect(state.passes.allSatisfy { $0.claim == 0 && $0.used == .max })
  }

  @Test func `belongs to the last login that claimed it, until it ends`() throws {
    let enrollment = try enrollment([try pass(1), try pass(2, enrolls: true)])
    var state = LoginState(initialFor: enrollment)
    let end = UnixTime(Self.made.seconds + 7200)
    #expect(!enrollment.isClaimed(by: 0, state, at: Self.made))
    (state.passes[0].claim, state.passes[1].claim, state.passes[1].used) = (5, 6, 3)
    #expect(enrollment.isClaimed(by: 6, state, at: Self.made))
    #expect(!enrollment.isClaimed(by: 5, state, at: Self.made))
    #expect(!enrollment.isClaimed(by: 6, state, at: end))
    state.passes[1].seen = end
    #expect(!enrollment.isClaimed(by: 6, state, at: Self.made))
  }

  @Test func `replaces all that is enrolled, and no more than eight times a week`() throws {
    var full = try enrollment([try pass(1, enrolls: true), try pass(2)])
    full.suspended = (1...7).map { Suspension(id: $0, since: Self.made) }
    let state = LoginState(initialFor: full)
    let one = try authenticator(9, "new")
    let changed = try EnrollmentChange.replace([one], backupCodes: nil, claim: 1)
      .applied(to: full, state)
    #expect(changed.authenticators.map(\.id) == [9])
    #expect(changed.backupCodes == nil && changed.passes.isEmpty && changed.id == full.id)
    full.suspended.append(Suspension(id: 8, since: Self.made))
    #expect(throws: EnrollmentChange.Flaw.tooManyPasses) {
      try EnrollmentChange.give(try pass(3, enrolls: true)).applied(to: full, state)
    }
    #expect(try EnrollmentChange.give(try pass(3)).applied(to: full, state).passes.count == 3)
  }

  @Test func `begins with P, and is told from a password before it`() throws {
    let random = try #require(Secret([UInt8](repeating: 0xff, count: 10)))
    let code = try #require(Pass.code(from: random))
    #expect(BackupCode.grouped(code) == "PZZZ-ZZZZ-ZZZZ-ZZZZ-Z")
    let typed = try secret(("correct horse" + BackupCode.grouped(code)).utf8)
    let parts = try #require(Response.split(typed) { _ in false })
    #expect(text(parts.password) == "correct horse" && text(parts.code) == "PZZZ-ZZZZ-ZZZZ-ZZZZ-Z")
    let backup = try #require(
      Response.split(try secret("stop-7KMF-2X9Q-D4TW-0HZA".utf8)) { _ in false })
    #expect(text(backup.password) == "stop-")
  }

  private func text(_ secret: Secret) -> String {
    String(decoding: secret.bytes(in: 0..<secret.count), as: UTF8.self)
  }

  private static let sections = [
    ("expires = soon", "expires"), ("uses = 6", "uses"), ("uses = 0", "uses"),
    ("code = 00", "code"), ("enrolls = no", "enrolls"), ("created = soon", "created"),
  ]

  @Test(arguments: sections)
  func `is an error with a wrong value`(line: String, key: String) throws {
    let written = try #require(try enrollment([try pass(enrolls: true)]).written())
    let lines = String(decoding: written.bytes(in: 0..<written.count), as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false)
    let changed = lines.map { $0.hasPrefix("\(key) = ") ? Substring(line) : $0 }
    #expect(changed != lines)
    #expect(throws: SettingsError.self) {
      try Enrollment.read(secret(changed.joined(separator: "\n").utf8))
    }
  }
}
