package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// Answers by asking the service of this machine: for programs that are not root, and for those of
/// root that somebody else has started and could stop, starve or limit.
package final class ServiceAuthority: CodeAuthority {
  /// Where the service answers root's programs, for any account.
  package static let rootSocket = "/run/sallyport/root"
  /// Where it answers everybody, for the caller's own account.
  package static let publicSocket = "/run/sallyport/socket"
  /// How often a question is sent that the service closes without reading it, which it does to who
  /// waits longest where too many connect at once.
  private static let sendings = 3
  /// For each question about what an owner is told, beside the time of the login.
  private static let millisecondsToTell: UInt64 = 800
  /// Whether the service may be one that says when it begins. One of the former version closes the
  /// connection to who asks for that, having done nothing, and is asked in its own.
  private var waits = true
  /// Whether it has answered, so that it has this version. One that closes the connection then has
  /// ended: it is asked again in this version, where it cannot use a code unheard.
  private var isKnown = false

  package let isForRoot: Bool
  private let path: String
  private var millisecondsLeft = LoginQuestion.patience
  /// For the next question.
  private var socket: ServiceSocket?

  package init(at path: String, isForRoot: Bool = true) {
    (self.path, self.isForRoot) = (path, isForRoot)
  }

  package func canBeAsked() -> Bool {
    millisecondsLeft = LoginQuestion.patience
    do throws(StoreTrouble) {
      try connect()
    } catch {
      // A program that is not root has nobody else. Of other trouble the first question tells.
      if case .service(_, .absent) = error { return !isForRoot }
    }
    return true
  }

  package func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep {
    let verb = LoginQuestion.Verb.prepare(mayEnroll: mayEnroll, after: first)
    let answer = try ask(verb, of: typed, in: context)
    if case .prompt(let status, let shape) = answer {
      return .prompt(PendingLogin(claimant(status, typed, account), shape, context))
    }
    // An account that only the service knows, or that only this program knows, is nobody's.
    guard let account else { throw trouble(in: answer) }
    if case .enroll(let level) = answer, mayEnroll { return .enroll(level, account) }
    guard case .skip = answer else { throw trouble(in: answer) }
    return .skip
  }

  package func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(StoreTrouble) -> Outcome {
    let verb = LoginQuestion.Verb.attempt(typed, knownAs: malformation, as: role)
    let answer = try ask(verb, of: pending.name, in: pending.context, isAway: pending.isAway)
    guard case .outcome(let outcome) = answer else { throw trouble(in: answer) }
    if case .accepted = outcome, !pending.claimant.isEnrolled { throw fault(.garbage) }
    return outcome
  }

  package func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble)
    -> PendingLogin?
  {
    let answer = try ask(.enrolled, of: account.name.bytes, in: context)
    if case .notEnrolled = answer { return nil }
    guard case .prompt(.enrolled, let shape) = answer else { throw trouble(in: answer) }
    return PendingLogin(.enrolled(account), shape, context)
  }

  package func notices(for account: Account, by name: Label?, in context: LoginContext)
    throws(StoreTrouble) -> (PendingLogin, [OwnerNotice])?
  {
    guard isForRoot else { return nil }
    let verb = LoginQuestion.Verb.notices(by: name, told: nil)
    let answer = askBeside(verb, of: account.name.bytes, in: context)
    if case .told(let shape, let notices) = answer {
      return (PendingLogin(.enrolled(account), shape, context), notices)
    }
    // Whether the fleet is away, `enrolled` says.
    guard case .prompt(.enrolled, let shape) = answer, !shape.isAway else { return nil }
    return (PendingLogin(.enrolled(account), shape, context), [])
  }

  package func settle(_ told: [OwnerNotice], of pending: PendingLogin, by name: Label?) {
    let verb = LoginQuestion.Verb.notices(by: name, told: ToldNotices(told))
    _ = askBeside(verb, of: pending.name, in: pending.context)
  }

  /// It ends no login, and takes nothing of its time: whatever comes but an answer is nil. A
  /// service of the former version closes the connection.
  @inline(never) private func askBeside(
    _ verb: LoginQuestion.Verb, of name: [UInt8], in context: LoginContext
  ) -> ServiceAnswer? {
    let (before, waits) = (millisecondsLeft, waits)
    millisecondsLeft = min(before, Self.millisecondsToTell)
    socket?.limit(to: millisecondsLeft)
    defer { (millisecondsLeft, self.waits, socket) = (before, waits, nil) }
    do throws(StoreTrouble) { return try ask(verb, of: name, in: context) } catch { return nil }
  }

  package func level(of account: Account, in context: LoginContext) throws(StoreTrouble)
    -> EnrollmentLevel
  {
    let answer = try ask(.level, of: account.name.bytes, in: context)
    guard case .level(let level) = answer else { throw trouble(in: answer) }
    return level
  }

  package func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble) {
    let answer = try ask(.remember, of: pending.name, in: pending.context)
    guard case .done = answer else { throw trouble(in: answer) }
  }

  package func rehearse(for account: Account, in context: LoginContext) throws(StoreTrouble) {
    let answer = try ask(.rehearse, of: account.name.bytes, in: context)
    guard case .done = answer else { throw trouble(in: answer) }
  }

  package func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment {
    let verb = LoginQuestion.Verb.amend(change, to: pending?.enrollmentID ?? 0)
    let answer = try ask(verb, of: user.bytes, in: context)
    if case .changed = answer { return .changed }
    if case .flaw(let flaw) = answer { return .flawed(flaw) }
    guard case .done = answer else { throw trouble(in: answer) }
    return .done
  }

  package func countLogin(of account: Account, in context: LoginContext) throws(StoreTrouble)
    -> UInt32
  {
    let answer = try ask(.count, of: account.name.bytes, in: context)
    guard case .count(let count) = answer else { throw trouble(in: answer) }
    return count
  }

  // MARK: asking

  private func ask(
    _ verb: LoginQuestion.Verb, of name: [UInt8], in context: LoginContext, isAway: Bool = false
  ) throws(StoreTrouble) -> ServiceAnswer {
    // Nobody has a name that no frame takes, nor this one; the service has the same work with it.
    let name = (1...255).contains(name.count) ? name : [UInt8(ascii: "/")]
    var sendings = Self.sendings
    while sendings > 0 {
      try connect()
      let request = LoginQuestion(
        name: name, service: context.service?.bytes ?? [], origin: context.stated,
        policy: context.policy, millisecondsLeft: UInt32(clamping: millisecondsLeft), verb: verb,
        isAway: isAway, waits: waits)
      guard let frame = request.encoded() else { throw .outOfMemory }
      guard let answer = try send(frame) else {
        if waits == request.waits { sendings -= 1 }
        continue
      }
      isKnown = true
      guard let answer = ServiceAnswer.decode(answer, to: verb) else { throw fault(.garbage) }
      return answer
    }
    throw fault(.silent)
  }

  /// nil: the service has done nothing with it.
  private func send(_ frame: Secret) throws(StoreTrouble) -> [UInt8]? {
    guard let socket else { throw .outOfMemory }
    self.socket = nil
    defer { millisecondsLeft = socket.timeLeft }
    let answer = try socket.ask(frame)
    if answer == nil, socket.wasRead, !(isKnown && waits) {
      if !waits { throw fault(.silent) }
      waits = false
    }
    return answer
  }

  /// Once for each question. Where it fails, the second that it may take is gone.
  private func connect() throws(StoreTrouble) {
    if socket != nil { return }
    let timeLeft = millisecondsLeft
    millisecondsLeft -= min(timeLeft, 1000)
    let made = try ServiceSocket(to: path, timeLeft: timeLeft)
    (socket, millisecondsLeft) = (made, made.timeLeft)
  }

  private func trouble(in answer: ServiceAnswer) -> StoreTrouble {
    if case .trouble(let mayBeTheCallers) = answer {
      return fault(.trouble(mayBeTheCallers: mayBeTheCallers))
    }
    if case .notServed = answer { return fault(.notServed) }
    return fault(.garbage)
  }

  private func fault(_ fault: StoreTrouble.ServiceFault) -> StoreTrouble {
    .service(path: path, fault)
  }
}

/// As the service knows them; whom it has not found is nobody, whatever this program found.
private func claimant(_ status: EnrollmentStatus, _ typed: [UInt8], _ account: Account?) -> Claimant
{
  guard let account else {
    return UserName(typed).map { .unknown($0) } ?? .invalid(typed)
  }
  switch status {
  case .enrolled: return .enrolled(account)
  case .notEnrolled: return .notEnrolled(account)
  case .unknown: return .unknown(account.name)
  }
}

extension LoginContext {
  fileprivate var stated: LoginQuestion.StatedOrigin {
    switch origin {
    case .local: .local
    case .unknown: .unknown
    case .address: address.map { .address($0) } ?? .unknown
    }
  }
}
