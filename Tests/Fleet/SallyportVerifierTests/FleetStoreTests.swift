import Foundation
import OneTimePassword
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportCore
@testable import SallyportVerifier

/// The code of the time step 1, at 59 s.
private let first = "287082"

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `The database of a fleet` {
  private let verifier: Verifier

  init() throws { verifier = try Verifier() }

  /// The same outcomes and the same states as of the decision alone, which those of the files are.
  @Test(arguments: try DecisionCase.all())
  func `decides as the table of decisions says`(each: DecisionCase) throws {
    let name = "case-\(UUID().uuidString)"
    let made = try each.enrollment()
    var enrollment = try fleetEnrollment(made.authenticators, name, codes: made.backupCodes)
    enrollment.passes = made.passes
    let before = try each.state(for: enrollment)
    let store = verifier.store(for: name)
    try store.create(enrollment, before)
    var outcome: Outcome?
    for typed in each.first + [each.typed] { outcome = try self.type(typed, each, name) }
    var after = try #require(try store.load(try account(name))).state
    // A fleet keeps more.
    after.origins = Array(after.origins.prefix(LoginState.maximumOrigins))
    let decision = Decision(verdict: try #require(outcome?.verdict), state: after)
    #expect(decision.words == each.wanted)
    #expect(try each.wantedState(before: before, decision).facts == after.facts)
  }

  private func account(_ name: String) throws -> Account {
    Account(name: try #require(UserName(Array(name.utf8))), uid: 1000)
  }

  private func type(_ typed: String, _ each: DecisionCase, _ name: String) throws -> Outcome {
    let authority = RecordAuthority(store: verifier.store(for: name)) { each.now }
    let context = LoginContext(
      policy: each.policy, origin: each.origin, service: try label("sshd"))
    let pending = try #require(try authority.enrolled(try account(name), in: context))
    return try authority.attempt(
      try secret(typed.unescaped()), knownAs: nil, by: pending,
      as: each.role(for: each.enrollment()))
  }

  /// The tables hold a few decoys, and statistics say so: the plan outlives both.
  @Test func `asks by the index for what a login needs, however few rows there are`() throws {
    let own = try OwnDatabase()
    _ = try Verifier(in: own).ask("ANALYZE")
    let line = try DatabaseConnection(
      own.words + " user=sallyport_verifier", worker: 9, preparing: Statement.prepared)
    for (number, statement) in Statement.prepared.enumerated() {
      let count = (1...24).last { statement.contains("$\($0)") } ?? 0
      let values = Array(repeating: "NULL", count: count).joined(separator: ", ")
      let rows = try line.ask("EXPLAIN EXECUTE \"\(number)\"(\(values))", [], 10_000)
      let plan = (0..<rows.count).compactMap { rows.text($0, 0) }
      let index = statement == Statement.wrongCodes ? "Index" : "Index Scan using state_pkey"
      #expect(plan.contains { $0.contains(index) }, "\(plan)")
      #expect(!plan.contains { $0.contains("Seq Scan on event") }, "\(plan)")
      #expect(!plan.contains { $0.contains("Seq Scan on state") }, "\(plan)")
      #expect(!plan.contains { $0.contains("Seq Scan on enrollment") }, "\(plan)")
    }
  }

  // decisive
  @Test func `says which codes were verified, and accepts no code twice`() throws {
    let name = try verifier.enroll()
    #expect(try verifier.type(first, as: name).isAccepted)
    #expect(try verifier.type(first, as: name).isAccepted == false)
    #expect(try verifier.type("000000", as: name).isAccepted == false)
    #expect(try verifier.events(of: name) == ["accepted 1", "replayed", "wrong-code"])
    #expect(verifier.complaints.isEmpty)
  }

  // MARK: rows that were tampered with

  // shows: db-forged
  @Test(arguments: [
    "UPDATE state SET body = set_byte(body, 40, get_byte(body, 40) # 1) WHERE name = $1",
    "UPDATE enrollment SET body = set_byte(body, 40, get_byte(body, 40) # 1) WHERE name = $1",
    "UPDATE state SET body = (SELECT body FROM state WHERE name = $2) WHERE name = $1",
    "UPDATE enrollment SET body = (SELECT body FROM enrollment WHERE name = $2) WHERE name = $1",
    "UPDATE state SET version = version + 1 WHERE name = $1",
    "DELETE FROM state WHERE name = $1",
  ])
  func `refuses rows that were forged, swapped or deleted`(tamper: String) throws {
    let (name, other) = (try verifier.enroll(), try verifier.enroll())
    // One that has not seen the user: nothing in its memory helps.
    let fresh = try Verifier("two")
    let values: [Value] = [.bytes(Array(name.utf8)), .bytes(Array(other.utf8))]
    _ = try verifier.ask(tamper, tamper.contains("$2") ? values : [values[0]])
    #expect(throws: StoreTrouble.self) { try fresh.type(first, as: name) }
    #expect(fresh.complaints.contains { $0.hasPrefix("ALERT: user=\(name): ") })
    #expect(try fresh.type(first, as: other).isAccepted)
    #expect(try verifier.events(of: name).isEmpty)
  }

  // shows: db-deleted
  @Test func `refuses a user whose rows are gone, where he has been seen`() throws {
    let name = try verifier.enroll()
    let user: Value = .bytes(Array(name.utf8))
    _ = try verifier.ask("DELETE FROM state WHERE name = $1", [user])
    _ = try verifier.ask("DELETE FROM enrollment WHERE name = $1", [user])
    #expect(throws: StoreTrouble.self) { try verifier.type(first, as: name) }
    #expect(verifier.complaints == ["ALERT: user=\(name): the rows are gone from the database"])
  }

  // shows: db-old-state
  @Test func `takes every code up to now as used, where an older state was put back`() throws {
    let name = try verifier.enroll()
    let user: Value = .bytes(Array(name.utf8))
    let old = try verifier.ask("SELECT body, version FROM state WHERE name = $1", [user])
    let (body, version) = (try #require(old.bytes(0, 0)), try #require(old.number(0, 1)))
    let now = Int64(Date().timeIntervalSince1970)
    let code = try totp(at: now)
    #expect(try verifier.type(code, as: name, at: now).isAccepted)
    _ = try verifier.ask(
      "UPDATE state SET body = $2, version = $3 WHERE name = $1",
      [user, .bytes(body), .number(version)])
    #expect(try verifier.type(code, as: name, at: now).isAccepted == false)
    #expect(verifier.complaints.contains { $0.contains("older than one that was saved") })
    // And what is saved now is newer than what was lost.
    let saved = try verifier.ask("SELECT version FROM state WHERE name = $1", [user])
    #expect(try #require(saved.number(0, 0)) > version + 1)
    let later = now + 30 * Int64(Policy.mostAdjacentIntervals + 2)
    #expect(try verifier.type(try totp(at: later), as: name, at: later).isAccepted)
  }

  private func totp(at time: Int64) throws -> String {
    let codes = try CodeGenerator(secret: example(20), algorithm: .sha1, digits: .six)
    let text = "\(try codes.code(at: timeStep(at: time, period: 30)))"
    return String(repeating: "0", count: 6 - text.count) + text
  }

  // shows: db-forged
  @Test func `refuses an older enrollment beside the state that is there`() throws {
    let name = try verifier.enroll()
    let user: Value = .bytes(Array(name.utf8))
    let old = try #require(
      try verifier.ask("SELECT body FROM enrollment WHERE name = $1", [user]).bytes(0, 0))
    let store = verifier.store(for: name)
    let record = try #require(try store.load(try account(name)))
    let two = try authenticator(2, "new", parameters())
    let enrollment = try fleetEnrollment([two], name)
    _ = try store.rewrite(record, enrollment) { state in
      var state = state
      state.reconcile(with: enrollment)
      return state
    }
    _ = try verifier.ask(
      "UPDATE enrollment SET body = $2 WHERE name = $1", [user, .bytes(old)])
    #expect(throws: StoreTrouble.self) { try verifier.type(first, as: name) }
    #expect(verifier.complaints.contains { $0.contains("another enrollment") })
  }

  /// Its disk is full or fails, its memory is used up, it is too slow, or it only reads: nothing
  /// was saved, so another verifier may be asked, and a host may take a backup code.
  @Test(arguments: ["53100", "53200", "58030", "57014", "25006"])
  func `is away where its server can save nothing`(state: String) throws {
    let verifier = try Verifier(in: try OwnDatabase())
    let name = try verifier.enroll()
    _ = try verifier.ask(
      """
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = '\(state)', HINT = 'Do this.'; END $$
      """)
    _ = try verifier.ask(
      "CREATE TRIGGER fails BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION fail()")
    let store = verifier.store(for: name)
    let authority = RecordAuthority(store: store) { UnixTime(59) }
    let context = LoginContext(policy: Policy(), origin: .unknown, service: try label("sshd"))
    let pending = try authority.claimant(Array(name.utf8), try account(name), in: context)
    #expect(!store.wasAway)
    #expect(throws: StoreTrouble.self) {
      try authority.attempt(
        try secret(first), knownAs: nil, by: pending, as: .last(givingBack: nil))
    }
    #expect(store.wasAway)
    #expect(
      verifier.complaints.contains {
        $0.contains("HINT:  Do this.") && $0.contains("(SQLSTATE \(state))")
      }, "\(verifier.complaints)")
    _ = try verifier.ask("DROP TRIGGER fails ON event")
    #expect(try verifier.type(first, as: name).isAccepted)
  }

  // MARK: who is not enrolled

  // shows: sql
  @Test func `verifies codes of strangers by a decoy, and says so in an event`() throws {
    for name in ["nobody-\(UUID().uuidString)", "x'; DROP TABLE event; --", "\\000 $1"] {
      #expect(try verifier.type(first, as: name) == .refused(.notEnrolled))
      #expect(try verifier.events(of: name) == ["not-enrolled"])
      _ = try verifier.ask("DELETE FROM event WHERE name = $1", [.bytes(Array(name.utf8))])
    }
    #expect(verifier.complaints.isEmpty)
  }

  /// It may be a password, typed where the name belongs.
  @Test func `writes down no name that nobody has`() throws {
    let typed = "secret-\(UUID().uuidString)"
    let nobody = "SELECT count(*) FROM event WHERE name = '' AND outcome = 'unknown-user'"
    let before = try #require(try verifier.ask(nobody).number(0, 0))
    #expect(try verifier.type(first, as: typed, uid: nil) == .refused(.unknownUser))
    #expect(try verifier.events(of: typed).isEmpty)
    #expect(try #require(try verifier.ask(nobody).number(0, 0)) > before)
  }

  @Test func `counts logins of who is not enrolled, until he is`() throws {
    let text = "guest-\(UUID().uuidString)"
    let name = try #require(UserName(Array(text.utf8)))
    let store = verifier.store(for: text)
    let guest = Account(name: name, uid: 1)
    #expect(try (0..<3).map { _ in try store.countLogin(of: guest) } == [1, 2, 3])
    #expect(try store.load(Account(name: name, uid: 1)) == nil)
    let enrollment = try fleetEnrollment([try authenticator(parameters())], text)
    try store.create(enrollment, LoginState(initialFor: enrollment))
    #expect(throws: StoreTrouble.exists(path: "fleet")) {
      try store.create(enrollment, LoginState(initialFor: enrollment))
    }
    #expect(try verifier.type(first, as: text).isAccepted)
  }

  // shows: db-deleted
  @Test func `does not take who was enrolled for not enrolled, where older rows were put back`()
    throws
  {
    let text = "guest-\(UUID().uuidString)"
    let name = try #require(UserName(Array(text.utf8)))
    let store = verifier.store(for: text)
    _ = try store.countLogin(of: Account(name: name, uid: 1))
    let old = try verifier.ask(
      "SELECT e.body, s.body FROM enrollment e JOIN state s USING (name) WHERE name = $1",
      [.bytes(name.bytes)])
    let enrollment = try fleetEnrollment([try authenticator(parameters())], text)
    try store.create(enrollment, LoginState(initialFor: enrollment))
    _ = try verifier.ask(
      "UPDATE enrollment SET body = $2 WHERE name = $1",
      [.bytes(name.bytes), .bytes(try #require(old.bytes(0, 0)))])
    _ = try verifier.ask(
      "UPDATE state SET body = $2, version = 1 WHERE name = $1",
      [.bytes(name.bytes), .bytes(try #require(old.bytes(0, 1)))])
    #expect(throws: StoreTrouble.self) { try verifier.type(first, as: text) }
    #expect(verifier.complaints.contains { $0.contains("rolled back to before a change") })
  }

  // MARK: two verifiers

  // shows: fleet-one-use
  @Test(arguments: ["read committed", "serializable"])
  func `verifies again what another verifier has saved meanwhile`(isolation: String) throws {
    let level = isolation.replacing(" ", with: "\\\\ ")
    let options = "options='-c default_transaction_isolation=\(level)'"
    // Both cases run at once: a name is one verifier's.
    let one = try Verifier("three, \(isolation)", options: options)
    let two = try Verifier("four, \(isolation)", options: options)
    let name = try one.enroll()
    let record = try #require(try one.store(for: name).load(try account(name)))
    #expect(try two.type(first, as: name).isAccepted)
    // By the record of before it.
    let authority = RecordAuthority(store: one.store(for: name)) { UnixTime(59) }
    let context = LoginContext(policy: Policy(), origin: .unknown, service: try label("sshd"))
    let pending = PendingLogin(.enrolled(try account(name)), record, context)
    let outcome = try authority.attempt(
      try secret(first), knownAs: nil, by: pending, as: .last(givingBack: nil))
    #expect(outcome.isAccepted == false)
    #expect(try one.events(of: name) == ["accepted 1", "replayed"])
  }

  // decisive
  @Test func `accepts a code once among many threads of two verifiers`() async throws {
    let verifiers = [try Verifier("five"), try Verifier("six")]
    for _ in 0..<5 {
      let name = try verifiers[0].enroll()
      let accepted = await withTaskGroup(of: Bool.self) { group in
        for index in 0..<16 {
          group.addTask {
            (try? verifiers[index % 2].type(first, as: name).isAccepted) == true
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(accepted == 1)
      #expect(try verifiers[0].events(of: name).filter { $0 == "accepted 1" }.count == 1)
    }
  }
}
