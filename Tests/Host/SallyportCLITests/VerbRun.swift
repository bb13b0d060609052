import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportCLI

/// A case of Tests/Vectors/verbs.txt as root's command does it.
struct VerbRun {
  let one: VerbCase
  let way: VerbWay
  let user: String
  let now: UnixTime

  /// Runs the command as root, and checks what it says.
  func check(_ run: ([String], FakeTerminal) -> Bench.Outcome) throws {
    let (one, now) = (one, now)
    let script = one.typed(on: way).map { word in
      Act.answers { terminal in
        let isOfNew = word.hasPrefix("first")
        let shown = isOfNew ? try OtpauthURI(Array(terminal.uri().utf8)).secret : nil
        return try one.answer(word, at: now, new: shown)
      }
    }
    let terminal = FakeTerminal(script)
    let done = run(try words(), terminal)
    let word = word(done)
    #expect(word == one.outcome(on: way), "\(one): \(done.aside)")
    #expect(terminal.isUsedUp || word != one.outcome(on: way), "\(one)")
  }

  private func words() throws -> [String] {
    let names = Array(one.verb.dropFirst())
    switch one.verb[0] {
    case "renew": return ["backup-codes", user, "--regenerate"]
    case "revoke": return ["pass", user, "--revoke"]
    case "enroll", "add": return [one.verb[0], user] + names + ["--qr", "none"]
    case _: return [one.verb[0], user] + names
    }
  }

  private static let sentences = [
    ("nothing can be restored", "nothing"), ("is not blocked", "not-blocked"),
    ("is blocked", "blocked"), ("not enrolled", "not-enrolled"), ("already enrolled", "enrolled"),
    ("is enrolled in the fleet already", "enrolled"), ("has no authenticator", "no-such"),
    ("already has an authenticator", "name-taken"), ("authenticators, the maximum", "too-many"),
    ("open passes, the maximum", "too-many"),
    ("the last authenticator", "last"), ("too many wrong codes", "throttled"),
    ("wrong code", "wrong-code"), ("wrong number of digits", "malformed"),
    ("not two consecutive codes", "not-found"), ("its codes wait until", "waits"),
    ("used", "replayed"),
  ]

  private func word(_ done: Bench.Outcome) -> String {
    if done.status == 0 { return "done" }
    let said = done.answer + done.aside
    return Self.sentences.first { said.contains($0.0) }?.1 ?? "status \(done.status)"
  }
}

extension VerbCase {
  /// Where the case says so, does what a login with a pass does: `new` takes the place of all.
  func replace(_ account: Account, in store: some EnrollmentStore, at now: UnixTime) throws {
    guard let before = try store.load(account),
      let (given, new) = try replacement(of: before.enrollment, at: now)
    else { return }
    _ = try store.rewrite(before, given) { state in
      var state = state
      state.reconcile(with: given)
      state.passes[0].claim = 7
      return state
    }
    let record = try #require(try store.load(account))
    let done = try store.suspend(record, for: new, claim: 7, at: now)
    if case .changed = done { Issue.record("nothing was replaced") }
  }
}
