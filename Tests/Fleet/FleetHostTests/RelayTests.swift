import CSystem
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService
@testable import SallyportSystem

private let accepted = ServiceAnswer.outcome(.accepted(.backupCode(left: 2)))

@Suite struct `A login that the service asks the fleet about` {
  private let own: TemporaryDirectory
  private let machine: Machine
  private let lines = Locked<[(LogLevel, String)]>([])

  init() throws {
    own = try TemporaryDirectory()
    let store = Store(root: own.path + "/store", owner: .effectiveUser)
    try store.prepare()
    machine = Machine(store: store)
  }

  private func handler(_ line: ScriptedVerifiers?, _ reserve: ScriptedReserve? = nil)
    -> RequestHandler<Machine>
  {
    let lines = lines
    let log: LogWriter = { level, line in
      lines.withLock { $0.append((level, String(decoding: line.bytes, as: UTF8.self))) }
    }
    let relay = Relay(
      { () throws(MembershipFault) in
        guard let line else { throw .notAMember(path: "/etc/security/sallyport-fleet.conf") }
        return line
      }, away: reserve, news: log)
    return RequestHandler(store: machine, fleet: relay, log: log)
  }

  private var fleet: Policy {
    var policy = Policy()
    (policy.isFleet, policy.reserveFor) = (true, 86_400)
    return policy
  }

  private func ask(
    _ handler: RequestHandler<Machine>, _ verb: LoginQuestion.Verb, of name: String = "alice",
    under policy: Policy? = nil, on socket: Peer.Socket = .root, isAway: Bool = false,
    by caller: UInt32 = 3001, from origin: LoginQuestion.StatedOrigin = .local,
    after milliseconds: UInt64 = 0, through service: String = "sshd"
  ) throws -> ServiceAnswer? {
    let request = LoginQuestion(
      name: Array(name.utf8), service: Array(service.utf8), origin: origin,
      policy: policy ?? fleet, millisecondsLeft: 5000, verb: verb, isAway: isAway)
    let peer = Peer(
      socket: socket, process: 1, effectiveUser: socket == .root ? 0 : 3001, realUser: caller,
      arrived: sys_monotonic() - milliseconds * 1_000_000)
    let frame = try #require(request.encoded())
    return ServiceAnswer.decode(handler.answer(peer, frame, to: Waiting()), to: verb)
  }

