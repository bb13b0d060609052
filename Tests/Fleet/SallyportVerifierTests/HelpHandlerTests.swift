import CService
import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What helpers do for somebody of a fleet` {
  private let verifier: Verifier
  private let name: String
  private let directory: TemporaryDirectory
  private let id: UInt64 = 0xe0e0
  private var user: UserName { get throws { try #require(UserName(name.utf8)) } }

  init() throws {
    verifier = try Verifier("helped")
    name = try verifier.enroll()
    directory = try TemporaryDirectory()
    try tell("")
  }

  /// The fleet's policy.
  private func tell(_ lines: String) throws {
    try Data("[default]\n\(lines)".utf8)
      .write(to: URL(fileURLWithPath: directory.path + "/sallyport.conf"))
  }

  private func ask(
    _ verb: HelpOrder.Verb, of verifier: Verifier? = nil, enrolls: Bool = true,
    arrived: UInt64? = nil
  ) throws -> HelpAnswer {
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: Array("web1".utf8), enrolls: enrolls)
    let order = HelpOrder(verb, by: try #require(UserName("carol".utf8)))
    let frame = try #require(PersonRequest(.help(order), of: try user).encoded())
    let database = (verifier ?? self.verifier).database
    let answer = ManagementHandler(database, FleetPolicy(in: directory.path))
      .answer(frame, from: asker, arrived: arrived ?? sys_monotonic())
    return try #require(HelpAnswer.decode(answer.body))
  }

  /// The answer in a word.
  private func word(
    _ verb: HelpOrder.Verb, of verifier: Verifier? = nil, enrolls: Bool = true
  ) throws -> String {
    switch try ask(verb, of: verifier, enrolls: enrolls) {
    case .refused(let refusal): "\(refusal)"
    case .lent(let tries): "lent \(tries)"
    case .told: "told"
    case .done: "done"
    case .notServed: "not served"
    case .trouble: "trouble"
    }
  }

  private func told() throws -> HelpedPerson {
    guard case .told(let person) = try ask(.show) else { throw CancellationError() }
    return person
  }

  private func pass(_ lifetime: UInt64 = 7200) throws -> HelpOrder.Verb {
    // By the clock of a host that is ahead.
    let now = UnixTime(try Clock.now().seconds + 18_000)
    return .give(try Pass.fresh(of: id, from: now, for: lifetime, uses: 1).pass, id: id)
  }

  private var policy: Policy {
    var policy = Policy()
    policy.isFleet = true
    return policy
  }

  private var lend: HelpOrder.Verb { .lend(under: policy, id: id) }

  /// Wrong codes from strangers, until none is checked any more.
  private func lock() throws {
    let now = try Clock.now().seconds
    for code in 0..<1000 {
      let outcome = try verifier.type("\(100_000 + code)", as: name, at: now)
      if case .refused(.response(.throttled, _)) = outcome { return }
    }
    Issue.record("not locked")
  }

  private func document() throws -> FleetDocument {
    try #require(try verifier.store(for: name).row(of: Array(name.utf8), reload: true)).document
  }

  @Test func `is two passes and one unlock in a week, whichever verifiers they ask`() throws {
    let other = try Verifier("other")
    try lock()
    let first = try pass()
    #expect(try word(first) == "done" && word(first) == "done", "asked for again, it is one")
    #expect(try word(pass(), of: other) == "done")
    #expect(try word(first, of: other) == "done")
    #expect(try word(pass()) == "enough" && word(pass(), of: other) == "enough")
    #expect(try word(lend, of: other) == "lent 5" && word(lend) != "lent 5")
    let person = try told()
    #expect(person.hasEnough == (true, true) && person.enrolled?.enrollment.passes.count == 2)
    for pass in person.enrolled?.enrollment.passes ?? [] {
      #expect(pass.created <= (try Clock.now()))
      #expect(pass.expires.seconds == pass.created.seconds + 7200)
    }
    #expect(try document().helped.acts.map(\.word) == [.pass, .pass, .unlock])
    // Another enrollment begins nothing again.
    let store = verifier.store(for: name)
    #expect(try store.end(store.account(named: user), id: id))
    let again = try fleetEnrollment([try authenticator(parameters())], name)
    let next = Enrollment(
      id: 7, user: again.user, uid: nil, created: again.created,
      authenticators: again.authenticators, backupCodes: nil)
    try store.create(next, LoginState(initialFor: next))
    let made = try Pass.fresh(of: 7, from: try Clock.now(), for: 7200, uses: 1).pass
    #expect(try word(.give(made, id: 7)) == "enough")
    #expect(try word(pass()) == "changed")
    let facts = verifier.acts.filter { $0.hasPrefix("act=pass ") || $0.hasPrefix("act=unlock ") }
    #expect(facts.count == 2 && other.acts.count == 3, "\(facts) \(other.acts)")
    for line in facts + other.acts {
      #expect(line.contains("by=host(web1) for=\(name)"), "\(line)")
      #expect(line.contains(" helper=carol "), "\(line)")
    }
    #expect(verifier.complaints.isEmpty && other.complaints.isEmpty)
  }

  // decisive
  // shows: climb-numbers
  @Test func `is two passes, however many are asked for at once`() throws {
    let verifiers = [verifier, try Verifier("second")]
    let asked = try (0..<12).map { number in
      let verb = try pass()
      return onThread { try word(verb, of: verifiers[number % 2]) }
    }
    try wait { asked.allSatisfy { $0.withLock { $0 != nil } } }
    let words = try asked.map { try $0.withLock { $0 }?.get() }
    #expect(words.filter { $0 == "done" }.count == 2 && words.filter { $0 == "enough" }.count == 10)
    #expect(try document().enrollment?.passes.count == 2)
  }

  // decisive
  // shows: climb-numbers
  @Test func `lends once, however many lend at once`() throws {
    try lock()
    let verifiers = [verifier, try Verifier("second")]
    let asked = (0..<8).map { number in
      onThread { try word(lend, of: verifiers[number % 2]) }
    }
    try wait { asked.allSatisfy { $0.withLock { $0 != nil } } }
    let words = try asked.map { try $0.withLock { $0 }?.get() }
    #expect(words.filter { $0 == "lent 5" }.count == 1, "\(words)")
  }

  // shows: climb-numbers
  @Test func `is renewed by a week, and by no clock that goes back`() throws {
    let now = try Clock.now().seconds
    #expect(try word(pass()) == "done" && word(pass()) == "done")
    for (name, time, expected) in [
      ("back", now - 30 * 86_400, "enough"), ("soon", now + 7 * 86_400 - 60, "enough"),
      ("later", now + 7 * 86_400 + 60, "done"), ("late-again", now + 7 * 86_400 + 61, "done"),
      ("back-again", now, "enough"),
    ] {
      let other = try Verifier(name, now: { UnixTime(time) })
      let made = try Pass.fresh(of: id, from: UnixTime(time), for: 600, uses: 1).pass
      #expect(try word(.give(made, id: id), of: other) == expected, "\(name)")
    }
  }

  // shows: climb-stricter
  @Test func `lends nothing to who is not locked, by the stricter of two policies`() throws {
    #expect(try word(lend) == "notLocked")
    var wide = policy
    wide.guessBudget = GuessProbability(units: 100_000_000_000)
    let verb = HelpOrder.Verb.lend(under: wide, id: id)
    let now = try Clock.now().seconds
    for number in 0..<10 {
      _ = try verifier.type("\(200_000 + number)", as: name, at: now)
    }
    #expect(try word(verb) == "notLocked")
    try tell("guess_budget = 0.01%\n")
    let found = try word(verb)
    #expect(found != "notLocked")
  }

  // shows: climb-block
  @Test func `blocks with his passes, and lifts nothing that root has blocked`() throws {
    let store = verifier.store(for: name)
    let account = store.account(named: try user)
    #expect(try word(pass()) == "done")
    #expect(try word(.unblock) == "notBlocked")
    #expect(try word(.block(until: nil)) == "done")
    #expect(try told().block == .helper && document().block?.helper?.text == "carol")
    #expect(try document().enrollment?.passes.isEmpty == true)
    #expect(try verifier.type("287082", as: name) == .refused(.blocked))
    #expect(try word(pass()) == "blockedByHelper" && word(lend) == "blockedByHelper")
    #expect(try word(.block(until: UnixTime(1 << 40))) == "done", "another end")
    #expect(try word(.block(until: UnixTime(5))) == "changed", "it would block nobody")
    #expect(try word(.unblock) == "done" && (try told().block) == .nobody)
    #expect(try store.block(account, until: nil))
    for verb in [.block(until: nil), .unblock, try pass(), lend] as [HelpOrder.Verb] {
      #expect(try word(verb) == "blockedByRoot")
    }
    #expect(try document().block?.helper == nil && told().block == .root)
    // What root has set up to a day that is over blocks nobody.
    #expect(try store.block(account, until: UnixTime(5)))
    #expect(try told().block == .nobody && word(.unblock) == "notBlocked")
    #expect(try word(.block(until: nil)) == "done" && told().block == .helper)
  }

  @Test func `tells neither secrets nor places, and changes nothing`() throws {
    _ = try verifier.type("287082", as: name)
    let version = try verifier.store(for: name).standing(of: user).version
    let (enrollment, state) = try #require(try told().enrolled)
    #expect(enrollment.id == id && state.origins.isEmpty && state.remembered.isEmpty)
    let secret = enrollment.authenticators[0].secret
    #expect(secret.bytes(in: 0..<secret.count).allSatisfy { $0 == 0 })
    #expect(try verifier.store(for: name).standing(of: user).version == version)
    #expect(verifier.acts.isEmpty)
  }

  // shows: climb-numbers
  @Test func `is done for no host that may not enroll, and for no other enrollment`() throws {
    let all = [.show, lend, try pass(), .block(until: nil), .unblock] as [HelpOrder.Verb]
    for verb in all { #expect(try word(verb, enrolls: false) == "not served") }
    let made = try Pass.fresh(of: 9, from: try Clock.now(), for: 7200, uses: 1).pass
    #expect(try word(.give(made, id: 9)) == "changed")
    #expect(try word(.lend(under: policy, id: 9)) == "changed")
    #expect(try document().helped.acts.isEmpty && verifier.acts.isEmpty)
  }
}
