import Foundation
import OneTimePassword
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import FleetTransport
@testable import SallyportCore
@testable import SallyportVerifier

/// A verifier over a database of its own, and one connection of a host to it that is kept. Its
/// clock says what it is told.
private final class Wire: Sendable {
  static let one = Result { try Wire() }

  let verifier: Verifier
  let host = Array("web1".utf8)
  let now = Locked(UnixTime(0))
  private let directory: TemporaryDirectory
  private let handler: LoginHandler
  private let server: FleetServer
  private let line: VerifierPool

  private init() throws {
    let now = now
    let own = try OwnDatabase()
    verifier = try Verifier(in: own, now: { now.withLock { $0 } })
    directory = try TemporaryDirectory()
    // Of the two policies the stricter one holds: it is the case's, with the budget that is built
    // in.
    try "[default]\n".write(
      toFile: directory.path + "/sallyport.conf", atomically: false, encoding: .utf8)
    let handler = LoginHandler(
      verifier.database, FleetPolicy(in: directory.path), wrongCodes: 1_000_000)
    self.handler = handler
    let (key, pinned) = (try Identity(pem: Identity.newKey()), try Identity(pem: Identity.newKey()))
    let row = HostRow(name: host, key: key.pin.bytes, enrolls: true, joined: 1)
    _ = try verifier.ask(
      "INSERT INTO host (name, key, enrolls, joined, seal) VALUES ('web1', $1, true, 1, $2)",
      [.bytes(key.pin.bytes), .bytes(try row.seal(under: verifier.database.key))])
    let router = FrameRouter(Hosts(verifier.database), [.question: handler])
    server = try FleetServer(
      on: VerifierAddress(bytes: [127, 0, 0, 1], port: 0), identity: pinned,
      standing: { router.standing(of: $0) },
      handler: { router.read($0, $1, $2, arrived: $3) })
    let file = FleetFile(
      host: "web1", enrolls: true, verifiers: [server.address], pins: [pinned.pin])
    line = VerifierPool(file, key)
  }

  /// As the service of a host sends what was typed. nil: the verifier does not verify it.
  func type(_ typed: String, _ each: DecisionCase, _ name: String) throws -> Outcome? {
    let charge = each.charged.map {
      Charge(enrollmentID: 0xe0e0, isKnown: $0.isKnown, amount: $0.amount)
    }
    if let charge {
      // What the host wants back, this verifier has charged it.
      let refusal = Outcome.refused(
        .response(.wrongCode(charge), left: BudgetLeft(known: 0, other: 0)))
      handler.limits.note(refusal, as: .firstPass, of: Array(name.utf8), on: host, by: nil)
    }
    let typed = try secret(typed.unescaped())
    let role = each.role(for: try each.enrollment())
    let request = LoginQuestion(
      name: Array(name.utf8), service: Array("sshd".utf8), origin: try each.origin.stated,
      policy: each.policy, millisecondsLeft: 5000,
      verb: .attempt(typed, knownAs: nil, as: role))
    let frame = try hostFrame(request, isOwn: each.origin == .local(own: true), uid: 1000)
    let answer = try line.ask(.question, frame, within: 20_000)
    #expect(answer.answers(.question))
    if answer.body.isEmpty { return nil }
    guard case .outcome(let outcome) = ServiceAnswer.decode(answer.body, to: request.verb) else {
      Issue.record("\(answer.body)")
      return nil
    }
    return outcome
  }
}

extension Origin {
  fileprivate var stated: LoginQuestion.StatedOrigin {
    get throws {
      switch self {
      case .unknown: .unknown
      case .local: .local
      case .address(let network):
        .address(NumericAddress(high: network.high, low: network.low))
      }
    }
  }
}

extension DecisionCase {
  /// A value beyond those that a policy can have is in no frame.
  fileprivate var fitsAFrame: Bool {
    PolicyKey.allCases.allSatisfy { !$0.isScalar || $0.bounds.contains(policy[$0]) }
  }

  /// As a fleet has this state: the places are ones of this host. One's own local login, which one
  /// machine always knows, is one of them.
  fileprivate func placed(_ state: LoginState, on host: [UInt8]) throws -> LoginState {
    var placed = state.placed(on: host)
    if origin == .local(own: true) {
      let place = try #require(OriginPseudonyms(on: host).local)
      placed.origins.insert(KnownOrigin(origin: place, lastSeen: now), at: 0)
    }
    return placed
  }
}

@Suite(
  .serialized, .enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A host on the line` {
  /// Frames over TLS, answered by the policy of both, sealed and saved: the same outcomes and
  /// the same states as of the decision alone. What buckets hold and regain is the fleet's to say,
  /// so that cases under another budget, other windows or without a factor are none of its.
  @Test(arguments: try DecisionCase.all().filter(\.hasUsualBudget))
  func `is answered as the table of decisions says`(each: DecisionCase) throws {
    let wire = try Wire.one.get()
    let name = "case-\(UUID().uuidString)"
    let made = try each.enrollment()
    var enrollment = try fleetEnrollment(made.authenticators, name, codes: made.backupCodes)
    enrollment.passes = made.passes
    let before = try each.state(for: enrollment)
    let kept = try each.placed(before, on: wire.host)
    let store = wire.verifier.store(for: name)
    try store.create(enrollment, kept)
    wire.now.withLock { $0 = each.now }
    let outcomes = try (each.first + [each.typed]).map { try wire.type($0, each, name) }
    let account = Account(name: enrollment.user, uid: 1000)
    var after = try #require(try wire.verifier.store(for: name).load(account)).state
    guard each.fitsAFrame else {
      #expect(outcomes.allSatisfy { $0 == nil })
      #expect(after == kept)
      return
    }
    // A fleet keeps more.
    after.origins = Array(after.origins.prefix(LoginState.maximumOrigins))
    let outcome = try #require(outcomes.last ?? nil)
    let decision = Decision(verdict: try #require(outcome.verdict), state: after)
    #expect(decision.words == each.wanted)
    let wanted = try each.placed(each.wantedState(before: before, decision), on: wire.host)
    #expect(wanted.facts == after.facts)
  }
}

extension DecisionCase {
  fileprivate var hasUsualBudget: Bool {
    SharedBudgetBox(policy.sharedBudget) == SharedBudgetBox(SharedBudget(of: Policy()))
  }
}