  private func attempt() throws -> LoginQuestion.Verb {
    .attempt(
      try #require(Secret(Array("123456".utf8))), knownAs: nil, as: .last(givingBack: nil))
  }

  private let prepare = LoginQuestion.Verb.prepare(mayEnroll: true, after: .password)
  private var elsewhere: LoginQuestion.StatedOrigin {
    .address(NumericAddress(high: 0, low: 0xffff_c633_6401))
  }
  private var otherVerbs: [LoginQuestion.Verb] {
    [
      .level, .remember, .count, .rehearse,
      .amend(.rename(Label("a"), to: Label("b")), to: 5),
    ]
  }

  // MARK: there

  @Test func `has the answer of a verifier, who knows the account and whose login it is`() throws {
    let line = ScriptedVerifiers(accepted)
    let reserve = ScriptedReserve()
    #expect(try ask(handler(line, reserve), try attempt()) == accepted)
    let (frame, within) = try #require(line.asked.withLock { $0.first })
    #expect(frame.account?.uid == 3001 && frame.isOwn && frame.origin == .local)
    #expect(frame.name == Array("alice".utf8))
    #expect(frame.service == Array("sshd".utf8) && frame.policy == fleet)
    #expect(within <= 2400 && within > 0 && UInt64(frame.millisecondsLeft) == within)
    #expect(reserve.fetched.withLock { $0.count } == 1 && reserve.verbs.withLock { $0 }.isEmpty)
    // A machine may have joined under a service that runs.
    #expect(reserve.starts.withLock { $0 } == 1)
  }

  /// A program without root names any bytes.
  @Test func `is told of no service whose name no label can have`() throws {
    let line = ScriptedVerifiers(accepted)
    for service in ["sshd", "ss\u{1b}hd", String(repeating: "s", count: 200)] {
      _ = try ask(handler(line), try attempt(), on: .everybody, through: service)
    }
    #expect(line.asked.withLock { $0.map(\.frame.service) } == [Array("sshd".utf8), [], []])
  }

  // shows: relayed-caller
  @Test func `is told who called, where that is not root`() throws {
    let line = ScriptedVerifiers(accepted)
    for caller: UInt32 in [3001, 3002, 0] { _ = try ask(handler(line), try attempt(), by: caller) }
    _ = try ask(handler(line), try attempt(), on: .everybody)
    #expect(line.asked.withLock { $0.map(\.frame.caller) } == [3001, 3002, nil, 3001])
  }

  @Test func `is asked within the time that is left`() throws {
    let line = ScriptedVerifiers(accepted)
    _ = try ask(handler(line), try attempt(), after: 3000)
    let within = try #require(line.asked.withLock { $0.first?.within })
    #expect(within <= 1900)
    #expect(try ask(handler(line), try attempt(), after: 4950) == .trouble(mayBeTheCallers: true))
    #expect(line.asked.withLock { $0.count } == 1)
  }

  /// Else a caller who lets his time pass would be answered by the reserve of a fleet that is
  /// there.
  @Test(arguments: [3950, 4500, 4898, 4999] as [UInt64])
  func `is not away because somebody let his time pass`(_ passed: UInt64) throws {
    let (line, reserve) = (ScriptedVerifiers(.away), ScriptedReserve())
    for verb in [prepare, try attempt()] {
      let answer = try ask(handler(line, reserve), verb, after: passed)
      #expect(answer == .trouble(mayBeTheCallers: true))
    }
    #expect(line.asked.withLock { $0 }.isEmpty && reserve.verbs.withLock { $0 }.isEmpty)
    #expect(reserve.timesAway.withLock { $0 } == 0)
    // With enough of it, it is.
    #expect(try ask(handler(line, reserve), try attempt(), after: 3000) == accepted)
  }

  @Test func `is not one where the policy does not say so`() throws {
    let line = ScriptedVerifiers(accepted)
    let answer = try ask(handler(line), try attempt(), under: Policy())
    #expect({ if case .outcome(.refused) = answer { true } else { false } }())
    #expect(line.asked.withLock { $0 }.isEmpty)
  }

  @Test func `is refused on a machine of no fleet, and the log says why`() throws {
    for verb in [prepare, try attempt(), .enrolled] + otherVerbs {
      #expect(try ask(handler(nil), verb, from: elsewhere) == .trouble(mayBeTheCallers: false))
    }
    let (level, text) = try #require(lines.withLock { $0.first })
    #expect(level == .error && text.contains("verification = fleet: /etc/security/"))
    #expect(text.contains("sallyport fleet join"))
  }

  @Test func `lets in nobody who has no account here`() throws {
    let line = ScriptedVerifiers(accepted)
    let answer = try ask(handler(line), try attempt(), of: "carol")
    #expect(answer == .outcome(.refused(.unknownUser)))
    #expect(try #require(line.asked.withLock { $0.first }).frame.account?.uid == nil)
    let prompt = try ask(
      handler(ScriptedVerifiers(.prompt(.enrolled, shape))), prepare, of: "carol")
    #expect(prompt == .prompt(.unknown, shape))
    // Away too: he may still be in the reserve.
    let reserve = ScriptedReserve(.refused(.unknownUser))
    let away = try ask(handler(ScriptedVerifiers(.away), reserve), try attempt(), of: "carol")
    #expect(away == .outcome(.refused(.unknownUser)))
    #expect(reserve.accounts.withLock { $0.count == 1 && $0[0] == nil })
  }

  @Test func `enrolls in the fleet without a uid`() throws {
    let line = ScriptedVerifiers(.done)
    let parameters = CodeParameters.standard
    let authenticator = Authenticator(
      id: 7, name: Label("phone"), parameters: parameters,
      secret: try #require(Secret(Array("12345678901234567890".utf8))), initialLastAccepted: nil,
      created: UnixTime(0))
    let enrollment = Enrollment(
      id: 5, user: try #require(UserName("alice".utf8)), uid: 3001, created: UnixTime(0),
      authenticators: [authenticator], backupCodes: nil)
    #expect(try ask(handler(line), .amend(.create(enrollment), to: 0)) == .done)
    let sent = try #require(line.asked.withLock { $0.first }).frame.verb
    guard case .amend(.create(let made), _) = sent else {
      Issue.record("\(sent)")
      return
    }
    #expect(made.uid == nil && made.id == 5 && made.user == enrollment.user)
  }

  @Test func `changes nothing where the fleet does not let this host, and the log says so`() throws
  {
    for kind in [true, false] {
      let bytes = try #require(ServiceAnswer.notServed.encoded())
      let line = ScriptedVerifiers { (_) throws(TransportFault) in
        kind ? .notServed : VerifierAnswer(to: .question, bytes)
      }
      #expect(try ask(handler(line), .rehearse) == .notServed)
    }
    let told = lines.withLock { $0 }.filter { $0.1.hasSuffix("used it up: sallyport fleet status") }
    #expect(told.map(\.0) == [.notice, .notice])
  }

  @Test(arguments: [[], [1], [0xff, 0, 0], [1, 0xa5, 9, 9]] as [[UInt8]])
  func `is refused where the answer cannot be read`(_ bytes: [UInt8]) throws {
    let reserve = ScriptedReserve()
    for kind: UInt8 in [0x81, 0x82, 0x01, 0xff] {
      let line = ScriptedVerifiers { (_) throws(TransportFault) in
        VerifierAnswer(kind: kind, body: bytes)
      }
      let answer = try ask(handler(line, reserve), try attempt())
      #expect(answer == .trouble(mayBeTheCallers: false))
    }
    #expect(reserve.verbs.withLock { $0 }.isEmpty)
  }

  /// The next question is the one that counts. What has less time than a verifier is put aside for
  /// says nothing of the fleet.
  @Test func `is not served, in silence, where a verifier cannot say what its owner is told`()
    throws
  {
    let former = ScriptedVerifiers { _ in VerifierAnswer(to: .question, []) }
    let reserve = ScriptedReserve()
    let trouble = ScriptedVerifiers(.trouble(mayBeTheCallers: false))
    for line in [former, trouble, ScriptedVerifiers(.unknown)] + Self.aways.map({ $0() }) {
      for told in [nil, ToldNotices([])] {
        let verb = LoginQuestion.Verb.notices(by: Label("phone"), told: told)
        #expect(try ask(handler(line, reserve), verb) == .notServed)
        #expect(try #require(line.asked.withLock { $0.first }).within < VerifierPool.untilSilent)
      }
    }
    #expect(try ask(handler(nil), .notices(by: nil, told: nil)) == .notServed)
    #expect(lines.withLock { $0 }.isEmpty)
    let away = ScriptedVerifiers(.away)
    let answer = try ask(handler(away, reserve), .remember, from: elsewhere)
    #expect(answer == .trouble(mayBeTheCallers: true))
    #expect(try #require(away.asked.withLock { $0.first }).within < VerifierPool.untilSilent)
    #expect(lines.withLock { $0 }.allSatisfy { !$0.1.contains("the fleet is") })
    #expect(reserve.timesAway.withLock { $0 } == 0 && reserve.verbs.withLock { $0 }.isEmpty)
  }

  @Test func `is told what the verifier tells, who has an account here`() throws {
    let told = ServiceAnswer.told(shape, [.wrongCodes(2), .passUsed(UnixTime(5), from: nil)])
    let line = ScriptedVerifiers(told)
    #expect(try ask(handler(line), .notices(by: Label("phone"), told: nil)) == told)
    #expect(try ask(handler(line), .notices(by: nil, told: nil), of: "nobody-here") == .notServed)
    #expect(try ask(handler(line), .notices(by: nil, told: nil), on: .everybody) == .notServed)
  }

  // MARK: not known

  @Test(arguments: [(TransportFault.unknown, true), (.stranger, false), (.revoked, false)])
  func `is refused, and neither asked again nor verified here, after`(
    _ fault: TransportFault, _ mayBeTheCallers: Bool
  ) throws {
    for verb in [prepare, try attempt(), .enrolled] + otherVerbs {
      let (line, reserve) = (ScriptedVerifiers(fault), ScriptedReserve())
      let answer = try ask(handler(line, reserve), verb, from: elsewhere)
      #expect(answer == .trouble(mayBeTheCallers: mayBeTheCallers))
      #expect(line.asked.withLock { $0.count } == 1)
      #expect(reserve.verbs.withLock { $0 }.isEmpty)
    }
    #expect(lines.withLock { $0 }.allSatisfy { $0.1.contains("reason=fleet user=alice") })
  }

  // MARK: away

  private static let aways: [@Sendable () -> ScriptedVerifiers] = [
    { ScriptedVerifiers(.away) }, { ScriptedVerifiers(.unpinned) },
    { ScriptedVerifiers { (_) throws(TransportFault) in .databaseAway } },
  ]

  @Test(arguments: 0..<3, [EnrollmentLevel.refuse, .required, .offer, .remind, .voluntary])
  func `asks everybody alike for a backup code while it is away`(
    _ kind: Int, _ level: EnrollmentLevel
  ) throws {
    let reserve = ScriptedReserve()
    let handler = handler(Self.aways[kind](), reserve)
    var policy = fleet
    (policy.enrollment, policy.remember, policy.hints) = (level, 3600, true)
    let alice = try ask(handler, prepare, under: policy, from: elsewhere)
    guard case .prompt(.enrolled, let found) = alice else {
      Issue.record("\(String(describing: alice))")
      return
    }
    #expect(found.isAway && !found.isRemembered && found.authenticators.isEmpty)
    #expect(found.backupCodesLeft == nil && found.wait == 0)
    for name in ["bob", "carol", "alice "] {
      #expect(try ask(handler, prepare, of: name, under: policy, from: elsewhere) == alice)
    }
    #expect(try ask(handler, .enrolled, under: policy) == alice)
    #expect(try ask(handler, try attempt(), under: policy) == accepted)
    for context in reserve.contexts.withLock({ $0 }) {
      // Whatever is kept of the user, `exempt` too.
      #expect(context.policy.level(of: .exempt(until: nil), at: UnixTime(0)) == .refuse)
      #expect(context.policy.remember == 0)
    }
    for verb in otherVerbs {
      let answer = try ask(handler, verb, under: policy, from: elsewhere)
      #expect(answer == .trouble(mayBeTheCallers: true))
    }
    #expect(reserve.fetched.withLock { $0 }.isEmpty)
  }

  @Test func `is not asked for, where it was away when the code was`() throws {
    let (line, reserve) = (ScriptedVerifiers(accepted), ScriptedReserve(.refused(.notEnrolled)))
    let answer = try ask(handler(line, reserve), try attempt(), isAway: true)
    #expect(answer == .outcome(.refused(.notEnrolled)))
    #expect(line.asked.withLock { $0 }.isEmpty && reserve.verbs.withLock { $0 } == ["attempt"])
  }

  /// The code may have been used on another host since the prompt was there.
  @Test func `is asked for, where it was away when the code was, and is back for good`() throws {
    let refused = ServiceAnswer.outcome(.refused(.notEnrolled))
    let (line, reserve) = (ScriptedVerifiers(refused), ScriptedReserve())
    reserve.confirmed.withLock { $0 = true }
    #expect(try ask(handler(line, reserve), try attempt(), isAway: true) == refused)
    #expect(line.asked.withLock { $0.count } == 1 && reserve.verbs.withLock { $0 }.isEmpty)
    #expect(
      try ask(handler(ScriptedVerifiers(.away), reserve), try attempt(), isAway: true) == accepted)
  }

