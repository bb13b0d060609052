import CService
import FleetProtocol
package import FleetTransport
package import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportLogin
package import SallyportSupport
import SallyportSystem

/// Answers the frames of hosts. What a host says counts for the account, the service, the address
/// and whose local login it is; its policy only where it is the stricter one.
package struct LoginHandler: FrameHandler {
  let database: Database
  private let policies: FleetPolicy
  let people = AskedPeople()
  /// Who was let in, for the reserves of their hosts.
  package let logins = RecentLogins()
  let limits: HostLimits

  /// How many wrong codes a host may bring in a day, where nobody was let in there of late.
  package static let wrongCodes: UInt64 = 100

  /// `wrongCodes`: of one host in a day.
  package init(
    _ database: Database, _ policies: FleetPolicy, wrongCodes: UInt64 = LoginHandler.wrongCodes
  ) {
    limits = HostLimits(database, wrongCodes: wrongCodes)
    (self.database, self.policies) = (database, policies)
  }

  package func read(_ body: Secret) -> LoginQuestion? { LoginQuestion.decode(hostFrame: body) }

  package func line(of question: LoginQuestion) -> FleetServer.Line? { .user(question.name) }

  /// Starts the thread that keeps what is counted of hosts.
  package func keepCounts() throws(ServiceError) {
    let (database, limits) = (database, limits)
    try startThread { CountKeeper(database, limits).keep() }
  }

  /// An empty answer to what is no question of a host.
  package func answer(_ asked: LoginQuestion?, from asker: HostIdentity, arrived: UInt64)
    -> VerifierAnswer
  {
    guard let asked else { return VerifierAnswer(to: .question, []) }
    if database.isAway { return .databaseAway }
    var wasAway = false
    var found = ServiceAnswer.notServed
    if let question = settled(asked, of: asker, arrived: arrived) {
      found = answer(question, of: asker, &wasAway) ?? .notServed
    }
    if asked.verb.isAttempt { count(found, on: asker.host, wasAway: wasAway, since: arrived) }
    // It went away before anything was saved.
    if wasAway { return .databaseAway }
    if case .outcome(.accepted) = found {
      logins.note(asked.name, on: asker.pin)
      people.know(asked.name, on: asker.pin)
    }
    return VerifierAnswer(to: .question, found.encoded() ?? [])
  }

  private func count(
    _ answer: ServiceAnswer, on host: [UInt8], wasAway: Bool, since arrived: UInt64
  ) {
    var word = wasAway ? "database-away" : "trouble"
    if case .outcome(let outcome) = answer { word = String(decoding: outcome.word, as: UTF8.self) }
    database.counts.note(Array(word.utf8), on: host)
    database.meters.note(word, after: sys_monotonic() &- arrived)
  }

  /// The question as the fleet has it; nil: not for this host.
  private func settled(
    _ asked: LoginQuestion, of asker: HostIdentity, arrived: UInt64
  ) -> LoginQuestion? {
    guard let now = try? Clock.now(),
      let verb = asked.verb.allowed(by: { (right, isOwn) in
        database.mayUse(asker.spending(right, for: asked.name, isOwn: isOwn), at: now)
      })
    else { return nil }
    var question = asked
    question.expire(since: arrived)
    question.verb = verb
    // Without what a host must not give back.
    if case .attempt(let typed, let known, let role) = verb {
      let believed = limits.believed(role, asker.host, asked.name)
      question.verb = .attempt(typed, knownAs: known, as: believed)
    }
    question.policy = policy(for: asked)
    return question
  }

  /// nil: not for this host.
  private func answer(
    _ question: LoginQuestion, of asker: HostIdentity, _ wasAway: inout Bool
  ) -> ServiceAnswer? {
    let host = asker.host
    let context = OriginPseudonyms(on: host).context(of: question)
    let store = FleetStore(
      database, Event(host, question), uid: question.account?.uid, until: question.deadline,
      isClosed: question.verb.isAttempt && limits.isClosed(asker, question.caller),
      spending: question.verb.right.map {
        asker.spending($0, for: question.name, isOwn: question.verb.isOwn)
      })
    defer { wasAway = store.wasAway }
    do throws(StoreTrouble) {
      if case .count = question.verb, try !counts(question, asker, in: context, by: store) {
        return nil
      }
      if case .rehearse = question.verb, try !mayAmend(question, asker, by: store) { return nil }
      // An older verifier would not read whom a pass was given, or a token.
      if case .amend(let change, _) = question.verb, change.isNew,
        let name = question.account?.name,
        try !store.mayWriteNew(of: name)
      {
        return nil
      }
      var question = question
      if case .notices(let name, let told) = question.verb,
        try !store.hasJustLetIn(question.account, by: name, from: context.origin)
      {
        if told != nil { return nil }
        question.verb = .enrolled
      }
      if case .amend(let change, let id) = question.verb {
        question.verb = .amend(change.stamped(try store.now()), to: id)
      }
      let isHidden = try isHidden(question, from: asker, by: store)
      // It is the place of a login that was not there.
      if isHidden, case .remember = question.verb { return .done }
      var answer = try question.answer(from: store, in: context, enrolling: nil)
      // Nobody who is enrolled, and has typed a right code, is kept out for what cannot be saved.
      if case .level(let level) = answer, level.asks, try enrollment(question, store) != nil,
        !mayUse(.changes, question, of: asker, at: try store.now())
      {
        answer = .level(.voluntary)
      }
      keep(answer, to: question, on: host)
      guard isHidden, let answer else {
        note(answer, to: question, from: asker)
        return answer
      }
      return try hidden(answer, to: question, in: context, by: store)
    } catch {
      if store.isUsedUp { return nil }
      // What the store throws, it has logged.
      if case .service = error {
      } else {
        note(
          error.mayBeTheCallers ? .warning : .alert,
          .trouble(error, user: question.name, from: nil, .unknown), host)
      }
      return .trouble(mayBeTheCallers: error.mayBeTheCallers)
    }
  }

  /// Writes down what was changed, or what came of a code.
  private func keep(_ answer: ServiceAnswer?, to question: LoginQuestion, on host: [UInt8]) {
    if case .amend(let change, _) = question.verb, case .done = answer,
      let name = UserName(question.name)
    {
      let (verb, facts) = Act.told(change)
      database.note(act: verb, facts, of: name, on: host)
    }
    if case .outcome(let outcome) = answer, case .attempt(_, _, let role) = question.verb {
      if case .accepted = outcome, let name = question.account?.name.bytes {
        database.counts.noteLetIn(name, on: host)
      }
      limits.note(outcome, as: role, of: question.name, on: host, by: question.caller)
      guard isLogged(outcome, on: host) else { return }
      note(outcome.logLevel, .outcome(outcome, of: question), host)
    }
  }

  /// A host that floods what costs it nothing fills no log, either.
  private func isLogged(_ outcome: Outcome, on host: [UInt8]) -> Bool {
    guard outcome.isFree else { return true }
    let (isWritten, isNews) = database.counts.takeFree(on: host, at: sys_monotonic(), in: .log)
    if isNews {
      note(
        .warning,
        LogLine("more than 60 refusals in a minute that cost nothing: more of them are not logged"),
        host)
    }
    return isWritten
  }

  /// Whether a login is counted: only of users who have an account on the host, and who may be
  /// reminded, as what is counted leaves rows that nothing removes. Where nobody may enroll nobody
  /// is reminded; of enrolled users nothing is kept.
  private func counts(
    _ question: LoginQuestion, _ asker: HostIdentity, in context: LoginContext, by store: FleetStore
  ) throws(StoreTrouble) -> Bool {
    guard let account = question.account, account.uid != nil else { return false }
    let authority = question.authority(over: store)
    if !asker.rights.allows(.enrolls, at: try store.now(), for: question.name),
      try authority.enrolled(account, in: context) == nil
    {
      return false
    }
    switch try authority.level(of: account, in: context) {
    // Of the lines of a login the stricter one counts, which may be another one than this.
    case .remind, .voluntary: return true
    case .refuse, .required, .offer: return false
    }
  }

  /// Whether the host could save a first enrollment of this user, or a change of his: nobody is
  /// asked for what would be refused.
  private func mayAmend(
    _ question: LoginQuestion, _ asker: HostIdentity, by store: FleetStore
  ) throws(StoreTrouble) -> Bool {
    let now = try store.now()
    guard let enrollment = try enrollment(question, store) else {
      return mayUse(.enrolls, question, of: asker, at: now)
    }
    return mayUse(.changes, question, of: asker, at: now)
      || enrollment.passes.contains(where: \.enrolls)
        && mayUse(.enrolls, question, of: asker, at: now)
  }

  private func mayUse(
    _ right: HostRight, _ question: LoginQuestion, of asker: HostIdentity, at now: UnixTime
  ) -> Bool {
    let spending = asker.spending(right, for: question.name, isOwn: right == .changes)
    return database.mayUse(spending, at: now)
  }

  /// nil: he is not enrolled, as his rows say.
  private func enrollment(_ question: LoginQuestion, _ store: FleetStore) throws(StoreTrouble)
    -> Enrollment?
  {
    guard let account = question.account else { return nil }
    return try store.row(of: account.name.bytes)?.document.enrollment
  }

  /// The stricter of the host's and the fleet's.
  func policy(for question: LoginQuestion) -> Policy {
    var policy = policies.tightened(
      question.policy, service: question.service, user: question.name,
      isRemote: question.origin != .local, address: question.statedAddress
    ) { database.note(.error, $0) }
    if database.holdsBackupCodes { policy.backupCode = .off }
    return policy
  }

  private func note(_ level: LogLevel, _ line: LogLine, _ host: [UInt8]) {
    var line = line
    line.add(" host=")
    line.add(field: host)
    database.note(level, line)
  }
}

