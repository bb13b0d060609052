import CSystem
import OneTimePassword
import SallyportAdministration
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportCore
@testable import SallyportService
@testable import SallyportSystem

/// A frame with every field open to change.
private struct Frame: Sendable {
  var name = Array("alice".utf8)
  var service = Array("locker".utf8)
  var origin = LoginQuestion.StatedOrigin.local
  var policy = Policy()
  var millisecondsLeft: UInt32 = 5000
  var isAway = false
  var mayEnroll = false
  var first = FirstFactor.password
  var known: Malformation?
  var role = ResponseRole.last(givingBack: nil)

  var prepare: LoginQuestion.Verb { .prepare(mayEnroll: mayEnroll, after: first) }

  /// `code`: six digits.
  func attempt(_ code: String) throws -> LoginQuestion.Verb {
    .attempt(try #require(Secret(Array(code.utf8))), knownAs: known, as: role)
  }

  func encoded(_ verb: LoginQuestion.Verb) throws -> Secret {
    let request = LoginQuestion(
      name: name, service: service, origin: origin, policy: policy,
      millisecondsLeft: millisecondsLeft, verb: verb, isAway: isAway)
    return try #require(request.encoded())
  }
}

/// One field with another value.
private struct Change: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let apply: @Sendable (inout Frame) -> Void

  init(_ text: String, _ apply: @escaping @Sendable (inout Frame) -> Void) {
    (testDescription, self.apply) = (text, apply)
  }

  static let elsewhere = NumericAddress(high: 0, low: 0xffff_c633_6401)

  /// Each value of the policy that has a place in a frame, but for those that only refuse more.
  private static let policies = PolicyKey.allCases.filter { $0.isScalar && $0 != .verification }
    .flatMap { key in
      let own = Policy()[key]
      return Set(
        [0, 1, 2, 3, 4, 100, key.bounds.lowerBound, key.bounds.upperBound].filter {
          key.bounds.contains($0) && ($0 < 5 || key.bounds.upperBound < .max)
            && key.stricter(own, $0) == own
        }
      ).sorted().map { value in
        Change("\(key) \(value)") { $0.policy[key] = value }
      }
    }

  static let all =
    policies + [
      Change("refused by rule") { $0.policy.isRefusedByRule = true },
      Change("service sudo") { $0.service = Array("sudo".utf8) },
      Change("service polkit-1") { $0.service = Array("polkit-1".utf8) },
      Change("no service") { $0.service = [] },
      Change("no origin") { $0.origin = .unknown },
      Change("an address") { $0.origin = .address(elsewhere) },
      Change("a longer time") { $0.millisecondsLeft = .max },
      Change("away") { $0.isAway = true },
      Change("may enroll") { $0.mayEnroll = true },
      Change("a key before") { $0.first = .key },
      Change("the first of two tries") { $0.role = .firstPass },
      Change("a charge to give back") {
        $0.role = .last(
          givingBack: Charge(enrollmentID: 3001, isKnown: true, amount: GuessProbability.percent))
      },
    ]
}

/// What can be seen of how a frame was answered.
private struct Seen: Equatable {
  var answers: [[UInt8]] = []
  var lines: [String] = []
  var states: [LoginState] = []
  var origin: Origin?
}

@Suite struct `Each field of a frame from a peer that is not root` {
  private func machine() throws -> (TemporaryDirectory, Machine) {
    let own = try TemporaryDirectory()
    let store = Store(root: own.path + "/store", owner: .effectiveUser)
    try store.prepare()
    let machine = Machine(store: store)
    try machine.enroll("alice", 3001)
    try machine.enroll("bob", 3002)
    return (own, machine)
  }

  private func state(_ machine: Machine, _ name: String) throws -> LoginState {
    let user = try #require(UserName(name.utf8))
    return try #require(try machine.load(machine.account(named: user))).state
  }

  private var alice: Peer {
    Peer(
      socket: .everybody, process: 1, effectiveUser: 3001, realUser: 3001, arrived: sys_monotonic())
  }