  @Test func `lets nobody in while it is away where the policy says so`() throws {
    var policy = fleet
    policy.isRefusedAway = true
    let reserve = ScriptedReserve()
    let handler = handler(ScriptedVerifiers(.away), reserve)
    for name in ["alice", "bob", "carol"] {
      for verb in [prepare, try attempt()] {
        let answer = try ask(handler, verb, of: name, under: policy)
        #expect(answer == .trouble(mayBeTheCallers: true))
      }
    }
    let answer = try ask(handler, try attempt(), under: policy, isAway: true)
    #expect(answer == .trouble(mayBeTheCallers: true))
    #expect(reserve.verbs.withLock { $0 }.isEmpty)
    #expect(lines.withLock { $0 }.contains { $0.1.hasSuffix("the policy has away = refuse") })
  }

  @Test func `lets nobody in by any other code while it is away`() throws {
    let reserve = ScriptedReserve(.accepted(.authenticator(name: Label("phone"), drift: 0)))
    let answer = try ask(handler(ScriptedVerifiers(.away), reserve), try attempt())
    #expect(answer == .trouble(mayBeTheCallers: true))
  }

  @Test func `is not asked before it knows what was used here`() throws {
    let (line, reserve) = (ScriptedVerifiers(accepted), ScriptedReserve(report: .away))
    #expect(try ask(handler(line, reserve), try attempt()) == accepted)
    #expect(line.asked.withLock { $0 }.isEmpty && reserve.verbs.withLock { $0 } == ["attempt"])
  }

