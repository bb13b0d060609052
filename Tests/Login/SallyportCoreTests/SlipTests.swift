import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `A typing error` {
  /// As the manual says it, on the text.
  private func isSlip(_ a: [Character], _ b: [Character]) -> Bool {
    let changed = a.indices.filter { a[$0] != b[$0] }
    if changed.count == 1 { return true }
    guard changed.count == 2, changed[1] == changed[0] + 1 else { return false }
    return a[changed[0]] == b[changed[1]] && a[changed[1]] == b[changed[0]]
  }

  private func text(_ code: UInt32) -> [Character] {
    let digits = Array(String(code))
    return [Character](repeating: "0", count: 8 - digits.count) + digits
  }

  @Test func `is one digit that is another, or two neighbouring digits swapped, and no more`() {
    var random = Seeded(50)
    for round in 0..<400 {
      let most = [999_999, 9_999_999, 99_999_999][round % 3]
      let code = UInt32(random.number(0...most))
      var (typed, near) = (Set([code, 0, UInt32(most)]), 0)
      var place: UInt32 = 1
      while place <= most {
        let others = code - code / place % 10 * place
        for digit in UInt32(0)..<10 { typed.insert(others + digit * place) }
        let (one, two) = (code / place % 10, code / place / 10 % 10)
        if place * 10 <= most {
          typed.insert(code - one * place - two * place * 10 + two * place + one * place * 10)
          // Both by as much as if they were swapped, but not.
          typed.insert(code - code / place % 100 * place + UInt32(random.number(0...99)) * place)
        }
        place *= 10
      }
      for _ in 0..<30 { typed.insert(UInt32(random.number(0...most))) }
      for other in typed {
        let wanted = isSlip(text(code), text(other))
        #expect(PackedDigits(code).isSlip(of: PackedDigits(other)) == wanted, "\(code) \(other)")
        near += wanted ? 1 : 0
      }
      #expect(near >= (round % 3 + 6) * 9)
    }
  }

  /// Two neighbours that change by the same bits are swapped only if that is what they differ in.
  @Test func `of two digits is a swap, whatever the two were and became`() {
    for before in UInt32(0)..<100 {
      for after in UInt32(0)..<100 {
        let (a, b) = (before * 1000 + 700_007, after * 1000 + 700_007)
        let wanted = isSlip(text(a), text(b))
        #expect(PackedDigits(a).isSlip(of: PackedDigits(b)) == wanted, "\(before) \(after)")
      }
    }
  }

  /// What stands for "throttled" is greater than any code.
  @Test func `has the decimal digits of any number`() {
    for code: UInt32 in [0, 9, 10, 99_999_999, 2_147_483_647, 4_294_967_295, 3_435_973_837] {
      let low = code % 100_000_000
      #expect(!PackedDigits(code).isSlip(of: PackedDigits(low)))
      let other = low % 10 == 9 ? low - 1 : low + 1
      #expect(PackedDigits(code).isSlip(of: PackedDigits(other)))
    }
  }
}

@Suite struct `What a login is given back` {
  private let charge = GuessProbability(units: 11_000_000)
  private let right = "050471"
  private let now = UnixTime(1_111_111_111)
  private let twice = Bucket(
    spent: GuessProbability(units: 22_000_000), since: UnixTime(1_111_111_000))

  private func decide(
    _ typed: String, _ state: LoginState, _ enrollment: Enrollment,
    as role: ResponseRole = .last(givingBack: nil)
  ) throws -> Decision {
    try SallyportCore.decide(
      on: Response.classify(secret(typed), for: enrollment), enrollment: enrollment, state: state,
      from: .local(own: true), through: label("su"), at: now, under: Policy(),
      as: role)
  }

  // decisive
  @Test func `is never what another enrollment was charged`() throws {
    let enrollment = try enrollment([authenticator()])
    for id: UInt64 in [0xe0e0, 0xe0e1] {
      let slip = Slip(authenticator: 1, position: 37_037_037, time: now, amount: charge)
      let state = LoginState(enrollmentID: 0xe0e0, known: twice, slip: slip)
      let decision = try decide(
        right, state, enrollment,
        as: .last(givingBack: Charge(enrollmentID: id, isKnown: true, amount: charge)))
      #expect(decision.proof != nil)
      #expect(decision.state.known.spent.units == (id == 0xe0e0 ? 11_000_000 : 22_000_000))
      #expect(decision.state.refunds == Refunds())
    }
  }

  // decisive
  @Test func `is exactly what the refusal says that it was charged`() throws {
    let enrollment = try enrollment([authenticator()])
    let before = LoginState(enrollmentID: 0xe0e0, known: Bucket(spent: charge, since: now))
    let refused = try decide("482913", before, enrollment)
    let state = refused.state
    guard case .wrongCode(let charged) = refused.refusal else {
      Issue.record("\(refused)")
      return
    }
    #expect(charged == Charge(enrollmentID: 0xe0e0, isKnown: true, amount: charge))
    #expect(state.known == Bucket(spent: GuessProbability(units: 22_000_000), since: now))
    let accepted = try decide(right, state, enrollment, as: .last(givingBack: charged))
    #expect(accepted.state.known == before.known)
    let replayed = try decide(
      right, accepted.state, enrollment, as: .last(givingBack: charged))
    let isReplay = if case .replayed = replayed.refusal { true } else { false }
    #expect(isReplay && replayed.state.known == before.known)
  }

  /// The first pass of one login is nearly right, and another login is accepted before its prompt.
  // decisive
  // shows: slips
  @Test func `is never the same charge twice`() throws {
    let enrollment = try enrollment([authenticator()])
    let before = LoginState(enrollmentID: 0xe0e0, known: Bucket(spent: charge, since: now))
    let first = try decide("050472", before, enrollment, as: .firstPass)
    let state = first.state
    guard case .wrongCode(let charged?) = first.refusal else {
      Issue.record("\(first)")
      return
    }
    #expect(state.slip == nil && state.known.spent.units == 22_000_000)
    let other = try decide(right, state, enrollment)
    #expect(other.proof != nil && other.state.known == state.known)
    let code = try CodeGenerator(secret: example(), algorithm: .sha1, digits: .six).code(
      at: 37_037_038)
    let next = "\(code)"
    let answer = try decide(
      String(repeating: "0", count: 6 - next.count) + next, other.state, enrollment,
      as: .last(givingBack: charged))
    #expect(answer.proof != nil && answer.state.known == before.known)
    #expect(answer.state.refunds == Refunds())
  }
}
