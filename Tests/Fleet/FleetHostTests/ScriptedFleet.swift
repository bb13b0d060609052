import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService
@testable import SallyportSystem

/// What the fleet of a test asks for.
let shape = Shape(
  enrollmentID: 9,
  authenticators: [
    Shape.Authenticator(name: Label("phone"), kind: .totp, digits: .six)
  ], hasScratchCodes: false, backupCodesLeft: 3, wait: 0, isRemembered: false)

/// Verifiers that answer what the test says.
final class ScriptedVerifiers: FleetVerifiers {
  typealias Reply = @Sendable (LoginQuestion) throws(TransportFault) -> VerifierAnswer

  private let reply: Reply
  let asked = Locked<[(frame: LoginQuestion, within: UInt64)]>([])

  init(_ reply: @escaping Reply) { self.reply = reply }

  convenience init(_ answer: ServiceAnswer) {
    let bytes = answer.encoded() ?? []
    self.init { (_) throws(TransportFault) in VerifierAnswer(to: .question, bytes) }
  }

  convenience init(_ fault: TransportFault) {
    self.init { (_) throws(TransportFault) in throw fault }
  }

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let body = made(milliseconds) else { throw .away }
    #expect(kind == .question)
    guard let frame = LoginQuestion.decode(hostFrame: body) else { return .notServed }
    asked.withLock { $0.append((frame, milliseconds)) }
    return try reply(frame)
  }
}

/// A reserve that answers while they are away, and notes what it is told.
final class ScriptedReserve: OfflineReserve {
  let outcome: Outcome
  let verbs = Locked<[String]>([])
  let fetched = Locked<[UserName]>([])
  let contexts = Locked<[LoginContext]>([])
  let accounts = Locked<[Account?]>([])
  let timesAway = Locked(0)
  let report: ReserveReport

  init(_ outcome: Outcome = .accepted(.backupCode(left: 2)), report: ReserveReport = .taken) {
    (self.outcome, self.report) = (outcome, report)
  }

  func answer(_ question: LoginQuestion) throws(StoreTrouble) -> ServiceAnswer? {
    accounts.withLock { $0.append(question.account) }
    contexts.withLock { $0.append(question.context) }
    #expect(question.policy.reserveFor == 86_400)
    switch question.verb {
    case .prepare:
      verbs.withLock { $0.append("prepare") }
      // One of those who are in it, and one of those who are not.
      return .prompt(same("alice", question.name) ? .enrolled : .notEnrolled, shape)
    case .attempt:
      verbs.withLock { $0.append("attempt") }
      return .outcome(outcome)
    case .enrolled, .level, .remember, .count, .rehearse, .amend, .notices:
      Issue.record("asked for it")
      return nil
    }
  }
  let starts = Locked(0)
  func start() { starts.withLock { $0 += 1 } }
  func stop() {}
  func report(_ name: UserName, within milliseconds: UInt64) -> ReserveReport { report }
  func noteAway() { timesAway.withLock { $0 += 1 } }
  let confirmed = Locked(false)
  var isConfirmed: Bool { confirmed.withLock { $0 } }
  func use(_ typed: Secret, of name: UserName) {}
  func fetch(_ name: UserName, after backupCode: Bool) { fetched.withLock { $0.append(name) } }
}
