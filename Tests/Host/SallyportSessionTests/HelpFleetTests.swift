import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol
import TestSupport
import Testing

@testable import SallyportSession

/// As verifiers have bob, whom no file of the machine says anything of.
private final class Bob {
  let enrollment: Enrollment
  var state: LoginState
  var block = BlockSetter.nobody
  var hasEnough = (passes: false, tries: false)
  var isEnrolled = true
  /// To what changes him.
  var answer: HelpAnswer? = .done

  init(of desk: Helpdesk) throws {
    let record = try #require(try desk.store.load(try desk.account("bob")))
    enrollment = try #require(record.enrollment.withoutSecrets).with(uid: nil)
    state = LoginState(initialFor: enrollment)
    _ = try desk.store.end(try desk.account("bob"), id: enrollment.id)
    try desk.policy("\(Helpdesk.lines)\(Helpdesk.may)verification = fleet\n")
    desk.world.fleet = { [self] request in
      if case .show = request.order.verb {
        return .told(
          HelpedPerson(isEnrolled ? (enrollment, state) : nil, block: block, hasEnough: hasEnough))
      }
      return answer
    }
  }
}

@Suite struct `A helper of people of a fleet` {
  private func refusal(_ end: FromSession) -> ChangeRefusal? {
    if case .refused(let refusal, _) = end { refusal } else { nil }
  }

  private func spent(_ bob: Bob, _ desk: Helpdesk) throws -> Bucket {
    let throttle = Throttle(for: bob.enrollment, bob.state, under: Policy())
    return Bucket(spent: throttle.capacity, since: try Clock.now())
  }

  @Test func `gives a pass that the verifiers keep, and counts it for himself alone`() throws {
    let desk = try Helpdesk()
    let bob = try Bob(of: desk)
    for (act, uses, enrolls) in [(HelpAct.pass, 1, false), (.passEnroll, Int(Pass.claims), true)] {
      guard case .passed(let user, let code, let end) = try desk.help(act, "bob"),
        case .give(let pass, let id)? = desk.world.asked.last?.order.verb
      else {
        Issue.record("no pass")
        return
      }
      #expect(user.text == "bob" && id == bob.enrollment.id && end == pass.expires)
      #expect(try Pass.digest(code, of: id) == pass.digest)
      #expect(pass.uses == uses && pass.enrolls == enrolls)
    }
    let names = desk.world.asked.map { [$0.name.text, $0.order.helper.text] }
    #expect(names.allSatisfy { $0 == ["bob", "carol"] })
    #expect(desk.world.asked.count == 4, "each is looked up once, and done once")
    #expect(desk.counted("for-3002") == nil)
    #expect(desk.counted("by-3001")?.split(separator: "\n").count == 2)
    let place = "replaces all there is, on all hosts of the fleet."
    #expect(desk.told.last?.hasSuffix(place) == true)
    let ends = desk.acts().map { $0.split(separator: " ").last }
    #expect(ends == ["stage=will", "stage=done", "stage=will", "stage=done"])
  }

  @Test func `sees what is enrolled, lends, blocks and lifts`() throws {
    let desk = try Helpdesk()
    let bob = try Bob(of: desk)
    guard case .status(let text, let state) = try desk.help(.status, "bob") else {
      Issue.record("no status")
      return
    }
    let shown = try Enrollment.read(text)
    #expect(shown.user.text == "bob" && shown.uid == 3002)
    #expect(try StateRecord.read(bytes(state)).state.enrollmentID == shown.id)
    #expect(desk.counted("by-3001") == nil)
    bob.state.known = try spent(bob, desk)
    bob.answer = .lent(5)
    guard case .lent(_, tries: 5) = try desk.help(.unlock, "bob"),
      case .lend(let policy, bob.enrollment.id)? = desk.world.asked.last?.order.verb
    else {
      Issue.record("nothing was lent")
      return
    }
    #expect(policy.isFleet)
    bob.answer = .done
    let end = UnixTime(try Clock.now().seconds + 86_400)
    for (act, verb) in [
      (HelpAct.block(until: end), HelpOrder.Verb.block(until: end)), (.unblock, .unblock),
    ] {
      guard case .done = try desk.help(act, "bob") else {
        Issue.record("\(act)")
        return
      }
      #expect(desk.world.asked.last?.order.verb == verb)
      #expect(try !desk.isBlocked("bob"))
      bob.block = .helper
    }
    #expect(refusal(try desk.help(.block(until: UnixTime(5)), "bob")) == .changed)
    #expect(desk.acts().filter { $0.hasSuffix("stage=done") }.count == 3)
  }

