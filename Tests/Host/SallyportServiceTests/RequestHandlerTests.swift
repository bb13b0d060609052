import CSystem
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportService
@testable import SallyportSystem

@Suite struct `What a frame of a program that is not root can say` {
  private let own: TemporaryDirectory
  private let machine: Machine
  private let handler: RequestHandler<Machine>

  init() throws {
    own = try TemporaryDirectory()
    let store = Store(root: own.path + "/store", owner: .effectiveUser)
    try store.prepare()
    machine = Machine(store: store)
    handler = RequestHandler(store: machine) { _, _ in }
    try machine.enroll("alice", 3001)
    try machine.enroll("bob", 3002)
  }

  private func state(_ name: String = "alice") throws -> LoginState {
    let user = try #require(UserName(name.utf8))
    return try #require(try machine.load(machine.account(named: user))).state
  }

  /// RFC 6238: the code of this number of steps from now.
  private func code(_ steps: Int64 = 0) throws -> Secret {
    let generator = try CodeGenerator(
      secret: try #require(Secret(Array("12345678901234567890".utf8))), algorithm: .sha1,
      digits: .six)
    let step = UInt64(Machine.time.seconds / 30 + steps)
    let digits = String(try generator.code(at: step))
    let zeros = String(repeating: "0", count: 6 - digits.count)
    return try #require(Secret(Array((zeros + digits).utf8)))
  }

  private func peer(_ user: UInt32 = 3001, _ socket: Peer.Socket = .everybody, late: Bool = false)
    -> Peer
  {
    let arrived = late ? sys_monotonic() - 6_000_000_000 : sys_monotonic()
    return Peer(
      socket: socket, process: 1, effectiveUser: socket == .root ? 0 : user, realUser: user,
      arrived: arrived)
  }

  private func ask(
    _ verb: LoginQuestion.Verb, of name: String = "alice", by peer: Peer? = nil,
    _ origin: LoginQuestion.StatedOrigin = .local, _ policy: Policy = Policy(),
    waits caller: Waiting? = nil
  ) throws -> ServiceAnswer {
    let request = LoginQuestion(
      name: Array(name.utf8), service: Array("locker".utf8), origin: origin, policy: policy,
      millisecondsLeft: 5000, verb: verb, waits: caller != nil)
    let frame = try #require(request.encoded())
    let answer = handler.answer(peer ?? self.peer(), frame, to: caller ?? Waiting())
    return try #require(ServiceAnswer.decode(answer, to: verb))
  }

  private func attempt(_ typed: Secret, _ role: ResponseRole = .last(givingBack: nil))
    -> LoginQuestion.Verb
  {
    .attempt(typed, knownAs: nil, as: role)
  }

  private func isAccepted(_ answer: ServiceAnswer) -> Bool {
    if case .outcome(.accepted) = answer { true } else { false }
  }

  @Test func `a right code of its own account is accepted`() throws {
    #expect(isAccepted(try ask(attempt(try code()))))
    #expect(!isAccepted(try ask(attempt(try code()))))
  }

