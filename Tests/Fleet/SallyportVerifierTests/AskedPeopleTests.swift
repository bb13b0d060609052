import CService
import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite struct `People whom a host asks about` {
  private let pin = Pin([UInt8](repeating: 5, count: 32))
  private let people = AskedPeople()
  private let hour: UInt64 = 3_600_000_000_000

  private func name(_ number: Int) -> [UInt8] { Array("u\(number)".utf8) }

  @Test func `count once, and not once they have logged in there`() throws {
    let (pin, start) = (try #require(pin), sys_monotonic())
    for round in 0..<3 {
      for one in 0..<99 {
        #expect(!people.note(name(one), from: pin, at: start + UInt64(round)))
      }
    }
    #expect(!people.isHidden(name(99), from: pin, at: start))
    #expect(people.note(name(99), from: pin, at: start))
    #expect(people.isHidden(name(100), from: pin, at: start))
    #expect(!people.isHidden(name(50), from: pin, at: start))
    let other = try #require(Pin([UInt8](repeating: 6, count: 32)))
    #expect(!people.isHidden(name(100), from: other, at: start))
    people.know(name(50), on: pin, at: start)
    #expect(!people.isHidden(name(100), from: pin, at: start))
    // As many more as have logged in there.
    #expect(!people.note(name(100), from: pin, at: start))
    #expect(people.note(name(101), from: pin, at: start))
    #expect(people.isHidden(name(102), from: pin, at: start + 23 * hour))
    #expect(!people.isHidden(name(102), from: pin, at: start + 25 * hour))
  }

  // shows: who-is-enrolled
  @Test func `are no limit where many log in`() throws {
    let (pin, start) = (try #require(pin), sys_monotonic())
    for one in 0..<20_000 {
      #expect(!people.note(name(one), from: pin, at: start))
      people.know(name(one), on: pin, at: start)
    }
    #expect(!people.isHidden(name(1), from: pin, at: start + 8 * 24 * hour))
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A host that asks about many people` {
  private let own: OwnDatabase
  private let directory: TemporaryDirectory
  private let verifier: Verifier
  private let handler: LoginHandler
  private let pin: Pin

  init() throws {
    own = try OwnDatabase()
    directory = try TemporaryDirectory()
    try Data("[default]\nenrollment = required\n".utf8)
      .write(to: URL(fileURLWithPath: directory.path + "/sallyport.conf"))
    verifier = try Verifier("asked", in: own, now: { UnixTime(1_700_100_010) })
    handler = LoginHandler(verifier.database, FleetPolicy(in: directory.path))
    pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
  }

  private func ask(
    _ verb: LoginQuestion.Verb, _ name: String, _ rights: HostRights = HostRights(),
    by handler: LoginHandler? = nil
  ) throws -> ServiceAnswer? {
    var policy = Policy()
    (policy.isFleet, policy.enrollment) = (true, .required)
    let question = LoginQuestion(
      name: Array(name.utf8), service: Array("sshd".utf8), origin: .local, policy: policy,
      millisecondsLeft: 5000, verb: verb)
    let answer = (handler ?? self.handler).answer(
      try hostFrame(question, isOwn: false, uid: 1000),
      from: HostIdentity(pin, host: Array("web1".utf8), rights: rights), arrived: sys_monotonic())
    return ServiceAnswer.decode(answer.body, to: verb)
  }

  private func prepare(_ name: String) throws -> ServiceAnswer? {
    try ask(.prepare(mayEnroll: true, after: .none), name)
  }

  private func type(_ code: String, _ name: String, by handler: LoginHandler? = nil) throws
    -> ServiceAnswer?
  {
    let role = ResponseRole.last(givingBack: nil)
    return try ask(
      .attempt(try secret(code), knownAs: nil, as: role), name, by: handler)
  }

  private func code() throws -> String {
    let generator = try CodeGenerator(
      secret: try secret("12345678901234567890"), algorithm: .sha1, digits: .six)
    return String(String(try generator.code(at: 1_700_100_010 / 30) + 1_000_000).dropFirst())
  }

  /// Asks about as many as it may.
  private func exhaust() throws {
    let names = try (0..<AskedPeople.usual).map { _ in try verifier.enroll() }
    for name in names {
      guard case .prompt(.notEnrolled, _) = try prepare("no-\(name)"),
        case .prompt(.enrolled, _) = try prepare(name)
      else {
        Issue.record("\(name)")
        return
      }
    }
  }

  /// What differs from one to the other beside the number.
  private func shape(_ answer: ServiceAnswer?) throws -> Shape {
    guard case .prompt(.enrolled, let shape)? = answer else {
      throw DatabaseFault.unusable("\(String(describing: answer))")
    }
    return Shape(
      enrollmentID: 1, authenticators: shape.authenticators,
      hasScratchCodes: shape.hasScratchCodes, backupCodesLeft: shape.backupCodesLeft,
      wait: shape.wait, isRemembered: shape.isRemembered)
  }

  // decisive
  // shows: who-is-enrolled
  @Test func `is told the same of everybody, and right codes are taken`() throws {
    let (alice, bob) = (try verifier.enroll(), try verifier.enroll())
    let carol = try verifier.enroll()
    try exhaust()
    #expect(
      verifier.complaints.count { $0.contains("asked about more than 100 enrolled people") } == 1)
    let verbs: [LoginQuestion.Verb] = [
      .prepare(mayEnroll: true, after: .none), .enrolled, .notices(by: nil, told: nil),
    ]
    for verb in verbs {
      let (there, nobody) = (try ask(verb, alice), try ask(verb, "nobody-\(alice)"))
      #expect(try shape(there) == shape(nobody))
      #expect(there != nobody)
      #expect(try there == ask(verb, alice))
    }
    #expect(try type("000000", bob) == .outcome(.refused(.notEnrolled)))
    #expect(try type("000000", "nobody-\(bob)") == .outcome(.refused(.notEnrolled)))
    #expect(verifier.database.meters.text(isVerifying: true).contains("hidden_total 11\n"))
    // What it was is known here.
    #expect(try verifier.events(of: bob) == ["wrong-code"])
    guard case .outcome(.accepted) = try type(code(), alice) else {
      Issue.record("a right code is taken")
      return
    }
    // From then on it may know her.
    guard case .prompt(.enrolled, let shape) = try prepare(alice) else {
      Issue.record("she is enrolled")
      return
    }
    #expect(shape.authenticators.map(\.name) == [try label("phone")])
    // So may it on another verifier, which has not seen that.
    let other = LoginHandler(verifier.database, FleetPolicy(in: directory.path))
    for one in 0..<AskedPeople.usual { _ = other.people.note([UInt8(one)], from: pin) }
    #expect(try ask(.enrolled, alice, by: other) == ask(.enrolled, alice))
    #expect(try ask(.enrolled, bob, by: other) == ask(.enrolled, bob))
    // As many as have logged in there are one more.
    #expect(try ask(.enrolled, bob) == ask(.enrolled, alice))
    #expect(try ask(.enrolled, carol) != ask(.enrolled, alice))
  }

  @Test func `may, where it may see people, and enrolls as ever`() throws {
    let names = try (0...AskedPeople.usual).map { _ in try verifier.enroll() }
    for right in [HostRight.changes, .takes] {
      for name in names { _ = try ask(.enrolled, name, HostRights([right])) }
    }
    #expect(verifier.complaints == [])
    for name in names { _ = try ask(.enrolled, name, HostRights([.enrolls])) }
    #expect(
      verifier.complaints.count { $0.contains("asked about more than 100 enrolled people") } == 1)
    // Who enrolls there is not taken for somebody who has.
    #expect(try ask(.enrolled, "new", HostRights([.enrolls])) == .notEnrolled)
  }

  @Test func `is logged where root there asks`() throws {
    let name = try #require(UserName(Array(try verifier.enroll().utf8)))
    let bodies: [Secret?] = [
      MoveRequest.look(name).encoded(), PersonRequest(.tell, of: name).encoded(),
      RosterRequest([name, name]).encoded(), PeopleRequest(after: []).encoded(),
      EventsRequest(since: UnixTime(0), upTo: EventsRequest.latest, .both, of: []).encoded(),
    ]
    let asker = HostIdentity(pin, host: Array("web1".utf8), rights: HostRights([.changes]))
    for body in bodies {
      _ = ManagementHandler(verifier.database).answer(
        try #require(body), from: asker, arrived: 0)
    }
    let told = verifier.notices.filter { $0.hasPrefix("looked for") }
    #expect(
      told == [
        "looked for an enrollment: user=\(name.text) host=web1",
        "looked for an enrollment: user=\(name.text) host=web1",
        "looked for enrollments: people=2 host=web1",
        "looked for enrollments: people=\(PeopleRequest.most) host=web1",
        "looked for logins: host=web1",
      ])
  }
}
