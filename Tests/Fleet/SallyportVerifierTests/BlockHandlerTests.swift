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
struct `Somebody who is blocked in a fleet` {
  private let verifier: Verifier
  private let web: Pin

  init() throws {
    verifier = try Verifier()
    web = try #require(Pin([UInt8](repeating: 3, count: 32)))
  }

  private struct Other: Error {}

  private func ask(_ verb: PersonRequest.Verb, of name: String, of verifier: Verifier? = nil) throws
    -> PersonAnswer?
  {
    let asker = HostIdentity(web, host: Array("web1".utf8), enrolls: true)
    let user = try #require(UserName(Array(name.utf8)))
    let frame = try #require(PersonRequest(verb, of: user).encoded())
    let answer = ManagementHandler((verifier ?? self.verifier).database)
      .answer(frame, from: asker, arrived: 0)
    return PersonAnswer.decode(answer.body)
  }

  private func isDone(_ verb: PersonRequest.Verb, of name: String) throws -> Bool {
    switch try ask(verb, of: name) {
    case .other(.done): true
    case .changed: false
    case .told, .resynchronized, .other, nil: throw Other()
    }
  }

  private func facts(of name: String) throws -> PersonFacts {
    guard case .told(let facts) = try ask(.tell, of: name) else { throw Other() }
    return facts
  }

  private func account(_ name: String) throws -> Account {
    Account(name: try #require(UserName(Array(name.utf8))), uid: 1000)
  }

  @Test func `gets in nowhere until that is lifted, and nothing is used up`() throws {
    let name = try verifier.enroll()
    let other = try Verifier("two")
    #expect(try isDone(.block(until: nil), of: name))
    #expect(try facts(of: name).block?.until == nil && facts(of: name).block != nil)
    #expect(try other.type("287082", as: name) == .refused(.blocked))
    #expect(try verifier.type("287082", as: name) == .refused(.blocked))
    #expect(try isDone(.block(until: nil), of: name), "asked again")
    #expect(try isDone(.unblock, of: name))
    #expect(try !isDone(.unblock, of: name))
    #expect(try facts(of: name).block == nil)
    #expect(try other.type("287082", as: name).isAccepted)
    let ends = ["block", "block", "unblock"].map {
      "act=\($0) by=host(web1) for=\(name) via=verifier stage=done"
    }
    #expect(verifier.acts == ends && verifier.complaints.isEmpty && other.complaints.isEmpty)
  }

  @Test func `gets in from the end on, and not if the clock goes back`() throws {
    let name = try verifier.enroll()
    let end = try Clock.now().seconds
    let early = try Verifier("early", now: { UnixTime(end - 1) })
    let late = try Verifier("late", now: { UnixTime(end) })
    #expect(try isDone(.block(until: UnixTime(end)), of: name))
    let user = try account(name)
    for (one, isBlocked) in [(early, true), (late, false), (early, true)] {
      let store = one.store(for: name)
      #expect(try store.isBlocked(user, at: store.now) == isBlocked)
    }
  }

  /// As a leaver, whose account lives on some hosts.
  // shows: block-fleet
  @Test func `enrolls nowhere, and is refused at every level`() throws {
    let name = "leaver-\(UUID().uuidString)"
    #expect(try isDone(.level(.exempt(until: nil)), of: name))
    #expect(try isDone(.block(until: nil), of: name))
    let store = verifier.store(for: name)
    let authority = RecordAuthority(store: store)
    var policy = Policy()
    policy.enrollment = .voluntary
    let context = LoginContext(policy: policy, origin: .unknown, service: try label("sshd"))
    let user = try account(name)
    #expect(try authority.level(of: user, in: context) == .refuse)
    let step = try authority.prepare(
      Array(name.utf8), user, in: context, mayEnroll: true, after: .none)
    guard case .prompt(let pending) = step, case .blocked = pending.claimant else { throw Other() }
    let enrollment = try fleetEnrollment([try authenticator(parameters())], name)
    let made = try authority.amend(.create(enrollment), of: user.name, nil, in: context)
    #expect(made == .changed)
    // Also one that was asked for before.
    #expect(throws: StoreTrouble.self) {
      try store.create(enrollment, LoginState(initialFor: enrollment))
    }
    #expect(try isDone(.unblock, of: name))
    #expect(try facts(of: name).note.level == .exempt(until: nil))
    try store.create(enrollment, LoginState(initialFor: enrollment))
  }

  /// A lock keeps the block waiting, and the save of a login behind it.
  // decisive
  // shows: block-fleet
  @Test func `is refused by a login that was decided before`() throws {
    let own = try OwnDatabase()
    let (one, two) = (try Verifier("one", in: own), try Verifier("two", in: own))
    let name = try one.enroll()
    _ = try one.ask("BEGIN")
    _ = try one.ask(
      "SELECT FROM state WHERE name = $1 FOR UPDATE", [.bytes(Array(name.utf8))])
    let user = try account(name)
    let blocked = onThread { try two.store(for: name).block(user, until: nil) }
    try waitForLocks(1, in: one)
    let typed = onThread { try one.type("287082", as: name) }
    try waitForLocks(2, in: one)
    _ = try one.ask("COMMIT")
    try wait { blocked.withLock { $0 != nil } && typed.withLock { $0 != nil } }
    #expect(try blocked.withLock { $0 }?.get() == true)
    #expect(try typed.withLock { $0 }?.get() == .refused(.blocked))
    #expect(try one.events(of: name).allSatisfy { !$0.hasPrefix("accepted") })
  }

  @Test func `goes into the files of no host`() throws {
    let name = try verifier.enroll()
    #expect(try isDone(.block(until: nil), of: name))
    let asker = HostIdentity(web, host: Array("web1".utf8), enrolls: true)
    let frame = try #require(
      MoveRequest.fetch(try account(name).name, isForced: true).encoded())
    let answer = ManagementHandler(verifier.database).answer(frame, from: asker, arrived: 0)
    guard case .other(.notAllowed)? = FetchAnswer.decode(answer.body) else { throw Other() }
  }
}

/// What it came to, once it is done.
func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R)
  -> Locked<Result<R, any Error>?>
{
  let result = Locked<Result<R, any Error>?>(nil)
  Thread.detachNewThread {
    let found = Result { try body() }
    result.withLock { $0 = found }
  }
  return result
}

/// Until this number of saves wait for a lock.
func waitForLocks(_ count: UInt64, in verifier: Verifier) throws {
  let waiting = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
    """
  try wait { try verifier.ask(waiting).number(0, 0) == count }
}

/// For a minute at most.
func wait(_ holds: () throws -> Bool) throws {
  let start = Date()
  while try !holds() {
    if Date().timeIntervalSince(start) > 60 { throw CancellationError() }
    sched_yield()
  }
}
