import CService
package import FleetTransport
package import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportService
import SallyportSystem

/// Answers the frames of hosts. What a host says counts for the account, the service, the address
/// and whose local login it is; its policy only where it is the stricter one.
package struct LoginHandler: FrameHandler, Sendable {
  private let database: Database
  private let policies: FleetPolicy
  /// Who was let in, for the reserves of their hosts.
  package let logins = RecentLogins()
  let limits: HostLimits

  /// How many wrong codes a host may bring in a day.
  package static let wrongCodes: UInt64 = 100

  /// `wrongCodes`: of one host in a day.
  package init(
    _ database: Database, _ policies: FleetPolicy, wrongCodes: UInt64 = LoginHandler.wrongCodes
  ) {
    limits = HostLimits(database, wrongCodes: wrongCodes)
    (self.database, self.policies) = (database, policies)
  }

  /// An empty answer to what is no `HostFrame`.
  package func answer(_ body: Secret, from asker: HostIdentity, arrived: UInt64) -> VerifierAnswer {
    guard let host = asker.host, let frame = HostFrame.decode(body) else {
      return VerifierAnswer(to: .question, [])
    }
    if database.isAway { return .databaseAway }
    let question = HostQuestion(host: host, frame: frame)
    let right = asker.enrolls ? Right.enrolls : .asks
    var wasAway = false
    let found: ServiceAnswer =
      judge(question, right, arrived: arrived, &wasAway) ?? .notServed
    if frame.request.verb.isAttempt { count(found, wasAway: wasAway, since: arrived) }
    // It went away before anything was saved.
    if wasAway { return .databaseAway }
    if case .outcome(.accepted) = found { logins.note(frame.request.name, on: asker.pin) }
    return VerifierAnswer(to: .question, found.encoded() ?? [])
  }

  private func count(_ answer: ServiceAnswer, wasAway: Bool, since arrived: UInt64) {
    var word = wasAway ? "database-away" : "trouble"
    if case .outcome(let outcome) = answer { word = String(decoding: outcome.word, as: UTF8.self) }
    database.meters.note(word, after: sys_monotonic() &- arrived)
  }

  /// nil: not for this host.
  private func judge(
    _ frame: HostQuestion, _ right: Right, arrived: UInt64, _ wasAway: inout Bool
  ) -> ServiceAnswer? {
    let request = frame.request
    guard let verb = right.allowed(request.verb).map({ believed($0, frame) }) else { return nil }
    let context = frame.context(under: policy(for: request))
    let name = UserName(request.name)
    let account = name.map { Account(name: $0, uid: frame.frame.uid) }
    let deadline = arrived &+ UInt64(min(request.millisecondsLeft, 5000)) &* 1_000_000
    let question = Question(request, account, context, deadline, uidToEnroll: nil)
    let store = FleetStore(
      database, frame.event, uid: frame.frame.uid, until: deadline,
      isClosed: verb.isAttempt && limits.isClosed(frame.host, frame.frame.caller))
    defer { wasAway = store.wasAway }
    do throws(StoreTrouble) {
      if case .count = verb, try !counts(question, right, store) { return nil }
      let answer = try question.answer(verb, from: store)
      if case .outcome(let outcome) = answer, case .attempt(_, _, let turn) = verb {
        limits.note(outcome, turn, (frame.host, frame.frame.caller), request.name)
        note(outcome, frame, context)
      }
      return answer
    } catch {
      note(error, frame)
      return .trouble(mayBeTheCallers: error.mayBeTheCallers)
    }
  }

  /// Whether a login is counted: only of whom the host has an account for, and who may be reminded,
  /// as what is counted leaves rows that nothing removes. Where nobody may enroll nobody is
  /// reminded; of whoever is enrolled nothing is kept.
  private func counts(_ question: Question, _ right: Right, _ store: FleetStore)
    throws(StoreTrouble) -> Bool
  {
    if right != .enrolls, try question.answer(.enrolled, from: store) == .notEnrolled {
      return false
    }
    guard question.account?.uid != nil,
      case .level(let level)? = try question.answer(.level, from: store)
    else { return false }
    switch level {
    // Of the lines of a login the stricter one counts, which may be another one than this.
    case .remind, .voluntary: return true
    case .refuse, .required, .offer: return false
    }
  }

  /// Without what a host must not give back.
  private func believed(_ verb: ServiceRequest.Verb, _ frame: HostQuestion) -> ServiceRequest.Verb {
    guard case .attempt(let typed, let known, let turn) = verb else { return verb }
    let believed = limits.believed(turn, frame.host, frame.request.name)
    return .attempt(typed, knownAs: known, as: believed)
  }

  private func note(_ trouble: StoreTrouble, _ frame: HostQuestion) {
    // The store has done so.
    if case .service = trouble { return }
    var line = LogLine.trouble(trouble, user: frame.request.name, from: nil, .unknown)
    line.add(" host=")
    line.add(field: frame.host)
    database.note(trouble.mayBeTheCallers ? .warning : .alert, line)
  }

  /// The stricter of the host's and the fleet's.
  func policy(for request: ServiceRequest) -> Policy {
    var address: NumericAddress?
    if case .address(let found) = request.origin { address = found }
    let reading = policies.reading(
      service: request.service, user: request.name, isRemote: request.origin != .local,
      address: address)
    if let flaw = reading.flaw { database.note(.error, flaw) }
    var policy = request.policy
    policy.tighten(by: reading.policy)
    // Of all hosts alike, whatever each of them says.
    policy.shared = SharedBudgetBox(reading.policy.sharedBudget)
    if database.holdsBackupCodes { policy.backupCode = .off }
    return policy
  }

  private func note(_ outcome: Outcome, _ frame: HostQuestion, _ context: LoginContext) {
    var line = LogLine.outcome(
      outcome, user: frame.request.name, from: frame.event.address, frame.origin)
    line.add(" service=")
    line.add(field: context.service?.bytes ?? [])
    line.add(" host=")
    line.add(field: frame.host)
    database.note(outcome.logLevel, line)
  }
}

/// What a host may ask.
private enum Right: Equatable {
  case asks
  /// And changes what is enrolled.
  case enrolls

  /// nil: not for this host.
  func allowed(_ verb: ServiceRequest.Verb) -> ServiceRequest.Verb? {
    if self == .enrolls { return verb }
    switch verb {
    case .prepare(_, let first): return .prepare(mayEnroll: false, after: first)
    case .attempt, .enrolled, .level, .remember, .count: return verb
    case .rehearse, .amend: return nil
    }
  }
}

extension ServiceRequest.Verb {
  fileprivate var isAttempt: Bool { if case .attempt = self { true } else { false } }
}
