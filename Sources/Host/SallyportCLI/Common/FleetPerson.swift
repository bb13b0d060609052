import Glibc
import OneTimePassword
import SallyportCore
import SallyportDoctor
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// Somebody whom the fleet judges, as root's verbs see and change him: the service of this machine
/// asks a verifier, which changes him where this host `enrolls`. What he has stays there: no secret
/// of his comes to this machine but a new one.
struct FleetPerson {
  let account: Account
  private let login: LoginContext
  let context: Context

  init(_ account: Account, under policy: Policy, in context: Context) {
    (self.account, self.context) = (account, context)
    login = LoginContext(policy: policy, origin: .local(own: true), service: .sallyport)
  }

  var policy: Policy { login.policy }

  /// What is enrolled. Throws `notEnrolled`.
  func enrolled() throws(CommandError) -> PendingLogin {
    guard let found = try found() else { throw .notEnrolled }
    return found
  }

  /// Throws where somebody is enrolled.
  func mustBeNew() throws(CommandError) {
    if try found() != nil { throw .fleet(.enrolled(account.name.typedOrShown)) }
  }

  private func found() throws(CommandError) -> PendingLogin? {
    let found = try ask { (examiner) throws(StoreTrouble) in
      try examiner.enrolled(account, in: login)
    }
    if found?.isAway == true { throw .fleet(.away(account.name.typedOrShown)) }
    return found
  }

  /// Tries whether this host may change him, before anything is asked or shown.
  func rehearse() throws(CommandError) {
    try ask { (examiner) throws(StoreTrouble) in
      try examiner.rehearse(for: account, in: login)
    }
  }

  /// Asks for one of his codes, and uses it up. Throws `code` if it is refused.
  @discardableResult
  func prove(_ prompt: String, _ pending: PendingLogin, _ output: Output) throws(CommandError)
    -> Consequence
  {
    context.terminal.watchForInterruption()
    let typed = try output.ask(prompt, echo: false, or: .nothingChanged)
    let consequence: Consequence =
      switch try proof(typed, pending) {
      // The next one comes soon.
      case .authenticator: .nothingChanged
      case .backupCode: .backupCodeUsed
      }
    try context.stopIfInterrupted(consequence)
    return consequence
  }

  /// What the code proves, which is used up. Throws `code` if it is refused.
  func proof(_ typed: Secret, _ pending: PendingLogin) throws(CommandError) -> Proof {
    let outcome = try ask { (examiner) throws(StoreTrouble) in
      try examiner.attempt(typed, knownAs: nil, by: pending, as: .last(givingBack: nil))
    }
    switch outcome {
    case .accepted(let proof): return proof
    case .refused(.response(let refusal, _)):
      throw .code(Rejection(refusal: refusal, wait: pending.shape.wait))
    case .refused(.notEnrolled), .refused(.unknownUser): throw .notEnrolled
    }
  }

  /// `pending`: what is changed; nil to enroll him.
  func amend(_ change: EnrollmentChange, of pending: PendingLogin?) throws(CommandError) {
    let done: Amendment
    do throws(CommandError) {
      done = try ask { (examiner) throws(StoreTrouble) in
        try examiner.amend(change, of: account.name, pending, in: login)
      }
    } catch {
      // It was tried before whether it can be done: what fails now may have been done.
      guard case .store(.service) = error else { throw error }
      throw .fleet(.unsettled(account.name.typedOrShown))
    }
    switch done {
    case .done: break
    case .changed: throw pending == nil ? .enrolledMeanwhile(isCodeShown: true) : .fleet(.changed)
    case .flawed(let flaw): throw CommandError(flaw, authenticators: names(of: pending).count)
    }
  }

  /// Of his authenticators.
  func names(of pending: PendingLogin?) -> [Label] {
    pending?.shape.authenticators.map(\.name) ?? []
  }

  private func ask<Value>(_ question: (any Examiner) throws(StoreTrouble) -> Value)
    throws(CommandError) -> Value
  {
    // The service looks up the account, too.
    guard account.uid != nil else { throw .noSuchUser }
    do throws(StoreTrouble) {
      // Each has the time of a whole login.
      return try question(context.fleet.examiner())
    } catch {
      if case .service(_, .notServed) = error {
        throw .fleet(.mayNotChange(account.name.typedOrShown))
      }
      throw .store(error)
    }
  }
}

extension CommandError {
  /// Whether it may have been done all the same, so that a handout may be all that anybody has of
  /// what is enrolled.
  var isUnsettled: Bool { if case .fleet(.unsettled) = self { true } else { false } }
}

/// All accounts that the machine lists, each name once, and whether it may have others.
func accountNames(on machine: Machine) throws(CommandError)
  -> (names: [UserName], mayLackPeople: Bool)
{
  let accounts = try storing { () throws(StoreTrouble) in try AccountBook.all() }
  var seen: Set<[UInt8]> = []
  let names = accounts.map(\.account.name).filter { seen.insert($0.bytes).inserted }
  return (names, AccountBook.mayLackPeople(accounts, on: machine))
}

extension FleetPlace {
  /// Whether this machine is a host of one, or it cannot be known.
  var isThere: Bool {
    var facts = stat()
    // SAFETY: a C string that lives for the call, which fills the buffer.
    return unsafe lstat(file, &facts) == 0 || errno != ENOENT
  }
}

extension Subject {
  /// The user, where the fleet judges him: this machine is a host of one, the policy has
  /// `verification = fleet` for him, no store is named, and he has no files here. nil: the verb is
  /// about the files, as it is where what is stored under another spelling is meant; where the
  /// fleet verifies his codes all the same, says so.
  func inFleet(_ options: PolicyOptions? = nil) throws(CommandError) -> FleetPerson? {
    guard !isStoreNamed, entry == nil, context.fleet.isThere else { return nil }
    let account = try account()
    let policy = context.policy(at: options?.conf, for: account, in: store)
    guard policy.isFleet else { return nil }
    if hasFiles {
      let shown = printable(user.utf8, limit: 64)
      let text = "nobody is judged by the files of \(shown): the policy has verification = fleet"
      let mark = (try? store.moving(account) { $0.mark }) ?? nil
      let hint = FleetMove(name: user, mark: mark ?? .merge).hint
      let message = Message(text, .configuration, hints: ["\(hint)      moves them"])
      context.terminal.write(Array(message.written.utf8), to: .aside)
      return nil
    }
    guard account.uid != nil || users.allowMissing else { throw .noSuchUser }
    return FleetPerson(account, under: policy, in: context)
  }

  /// Also where they are marked, or cannot be read.
  private var hasFiles: Bool {
    do throws(CommandError) {
      _ = try record()
      return true
    } catch {
      if case .notEnrolled = error { return false }
      if case .noSuchUser = error { return false }
      if case .store(.noStore) = error { return false }
      return true
    }
  }
}
