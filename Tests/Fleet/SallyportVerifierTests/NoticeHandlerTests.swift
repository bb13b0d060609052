import CService
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

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What an owner is told in a fleet` {
  private let own: OwnDatabase
  private let directory: TemporaryDirectory
  /// A database has no verifiers but these.
  private let one: Verifier
  private let two: Verifier
  private let name = "told-\(UUID().uuidString)"
  private static let now = UnixTime(1_700_100_010)

  init() throws {
    own = try OwnDatabase()
    directory = try TemporaryDirectory()
    try Data("[default]\n".utf8)
      .write(to: URL(fileURLWithPath: directory.path + "/sallyport.conf"))
    one = try Verifier("one", in: own, now: { Self.now })
    two = try Verifier("two", in: own, now: { Self.now })
    // Alice's phone, and one that a thief has added a day later.
    let thiefs = Authenticator(
      id: 2, name: try label("pixel"), parameters: .standard,
      secret: try secret("98765432109876543210"), initialLastAccepted: nil,
      created: UnixTime(1_700_086_400))
    let enrollment = try fleetEnrollment(
      [try authenticator(), thiefs], name, codes: backupCodes(["7KMF2X9QD4TW0HZA"]))
    try one.store(for: name).create(enrollment, LoginState(initialFor: enrollment))
  }

  private func ask(
    _ verb: LoginQuestion.Verb, on host: String = "web1", by verifier: Verifier? = nil,
    from address: UInt8? = nil, enrolls: Bool = false
  ) throws -> ServiceAnswer? {
    let handler = LoginHandler((verifier ?? one).database, FleetPolicy(in: directory.path))
    var policy = Policy()
    policy.isFleet = true
    let stated = address.flatMap { NumericAddress([198, 51, 100, $0]) }.map {
      LoginQuestion.StatedOrigin.address($0)
    }
    let question = LoginQuestion(
      name: Array(name.utf8), service: Array("sshd".utf8), origin: stated ?? .local,
      policy: policy, millisecondsLeft: 5000, verb: verb)
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let answer = handler.answer(
      try hostFrame(question, isOwn: true, uid: 1000),
      from: HostIdentity(pin, host: Array(host.utf8), enrolls: enrolls), arrived: sys_monotonic())
    return ServiceAnswer.decode(answer.body, to: verb)
  }

  private func type(_ typed: String, on host: String = "web1", from address: UInt8? = nil) throws
    -> Outcome?
  {
    let verb = LoginQuestion.Verb.attempt(
      try secret(typed), knownAs: nil, as: .last(givingBack: nil))
    guard case .outcome(let outcome) = try ask(verb, on: host, from: address) else { return nil }
    return outcome
  }

  /// RFC 6238: the code of that many steps from now.
  private func code(_ steps: Int64 = 0, of text: String = "12345678901234567890") throws -> String {
    let generator = try CodeGenerator(secret: try secret(text), algorithm: .sha1, digits: .six)
    let number = try generator.code(at: UInt64(Self.now.seconds / 30 + steps))
    return String(String(number + 1_000_000).dropFirst())
  }

  /// What she reads, which counts as told then; nil: nothing.
  private func told(
    _ name: String?, on host: String = "web1", by verifier: Verifier? = nil
  ) throws -> [OwnerNotice]? {
    let notices = try read(name, on: host, by: verifier)
    if let notices { #expect(try settle(notices, name, on: host, by: verifier) == .done) }
    return notices
  }

  private func settle(
    _ told: [OwnerNotice], _ name: String?, on host: String = "web1", by verifier: Verifier? = nil
  ) throws -> ServiceAnswer? {
    let verb = LoginQuestion.Verb.notices(
      by: try name.map { try label($0) }, told: ToldNotices(told))
    return try ask(verb, on: host, by: verifier)
  }

  private func read(
    _ name: String?, on host: String = "web1", by verifier: Verifier? = nil
  ) throws -> [OwnerNotice]? {
    let verb = LoginQuestion.Verb.notices(by: try name.map { try label($0) }, told: nil)
    switch try ask(verb, on: host, by: verifier) {
    case .told(_, let notices): return notices
    case .prompt(.enrolled, _): return nil
    case let other:
      Issue.record("\(String(describing: other))")
      return nil
    }
  }

  private var added: OwnerNotice {
    get throws { .added(try label("pixel"), UnixTime(1_700_086_400)) }
  }

  // shows: owner-notice
  @Test func `is told once, on whatever verifier, and never used up by a thief's own phone`() throws
  {
    for _ in 0..<2 { #expect(try type("000000", from: 7)?.isAccepted == false) }
    #expect(try type(try code(of: "98765432109876543210"))?.isAccepted == true)
    #expect(try told("pixel") == [.wrongCodes(2), try added])
    #expect(try told("pixel", by: two) == [try added])
    #expect(try type(try code())?.isAccepted == true)
    #expect(try told("phone", by: two) == [try added])
    #expect(try told("phone", by: one) == nil)
    #expect(try told("phone", by: two) == nil)
    #expect(one.complaints + two.complaints == [])
  }

  @Test func `is told until somebody says that she was told, and of what happened since`() throws {
    for _ in 0..<2 { #expect(try type("000000", from: 7)?.isAccepted == false) }
    #expect(try type(try code())?.isAccepted == true)
    for _ in 0..<2 { #expect(try read("phone") == [.wrongCodes(2), try added]) }
    #expect(try type("000000", from: 8)?.isAccepted == false)
    #expect(try settle([.wrongCodes(2), try added], "phone", on: "web2") == .notServed)
    for _ in 0..<2 {
      #expect(try settle([.wrongCodes(1)], "phone", by: two) == .done)
      #expect(try read("phone")?.last == (try added))
    }
    #expect(try read("phone") == [.wrongCodes(1), try added])
    #expect(try settle([.wrongCodes(9), try added], "phone") == .done)
    #expect(try read("phone") == nil)
  }

  /// Else a host could learn it of anybody, and use it up.
  // shows: notice-host
  @Test func `is told on the host that has let her in, and of what let her in there`() throws {
    #expect(try type(try code())?.isAccepted == true)
    #expect(try told("phone", on: "web2") == nil)
    #expect(try told("pixel") == nil)
    #expect(try told(nil) == nil)
    #expect(try type("7KMF2X9QD4TW0HZA", on: "web2")?.isAccepted == true)
    #expect(try told(nil, on: "web2") == [try added])
    #expect(try told("phone") == [try added])
  }

  // shows: notice-host
  @Test func `is told of a pass, but not of where it was used`() throws {
    let (code, pass) = try Pass.fresh(of: 0xe0e0, from: Self.now, for: 7200, uses: 1)
    let authority = RecordAuthority(store: one.store(for: name))
    let account = Account(name: try #require(UserName(Array(name.utf8))), uid: 1000)
    let context = LoginContext(policy: Policy(), origin: .unknown, service: nil)
    let pending = try authority.enrolled(account, in: context)
    #expect(try authority.amend(.give(pass), of: account.name, pending, in: context) == .done)
    let verb = LoginQuestion.Verb.attempt(code, knownAs: nil, as: .last(givingBack: nil))
    #expect(try ask(verb, on: "web2", from: 9) == .outcome(.accepted(.pass(left: 0))))
    #expect(try type(try self.code())?.isAccepted == true)
    let used = OwnerNotice.passUsed(Self.now, from: nil)
    #expect(try told("phone") == [try added, .passGiven(Self.now), used])
    #expect(try told("phone") == nil)
  }

  /// By the verifier's clock: a host hides no phone behind a time of its own, and gives no pass
  /// that ends at another.
  // shows: notice-host
  @Test func `is told of what a host brings, whatever time it says`() throws {
    let hidden = Authenticator(
      id: 3, name: try label("hidden"), parameters: .standard,
      secret: try secret("abcdefghijklmnopqrst"), initialLastAccepted: nil, created: UnixTime(0))
    let ahead = UnixTime(Self.now.seconds + 5 * 3600)
    let pass = try Pass.fresh(of: 0xe0e0, from: ahead, for: 7200, uses: 1).pass
    for change in [EnrollmentChange.add([hidden], backupCodes: nil), .give(pass)] {
      #expect(try ask(.amend(change, to: 0xe0e0), enrolls: true) == .done)
    }
    #expect(try type(try code())?.isAccepted == true)
    let added = [try added, .added(try label("hidden"), Self.now)]
    #expect(try told("phone") == added + [.passGiven(Self.now)])
    let found = try #require(try one.store().row(of: Array(name.utf8), reload: true))
    let passes = try #require(found.document.enrollment).passes
    #expect(passes.map(\.expires) == [UnixTime(Self.now.seconds + 7200)])
  }

  /// A former verifier reads no row that says it.
  @Test func `is not kept before all verifiers read it`() throws {
    let row = FleetRow(needs: 2, writes: Schema.placing)
    _ = try one.ask(
      "UPDATE fleet SET needs = $1::bigint, writes = $2::bigint, seal = $3",
      [.number(row.needs), .number(row.writes), .bytes(try row.seal(under: try fleetKey()))])
    #expect(try type("000000", from: 7)?.isAccepted == false)
    let found = try #require(try one.store().row(of: Array(name.utf8), reload: true))
    #expect(found.state?.notices == OwnerNotices())
    #expect(try type(try code())?.isAccepted == true)
    #expect(try told("phone") == [try added])
  }
}