  /// A login with a wrong code, with the right one of eight steps ahead, which the machine's policy
  /// does not take, and with that of now.
  private func run(_ frame: Frame) throws -> Seen {
    let (own, machine) = try machine()
    let lines = Locked<[String]>([])
    let handler = RequestHandler(store: machine) { _, line in
      lines.withLock { $0.append(String(decoding: line.bytes, as: UTF8.self)) }
    }
    var found = Seen()
    let verbs = try ["000000", code(ahead: 8), code(ahead: 0)].map(frame.attempt)
    for verb in [frame.prepare] + verbs {
      found.answers.append(handler.answer(alice, try frame.encoded(verb), to: Waiting()))
    }
    found.lines = lines.withLock { $0 }
    found.states = [try state(machine, "alice"), try state(machine, "bob")]
    // The name of the service is kept, and counts for nothing.
    found.origin = found.states[0].lastUse?.origin
    for index in found.states[0].authenticators.indices {
      found.states[0].authenticators[index].lastUse = nil
    }
    withExtendedLifetime(own) {}
    return found
  }

  private func code(ahead steps: Int64) throws -> String {
    let secret = try #require(Secret(Array("12345678901234567890".utf8)))
    let generator = try CodeGenerator(secret: secret, algorithm: .sha1, digits: .six)
    let digits = String(try generator.code(at: UInt64(Machine.time.seconds / 30 + steps)))
    return String(repeating: "0", count: 6 - digits.count) + digits
  }

  // shows: peer
  @Test(arguments: Change.all)
  private func `leaves whose account, which origin and which policy it is`(_ change: Change) throws
  {
    var frame = Frame()
    let usual = try run(frame)
    #expect(usual.lines.count == 3 && usual.origin == .local(own: true))
    #expect(usual.states[0].known.spent > GuessProbability(units: 0))
    change.apply(&frame)
    var found = try run(frame)
    let service = " service=" + String(decoding: frame.service, as: UTF8.self) + " uid="
    found.lines = found.lines.map { $0.replacing(service, with: " service=locker uid=") }
    #expect(found == usual)
  }

  /// What a bucket holds and regains is the same in all services: the policy file alone says it.
  @Test func `that states another budget changes nothing`() throws {
    var frame = Frame()
    let usual = try run(frame)
    for budget in [
      PolicyKey.guessBudget.bounds.lowerBound, PolicyKey.guessBudget.bounds.upperBound,
    ] {
      frame.policy[.guessBudget] = budget
      #expect(try run(frame) == usual)
    }
  }

  @Test(arguments: [PolicyKey.adjacentIntervals, .factorTOTP])
  func `that is stricter than this machine's policy holds`(_ key: PolicyKey) throws {
    var frame = Frame()
    let usual = try run(frame)
    frame.policy[key] = key == .factorTOTP ? UInt64(FactorUse.off.rawValue) : key.bounds.lowerBound
    let found = try run(frame)
    #expect(found.answers != usual.answers)
    #expect(found.states[0].known.spent < usual.states[0].known.spent)
    #expect(found.lines.last?.contains("accepted") == (key != .factorTOTP))
  }

  @Test func `that says fleet can only refuse more`() throws {
    var frame = Frame()
    frame.policy.isFleet = true
    let found = try run(frame)
    let (own, untouched) = try machine()
    #expect(found.states == [try state(untouched, "alice"), try state(untouched, "bob")])
    #expect(
      found.answers.allSatisfy { $0 == ServiceAnswer.trouble(mayBeTheCallers: false).encoded() })
    withExtendedLifetime(own) {}
  }

  /// Whatever bytes a peer makes of a frame.
  @Test func `leaves everybody else alone, byte for byte`() throws {
    let (own, machine) = try machine()
    let before = try state(machine, "bob")
    let verb = try Frame().attempt("000000")
    let frame = try Frame().encoded(verb)
    let whole = frame.bytes(in: 0..<frame.count)
    let count = Locked(0)
    let masks: [UInt8] = [1, 0x80, 0xff]
    for (index, mask) in whole.indices.flatMap({ index in masks.map { (index, $0) } }) {
      var bytes = whole
      bytes[index] ^= mask
      let handler = RequestHandler(store: machine) { _, line in
        let text = String(decoding: line.bytes, as: UTF8.self)
        let isHers = text.contains("user=alice ") || text.contains("user=alice:")
        let isLocal = !text.contains("origin=") || text.contains("origin=local")
        #expect(isHers && isLocal, "\(index): \(text)")
        count.withLock { $0 += 1 }
      }
      let answer = handler.answer(alice, try #require(Secret(bytes)), to: Waiting())
      if case .outcome(.accepted) = ServiceAnswer.decode(answer, to: verb) {
        Issue.record("accepted with \(mask) at \(index)")
      }
    }
    #expect(count.withLock { $0 } > 100)
    #expect(try state(machine, "bob") == before)
    #expect(try state(machine, "alice").origins.isEmpty)
    withExtendedLifetime(own) {}
  }
}
