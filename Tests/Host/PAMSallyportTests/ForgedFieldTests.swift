import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportService
import SallyportSystem
import Synchronization
import TestSupport
import Testing

/// A caller that is there.
private struct Waiting: Caller {
  var isThere: Bool { true }
  func begin() -> Bool { true }
}

/// What a program that is not root writes into a packet of its own, in place of what the module
/// would. All but the response is beside the point: whose account, policy and origin counts is the
/// kernel's word and this machine's.
@Suite struct `A field of a packet that is not root's` {
  /// The fields of a question, as the module of a screen locker of alice has them.
  struct Fields {
    var name = Array("alice".utf8)
    var service = Array("swaylock".utf8)
    var place = LoginQuestion.StatedOrigin.local
    var policy = Policy()
    var millisecondsLeft: UInt32 = 5000
    var mayEnroll = false
    var after = FirstFactor.none
    var role = ResponseRole.last(givingBack: nil)

    func packet(_ verb: LoginQuestion.Verb) throws -> Secret {
      let request = LoginQuestion(
        name: name, service: service, origin: place, policy: policy,
        millisecondsLeft: millisecondsLeft, verb: verb)
      return try #require(request.encoded())
    }
  }

  /// All that comes of a login with one wrong code, then a right one, and that one again.
  struct Course {
    var answers: [[UInt8]] = []
    var lines: [String] = []
    var state: [UInt8]
  }

  static func course(of fields: Fields, user: UInt32 = 1000) throws -> Course {
    let store = try TestStore()
    try store.enrollAlice()
    let log = Log()
    let handler = RequestHandler(store: store) { _, line in log.add(line) }
    let verbs: [LoginQuestion.Verb] = [
      .prepare(mayEnroll: fields.mayEnroll, after: fields.after), .enrolled, .level,
      .attempt(try secret("123456"), knownAs: nil, as: fields.role),
      .attempt(try secret("050471"), knownAs: nil, as: fields.role),
      .attempt(try secret("050471"), knownAs: nil, as: fields.role),
    ]
    let answers = try verbs.map { handler.answer(peer(user), try fields.packet($0), to: Waiting()) }
    // The name of the service is for the log.
    let lines = log.lines.map { $0.replacing(/service=\S*/, with: "service=*") }
    return Course(answers: answers, lines: lines, state: try store.stateOfAlice())
  }

  static func peer(_ user: UInt32) -> Peer {
    Peer(
      socket: .everybody, process: 4711, effectiveUser: user, realUser: user,
      arrived: Clock.monotonicMilliseconds() * 1_000_000)
  }

  static func openPolicy() -> Policy {
    var policy = Policy()
    policy.isEnabled = false
    policy.adjacentIntervals = 10
    policy.lookAhead = 100
    policy.guessBudget = GuessProbability.budgets.upperBound
    policy.enrollment = .voluntary
    policy.minimumFactors = 3
    policy.remember = 86_400
    policy.localServices = []
    return policy
  }

  static let charge = Charge(
    enrollmentID: 5, isKnown: true, amount: GuessProbability.budgets.upperBound)

  static let forgeries: [(String, @Sendable (inout Fields) -> Void)] = [
    ("service: sshd", { $0.service = Array("sshd".utf8) }),
    ("service: polkit-1", { $0.service = Array("polkit-1".utf8) }),
    ("service: none", { $0.service = [] }),
    ("service: a line of its own", { $0.service = Array("x\nuser=root\u{7f}".utf8) }),
    ("origin: unknown", { $0.place = .unknown }),
    (
      "origin: an address",
      { if let address = NumericAddress([192, 0, 2, 7]) { $0.place = .address(address) } }
    ),
    ("policy: open", { $0.policy = openPolicy() }),
    ("time: all", { $0.millisecondsLeft = .max }),
    ("prepare: may enroll", { $0.mayEnroll = true }),
    ("prepare: after a key", { $0.after = .key }),
    ("prepare: after a password", { $0.after = .password }),
    ("attempt: a first pass", { $0.role = .firstPass }),
    ("attempt: gives back", { $0.role = .last(givingBack: charge) }),
  ]

  // shows: own-account
  @Test(arguments: forgeries.indices)
  func `changes nothing of whose account, policy and origin it is`(index: Int) throws {
    let (what, forge) = Self.forgeries[index]
    var fields = Fields()
    forge(&fields)
    let honest = try Self.course(of: Fields())
    let forged = try Self.course(of: fields)
    #expect(forged.answers == honest.answers && forged.lines == honest.lines, "\(what)")
    // The state notes in which service the last login was.
    if fields.service == Fields().service { #expect(forged.state == honest.state, "\(what)") }
    #expect(Set(honest.answers.suffix(3)).count == 3 && honest.lines.count == 3)
    #expect(honest.lines.allSatisfy { $0.contains("origin=local") })
  }

  // shows: own-account
  @Test(arguments: ["bob", "root", "ALICE", "alice ", "nobody-here", "../alice", "\0"])
  func `is a name that is not the peer's own, and nothing is said or done`(name: String) throws {
    var fields = Fields()
    fields.name = Array(name.utf8)
    let course = try Self.course(of: fields)
    #expect(Set(course.answers) == [try #require(ServiceAnswer.notServed.encoded())])
    #expect(course.lines == [])
    let store = try TestStore()
    try store.enrollAlice()
    #expect(try store.stateOfAlice() == course.state)
  }

  // shows: own-account
  @Test func `is a right name, and the peer another user`() throws {
    for user in [0, 1001, 65_534, UInt32.max] {
      let answers = try Self.course(of: Fields(), user: user).answers
      #expect(Set(answers) == [try #require(ServiceAnswer.notServed.encoded())], "\(user)")
    }
  }

  // shows: own-account
  @Test func `is a verb that changes what is kept, and it is not done`() throws {
    let store = try TestStore()
    try store.enrollAlice()
    let before = try store.stateOfAlice()
    let handler = RequestHandler(store: store) { _, _ in }
    let refused = try #require(ServiceAnswer.notServed.encoded())
    var fields = Fields()
    fields.place = .address(try #require(NumericAddress([192, 0, 2, 7])))
    fields.policy.remember = 3600
    let phone = try #require(Label("phone".utf8))
    let verbs: [LoginQuestion.Verb] = [.remember, .count, .amend(.remove(phone), to: 5)]
    for verb in verbs {
      #expect(handler.answer(Self.peer(1000), try fields.packet(verb), to: Waiting()) == refused)
    }
    #expect(try store.stateOfAlice() == before)
  }
}

private final class Log: Sendable {
  private let texts = Mutex<[String]>([])
  func add(_ line: LogLine) {
    texts.withLock { $0.append(String(decoding: line.bytes, as: UTF8.self)) }
  }
  var lines: [String] { texts.withLock { $0 } }
}

extension TestStore {
  fileprivate func stateOfAlice() throws -> [UInt8] {
    let path = directory.path + "/store/users/alice/state"
    return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }
}
