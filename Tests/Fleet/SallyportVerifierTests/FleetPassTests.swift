import CService
import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportCore
@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A pass that enrolls in a fleet` {
  private let own: OwnDatabase
  private let one: Verifier
  private let two: Verifier
  private let name = "lost-\(UUID().uuidString)"
  private let now = UnixTime(59)

  init() throws {
    own = try OwnDatabase()
    (one, two) = (
      try Verifier("one", in: own, now: { UnixTime(59) }),
      try Verifier("two", in: own, now: { UnixTime(59) })
    )
    let enrollment = try fleetEnrollment(
      [try authenticator(parameters())], name,
      codes: backupCodes(["7KMF2X9QD4TW0HZA"], scratch: ["12345678"], id: 0xb0b0))
    try one.store(for: name).create(enrollment, LoginState(initialFor: enrollment))
  }

  private var account: Account {
    get throws { Account(name: try #require(UserName(Array(name.utf8))), uid: 1000) }
  }

  private func context() throws -> LoginContext {
    LoginContext(policy: Policy(), origin: .unknown, service: try label("sshd"))
  }

  private func authority(_ verifier: Verifier) -> RecordAuthority<FleetStore> {
    let now = now
    return RecordAuthority(store: verifier.store(for: name)) { now }
  }

  private func pending(_ verifier: Verifier) throws -> PendingLogin {
    try #require(try authority(verifier).enrolled(try account, in: try context()))
  }

  /// Gives a pass, and its code.
  private func give() throws -> Secret {
    let (code, pass) = try Pass.fresh(
      of: 0xe0e0, from: now, for: 7200, uses: Pass.claims, enrolls: true)
    let made = try authority(one).amend(
      .give(pass), of: try account.name, try pending(one), in: try context())
    #expect(made == .done)
    return code
  }

  private func claim(_ code: Secret, _ random: UInt64, by verifier: Verifier) throws -> Outcome {
    try authority(verifier).attempt(
      code, knownAs: nil, by: try pending(verifier), as: .claim(random))
  }

  private func replace(_ random: UInt64, by verifier: Verifier, as authenticator: String = "new")
    throws -> Amendment
  {
    let made = try SallyportVerifierTests.authenticator(
      UInt64(authenticator.utf8.count) + 20, authenticator, parameters())
    return try authority(verifier).amend(
      .replace([made], backupCodes: nil, claim: random), of: try account.name,
      try pending(verifier), in: try context())
  }

  private var enrollment: Enrollment {
    get throws { try #require(try two.store(for: name).load(try account)).enrollment }
  }

  @Test func `puts a new phone in the place of all, and what was there comes back`() throws {
    let code = try give()
    #expect(try claim(code, 5, by: one) == .accepted(.claim(left: 2)))
    #expect(try replace(5, by: two) == .done)
    #expect(try enrollment.authenticators.map(\.name.text) == ["new"])
    #expect(try enrollment.backupCodes == nil && enrollment.passes.isEmpty)
    #expect(try replace(5, by: one) == .changed, "it is spent")
    #expect(try !one.type("7KMF2X9QD4TW0HZA", as: name).isAccepted)
    let suspension = try #require(try enrollment.suspended.first)
    let store = two.store(for: name)
    let shown = try #require(try store.former(suspension.id, of: try account.name, id: 0xe0e0))
    #expect(shown.authenticators.map(\.name.text) == ["phone"])
    #expect(Set(bytes(shown.authenticators[0].secret)) == [0])
    #expect(try !store.restore(suspension.id ^ 1, of: try account, id: 0xe0e0))
    #expect(try !store.restore(suspension.id, of: try account, id: 0xe0e1))
    #expect(try store.restore(suspension.id, of: try account, id: 0xe0e0))
    #expect(try !store.restore(suspension.id, of: try account, id: 0xe0e0), "once")
    let back = try enrollment
    #expect(back.authenticators.map(\.name.text) == ["phone"] && back.suspended.isEmpty)
    // Of the backup codes those that no host can have used while it was cut off.
    #expect(back.backupCodes?.digests == [] && back.backupCodes?.scratchDigests.count == 1)
    #expect(try !one.type("287082", as: name).isAccepted, "codes up to now are used")
    #expect(try !one.type("7KMF2X9QD4TW0HZA", as: name).isAccepted)
    #expect(try one.type("12345678", as: name).isAccepted)
    #expect(one.complaints.isEmpty && two.complaints.isEmpty)
  }

  // shows: pass-enroll-fleet
  @Test func `is the last login's that claimed it, on any verifier, three times in all`() throws {
    let code = try give()
    #expect(try claim(code, 5, by: one).isAccepted && claim(code, 6, by: two).isAccepted)
    #expect(try replace(5, by: one) == .changed && replace(0, by: one) == .changed)
    #expect(try claim(code, 7, by: one).isAccepted && !claim(code, 8, by: two).isAccepted)
    #expect(try replace(6, by: two) == .changed && replace(7, by: two) == .done)
  }

  /// A lock keeps both saves waiting, after both verifiers have loaded the same rows.
  // decisive
  // shows: pass-enroll-fleet
  @Test func `makes one enrollment where two verifiers store one at once`() throws {
    #expect(try claim(try give(), 5, by: one).isAccepted)
    let record = try #require(try two.store(for: name).load(try account))
    _ = try one.ask("BEGIN")
    _ = try one.ask(
      "SELECT FROM state WHERE name = $1 FOR UPDATE", [.bytes(Array(name.utf8))])
    let made = [(one, "first"), (two, "second")].map { verifier, authenticator in
      onThread { try replace(5, by: verifier, as: authenticator) }
    }
    try waitForLocks(2, in: one)
    _ = try one.ask("COMMIT")
    try wait { made.allSatisfy { one in one.withLock { $0 != nil } } }
    let results = try made.map { one in try one.withLock { $0 }?.get() }
    #expect(
      results.filter { $0 == .done }.count == 1 && results.filter { $0 == .changed }.count == 1)
    #expect(try enrollment.authenticators.count == 1 && enrollment.suspended.count == 1)
    let kept = try #require(
      try two.store(for: name).row(of: Array(name.utf8), reload: true)?.document.suspended)
    #expect(kept.map(\.id) == (try enrollment.suspended.map(\.id)))
    #expect(
      kept[0].enrollment.authenticators.map(\.id) == record.enrollment.authenticators.map(\.id))
  }

  @Test func `replaces nothing of who is blocked meanwhile`() throws {
    #expect(try claim(try give(), 5, by: one).isAccepted)
    let record = try #require(try one.store(for: name).load(try account))
    #expect(try two.store(for: name).block(try account, until: nil))
    #expect(try replace(5, by: one) == .changed)
    var new = record.enrollment
    new.suspended = [Suspension(id: 9, since: now)]
    let late = try one.store(for: name).suspend(record, for: new, claim: 5, at: now)
    guard case .changed = late else { throw CancellationError() }
    #expect(try enrollment.authenticators.map(\.name.text) == ["phone"])
  }

  @Test func `keeps nothing of somebody who is unenrolled`() throws {
    #expect(try claim(try give(), 5, by: one).isAccepted)
    #expect(try replace(5, by: one) == .done)
    let suspension = try #require(try enrollment.suspended.first)
    let store = one.store(for: name)
    #expect(try store.end(try account, id: 0xe0e0))
    let row = try #require(try store.row(of: Array(name.utf8), reload: true))
    #expect(row.document.suspended.isEmpty)
    #expect(try !store.restore(suspension.id, of: try account, id: 0xe0e0))
  }

  @Test func `leaves what it has replaced for seven days`() throws {
    #expect(try claim(try give(), 5, by: one).isAccepted && replace(5, by: one) == .done)
    let suspension = try #require(try enrollment.suspended.first)
    let late = try Verifier("late", in: own, now: { UnixTime(59 + 7 * 86_400) }).store(for: name)
    #expect(try !late.restore(suspension.id, of: try account, id: 0xe0e0))
    // The next change lets go of it.
    let record = try #require(try late.load(try account))
    #expect(record.enrollment.suspended.isEmpty)
    _ = try late.rewrite(record, record.enrollment) { $0 }
    let row = try #require(try two.store(for: name).row(of: Array(name.utf8), reload: true))
    #expect(row.document.suspended.isEmpty)
  }

  // shows: pass-enroll-fleet
  @Test func `is claimed on no host that may not enroll`() throws {
    let code = try give()
    let directory = try TemporaryDirectory()
    let handler = LoginHandler(one.database, FleetPolicy(in: directory.path))
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    var policy = Policy()
    policy.isFleet = true
    let question = LoginQuestion(
      name: Array(name.utf8), service: Array("sshd".utf8), origin: .local, policy: policy,
      millisecondsLeft: 5000, verb: .attempt(code, knownAs: nil, as: .claim(5)))
    for (enrolls, isClaimed) in [(false, false), (true, true)] {
      let frame = try hostFrame(question, isOwn: true, uid: 1000)
      let answer = handler.answer(
        frame, from: HostIdentity(pin, host: Array("web1".utf8), enrolls: enrolls),
        arrived: sys_monotonic())
      let found = ServiceAnswer.decode(answer.body, to: question.verb)
      if case .outcome(.accepted(.claim)) = found {
        #expect(isClaimed)
      } else {
        #expect(!isClaimed, "\(String(describing: found))")
      }
    }
  }
}
