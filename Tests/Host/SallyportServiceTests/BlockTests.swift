import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportService

/// A fleet that accepts every code. `meanwhile`: what happens while it is asked.
private struct Fleet: FleetSide {
  var meanwhile: @Sendable () -> Void = {}
  func start() {}
  func stop() {}
  var wasAway: Bool { false }

  func answer(_ question: LoginQuestion, log: LogWriter) throws(StoreTrouble) -> ServiceAnswer? {
    switch question.verb {
    case .prepare, .enrolled, .notices:
      let phone = Label("phone" as StaticString)
      return .prompt(
        .enrolled,
        Shape(
          enrollmentID: 1,
          authenticators: [Shape.Authenticator(name: phone, kind: .totp, digits: .six)],
          hasScratchCodes: false, backupCodesLeft: nil, wait: 0, isRemembered: false))
    case .attempt:
      meanwhile()
      return .outcome(.accepted(.authenticator(name: Label("phone" as StaticString), drift: 0)))
    case .level: return .level(.voluntary)
    case .amend: return .done
    case .remember, .count, .rehearse: return nil
    }
  }

  func answer(_ request: HelpRequest, until deadline: UInt64, log: LogWriter) -> HelpAnswer {
    request.order.verb == .unblock ? .refused(.notBlocked) : .done
  }
}

@Suite(.enabled(if: isRoot, "the service is root's"))
struct `A host that blocks somebody of its fleet` {
  private let own: TemporaryDirectory
  private let machine: Machine
  private let alice: Account
  private let context: LoginContext

  init() throws {
    own = try TemporaryDirectory()
    machine = Machine(store: Store(root: own.path + "/store", owner: .effectiveUser))
    try machine.store.prepare()
    alice = machine.account(named: try #require(UserName("alice".utf8)))
    var policy = Policy()
    policy.isFleet = true
    context = LoginContext(
      policy: policy, origin: .local(own: true), service: Label("sallyport" as StaticString))
  }

  private func service(_ fleet: Fleet) throws -> TestService {
    let handler = RequestHandler(store: machine, fleet: fleet) { _, _ in }
    return try TestService { peer, packet, caller in
      handler.answer(peer, packet, to: caller)
    }
  }

  private func logIn(_ authority: ServiceAuthority) throws -> Outcome {
    let step = try authority.prepare(
      alice.name.bytes, alice, in: context, mayEnroll: false, after: .password)
    guard case .prompt(let pending) = step else { throw StoreTrouble.outOfMemory }
    return try authority.attempt(
      try secret("123456".utf8), knownAs: nil, by: pending, as: .last(givingBack: nil))
  }

  @Test func `refuses him, whatever the fleet says, and goes on for root's verbs`() throws {
    let service = try service(Fleet())
    let authority = ServiceAuthority(at: service.root)
    guard case .accepted = try logIn(authority) else {
      Issue.record("refused")
      return
    }
    #expect(try machine.store.block(alice, until: nil, at: Machine.time) == .done)
    #expect(try logIn(authority) == .refused(.blocked))
    #expect(try authority.level(of: alice, in: context) == .refuse)
    #expect(try authority.enrolled(alice, in: context) != nil)
    #expect(
      try machine.store.unblock(alice, at: Machine.time) { Account(name: $0, uid: nil) } == .done)
    guard case .accepted = try logIn(authority) else {
      Issue.record("refused")
      return
    }
  }

  // decisive: `block` has returned by then
  @Test func `refuses a code that the fleet accepts while he is being blocked`() throws {
    let (machine, alice) = (machine, alice)
    let service = try service(
      Fleet(meanwhile: { _ = try? machine.store.block(alice, until: nil, at: Machine.time) }))
    #expect(try logIn(ServiceAuthority(at: service.root)) == .refused(.blocked))
  }

  // decisive
  // shows: climb-numbers
  @Test func `asks its fleet for helpers where root asks, and nobody else`() throws {
    let service = try service(Fleet())
    let frame = try #require(
      HelpRequest(HelpOrder(.block(until: nil), by: alice.name), for: alice.name).encoded())
    let root = try ServiceSocket(to: service.root, timeLeft: 5000)
    let answer = try #require(try root.ask(frame))
    guard case .done = HelpAnswer.decode(answer) else {
      Issue.record("\(answer)")
      return
    }
    let everybody = try ServiceSocket(to: service.everybody, timeLeft: 5000)
    #expect(try everybody.ask(frame) == nil && everybody.wasRead)
    let handler = RequestHandler(store: machine) { _, _ in }
    let alone = try TestService { handler.answer($0, $1, to: $2) }
    let none = try #require(try ServiceSocket(to: alone.root, timeLeft: 5000).ask(frame))
    guard case .notServed = HelpAnswer.decode(none) else {
      Issue.record("\(none)")
      return
    }
  }
}
