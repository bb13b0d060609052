import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import TestSupport
import Testing

@testable import SallyportService
@testable import SallyportSystem

@Suite(.enabled(if: isRoot, "the service is root's"))
struct `The verbs of a login, by the service` {
  private let context = LoginContext(
    policy: Policy(), origin: .local(own: true), service: Label("sallyport" as StaticString))

  @Test func `do to one person what the table of all ways says`() throws {
    for one in try VerbCase.all(on: .service) { try run(one) }
  }

  private func run(_ one: VerbCase) throws {
    let own = try TemporaryDirectory()
    let machine = Machine(store: Store(root: own.path + "/store", owner: .effectiveUser))
    try machine.store.prepare()
    let account = machine.account(named: try #require(UserName("alice".utf8)))
    if let (enrollment, state) = try one.stored(
      for: account.name, uid: account.uid, at: Machine.time)
    {
      try machine.create(enrollment, state)
    }
    if one.isBlocked { _ = try machine.store.block(account, until: nil, at: Machine.time) }
    let handler = RequestHandler(store: machine) { _, _ in }
    let service = try TestService { peer, packet, caller in
      let peer = Peer(
        socket: .root, process: peer.process, effectiveUser: 0, realUser: 3001,
        arrived: peer.arrived)
      return handler.answer(peer, packet, to: caller)
    }
    let authority = ServiceAuthority(at: service.root)
    #expect(try word(one, authority, account, machine) == one.outcome(on: .service), "\(one)")
    let found = try machine.load(account).map { ($0.enrollment, $0.state) }
    let facts = try one.facts(
      on: .service, found, for: account.name, uid: account.uid, at: Machine.time)
    #expect(facts.found == facts.expected, "\(one)")
  }

  /// What is asked for a code is proven first, as a login or a session does.
  private func word(
    _ one: VerbCase, _ authority: ServiceAuthority, _ account: Account, _ machine: Machine
  ) throws -> String {
    guard one.verb[0] != "enroll" else {
      return try amended(
        .create(try enrollment(one, for: account)), authority, account, of: nil)
    }
    guard let pending = try authority.enrolled(account, in: context) else { return "not-enrolled" }
    for typed in one.typed(on: .service) where !typed.hasPrefix("first") {
      let answer = try secret(try one.answer(typed, at: Machine.time))
      let outcome = try authority.attempt(
        answer, knownAs: nil, by: pending, as: .last(givingBack: nil))
      guard case .accepted = outcome else { return word(outcome) }
    }
    return try amended(change(one, machine, account), authority, account, of: pending)
  }

  private func change(_ one: VerbCase, _ machine: Machine, _ account: Account) throws
    -> EnrollmentChange?
  {
    let words = one.verb.dropFirst().filter { !$0.hasPrefix("--") }
    let names = try words.map { try #require(Label(Array($0.utf8))) }
    switch one.verb[0] {
    case "add": return .add([try authenticator(one, names[0])], backupCodes: nil)
    case "remove": return .remove(names[0])
    case "rename": return .rename(names[0], to: names[1])
    case "renew":
      // As a session, which does not know how many there were.
      return .renew(try #require(try BackupCodeSet.fresh(count: BackupCodeSet.maximumCodes).set))
    case "pass":
      let enrolls = one.verb.last == "--enroll"
      let fresh = try Pass.fresh(
        of: 0xe0e0, from: Machine.time, for: 7200, uses: enrolls ? Pass.claims : 1,
        enrolls: enrolls)
      return .give(fresh.pass)
    case "revoke": return .revoke
    case _: return nil
    }
  }

  private func amended(
    _ change: EnrollmentChange?, _ authority: ServiceAuthority, _ account: Account,
    of pending: PendingLogin?
  ) throws -> String {
    guard let change else { return "done" }
    switch try authority.amend(change, of: account.name, pending, in: context) {
    case .done: return "done"
    case .changed: return pending == nil ? "enrolled" : "changed"
    case .flawed(let flaw):
      switch flaw {
      case .enrolled: return "enrolled"
      case .noSuchAuthenticator: return "no-such"
      case .lastAuthenticator: return "last"
      case .nameTaken: return "name-taken"
      case .tooManyAuthenticators, .tooManyPasses: return "too-many"
      case .secretTaken: return "secret-taken"
      }
    }
  }

  private func word(_ outcome: Outcome) -> String {
    switch outcome {
    case .accepted: "done"
    case .refused(.notEnrolled), .refused(.unknownUser): "not-enrolled"
    case .refused(.blocked): "blocked"
    case .refused(.response(let refusal, _)):
      switch refusal {
      case .malformed: "malformed"
      case .wrongCode: "wrong-code"
      case .replayed: "replayed"
      case .throttled: "throttled"
      case .mustEnroll: "must-enroll"
      case .clock: "clock"
      }
    }
  }

  private func enrollment(_ one: VerbCase, for account: Account) throws -> Enrollment {
    let name = try #require(Label(Array(one.verb[1].utf8)))
    return Enrollment(
      id: 77, user: account.name, uid: account.uid, created: Machine.time,
      authenticators: [try authenticator(one, name)],
      backupCodes: try BackupCodeSet.fresh(count: BackupCodeSet.usualCodes).set)
  }

  /// Whose first code was right.
  private func authenticator(_ one: VerbCase, _ name: Label) throws -> Authenticator {
    let draft = try Draft(
      for: try #require(UserName("alice".utf8)), named: name, .standard,
      secret: try Random.secret(count: 20), issuer: name, at: Machine.time)
    let typed = one.typed(on: .service).last ?? "first"
    let code = try one.answer(typed, at: Machine.time, new: draft.authenticator.secret)
    let first = try draft.verify(
      firstCode: try secret(code), at: Machine.time, under: context.policy)
    guard case .right(let state) = first else { throw Errno(code: 22) }
    return draft.authenticator.confirmed(by: state)
  }
}
