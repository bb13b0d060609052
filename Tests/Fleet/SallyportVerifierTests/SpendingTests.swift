import CService
import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What a host has used up` {
  private let own: OwnDatabase
  private let (one, two): (Verifier, Verifier)
  private let pin: Pin
  private let policies: TemporaryDirectory

  init() throws {
    own = try OwnDatabase()
    (one, two) = (try Verifier("spent1", in: own), try Verifier("spent2", in: own))
    pin = try #require(Pin([UInt8](repeating: 6, count: 32)))
    policies = try TemporaryDirectory()
    try "[default]\nenrollment = required\n".write(
      toFile: policies.path + "/sallyport.conf", atomically: false, encoding: .utf8)
    // Neither goes by what it was told some seconds ago.
    for verifier in [one, two] { verifier.database.spent.withLock { $0.memory = 0 } }
  }

  private func asker(_ rights: [HostRight]) -> HostIdentity { asker(HostRights(rights)) }

  private func asker(_ rights: HostRights) -> HostIdentity {
    HostIdentity(pin, host: Array("web1".utf8), rights: rights)
  }

  private func asker(_ right: HostRight, _ allowance: HostRights.Allowance) -> HostIdentity {
    var rights = HostRights()
    rights[right] = allowance
    return asker(rights)
  }

  private func name() throws -> UserName { try #require(UserName(Array(try one.enroll().utf8))) }

  private func isCopied(_ name: UserName, _ asker: HostIdentity, by verifier: Verifier) throws
    -> Bool
  {
    let body = try #require(MoveRequest.fetch(name, isForced: true).encoded())
    let answer = ManagementHandler(verifier.database).answer(body, from: asker, arrived: 0)
    if case .copy = FetchAnswer.decode(answer.body) { return true }
    return false
  }

  private func isBlocked(_ name: UserName, _ asker: HostIdentity, by verifier: Verifier) throws
    -> Bool
  {
    let body = try #require(PersonRequest(.block(until: nil), of: name).encoded())
    let answer = ManagementHandler(verifier.database).answer(body, from: asker, arrived: 0)
    return answer.body == PersonAnswer.other(.done).encoded()
  }

  private func ask(_ verb: LoginQuestion.Verb, _ name: UserName, _ asker: HostIdentity) throws
    -> ServiceAnswer?
  {
    var policy = Policy()
    policy.isFleet = true
    policy.enrollment = .required
    let question = LoginQuestion(
      name: name.bytes, service: Array("sshd".utf8), origin: .local, policy: policy,
      millisecondsLeft: 5000, verb: verb)
    let handler = LoginHandler(one.database, FleetPolicy(in: policies.path))
    let answer = handler.answer(
      try hostFrame(question, isOwn: true, uid: 1000), from: asker, arrived: sys_monotonic())
    return ServiceAnswer.decode(answer.body, to: verb)
  }

  /// Two verifiers go by two windows, as for some seconds after root has given more.
  // decisive
  // shows: host-rights
  @Test func `does not begin again where one verifier has former rights still`() throws {
    let now = try SallyportSystem.Clock.now().seconds
    let both = [3600, 7200].map { time in
      asker(.takes, .init(more: 3, until: UnixTime(now + Int64(time))))
    }
    var copies = 0
    // The later one first: each that is given has its number.
    for turn in 1...8 {
      let verifier = turn % 2 == 0 ? one : two
      copies += try isCopied(try name(), both[turn % 2], by: verifier) ? 1 : 0
    }
    #expect(copies == 3)
    // Nor where the clock of the database goes back over midnight.
    _ = try one.ask("DELETE FROM spent")
    let daily = asker(.takes, .init(daily: 3))
    #expect(try isCopied(try name(), daily, by: one) && isCopied(try name(), daily, by: one))
    _ = try one.ask("UPDATE spent SET period = period + 1")
    #expect(try isCopied(try name(), daily, by: two) && !isCopied(try name(), daily, by: two))
    // But for a day that was none: its clock was a year ahead once.
    _ = try one.ask("UPDATE spent SET period = period + 365")
    #expect(try isCopied(try name(), daily, by: one) && isCopied(try name(), daily, by: one))
    #expect(try isCopied(try name(), daily, by: two) && !isCopied(try name(), daily, by: two))
  }

  // decisive
  @Test func `is not for others where it was given for some people`() throws {
    let now = try SallyportSystem.Clock.now().seconds
    let (mine, others) = (try name(), try name())
    let asker = asker(
      .takes, .init(more: 5, until: UnixTime(now + 3600), people: [mine.bytes, [0x61]]))
    #expect(try isCopied(mine, asker, by: one) && !isCopied(others, asker, by: one))
    let table = PeopleRequest(after: []).encoded()
    var changing = asker.rights
    changing[.changes] = changing[.takes]
    let host = self.asker(changing)
    #expect(try isBlocked(mine, host, by: one) && !isBlocked(others, host, by: one))
    let handler = ManagementHandler(one.database)
    let answer = handler.answer(try #require(table), from: host, arrived: 0)
    #expect(answer.body == MoveAnswer.notAllowed.encoded())
    for (name, count) in [(mine, UInt32(0)), (others, 2)] {
      let body = try #require(RightsRequest(for: name).encoded())
      let told = RightsAnswer.decode(handler.answer(body, from: asker, arrived: 0).body)
      guard case .told(_, let used, _) = told else {
        Issue.record("rights")
        return
      }
      #expect(used[2] == .init(more: 1, others: count))
    }
  }

  @Test func `is told each day by the verifier where the last of it is used`() throws {
    let asker = asker(.takes, .init(daily: 2))
    func told(_ verifier: Verifier) -> Int {
      verifier.complaints.count { $0.contains("used its right takes 2 times today") }
    }
    #expect(try isCopied(try name(), asker, by: one) && isCopied(try name(), asker, by: one))
    #expect(told(one) == 1)
    // The next day the other one is asked first.
    _ = try one.ask("UPDATE spent SET period = period - 1")
    #expect(try isCopied(try name(), asker, by: two) && isCopied(try name(), asker, by: one))
    #expect(told(one) == 2 && told(two) == 0)
  }

  // decisive
  @Test func `keeps nobody out whose right code was accepted`() throws {
    let (name, stranger) = (try name(), try #require(UserName(Array("nobody-yet".utf8))))
    #expect(try ask(.level, name, asker([.enrolls, .changes])) == .level(.required))
    #expect(try ask(.level, name, asker([.enrolls])) == .level(.voluntary))
    #expect(try ask(.level, name, asker([])) == .level(.voluntary))
    // Who is not enrolled must be.
    #expect(try ask(.level, stranger, asker([])) == .level(.required))
    for (rights, ofName, ofStranger) in [
      ([HostRight.enrolls], false, true), ([.changes], true, false),
      ([.enrolls, .changes], true, true), ([.takes], false, false),
    ] {
      #expect((try ask(.rehearse, name, asker(rights)) == .done) == ofName, "\(rights)")
      #expect((try ask(.rehearse, stranger, asker(rights)) == .done) == ofStranger, "\(rights)")
    }
  }

  @Test func `is asked of the database again, so that nobody begins what cannot be saved`() throws {
    let name = try name()
    let asker = asker(.changes, .init(daily: 2))
    #expect(try ask(.rehearse, name, asker) == .done)
    #expect(try isBlocked(name, asker, by: one) && isBlocked(name, asker, by: one))
    #expect(try ask(.rehearse, name, asker) == .notServed)
    #expect(try ask(.level, name, asker) == .level(.refuse), "he is blocked")
    let warning = "refused: host web1 has used up its right changes"
    #expect(one.warnings.contains { $0.contains(warning) })
    _ = try one.ask("UPDATE spent SET period = period - 1")
    #expect(try ask(.rehearse, name, asker) == .done)
  }

  // decisive
  // shows: host-rights
  @Test func `is never so much by people's own changes that root cannot block them`() throws {
    let name = try name()
    let asker = asker(.changes, .init(daily: 4))
    let names = try ["a", "b", "c", "d"].map { try label($0) }
    var last = try label("phone")
    var done = 0
    for new in names {
      let change = EnrollmentChange.rename(last, to: new)
      guard try ask(.amend(change, to: 0xe0e0), name, asker) == .done else { continue }
      (last, done) = (new, done + 1)
    }
    #expect(done == 2)
    #expect(one.complaints == [])
    #expect(one.warnings.contains { $0.contains("as far as it is for what people change") })
    #expect(try isBlocked(name, asker, by: one) && isBlocked(name, asker, by: one))
    #expect(try !isBlocked(name, asker, by: one))
  }
}
