import Foundation
import Testing

@testable import SallyportCLI

@Suite struct `The command` {
  private let bench = Bench()

  private func verify(_ code: String) -> Bench.Outcome {
    bench.run("verify", "--user", "alice", "--allow-missing", on: FakeTerminal([.types(code)]))
  }

  @Test func `goes by the intervals of the policy file`() throws {
    let enrolled = try bench.enroll()
    let late = try enrolled.code(at: bench.now, steps: -3)
    try bench.policy("[default]\nadjacent_intervals = 2\n")
    #expect(verify(late).status == 1)
    try bench.policy("[default]\nadjacent_intervals = 3\n")
    #expect(verify(late).status == 0)
  }

  @Test func `goes by the rules for this machine, this user and the service sallyport`() throws {
    let enrolled = try bench.enroll()
    for (step, rule) in ["match_origin = local", "match_user = alice", "match_service = sallyport"]
      .enumerated()
    {
      let code = try enrolled.code(at: bench.now, steps: step - 8)
      try bench.policy("[rule r]\nmatch_origin = network\nadjacent_intervals = 10\n")
      #expect(verify(code).status == 1)
      try bench.policy("[rule r]\n\(rule)\nadjacent_intervals = 10\n")
      #expect(verify(code).status == 0, "\(rule)")
    }
  }

  @Test func `tells of a broken policy file, and that the last good one holds`() throws {
    let code = try bench.enroll().code(at: bench.now, steps: -8)
    try bench.policy("[default]\nadjacent_intervals = 10\n")
    #expect(verify("000000").aside == "sallyport: wrong code\n")
    try bench.policy("[default]\nadjacent_intervals = 100\n")
    let done = verify(code)
    #expect(done.status == 0)
    #expect(
      done.aside.hasPrefix(
        "sallyport: \(bench.policyFile):2: adjacent_intervals: wanted is a whole number from 0 "
          + "to 10; the last good one holds\n"), "\(done.aside)")
  }

  @Test func `shows wrong codes left under the budget of the policy file`() throws {
    _ = try bench.enroll()
    try bench.policy("[default]\nguess_budget = 0.02 %\n")
    let text = bench.run("status", "--user", "alice", "--allow-missing").answer
    #expect(text.contains("wrong codes    5 more before a wait from known places, 5 from"))
    try bench.policy("[default]\nadjacent_intervals = 1\n")
    let unlocked = bench.run("unlock", "--user", "alice", "--allow-missing").answer
    #expect(unlocked.contains("Before: 20 more before a wait from known places, 20 from"))
  }

  @Test func `takes the first code of an app in the intervals of the policy file`() throws {
    try bench.policy("[default]\nadjacent_intervals = 0\n")
    let terminal = FakeTerminal([
      shownCode(at: bench.now, steps: 1), shownCode(at: bench.now),
    ])
    let done = bench.run("enroll", "--user", "bob", "--allow-missing", on: terminal)
    #expect(done.status == 0)
    #expect(done.answer.contains("Not the right code."))
  }
}
