import CService
package import FleetTransport
package import OneTimePassword
package import SallyportCore
package import SallyportLogin
import SallyportService
package import SallyportSupport
package import SallyportSystem

/// What this machine keeps for when no verifier can be asked: answers by the backup codes that it
/// has, keeps these as the fleet has them, and is told what the relay sees of it.
package protocol OfflineReserve: Sendable {
  /// Once, where this machine is in a fleet: on every other one there is no thread, and no file.
  func start()
  func stop()
  /// nil: not served.
  func answer(_ question: LoginQuestion) throws(StoreTrouble) -> ServiceAnswer?
  /// Reports what was used of this person's while no verifier could be asked: before one has it,
  /// none may be asked about him. Throws where that cannot be, as with this host unknown.
  func report(_ name: UserName, within milliseconds: UInt64) throws(TransportFault)
    -> ReserveReport
  /// No verifier could be asked.
  func noteAway()
  /// Whether verifiers have confirmed all of them since then.
  var isConfirmed: Bool { get }
  /// A verifier has accepted this backup code of his: from now on it is used here as well.
  func use(_ typed: Secret, of name: UserName)
  /// Somebody was let in by a verifier; `backupCode`: by one of these codes.
  func fetch(_ name: UserName, after backupCode: Bool)
}

/// What became of the report of what was used of a person's while no verifier could be asked.
package enum ReserveReport: Sendable {
  /// The fleet has it; or there is nothing.
  case taken
  /// The fleet answers, and has not taken it: it cannot believe its rows of him.
  case notTaken
  /// It could not be asked, or the reserve could not be read.
  case away
}

