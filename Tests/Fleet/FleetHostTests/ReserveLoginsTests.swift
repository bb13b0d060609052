import FleetProtocol
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService
@testable import SallyportSystem

@Suite struct `A login while no verifier can be asked` {
  // decisive
  // shows: cut-off
  @Test func `is let in by a backup code, once, also by a service that was restarted`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
    let left = BudgetLeft(known: 0, other: 0)
    let replayed = Outcome.refused(.response(.replayed(until: UnixTime(0)), left: left))
    #expect(try host.type(first, as: "alice") == replayed)
    let again = try host.restarted()
    #expect(try host.type(first, as: "alice", in: again) == replayed)
    #expect(try again.isPending(name("alice")))
    #expect(try host.type(second, as: "alice", in: again) == .accepted(.backupCode(left: 0)))
    #expect(host.log.contains { $0.hasPrefix("no verifier can be asked: backup code accepted:") })
    #expect(host.lines.withLock { $0.allSatisfy { $0.0 == .warning } })
  }

  // shows: cut-off
  @Test(arguments: ["123456", "1234567", "12345678"])
  func `is refused with any code of an authenticator`(_ code: String) throws {
    let host = try CutHost()
    try host.logIn("alice")
    let left = BudgetLeft(known: 0, other: 0)
    for person in ["alice", "bob"] {
      #expect(
        try host.type(code, as: person) == .refused(.response(.malformed(.length), left: left)))
    }
  }

  // shows: cut-off
  @Test func `does not say who is in the reserve, nor who has an account`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    for text in ["0000-0000-0000-000A", "a", "", "x y", "\u{8}\n\r\u{7f}INCORRECT"] {
      let answers = [
        try host.type(text, as: "alice"), try host.type(text, as: "bob"),
        try host.type(text, as: "nobody", uid: nil), try host.type(text, as: "../x"),
      ]
      #expect(answers.allSatisfy { $0 == answers[0] }, "\(answers)")
    }
    #expect(host.log.contains { $0.contains("user=bob") && $0.hasSuffix("reserve=no") })
  }

  // shows: cut-off
  @Test(
    arguments: [EnrollmentLevel.refuse, .required, .offer, .remind, .voluntary], [0, 30 * 86_400])
  func `is asked and refused at every level, if not in the reserve`(
    _ level: EnrollmentLevel, _ remember: UInt64
  ) throws {
    let host = try CutHost()
    try host.logIn("alice")
    // Enrolled in the fleet, and never logged in here.
    host.fleet.change { $0.people[Array("bob".utf8)] = $0.people[Array("alice".utf8)] }
    // Exempt, as far as this machine's own store would say.
    try host.reserve.store.setLevel(.exempt(until: nil), of: Account(name: name("carol"), uid: 1))
    var policy = Policy()
    (policy.enrollment, policy.remember) = (level, remember)
    let asked = try host.ask(
      .prepare(mayEnroll: true, after: .password), "alice", policy: policy)
    guard case .prompt(.enrolled, let shape)? = asked else {
      Issue.record("\(String(describing: asked))")
      return
    }
    #expect(shape.isAway && !shape.isRemembered && shape.authenticators.isEmpty && shape.wait == 0)
    for person in ["bob", "carol", "dave"] {
      for first in [FirstFactor.password, .key] {
        let verb = LoginQuestion.Verb.prepare(mayEnroll: true, after: first)
        #expect(try host.ask(verb, person, policy: policy) == asked)
      }
      #expect(try host.ask(.enrolled, person, policy: policy) == asked)
      #expect(try host.ask(.level, person, policy: policy) == .level(.refuse))
      #expect(try host.type(first, as: person, policy: policy) == wrong)
    }
    for verb in [LoginQuestion.Verb.remember, .count, .rehearse] {
      #expect(try host.ask(verb, "carol", policy: policy) == nil)
    }
    let codes = try codes(1)
    #expect(try host.ask(.amend(.renew(codes), to: 0xe0e0), "alice", policy: policy) == nil)
    #expect(try host.type(first, as: "alice", policy: policy) == .accepted(.backupCode(left: 1)))
  }

  @Test func `is refused where the policy has no backup codes`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    var policy = Policy()
    policy.backupCode = .off
    #expect(try host.type(first, as: "alice", policy: policy) == wrong)
    #expect(try !host.reserve.isPending(name("alice")))
  }

  // shows: reserve-ends
  @Test func `is refused by a reserve that is too old, as somebody who is not in it`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    host.pass(7 * 86_400 - 1)
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
    host.pass(1)
    #expect(try host.type(second, as: "alice") == wrong)
  }

  // decisive
  // shows: cut-off
  @Test func `uses a code once, of many who type it at once`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    let accepted = Locked(0)
    DispatchQueue.concurrentPerform(iterations: 16) { _ in
      if case .accepted? = try? host.type(first, as: "alice") { accepted.withLock { $0 += 1 } }
    }
    #expect(accepted.withLock { $0 } == 1)
  }

  @Test func `changes nothing where it cannot be noted that a code has to go up`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    try Data().write(to: URL(fileURLWithPath: host.path + "/pending"))
    #expect(throws: StoreTrouble.self) { _ = try host.type(first, as: "alice") }
    #expect(try host.entry("alice")?.used == 0)
  }

  @Test func `is refused after the caller has given up, and its code is good`() throws {
    let host = try CutHost()
    try host.logIn("alice")
    let verb = LoginQuestion.Verb.attempt(
      try secret(first), knownAs: nil, as: .last(givingBack: nil))
    #expect(throws: StoreTrouble.self) {
      _ = try host.logins().answer(question(verb, until: 1))
    }
    #expect(try host.type(first, as: "alice") == .accepted(.backupCode(left: 1)))
  }
}