  // decisive
  @Test func `is told of once when it goes, and once when it is back`() throws {
    let isThere = Locked(false)
    let bytes = try #require(accepted.encoded())
    let line = ScriptedVerifiers { (_) throws(TransportFault) in
      guard isThere.withLock({ $0 }) else { throw .away }
      return VerifierAnswer(to: .question, bytes)
    }
    let handler = handler(line, ScriptedReserve())
    for state in [false, false, true, true, false] {
      isThere.withLock { $0 = state }
      #expect(try ask(handler, try attempt()) == accepted)
    }
    let told = lines.withLock { $0 }.map(\.1).filter { $0.hasPrefix("the fleet is ") }
    #expect(told.map { $0.contains("back") } == [false, true, false])
  }

  // MARK: programs that are not root

  @Test func `is asked for the own account of a program that is not root`() throws {
    let line = ScriptedVerifiers(accepted)
    #expect(try ask(handler(line), try attempt(), on: .everybody) == accepted)
    let frame = try #require(line.asked.withLock { $0.first }).frame
    #expect(frame.account?.uid == 3001 && frame.isOwn)
    #expect(try ask(handler(line), try attempt(), of: "bob", on: .everybody) == .notServed)
    for verb in otherVerbs where verb.isForRootAlone {
      #expect(try ask(handler(line), verb, on: .everybody, from: elsewhere) == .notServed)
    }
    #expect(line.asked.withLock { $0.count } == 1)
  }

  @Test func `is away for a program that is not root only where the service has seen it`() throws {
    let isThere = Locked(true)
    let bytes = try #require(ServiceAnswer.outcome(.refused(.notEnrolled)).encoded())
    let line = ScriptedVerifiers { (_) throws(TransportFault) in
      guard isThere.withLock({ $0 }) else { throw .away }
      return VerifierAnswer(to: .question, bytes)
    }
    let handler = handler(line, ScriptedReserve())
    let refused = ServiceAnswer.outcome(.refused(.notEnrolled))
    #expect(try ask(handler, try attempt(), on: .everybody, isAway: true) == refused)
    isThere.withLock { $0 = false }
    _ = try ask(handler, prepare, on: .everybody)
    isThere.withLock { $0 = true }
    #expect(try ask(handler, try attempt(), on: .everybody, isAway: true) == accepted)
  }
}

extension LoginQuestion.Verb {
  fileprivate var isForRootAlone: Bool { if case .level = self { false } else { true } }
}