/// Asks the verifiers of the fleet for programs of this machine.
///
/// What was sent is never asked again, nor verified by anything else: what becomes of it is not
/// known, and that is a refusal. Only where nothing was sent, or the verifier says that it has
/// verified nothing, the fleet is away; then a backup code may be verified here, and nothing else
/// is done: nobody passes without a code, enrolls, is remembered or counted. What was asked for
/// while it was away is verified here too, unless it was back since then and has confirmed what is
/// kept here: the code may have been used elsewhere by now.
package struct Relay: FleetSide {
  /// How long after it was away a program that is not root is believed that it was.
  private static let memory: UInt64 = 600_000_000_000

  let verifiers: @Sendable () throws(MembershipFault) -> any FleetVerifiers
  private let reserve: (any OfflineReserve)?
  private let news: LogWriter
  private let state = Locked(State())

  private struct State {
    var isAway = false
    /// When it was away last, in nanoseconds of CLOCK_MONOTONIC.
    var seen: UInt64?
  }

  /// `verifiers`: those of this machine's fleet, as it is now. `news`: what is always logged: that
  /// the fleet is away, or there again, and what may have cost somebody a code.
  package init(
    _ verifiers: @escaping @Sendable () throws(MembershipFault) -> any FleetVerifiers,
    away reserve: (any OfflineReserve)? = nil, news: @escaping LogWriter
  ) {
    (self.verifiers, self.reserve, self.news) = (verifiers, reserve, news)
  }

  package func start() { reserve?.start() }
  package func stop() { reserve?.stop() }

  package var wasAway: Bool {
    let seen = state.withLock { $0.seen }
    return seen.map { sys_monotonic() - $0 < Self.memory } ?? false
  }

  package func answer(
    _ question: LoginQuestion, log: @Sendable (LogLevel, LogLine) -> Void
  ) throws(StoreTrouble) -> ServiceAnswer? {
    guard case .notices = question.verb else { return try relayed(question, log) }
    // Nobody is refused for what becomes of it: that, the next question says. A verifier of the
    // former version does not read it.
    let answer = try relayed(question) { _, _ in }
    if case .trouble = answer { return nil }
    return answer
  }

  private func relayed(_ question: LoginQuestion, _ log: LogWriter) throws(StoreTrouble)
    -> ServiceAnswer?
  {
    // Where this machine has joined a fleet since.
    reserve?.start()
    if case .attempt = question.verb, question.isAway, reserve?.isConfirmed != true {
      return try answerWhileAway(question, log)
    }
    let fleet: any FleetVerifiers
    do throws(MembershipFault) {
      fleet = try verifiers()
    } catch {
      var text = LogLine("error:")
      text.add(user: question.name)
      text.add(": the policy has verification = fleet: ")
      text.add(error.line.bytes)
      log(.error, text)
      return .trouble(mayBeTheCallers: false)
    }
    switch result(fleet, question, log) {
    case .answer(let answer): return answer
    case .away: return try answerWhileAway(question, log)
    }
  }

  // MARK: asking

  /// What became of a question.
  private enum Result {
    case answer(ServiceAnswer?)
    case away
  }

  private func result(_ verifiers: any FleetVerifiers, _ question: LoginQuestion, _ log: LogWriter)
    -> Result
  {
    // With less time left, a timeout may be the caller's fault, not the fleet's.
    guard question.hasTimeToAsk else { return tooLate(question, log) }
    if let reserve, let account = question.account {
      do throws(TransportFault) {
        switch try reserve.report(account.name, within: question.millisecondsToAsk) {
        case .taken: break
        case .away: return .away
        case .notTaken:
          // It is there, and another host may hold the same codes.
          log(.error, question.refused("the fleet has not taken which codes were used here"))
          return .answer(.trouble(mayBeTheCallers: false))
        }
      } catch {
        return result(of: error, question, log)
      }
    }
    guard question.hasTimeToAsk else { return tooLate(question, log) }
    let left = question.millisecondsToAsk
    guard question.frame(left) != nil else {
      return .answer(.trouble(mayBeTheCallers: true))
    }
    do throws(TransportFault) {
      // A verifier verifies nothing for a caller that waits no more.
      let answer = try verifiers.ask(.question, within: left) {
        $0 > 0 ? question.frame($0) : nil
      }
      if answer == .databaseAway { return .away }
      note(question, isAway: false)
      if answer == .notServed { return .answer(notServed(question, log)) }
      guard answer.answers(.question),
        let told = ServiceAnswer.decode(answer.body, to: question.verb)
      else {
        log(.error, question.refused("unrecognized answer from the verifier"))
        return .answer(.trouble(mayBeTheCallers: false))
      }
      return .answer(told == .notServed ? notServed(question, log) : taken(told, question))
    } catch {
      return result(of: error, question, log)
    }
  }

  private func tooLate(_ question: LoginQuestion, _ log: LogWriter) -> Result {
    log(.warning, question.refused("too little of its time was left to ask a verifier"))
    return .answer(.trouble(mayBeTheCallers: true))
  }

  private func notServed(_ question: LoginQuestion, _ log: LogWriter) -> ServiceAnswer? {
    log(
      .notice,
      question.refused("this host has no right to it, or used it up: sallyport fleet status"))
    return nil
  }

  private func result(of fault: TransportFault, _ question: LoginQuestion, _ log: LogWriter)
    -> Result
  {
    switch fault {
    case .away: return .away
    case .unpinned:
      log(
        .alert,
        question.refused("another machine answers in a verifier's place, with a key of its own"))
      return .away
    case .unsealed:
      log(.error, question.refused("no verifier has this host's seal: sallyport fleet status"))
      return .away
    case .unknown:
      let write = question.isBeside ? log : news
      write(.warning, question.refused("no answer came; the result is unknown"))
      return .answer(.trouble(mayBeTheCallers: true))
    case .stranger:
      log(.error, question.refused("no verifier knows this host: sallyport fleet status"))
      return .answer(.trouble(mayBeTheCallers: false))
    case .revoked:
      log(.error, question.refused("this host was revoked: sallyport fleet leave"))
      return .answer(.trouble(mayBeTheCallers: false))
    }
  }

  /// Who is nobody here is nobody, whatever the fleet has under that name.
  private func taken(_ answer: ServiceAnswer, _ question: LoginQuestion) -> ServiceAnswer? {
    if let account = question.account, account.uid != nil {
      if case .outcome(.accepted(let proof)) = answer {
        // Before anybody is told, who could cut the cable and type it once more.
        if proof.isBackupCode, case .attempt(let typed, _, _) = question.verb {
          reserve?.use(typed, of: account.name)
        }
        reserve?.fetch(account.name, after: proof.isBackupCode)
      }
      return answer
    }
    switch answer {
    case .outcome(.accepted): return .outcome(.refused(.unknownUser))
    case .prompt(.enrolled, let shape):
      guard case .prepare = question.verb, !shape.isRemembered else { return nil }
      return .prompt(.unknown, shape)
    case .told: return nil
    case .prompt, .skip, .enroll, .outcome, .notEnrolled, .level, .count, .done, .changed, .flaw,
      .trouble, .notServed:
      return answer
    }
  }

  // MARK: away

  private func answerWhileAway(_ question: LoginQuestion, _ log: LogWriter) throws(StoreTrouble)
    -> ServiceAnswer?
  {
    note(question, isAway: true)
    let policy = question.policy
    guard let reserve, !policy.isRefusedAway else {
      log(
        .warning,
        question.refused(
          policy.isRefusedAway
            ? "no verifier can be asked, and the policy has away = refuse"
            : "no verifier can be asked"))
      return .trouble(mayBeTheCallers: true)
    }
    switch question.verb {
    case .prepare, .enrolled:
      let answer = try offline(reserve, .prepare(mayEnroll: false, after: .none), question)
      guard case .prompt(_, let shape) = answer else { break }
      // For everybody alike.
      return .prompt(.enrolled, .away(as: shape.enrollmentID))
    case .attempt:
      let answer = try offline(reserve, question.verb, question)
      if case .outcome(.accepted(.authenticator)) = answer { break }
      if case .outcome = answer { return answer }
    case .level, .remember, .count, .rehearse, .amend, .notices:
      log(.warning, question.refused("no verifier can be asked"))
    }
    return .trouble(mayBeTheCallers: true)
  }

  private func offline(
    _ reserve: any OfflineReserve, _ verb: LoginQuestion.Verb, _ asked: LoginQuestion
  ) throws(StoreTrouble) -> ServiceAnswer? {
    var question = asked
    question.verb = verb
    // Who has no account here any more may still be in the reserve.
    if question.account?.uid == nil { question.account = nil }
    (question.policy.enrollment, question.policy.isRefusedByRule) = (.refuse, true)
    question.policy.remember = 0
    return try reserve.answer(question)
  }

  private func note(_ question: LoginQuestion, isAway: Bool) {
    // It has too little time to tell.
    if question.isBeside { return }
    if isAway { reserve?.noteAway() }
    let isNews = state.withLock { state -> Bool in
      defer { state.isAway = isAway }
      if isAway { state.seen = sys_monotonic() }
      return state.isAway != isAway
    }
    guard isNews else { return }
    if isAway {
      news(.warning, LogLine("the fleet is away: no verifier can be asked"))
    } else {
      news(.notice, LogLine("the fleet is back: a verifier answers"))
    }
  }
}

