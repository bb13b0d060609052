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
struct `What root's verbs change of somebody of the fleet` {
  private let verifier: Verifier
  private let name = "user-\(UUID().uuidString)"
  private let id: UInt64 = 0xe0e0
  private var user: UserName { get throws { try #require(UserName(Array(name.utf8))) } }

  init() throws { verifier = try Verifier("persons") }

  private func ask(_ verb: PersonRequest.Verb, enrolls: Bool = true) throws -> PersonAnswer {
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: Array("web1".utf8), enrolls: enrolls)
    let frame = try #require(PersonRequest(verb, of: try user).encoded())
    let answer = ManagementHandler(verifier.database).answer(frame, from: asker, arrived: 0)
    #expect(answer.answers(.management))
    return try #require(PersonAnswer.decode(answer.body))
  }

  private func facts() throws -> PersonFacts {
    guard case .told(let facts) = try ask(.tell) else { throw Other() }
    return facts
  }

  private func version() throws -> UInt64 {
    try verifier.store(for: name).row(of: Array(name.utf8), reload: true).standing.version
  }

  private struct Other: Error {}

  private func isDone(_ verb: PersonRequest.Verb) throws -> Bool {
    switch try ask(verb) {
    case .other(.done): true
    case .changed: false
    case .told, .resynchronized, .other: throw Other()
    }
  }

  /// With the secret of the RFCs' examples, whose codes a fleet accepts at 59.
  private func enroll(_ change: (inout LoginState) -> Void = { _ in }) throws -> Enrollment {
    let parameters = try parameters()
    let one = Authenticator(
      id: 1, name: try label("phone"), parameters: parameters,
      secret: try example(parameters.algorithm), initialLastAccepted: nil, created: UnixTime(0))
    let salt = [UInt8](repeating: 1, count: 16)
    let code = try TestSupport.secret("7KMF2X9QD4TW0HZA")
    let enrollment = Enrollment(
      id: id, user: try user, uid: nil, created: UnixTime(1_700_000_000), authenticators: [one],
      backupCodes: BackupCodeSet(
        id: 5, salt: salt, digests: [try BackupCode.digest(code, salt: salt)]))
    var state = LoginState(initialFor: enrollment)
    change(&state)
    try verifier.store(for: name).create(enrollment, state)
    return enrollment
  }

  private func isIn(_ code: String) throws -> Bool {
    if case .accepted = try verifier.type(code, as: name) { true } else { false }
  }

  // decisive
  @Test func `is told without a secret, a digest or a place`() throws {
    let place = try #require(NetworkAddress([192, 0, 2, 1]))
    let enrollment = try enroll { state in
      state.authenticators[0].lastAccepted = 0
      state.authenticators[0].lastUse = Use(
        time: UnixTime(50), origin: .address(place), service: Label("sshd" as StaticString))
      state.origins = [KnownOrigin(origin: place, lastSeen: UnixTime(50))]
      state.backupCodes?.used = 1
    }
    guard case .enrolled(let found) = try facts().place else { throw Other() }
    let one = found.enrollment.authenticators[0]
    #expect(one.name.text == "phone" && found.enrollment.id == id)
    #expect(Set(bytes(one.secret)) == [0] && enrollment.authenticators[0].secret[0] != 0)
    #expect(found.enrollment.backupCodes?.digests == [[UInt8](repeating: 0, count: 32)])
    #expect(found.enrollment.backupCodes?.salt == [UInt8](repeating: 0, count: 16))
    #expect(found.state.authenticators[0].lastAccepted == 0 && found.state.backupCodes?.used == 1)
    let use = try #require(found.state.authenticators[0].lastUse)
    #expect(use.time == UnixTime(50) && use.origin == .unknown && use.service?.text == "sshd")
    #expect(found.state.origins.isEmpty)
    #expect(try isIn("287082"))
  }

  @Test func `is that wrong codes are forgotten`() throws {
    let spent = Bucket(spent: GuessProbability(units: 1_000_000_000), since: UnixTime(59))
    _ = try enroll { state in (state.known, state.other) = (spent, spent) }
    #expect(try !isIn("287082"))
    #expect(try !isDone(.unlock(id: id ^ 1)))
    #expect(try !isIn("287082"))
    #expect(try isDone(.unlock(id: id)))
    #expect(try isIn("287082"))
    // Not that a code was used.
    #expect(try isDone(.unlock(id: id)))
    #expect(try !isIn("287082"))
    let act = "act=unlock by=host(web1) for=\(name) via=verifier stage=done"
    #expect(verifier.acts == [act, act])
  }

  @Test func `is the end of his enrollment, which no copy brings back`() throws {
    let enrollment = try enroll()
    #expect(try !isDone(.end(id: id ^ 1)))
    #expect(try isDone(.end(id: id)))
    let before = try version()
    #expect(try isDone(.end(id: id)), "asked again")
    #expect(try version() == before + 1, "saved again: the primary alone may have it")
    #expect(try !isIn("287082") && !isIn("7KMF2X9QD4TW0HZA"))
    guard case .notEnrolled = try facts().place else { throw Other() }
    let found = try verifier.store(for: name).row(of: Array(name.utf8), reload: true).standing
    #expect(found.person == .removed(id))
    let copy = MoveRequest.Moving(enrollment, LoginState(initialFor: enrollment))
    let store = verifier.store(for: name)
    let there = try store.put(copy, over: found.version, from: Array("web2".utf8))
    #expect(there?.person == .removed(id))
    #expect(try !isDone(.unlock(id: id)))
  }

  /// A lock keeps both saves waiting, in their order, after both have loaded his rows.
  @Test func `is not the end of an enrollment that somebody takes meanwhile`() throws {
    let own = try OwnDatabase()
    let (one, two) = (try Verifier("one", in: own), try Verifier("two", in: own))
    let name = try one.enroll()
    let user = try #require(UserName(Array(name.utf8)))
    let row = try #require(try one.store(for: name).row(of: user.bytes, reload: true))
    let burial = MoveRequest.Tombstone(id: id, version: row.seen.digest, token: 9)
    _ = try one.ask("BEGIN")
    _ = try one.ask("SELECT FROM state WHERE name = $1 FOR UPDATE", [.bytes(user.bytes)])
    let taken = onThread { try one.store(for: name).bury(user, burial, by: Array("web2".utf8)) }
    try waitForLocks(1, in: two)
    let account = Account(name: user, uid: nil)
    let ended = onThread { [id] in try two.store(for: name).end(account, id: id) }
    try waitForLocks(2, in: two)
    _ = try one.ask("COMMIT")
    try wait { taken.withLock { $0 != nil } && ended.withLock { $0 != nil } }
    #expect(try taken.withLock { $0 }?.get() == .some(nil))
    #expect(try ended.withLock { $0 }?.get() == false)
    guard case .taken = try one.store(for: name).told(of: user).place else { throw Other() }
  }

  @Test func `is his level, which stays while he is enrolled`() throws {
    #expect(try isDone(.level(nil)))
    #expect(try version() == 0, "of nobody there is nothing to save")
    for saved: UInt64 in 1...2 {
      #expect(try isDone(.level(.exempt(until: nil))))
      #expect(try version() == saved, "saved again: the primary alone may have it")
    }
    #expect(try facts().note.level == .exempt(until: nil))
    #expect(try isDone(.level(.required(from: nil))))
    _ = try enroll()
    let account = Account(name: try user, uid: 1000)
    let store = verifier.store(for: name)
    let record = try #require(try store.load(account))
    _ = try store.rewrite(record, record.enrollment) { $0 }
    #expect(try facts().note.level == .required(from: nil))
    #expect(try isIn("287082"))
    #expect(try isDone(.end(id: id)))
    #expect(try verifier.store(for: name).level(of: account) == .required(from: nil))
    #expect(try isDone(.level(nil)))
    #expect(try verifier.store(for: name).level(of: account) == nil)
  }

  /// A clock that was ahead, whose last code would keep him out for as long.
  @Test func `is that an authenticator is brought into step by two codes`() throws {
    let now = try Clock.now().seconds
    let enrollment = try enroll { $0.authenticators[0].lastAccepted = UInt64(now / 30) + 1000 }
    let generator = try CodeGenerator(
      secret: enrollment.authenticators[0].secret,
      algorithm: enrollment.authenticators[0].parameters.algorithm, digits: .six)
    let step = UInt64(now / 30)
    let (first, second) = (try generator.code(at: step - 1), try generator.code(at: step))
    let codes = try #require(CodePair(.code(first, .six), .code(second, .six)))
    let verb = PersonRequest.Verb.resynchronize(codes, named: nil, under: Policy(), id: id)
    let other = try Verifier("persons-two")
    let here = { try #require(try other.store(for: name).row(of: Array(name.utf8), reload: true)) }
    #expect(try here().state?.authenticators[0].lastAccepted == step + 1000)
    let answer = try ask(verb)
    guard case .resynchronized(.done(let name, _, let reopened)) = answer else {
      Issue.record("\(answer)")
      return
    }
    #expect(name.text == "phone" && reopened != nil)
    let again = try ask(verb)
    guard case .resynchronized(.refused(.replayed)) = again else {
      Issue.record("\(again)")
      return
    }
    let later = PersonRequest.Verb.resynchronize(codes, named: nil, under: Policy(), id: id ^ 1)
    guard case .changed = try ask(later) else { throw Other() }
    // A lower position is no loss, to no verifier.
    let row = try here()
    #expect(!row.isBehind && row.state?.authenticators[0].lastAccepted ?? .max < step + 1000)
    #expect(verifier.complaints.isEmpty && other.complaints.isEmpty)
  }

  @Test func `is nothing where the host may not enroll, or somebody else has taken him`() throws {
    let verbs: [PersonRequest.Verb] = [
      .tell, .unlock(id: id), .end(id: id), .forget(id: id), .level(.exempt(until: nil)),
    ]
    _ = try enroll()
    for verb in verbs {
      guard case .other(.notAllowed) = try ask(verb, enrolls: false) else { throw Other() }
    }
    #expect(try facts().note.level == nil && isIn("287082"))
    let row = try #require(try verifier.store(for: name).row(of: Array(name.utf8), reload: true))
    let burial = MoveRequest.Tombstone(id: id, version: row.seen.digest, token: 9)
    #expect(try verifier.store(for: name).bury(try user, burial, by: Array("web2".utf8)) == nil)
    guard case .taken(let host) = try facts().place else { throw Other() }
    #expect(host.text == "web2")
    #expect(try !isDone(.unlock(id: id)) && !isDone(.end(id: id)) && !isDone(.forget(id: id)))
    #expect(try !isDone(.block(until: nil)) && facts().block == nil)
  }
}