  @Test(arguments: ["bob", "root", "nobody-here", "alice ", "ALICE", "/"])
  func `another name is not served, and nothing of it changes`(_ name: String) throws {
    let before = (try state(), try state("bob"))
    let verbs = [
      attempt(try code()), .prepare(mayEnroll: true, after: .password), .enrolled, .level,
    ]
    for verb in verbs { #expect(try ask(verb, of: name) == .notServed) }
    #expect((try state(), try state("bob")) == before)
  }

  @Test func `an address in it makes no known place, and is not where the code came from`() throws {
    let elsewhere = NumericAddress(high: 0, low: 0xffff_c633_6401)
    #expect(isAccepted(try ask(attempt(try code()), .address(elsewhere))))
    #expect(try state().origins.isEmpty)
    #expect(try state().lastUse?.origin == .local(own: true))
  }

  // shows: own-account
  @Test func `a looser policy in it loosens nothing`() throws {
    var policy = Policy()
    (policy.adjacentIntervals, policy.lookAhead, policy.isEnabled) = (10, 100, false)
    (policy.guessBudget, policy.enrollment) = (GuessProbability.budgets.upperBound, .voluntary)
    #expect(!isAccepted(try ask(attempt(try code(8)), .local, policy)))
    let answer = try ask(.prepare(mayEnroll: false, after: .password), .local, policy)
    #expect({ if case .prompt(.enrolled, _) = answer { true } else { false } }())
  }

  @Test(arguments: [EnrollmentLevel.refuse, .required]) func `a stricter level in it holds`(
    _ level: EnrollmentLevel
  ) throws {
    let carol = try #require(UserName("bob".utf8))
    let record = try #require(try machine.load(machine.account(named: carol)))
    _ = try machine.store.remove(record)
    var policy = Policy()
    policy.enrollment = level
    let answer = try ask(
      .prepare(mayEnroll: true, after: .password), of: "bob", by: peer(3002), .local, policy)
    #expect({ if case .prompt(.notEnrolled, _) = answer { true } else { false } }())
  }

  /// A caller who may ask for the lenient one of two dates passes without a code until then.
  @Test(arguments: [(1_900_000_000, 0), (0, 1_900_000_000), (0, 0)] as [(Int64, Int64)])
  func `of two days from which a level is required the earlier holds`(own: Int64, stated: Int64)
    throws
  {
    let bob = try #require(UserName("bob".utf8))
    let record = try #require(try machine.load(machine.account(named: bob)))
    _ = try machine.store.remove(record)
    var machine = machine
    (machine.own.enrollment, machine.own.requiredFrom) = (.required, UnixTime(own))
    var policy = Policy()
    (policy.enrollment, policy.requiredFrom) = (.required, UnixTime(stated))
    let request = LoginQuestion(
      name: bob.bytes, service: Array("locker".utf8), origin: .local, policy: policy,
      millisecondsLeft: 5000, verb: .level)
    let answer = RequestHandler(store: machine) { _, _ in }.answer(
      peer(3002), try #require(request.encoded()), to: Waiting())
    #expect(ServiceAnswer.decode(answer, to: .level) == .level(.required))
  }

  @Test func `what it says a first pass was charged is not given back`() throws {
    _ = try ask(attempt(try #require(Secret(Array("000000".utf8)))))
    let spent = try state().known.spent
    #expect(spent > GuessProbability(units: 0))
    let charge = Charge(enrollmentID: 3001, isKnown: true, amount: spent)
    #expect(isAccepted(try ask(attempt(try code(), .last(givingBack: charge)))))
    #expect(try state().known.spent == spent)
  }

  @Test func `it changes nothing but by a code`() throws {
    let elsewhere = NumericAddress(high: 0, low: 0xffff_c633_6401)
    let before = try state()
    let phone = try #require(Label("phone".utf8))
    let verbs: [(LoginQuestion.Verb, LoginQuestion.StatedOrigin)] = [
      (.remember, .address(elsewhere)), (.count, .local), (.notices(by: nil, told: nil), .local),
      (.amend(.rename(phone, to: try #require(Label("x".utf8))), to: 3001), .local),
    ]
    for (verb, place) in verbs { #expect(try ask(verb, place) == .notServed) }
    #expect(try state() == before)
  }

  @Test func `a code that comes when nobody waits any more is not used up`() throws {
    let before = try state()
    for socket in [Peer.Socket.root, .everybody] {
      let answer = try ask(attempt(try code()), by: peer(3001, socket, late: true))
      #expect(answer == .trouble(mayBeTheCallers: true))
    }
    #expect(try state() == before)
    #expect(isAccepted(try ask(attempt(try code()))))
  }

  /// Right, wrong, used, malformed, not enrolled, unknown, and no name at all: told once, and
  /// before.
  @Test(arguments: [Peer.Socket.root, .everybody])
  func `who waits is told that it begins, whatever comes of it`(_ socket: Peer.Socket) throws {
    let bob = try #require(UserName("bob".utf8))
    _ = try machine.store.remove(try #require(try machine.load(machine.account(named: bob))))
    let wrong = try secret("000000")
    var cases = [
      ("alice", try code()), ("alice", try code()), ("alice", wrong), ("alice", try secret("x")),
      ("bob", try code()),
    ]
    if socket == .root { cases += [("nobody-here", wrong), ("/", wrong), ("a b", wrong)] }
    for (name, typed) in cases {
      let (waiting, user): (Waiting, UInt32) = (Waiting(), name == "bob" ? 3002 : 3001)
      let answer = try ask(attempt(typed), of: name, by: peer(user, socket), waits: waiting)
      #expect({ if case .outcome = answer { true } else { false } }(), "\(name)")
      #expect(waiting.begun == 1, "\(name)")
    }
    let asking = Waiting()
    _ = try ask(.prepare(mayEnroll: false, after: .none), by: peer(3001, socket), waits: asking)
    #expect(asking.begun == 0)
  }

  @Test func `a former caller is not told that it begins`() throws {
    let waiting = Waiting()
    let request = LoginQuestion(
      name: Array("alice".utf8), service: [], origin: .local, policy: Policy(),
      millisecondsLeft: 5000, verb: attempt(try code()))
    _ = handler.answer(peer(), try #require(request.encoded()), to: waiting)
    #expect(waiting.begun == 0)
  }

  @Test(arguments: [Peer.Socket.root, .everybody])
  func `nothing is done for who cannot be told that it begins`(_ socket: Peer.Socket) throws {
    let before = try state()
    for (late, gone) in [(false, true), (true, false)] {
      let peer = peer(3001, socket, late: late)
      let answer = try ask(attempt(try code()), by: peer, waits: Waiting(isGone: gone))
      #expect(answer == .trouble(mayBeTheCallers: true))
    }
    #expect(try state() == before)
    #expect(isAccepted(try ask(attempt(try code()), by: peer(3001, socket), waits: Waiting())))
  }

  @Test func `what became of a code that nobody waits for any more is logged`() throws {
    let lines = Locked([String]())
    let handler = RequestHandler(store: machine) { _, line in
      lines.withLock { $0.append(String(decoding: line.bytes, as: UTF8.self)) }
    }
    let request = LoginQuestion(
      name: Array("alice".utf8), service: Array("su".utf8), origin: .local, policy: Policy(),
      millisecondsLeft: 5000, verb: attempt(try code()), waits: true)
    let frame = try #require(request.encoded())
    _ = handler.answer(peer(3001, .root), frame, to: Waiting(isThere: false))
    _ = handler.answer(peer(3001, .root), frame, to: Waiting())
    let found = lines.withLock { $0 }
    #expect(found.count == 1)
    #expect(found.first?.contains("code accepted: user=alice") == true, "\(found)")
  }

  /// The budget in tenths of a per cent and the intervals that a request says, and what follows.
  struct Pair: Sendable {
    let tenths: UInt64
    let adjacent: UInt8
    let cost: UInt64
    var days: Int64 = 10
    var holds: UInt64 = 220_000_000
    var regains: UInt64 = 4_780_000_000
  }

  /// As a line under the strict policy sends it, and one with a file of its own: the one changes
  /// nothing, the other makes it no looser.
  @Test(arguments: [
    Pair(tenths: 10, adjacent: 1, cost: 3_000_000),
    Pair(tenths: 10, adjacent: 5, cost: 11_000_000),
    Pair(tenths: 100, adjacent: 0, cost: 1_000_000),
    Pair(tenths: 1, adjacent: 5, cost: 11_000_000, days: 20, regains: 280_000_000),
    Pair(
      tenths: 1, adjacent: 10, cost: 21_000_000, days: 40, holds: 250_000_000,
      regains: 250_000_000),
  ]) func `on root's socket a bucket holds and regains what the file of this machine says`(
    pair: Pair
  ) throws {
    var stated = Policy()
    stated.guessBudget = GuessProbability(units: pair.tenths * 1_000_000_000)
    stated.adjacentIntervals = pair.adjacent
    let wrong = try #require(Secret(Array("000000".utf8)))
    let bob = try #require(UserName("bob".utf8))
    let record = try #require(try machine.load(machine.account(named: bob)))
    let since = UnixTime(Machine.time.seconds - pair.days * 86_400)
    _ = try machine.transact(record, asKnown: true) { (_, state) in
      var state = state
      state.known = Bucket(spent: GuessProbability(units: pair.holds), since: since)
      return (true, state)
    }
    _ = try ask(attempt(wrong), of: "bob", by: peer(3002, .root), .local, stated)
    let regained = UInt64(pair.days) * 86_400 * pair.regains / 31_557_600
    #expect(try state("bob").known.spent.units == pair.holds - regained + pair.cost)
  }

  @Test func `one user fills no log`() throws {
    let lines = Locked(0)
    let handler = RequestHandler(store: machine) { _, _ in lines.withLock { $0 += 1 } }
    let request = LoginQuestion(
      name: Array("alice".utf8), service: [], origin: .local, policy: Policy(),
      millisecondsLeft: 5000, verb: attempt(try #require(Secret(Array("letters".utf8)))))
    let frame = try #require(request.encoded())
    for _ in 0..<100 { #expect(!handler.answer(peer(), frame, to: Waiting()).isEmpty) }
    #expect(lines.withLock { $0 } == 60)
  }

  @Test func `what costs or lets in is logged, and how many lines were left out`() throws {
    let lines = Locked([String]())
    let handler = RequestHandler(store: machine) { _, line in
      lines.withLock { $0.append(String(decoding: line.bytes, as: UTF8.self)) }
    }
    func type(_ typed: Secret, _ times: Int = 1) throws {
      let request = LoginQuestion(
        name: Array("alice".utf8), service: [], origin: .local, policy: Policy(),
        millisecondsLeft: 5000, verb: attempt(typed))
      let frame = try #require(request.encoded())
      for _ in 0..<times { _ = handler.answer(peer(), frame, to: Waiting()) }
    }
    try type(try secret("letters"), 100)
    try type(try secret("000000"), 8)
    try type(try secret("letters"))
    try type(try code())
    let found = lines.withLock { $0.dropFirst(60) }
    try #require(found.count == 9)
    #expect(found.prefix(8).allSatisfy { $0.contains("reason=wrong-code") }, "\(found)")
    let counts = [60, 68].map { String(found[$0].split(separator: " ").last ?? "") }
    #expect(counts == ["left_out=40", "left_out=1"] && found[68].contains("accepted"))
    #expect(!found[61].contains("left_out"))
  }

  @Test func `what was left out is kept of a thousand users, and told of all`() throws {
    let allowance = LineAllowance()
    var (written, told) = (0, 0)
    for user in UInt32(0)..<2000 {
      for _ in 0..<62 {
        let line = allowance.line(LogLine("x"), of: user, isCostless: true)
        guard let line else { continue }
        written += 1
        for word in String(decoding: line.bytes, as: UTF8.self).split(separator: " ").dropFirst() {
          told += Int(word.split(separator: "=").last ?? "") ?? 0
        }
      }
    }
    #expect(written == 2000 * 60 && allowance.count == 1000)
    // Two of each of the thousand that had to go but the last, whose are told next.
    #expect(told == 2 * 1000)
    let last = allowance.line(LogLine("x"), of: 1999, isCostless: false)
    #expect(last.map { String(decoding: $0.bytes, as: UTF8.self) } == "x left_out=2")
  }

  @Test(arguments: [Peer.Socket.root, .everybody])
  func `a service without a fleet refuses whom the policy sends there, and says why`(
    _ socket: Peer.Socket
  ) throws {
    let lines = Locked([(LogLevel, String)]())
    let handler = RequestHandler(store: machine) { level, line in
      lines.withLock { $0.append((level, String(decoding: line.bytes, as: UTF8.self))) }
    }
    let before = try state()
    var policy = Policy()
    policy.isFleet = true
    for verb in [.prepare(mayEnroll: true, after: .none), .enrolled, .level, attempt(try code())] {
      let request = LoginQuestion(
        name: Array("alice".utf8), service: [], origin: .local, policy: policy,
        millisecondsLeft: 5000, verb: verb, isAway: true)
      let frame = try #require(request.encoded())
      let answer = handler.answer(peer(3001, socket), frame, to: Waiting())
      #expect(ServiceAnswer.decode(answer, to: verb) == .trouble(mayBeTheCallers: false))
    }
    #expect(try state() == before)
    let told = lines.withLock { $0 }
    #expect(told.count == 4 && told.allSatisfy { $0.0 == .error })
    #expect(told.first?.1.hasSuffix("this service is built without the fleet") == true, "\(told)")
  }

  @Test func `on root's socket the real user tells whose local login it is`() throws {
    #expect(isAccepted(try ask(attempt(try code()), by: peer(3002, .root))))
    #expect(try state().lastUse?.origin == .local(own: false))
    #expect(isAccepted(try ask(attempt(try code(1)), by: peer(3001, .root))))
    #expect(try state().lastUse?.origin == .local(own: true))
  }
}
