import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import SessionProtocol
import TestSupport
import Testing

@testable import SallyportSession

private func refusal(_ end: FromSession) -> ChangeRefusal? {
  if case .refused(let refusal, _) = end { refusal } else { nil }
}

@Suite struct `A helper without root` {
  @Test func `gives a pass, which is shown once and lets in once`() throws {
    let desk = try Helpdesk()
    let before = try Clock.now()
    guard case .passed(let user, let code, let end) = try desk.help(.pass, "bob") else {
      Issue.record("no pass")
      return
    }
    #expect(user.text == "bob" && (7199...7260).contains(end.seconds - before.seconds))
    #expect(try desk.passes(of: "bob") == 1 && desk.passes(of: "carol") == 0)
    let stored = try #require(try desk.store.load(try desk.account("bob"))?.enrollment)
    #expect(stored.passes.first?.uses == 1)
    #expect(try Pass.digest(code, of: stored.id) == stored.passes.first?.digest)
    #expect(desk.told == ["For bob (uid 3002): a pass, good for one login within two hours."])
    #expect(desk.prompts == ["Verification code to give a pass to bob: "])
    #expect(desk.counted("for-3002")?.hasPrefix("pass ") == true)
    #expect(desk.counted("by-3001") == desk.counted("for-3002"))
    let acts = desk.acts().map { $0.split(separator: " ").dropFirst() }
    #expect(acts.map { $0.last } == ["stage=will", "stage=done"])
    for act in acts { #expect(act.prefix(3) == ["act=pass", "by=carol", "for=bob"]) }
  }

  @Test func `gives a pass that enrolls, which counts as a pass`() throws {
    let desk = try Helpdesk()
    guard case .passed = try desk.help(.passEnroll, "bob") else {
      Issue.record("no pass")
      return
    }
    let stored = try #require(try desk.store.load(try desk.account("bob"))?.enrollment)
    #expect(stored.passes.map(\.enrolls) == [true] && stored.passes.map(\.uses) == [Pass.claims])
    #expect(desk.prompts == ["Verification code to give a pass that enrolls to bob: "])
    #expect(desk.counted("for-3002")?.hasPrefix("pass ") == true)
    #expect(desk.acts().last?.contains("act=pass by=carol for=bob") == true)
  }

  @Test func `is refused with a reason for the log, whatever it is`() {
    let refused: [(String, (inout HelpFacts) -> Void)] = [
      ("has the uid 0", { $0.uid = 0 }), ("is the helper himself", { $0.isHimself = true }),
      ("in no group of helpdesk_for", { $0.isHelped = .no }),
      ("not known whether in a group of helpdesk_for", { $0.isHelped = .unknown }),
      ("in a group of helpdesk_never", { $0.isNever = .yes }),
      ("not known whether in a group of helpdesk_never", { $0.isNever = .unknown }),
      ("another helper", { $0.isAnotherHelper = .yes }),
      ("not known whether another helper", { $0.isAnotherHelper = .unknown }), ("", { _ in }),
    ]
    for (why, change) in refused {
      var facts = HelpFacts()
      (facts.uid, facts.isHimself, facts.isHelped) = (3002, false, .yes)
      (facts.isNever, facts.isAnotherHelper) = (.no, .no)
      change(&facts)
      #expect(HelpSearch.bar(facts) == why)
    }
  }

  @Test func `sees what is enrolled, without secrets`() throws {
    let desk = try Helpdesk()
    guard case .status(let text, _) = try desk.help(.status, "bob") else {
      Issue.record("no status")
      return
    }
    let shown = try Enrollment.read(text)
    #expect(shown.user.text == "bob")
    let stored = try #require(try desk.store.load(try desk.account("bob"))?.enrollment)
    #expect(bytes(shown.authenticators[0].secret) != bytes(stored.authenticators[0].secret))
    #expect(desk.counted("by-3001") == nil)
  }

  // MARK: lending

  private func spend(_ desk: Helpdesk, _ change: (inout LoginState, Bucket) -> Void) throws {
    let record = try #require(try desk.store.load(try desk.account("bob")))
    let throttle = Throttle(for: record.enrollment, record.state, under: Policy())
    let spent = Bucket(spent: throttle.capacity, since: try Clock.now())
    _ = try desk.store.transact(record) { (_, state) throws(StoreTrouble) in
      var next = state
      change(&next, spent)
      return ((), next)
    }
  }

  private func left(_ desk: Helpdesk) throws -> (known: UInt64, other: UInt64) {
    let record = try #require(try desk.store.load(try desk.account("bob")))
    let throttle = Throttle(for: record.enrollment, record.state, under: Policy())
    let now = try Clock.now()
    return (
      throttle.responsesLeft(in: record.state.known, at: now),
      throttle.responsesLeft(in: record.state.other, at: now)
    )
  }

  // shows: climb-unlock
  @Test func `lends five tries, of the budget of other places`() throws {
    let desk = try Helpdesk()
    try spend(desk) { $0.known = $1 }
    guard case .lent(let user, let tries) = try desk.help(.unlock, "bob") else {
      Issue.record("nothing was lent")
      return
    }
    #expect(user.text == "bob" && tries == 5)
    let left = try left(desk)
    #expect(left.known == 5 && left.other == 15)
    // decisive: not again, by nobody
    try spend(desk) { $0.known = $1 }
    #expect(refusal(try desk.help(.unlock, "bob")) == .helpedEnough)
    #expect(refusal(try desk.help(.unlock, "bob", by: "hana")) == .helpedEnough)
    #expect(try self.left(desk).other == 15)
  }

  @Test func `lends nothing where nothing is needed, or left`() throws {
    let desk = try Helpdesk()
    #expect(refusal(try desk.help(.unlock, "bob")) == .notLocked)
    try spend(desk) { ($0.known, $0.other) = ($1, $1) }
    #expect(refusal(try desk.help(.unlock, "bob")) == .nothingToLend)
    #expect(desk.counted("for-3002") == nil)
  }

  // MARK: how often

  // shows: climb-numbers
  @Test func `gives two passes in seven days to one person, whichever helper asks`() throws {
    let desk = try Helpdesk()
    for helper in ["carol", "hana"] {
      guard case .passed = try desk.help(.pass, "bob", by: helper) else {
        Issue.record("no pass")
        return
      }
    }
    for helper in ["carol", "hana"] {
      for act in [HelpAct.pass, .passEnroll] {
        #expect(refusal(try desk.help(act, "bob", by: helper)) == .helpedEnough)
      }
    }
    #expect(try desk.passes(of: "bob") == 2)
    // Of before the seven days they count no more.
    let old = try Clock.now().seconds - 7 * 86_400 - 1
    try desk.count("for-3002", "pass \(old)\npass \(old)\n")
    guard case .passed = try desk.help(.pass, "bob") else {
      Issue.record("no pass")
      return
    }
  }

  // shows: climb-numbers
  @Test func `is not renewed by a clock that is set back`() throws {
    let desk = try Helpdesk()
    let ahead = try Clock.now().seconds + 30 * 86_400
    try desk.count("for-3002", "pass \(ahead)\npass \(ahead)\n")
    #expect(refusal(try desk.help(.pass, "bob")) == .helpedEnough)
  }

  // shows: log-flood, climb-numbers
  @Test func `does ten acts a day, and the log is told once of more`() throws {
    let desk = try Helpdesk()
    let now = try Clock.now().seconds
    try desk.count("by-3001", (Int64(0)..<9).map { "pass \(now - 86_000 + $0)\n" }.joined())
    guard case .passed = try desk.help(.pass, "bob") else {
      Issue.record("no pass")
      return
    }
    for _ in 0..<3 { #expect(refusal(try desk.help(.pass, "bob")) == .helpedToday) }
    let lines = desk.counted("by-3001")?.split(separator: "\n") ?? []
    #expect(lines.count == 11 && lines.filter { $0.hasPrefix("alert ") }.count == 1)
    // Another helper goes on.
    guard case .passed = try desk.help(.pass, "bob", by: "hana") else {
      Issue.record("no pass")
      return
    }
  }

  // decisive
  // shows: climb-numbers
  @Test(arguments: [
    "x", "pass", "pass 1", "pass -1\n", "pass 01\n", "pass 1 2\n", "blocks 1\n", "\n", "pass 1\n\n",
    "pass 99999999999999999999\n", "\u{0}", "Pass 1\n",
  ]) func `is refused where a file that counts is no such file`(_ text: String) throws {
    for name in ["for-3002", "by-3001"] {
      let desk = try Helpdesk()
      try desk.count(name, text)
      #expect(refusal(try desk.help(.pass, "bob")) == .failed)
      #expect(try desk.passes(of: "bob") == 0 && desk.counted(name) == text)
    }
  }

  // decisive
  // shows: climb-numbers
  @Test func `is counted exactly, however many ask at once`() throws {
    let desk = try Helpdesk()
    let (store, now) = (desk.store, try Clock.now())
    let taken = Counter()
    DispatchQueue.concurrentPerform(iterations: 12) { number in
      do {
        let limit = try store.countHelp(.pass, by: UInt32(4000 + number), for: 3002, at: now)
        if limit == nil { taken.add() }
      } catch {
        Issue.record("\(error)")
      }
    }
    #expect(taken.count == 2)
    #expect(desk.counted("for-3002")?.split(separator: "\n").count == 2)
  }
}

/// Counts from several threads.
private final class Counter: @unchecked Sendable {
  private let lock = NSLock()
  private var value = 0

  var count: Int { lock.withLock { value } }
  func add() { lock.withLock { value += 1 } }
}