  @Test func `does nothing that the verifiers, or root of the machine, say he may not`() throws {
    let desk = try Helpdesk()
    let bob = try Bob(of: desk)
    bob.hasEnough = (true, true)
    bob.state.known = try spent(bob, desk)
    #expect(refusal(try desk.help(.pass, "bob")) == .helpedEnough)
    #expect(refusal(try desk.help(.unlock, "bob")) == .helpedEnough)
    bob.hasEnough = (false, false)
    (bob.block, bob.isEnrolled) = (.helper, true)
    #expect(refusal(try desk.help(.pass, "bob")) == .blockedByHelper)
    bob.block = .root
    for act in Helpdesk.acts { #expect(refusal(try desk.help(act, "bob")) == .blockedByRoot) }
    bob.block = .nobody
    #expect(refusal(try desk.help(.unblock, "bob")) == .notBlocked)
    bob.isEnrolled = false
    #expect(refusal(try desk.help(.pass, "bob")) == .helpedNotEnrolled)
    bob.isEnrolled = true
    _ = try desk.store.block(try desk.account("bob"), until: nil, at: UnixTime(1))
    for act in Helpdesk.acts { #expect(refusal(try desk.help(act, "bob")) == .blockedByRoot) }
    let verbs = desk.world.asked.map(\.order.verb)
    #expect(verbs.allSatisfy { $0 == .show } && desk.counted("by-3001") == nil && desk.acts() == [])
  }

  /// Decided by the verifiers in the change itself.
  @Test func `is told what came of it`() throws {
    let desk = try Helpdesk()
    let bob = try Bob(of: desk)
    let table: [(HelpAnswer?, ChangeRefusal)] = [
      (.refused(.enough), .helpedEnough), (.refused(.changed), .changed),
      (.refused(.blockedByRoot), .blockedByRoot), (.notServed, .helpInFleet), (.trouble, .unknown),
      (nil, .unknown),
      (.told(HelpedPerson(nil, block: .nobody, hasEnough: (false, false))), .unknown),
    ]
    for (answer, wanted) in table {
      bob.answer = answer
      let before = desk.acts().count
      #expect(refusal(try desk.help(.pass, "bob")) == wanted, "\(wanted)")
      // Where it is not known, the first line stands alone.
      let stages = desk.acts().dropFirst(before).compactMap { $0.split(separator: "=").last }
      #expect(stages.first == "will" && !stages.contains("done"))
      if answer == nil { #expect(stages == ["will"]) }
    }
    // The fleet's own budget may be the smaller one: what is left by the host's says nothing.
    for (answer, wanted) in [
      (HelpAnswer.Refusal.notLocked, ChangeRefusal.notLocked), (.spent, .nothingToLend),
    ] {
      bob.answer = .refused(answer)
      #expect(refusal(try desk.help(.unlock, "bob")) == wanted)
    }
    desk.world.fleet = { _ in nil }
    #expect(refusal(try desk.help(.pass, "bob")) == .failed)
    desk.world.fleet = { _ in .notServed }
    #expect(refusal(try desk.help(.pass, "bob")) == .helpInFleet)
  }

  /// Of a fleet that has done it, and whose answer was lost.
  @Test func `asks once more for the same pass where no answer came`() throws {
    let desk = try Helpdesk()
    let bob = try Bob(of: desk)
    var lost = 1
    let told = desk.world.fleet
    desk.world.fleet = { request in
      guard case .give = request.order.verb, lost > 0 else { return told(request) }
      lost -= 1
      return .trouble
    }
    guard case .passed = try desk.help(.pass, "bob") else {
      Issue.record("no pass")
      return
    }
    let asked = desk.world.asked.map(\.order.verb).filter { $0 != .show }
    #expect(asked.count == 2 && asked.first == asked.last)
    lost = 2
    #expect(refusal(try desk.help(.pass, "bob")) == .unknown)
    lost = 1
    bob.state.known = try spent(bob, desk)
    bob.answer = .trouble
    let before = desk.world.asked.count
    #expect(refusal(try desk.help(.unlock, "bob")) == .unknown)
    #expect(desk.world.asked.count == before + 2, "looked up, and lent once at most")
  }

  // decisive
  // shows: climb-nobody
  @Test func `asks of nobody before his own password and code were right`() throws {
    let desk = try Helpdesk()
    _ = try Bob(of: desk)
    for act in Helpdesk.acts.prefix(3) { _ = try desk.help(act, "bob", typing: "000000") }
    desk.acceptsPassword = false
    for act in Helpdesk.acts { _ = try desk.help(act, "bob") }
    #expect(desk.world.asked == [])
  }

  /// From before its people were the fleet's.
  @Test func `lifts what a helper has left in the files of the machine`() throws {
    let desk = try Helpdesk()
    let bob = try Bob(of: desk)
    _ = try desk.store.block(
      try desk.account("bob"), until: nil, at: UnixTime(1), by: UserName("hana".utf8))
    #expect(refusal(try desk.help(.pass, "bob")) == .blockedByHelper)
    bob.answer = .refused(.notBlocked)
    guard case .done = try desk.help(.unblock, "bob") else {
      Issue.record("not lifted")
      return
    }
    #expect(try !desk.isBlocked("bob"))
    #expect(desk.acts().map { $0.split(separator: " ").last } == ["stage=will", "stage=done"])
  }
}
