import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `A login decision` {
  @Test func `has a table of cases, and each kind of outcome is in it`() throws {
    let outcomes = try DecisionCase.all().map { $0.wanted.prefix(2) }
    #expect(outcomes.count > 150)
    for reason in ["wrong-code", "replayed", "throttled", "clock", "malformed"] {
      #expect(outcomes.contains(["refuse", reason]))
    }
    #expect(outcomes.contains { $0.first == "accept" })
    #expect(outcomes.contains { $0.first == "accept-backup" })
  }

  // shows: slips, one-use, climb-stricter
  @Test(arguments: try DecisionCase.all())
  func `is what the table says`(each: DecisionCase) throws {
    let enrollment = try each.enrollment()
    var before = try each.state(for: enrollment)
    for typed in each.first {
      let decision = try each.decision(on: typed, enrollment, before)
      #expect(decision.proof != nil, "first \(typed)")
      before = decision.state
    }
    let decision = try each.decision(on: each.typed, enrollment, before)
    #expect(decision.words == each.wanted)
    if let until = each.until { #expect(decision.refusal == .replayed(until: until)) }
    let wanted = try each.wantedState(before: each.state(for: enrollment), decision)
    #expect(decision.state.facts == wanted.facts)
  }

  // decisive
  @Test(arguments: try DecisionCase.all())
  func `is the same when made twice from the same facts`(each: DecisionCase) throws {
    let enrollment = try each.enrollment()
    let state = try each.state(for: enrollment)
    let one = try each.decision(on: each.typed, enrollment, state)
    let two = try each.decision(on: each.typed, enrollment, state)
    #expect(one.words == two.words)
    #expect(one.state == two.state)
  }

  /// Saved and read again, the state says the same: what is decided on is what the disk keeps.
  @Test(arguments: try DecisionCase.all())
  func `leaves a state that the disk can keep`(each: DecisionCase) throws {
    let enrollment = try each.enrollment()
    let state = try each.decision(on: each.typed, enrollment, each.state(for: enrollment)).state
    #expect(try StateRecord.read(StateRecord.fresh(state)).state == state)
  }
}