extension Proof {
  fileprivate var isBackupCode: Bool { if case .backupCode = self { true } else { false } }
}

extension LoginQuestion {
  /// For the answer to be back in time.
  private static let margin: UInt64 = 100

  /// How long it may take: of the 5 s that a call of the module has, and of the 8 s for a whole
  /// login. A verifier has answered, or said that it cannot, in little more than 2 s.
  private var most: UInt64 { isBeside ? VerifierPool.untilSilent - 50 : 2400 }

  /// Nobody is refused for what becomes of it. So it puts no verifier aside, however slow that is:
  /// whose login has been accepted must still be able to ask what it needs.
  fileprivate var isBeside: Bool {
    switch verb {
    case .remember, .notices: true
    case .prepare, .attempt, .enrolled, .level, .count, .rehearse, .amend: false
    }
  }

  fileprivate var millisecondsToAsk: UInt64 {
    let now = sys_monotonic()
    let left = deadline > now ? (deadline - now) / 1_000_000 : 0
    return min(left > Self.margin ? left - Self.margin : 0, most)
  }

  /// After one second without a verifier the fleet is away.
  fileprivate var hasTimeToAsk: Bool { millisecondsToAsk >= min(most, 1000) }

  /// For a verifier: about the account's own name.
  fileprivate func frame(_ milliseconds: UInt64) -> Secret? {
    var sent = self
    sent.name = account?.name.bytes ?? name
    sent.service = Label(service)?.bytes ?? []
    sent.millisecondsLeft = UInt32(clamping: milliseconds)
    (sent.isAway, sent.waits) = (false, false)
    // An enrollment in the fleet has no uid: it is the same person's on all hosts, whatever his
    // number is there.
    if case .amend(.create(let made), let id) = verb, made.uid == account?.uid {
      let enrollment = Enrollment(
        id: made.id, user: made.user, uid: nil, created: made.created,
        authenticators: made.authenticators, backupCodes: made.backupCodes)
      sent.verb = .amend(.create(enrollment), to: id)
    }
    return sent.hostFrame()
  }

  fileprivate func refused(_ reason: StaticString) -> LogLine {
    var line = LogLine("refused: reason=fleet")
    line.add(user: name)
    line.add(service: service)
    line.add(": ")
    line.add(reason)
    return line
  }
}