extension LoginQuestion.Verb {
  /// As a host with these rights may ask it; nil: not at all.
  fileprivate func allowed(by mayUse: (HostRight, _ isOwn: Bool) -> Bool) -> LoginQuestion.Verb? {
    switch self {
    case .prepare(true, let first):
      return .prepare(mayEnroll: mayUse(.enrolls, false), after: first)
    // What would have to end in a new enrollment is refused there as by any login that cannot.
    case .attempt(let typed, let known, .claim) where !mayUse(.enrolls, false):
      return .attempt(typed, knownAs: known, as: .last(givingBack: nil))
    case .prepare, .attempt, .enrolled, .level, .remember, .count, .notices: return self
    // Which of them, the rows say.
    case .rehearse: return mayUse(.enrolls, false) || mayUse(.changes, true) ? self : nil
    case .amend: return right.map { mayUse($0, isOwn) } == true ? self : nil
    }
  }

  /// Whether people can change it of their own; a verifier cannot tell them from root there.
  fileprivate var isOwn: Bool {
    switch self {
    case .amend(.add, _), .amend(.remove, _), .amend(.rename, _), .amend(.renew, _): true
    case .amend, .prepare, .attempt, .enrolled, .level, .remember, .count, .notices, .rehearse:
      false
    }
  }

  /// What a host needs for it; nil: nothing, or it changes nothing of what is enrolled.
  fileprivate var right: HostRight? {
    switch self {
    case .amend(.create, _), .amend(.replace, _): .enrolls
    case .amend: .changes
    case .prepare, .attempt, .enrolled, .level, .remember, .count, .notices, .rehearse: nil
    }
  }

  fileprivate var isAttempt: Bool { if case .attempt = self { true } else { false } }
}

extension EnrollmentLevel {
  /// Whether somebody is asked to enroll, at some logins at least.
  fileprivate var asks: Bool {
    switch self {
    case .required, .offer, .remind: true
    case .voluntary, .refuse: false
    }
  }
}
