import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@Suite struct `A token over years` {
  private static let day: Int64 = 86_400
  private static let start: Int64 = 1_772_530_000

  /// A clock of its own, which gains that many seconds a day.
  private struct Device {
    var perDay = 0.0
    var ahead = 0.0

    func step(at time: Int64) -> UInt64 {
      let gained = perDay * Double(time - start) / Double(day)
      return UInt64((Double(time) + ahead + gained) / 30)
    }
  }

  /// What a machine knows of it.
  private struct Machine {
    let enrollment: Enrollment
    let generator: CodeGenerator
    var state: LoginState
    var policy = Policy()

    init(offset: Int32 = 0) throws {
      let one = try authenticator(clockOffset: offset)
      enrollment = try SallyportAdministrationTests.enrollment([one])
      generator = try CodeGenerator(secret: one.secret, algorithm: .sha1, digits: .six)
      state = LoginState(initialFor: enrollment)
      state.restartClocks(at: UnixTime(start))
    }

    var offset: Int32 { state.authenticators[0].clock?.offset ?? 0 }

    mutating func accepts(_ step: UInt64, at time: Int64) throws -> Bool {
      let decision = try decide(
        on: .code(generator.code(at: step), .six), enrollment: enrollment, state: state,
        from: .local(own: true), through: nil, at: UnixTime(time), under: policy)
      state = decision.state
      return decision.proof != nil
    }

    mutating func resync(to second: UInt64, at time: Int64) throws -> Resync {
      let pair = try CodePair(
        .code(generator.code(at: second - 1), .six), .code(generator.code(at: second), .six))
      let result = try SallyportAdministration.resync(
        by: #require(pair), named: nil, enrollment: enrollment, state: state,
        at: UnixTime(time), under: policy)
      state = result.1
      return result.0
    }
  }

  private typealias Use = (refused: Int, resyncs: Int, logins: Int)

  /// Logs in at this interval for three years; a refused code is followed by a resync.
  private func years(every days: Int64, _ perDay: Double, _ seed: UInt64) throws -> Use {
    var random = Seeded(seed)
    let device = Device(perDay: perDay)
    var machine = try Machine()
    var use: Use = (0, 0, 0)
    for login in 1...3 * 365 / days {
      var time = Self.start + login * days * Self.day + Int64(random.number(0...80_000))
      let delay = Int64(random.number(0...25))
      use.logins += 1
      if try machine.accepts(device.step(at: time - delay), at: time) { continue }
      use.refused += 1
      time += 60
      guard case .done(_, _, nil) = try machine.resync(to: device.step(at: time), at: time) else {
        continue
      }
      time += 60
      if try machine.accepts(device.step(at: time - delay), at: time) { use.resyncs += 1 }
    }
    return use
  }

  // shows: held-codes
  @Test(arguments: [2.0, -2.0, 0.5, -0.5, 0], [1, 2] as [UInt64])
  func `logs in once a week without a resync`(perDay: Double, seed: UInt64) throws {
    #expect(try years(every: 7, perDay, seed) == (0, 0, 156))
  }

  @Test(arguments: [2.0, -2.0, 0.5, -0.5], [3, 4] as [UInt64])
  func `logs in every two months, with one resync at most`(perDay: Double, seed: UInt64) throws {
    let use = try years(every: 60, perDay, seed)
    #expect(use.logins == 18 && use.resyncs == use.refused)
    if perDay.magnitude < 1 { #expect(use.refused == 0) }
  }

  /// Typed late, by one who sits between: by as much as is still accepted, or by a fixed time.
  // shows: held-codes
  @Test(arguments: [30, 59, nil] as [Int64?])
  func `is walked by eleven late codes a day no faster than a clock drifts`(late: Int64?) throws {
    let device = Device()
    var machine = try Machine()
    for code in 1...11 * 365 {
      let time = Self.start + Int64(code) * Self.day / 11
      let delay = late ?? 149 - Int64(machine.offset)
      #expect(try machine.accepts(device.step(at: time - delay), at: time))
      #expect(Int64(machine.offset) >= -2 * ((time - Self.start) / Self.day + 1))
      if let late { #expect(machine.offset >= -late) }
    }
    if late == nil { #expect(machine.offset < -700) }
  }

  // shows: held-codes
  @Test(arguments: [100, -100, 3600, -3600] as [Int64])
  func `does not learn in a day what the clock of the machine is wrong by`(wrong: Int64) throws {
    let device = Device()
    var machine = try Machine()
    var now = Self.start
    for _ in 0..<30 {
      now += Self.day
      #expect(try machine.accepts(device.step(at: now), at: now))
    }
    for _ in 0..<12 {
      now += Self.day / 12
      #expect(try machine.accepts(device.step(at: now), at: now + wrong) == (wrong.magnitude < 150))
      #expect(machine.offset.magnitude <= 2)
    }
    now += Self.day
    #expect(try machine.accepts(device.step(at: now), at: now))
    #expect(machine.offset.magnitude <= 2)
  }

  // shows: held-codes
  @Test(arguments: [0, 6000, -6000] as [Int32])
  func `has as many accepted steps as a phone, and a wrong code costs the same`(offset: Int32)
    throws
  {
    let machine = try Machine(offset: offset)
    let own = timeStep(at: Self.start + Int64(offset), period: 30)
    var accepted: [UInt64] = []
    for step in own - 415...own + 415 {
      var other = machine
      if try other.accepts(step, at: Self.start) { accepted.append(step) }
    }
    #expect(accepted == Array(own - 5...own + 5))
    let phone = try SallyportAdministrationTests.enrollment([authenticator()])
    #expect(
      Throttle(for: machine.enrollment, machine.state, under: Policy())
        == Throttle(for: phone, LoginState(initialFor: phone), under: Policy()))
  }

  /// Whatever is typed, and anybody may: of one token no code is accepted twice.
  // shows: held-codes
  @Test(arguments: 1...24 as ClosedRange<UInt64>)
  func `has no code accepted twice`(seed: UInt64) throws {
    var random = Seeded(seed)
    let device = Device(
      perDay: Double(random.number(-3...3)), ahead: Double(random.number(-5000...5000)))
    var machine = try Machine()
    machine.policy.adjacentIntervals = UInt8(random.number(0...10))
    var before = machine.state
    var (now, used) = (Self.start, Set<UInt64>())
    for _ in 0..<250 {
      now += Int64(random.pick([0, 5, 30, 60, 3000, 100_000, random.number(0...3_000_000)]))
      let shown = device.step(at: now)
      // Now and then what was shown a while ago, by somebody who saw it.
      let typed = shown - UInt64(random.pick([0, 0, 1, random.number(0...30), 190]))
      let last = machine.state
      switch random.number(0...9) {
      case 0:
        guard case .done(_, _, nil) = try machine.resync(to: typed, at: now) else { continue }
        // A pair that a save has lost is what is told of in docs/decisions.md.
        before = machine.state
        #expect(!used.contains(typed), "by two in a row")
        used.insert(typed)
        continue
      case 1:
        // The last save was lost.
        machine.state = before
        machine.state.distrustLoss(of: machine.enrollment, at: UnixTime(now))
      case 2: machine.state.distrustCopy(of: machine.enrollment, at: UnixTime(now))
      case _:
        if try machine.accepts(typed, at: now) {
          #expect(used.insert(typed).inserted, "step \(typed) at \(now)")
        }
      }
      before = last
    }
    try #require(!used.isEmpty)
  }
}
