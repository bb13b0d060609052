import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// How long after an answer a refusal is told.
enum LoginDelay {
  static let milliseconds: UInt64 = 2000
}

/// One login through one line of a stack: what its phases share.
final class Login<Application: Host, Store: LoginStore> {
  let host: Application
  let arguments: ModuleArguments
  let store: Store
  let examiner: any CodeAuthority
  /// The service of this machine, which asks the fleet.
  private let service: any CodeAuthority
  private let isServed: Bool
  /// Whether the account phase can ask to enroll.
  var mayEnroll: Bool { arguments.enroll && examiner.isForRoot }
  /// What an earlier try on this handle left.
  private let earlier: Mark?
  /// Refusals of this transaction, but for malformed answers.
  private var refusals = 0

  init(
    _ host: Application, _ arguments: ModuleArguments, store: Store, service: any CodeAuthority,
    isServed: Bool, after earlier: Mark? = nil
  ) {
    (self.host, self.arguments, self.store, self.earlier) = (host, arguments, store, earlier)
    (self.service, self.isServed) = (service, isServed)
    examiner = isServed ? service : LocalAuthority(store: store)
  }

  /// The result of one response; the state that records it is on disk.
  enum Reply: Equatable {
    case accepted(Proof)
    /// With what it was charged, where it was.
    case refused(Charge?)
    /// It was not checked, or could not be saved; logged.
    case unavailable
  }

  /// What one field held.
  struct Parts {
    /// nil unless `forward_pass`.
    let password: Secret?
    let code: Secret
  }

  func isSSHD(_ policy: Policy) -> Bool { policy.isSSHD(service: host.service()) }

  /// Under whatever name. There the session phase is another process.
  func isInSSHD(_ policy: Policy) -> Bool {
    isSSHD(policy) || host.sshAuthenticationInfo() != nil
  }

  /// A typing error, on the line or in the file, never opens anything.
  ///
  /// `file`: nil for the usual one.
  private func policy(
    for account: Account?, in service: [UInt8], from remote: [UInt8]?, at file: [UInt8]?,
    base: Policy
  ) -> Policy {
    let login = PolicyRequest(
      service: service, user: account?.name.bytes, isSuperuser: account?.uid == 0,
      isRemote: remote != nil,
      address: remote.flatMap { Addresses.withoutZone($0) }, parse: Addresses.numeric,
      membership: { [store] group in
        account.map { store.isMember($0, of: group) } ?? .unknown
      })
    let reading = store.policy(at: file, base: base, login)
    if let trouble = reading.trouble {
      host.log(.error, .brokenPolicy(trouble, hasLastGood: !reading.isStrict))
    }
    var policy = store.policy(of: reading, isSuperuser: login.isSuperuser)
    if !arguments.unknown.isEmpty { policy.tighten() }
    return policy
  }

  /// The login with the authority that the policy names: from here on the fleet alone, where it is
  /// the fleet; the files alone, where there is no service. Right before the first
  /// question, for which the service waits a second.
  @inline(never)
  func judged(under policy: Policy) -> Login {
    let isServed = policy.isFleet || isServed && service.isThere()
    if isServed == self.isServed { return self }
    return Login(
      host, arguments, store: store, service: service, isServed: isServed, after: earlier)
  }

  /// Under which policy the account logs in, and from where.
  func context(of account: Account?) -> LoginContext {
    let policy = policy(
      for: account, in: host.service(), from: host.remoteHost(), at: arguments.policyFile,
      base: arguments.base)
    // Nobody is asked: it need not be found out.
    let address = policy.isEnabled ? statedAddress.flatMap { elsewhere($0) } : nil
    return LoginContext(
      policy: policy, origin: origin(of: account, policy, address), address: address,
      service: Label(host.service()))
  }

  /// Whether sallyport-session lets the user change his own enrollment.
  func hasSelfService(_ account: Account) -> Bool {
    guard store.hasSessions, !arguments.hasOwnStore, account.uid != 0 else { return false }
    let policy = policy(
      for: account, in: bytes(of: "sallyport"), from: nil, at: nil, base: Policy())
    return policy.isEnabled && policy.isSelfService
  }

  private func origin(of account: Account?, _ policy: Policy, _ address: NumericAddress?) -> Origin
  {
    // As the service sees it, whatever a program that is not root says.
    if !examiner.isForRoot { return .local(own: true) }
    guard host.remoteHost() != nil else {
      guard policy.isLocal(service: host.service()) else { return .unknown }
      return .local(
        own: isOwn(account, caller: host.realUserID(), through: host.service()))
    }
    return address.flatMap { NetworkAddress($0.bytes) }.map { .address($0) } ?? .unknown
  }

  /// PAM_RHOST, where that is an address.
  private var statedAddress: NumericAddress? {
    host.remoteHost().flatMap { Addresses.withoutZone($0) }
  }

  /// The address, if it is another machine's. Everybody on this one, and behind a tunnel to it,
  /// comes from one of its own: such an address is neither known nor remembered.
  private func elsewhere(_ address: NumericAddress) -> NumericAddress? {
    address.isElsewhere && !store.isOwn(address) ? address : nil
  }

  /// Prompts and checks the response, and where sshd would keep the refusal to itself prompts
  /// again: each time for a login of its own, at its own time. It hangs on nothing but the policy
  /// and what is typed, so that all are asked alike. `given`: what was typed before in this
  /// transaction, in answer to another prompt. Some clients, and sshd's method `password`, answer
  /// every prompt with that. It tells nobody anything that he has not typed. `firstPass`: what an
  /// earlier response of this call was charged.
  func ask(
    _ first: PendingLogin, after given: Secret?, givingBack firstPass: Charge? = nil
  ) throws(HostFailure) -> Reply {
    var (pending, before, charge) = (first, given, firstPass)
    var triesLeft = isSSHD(first.policy) && host.reachesPerson ? first.policy.tries : 1
    var typed = try host.ask(firstPrompt(pending), echo: arguments.echo)
    while true {
      let end = Clock.monotonicMilliseconds() &+ LoginDelay.milliseconds
      let isAgain = isSame(typed, before) || isSame(typed, given)
      let reply = try verify(
        try parts(of: typed, pending), knownAs: isAgain ? .again : nil, by: pending,
        as: .last(givingBack: charge))
      guard case .refused = reply, triesLeft > 1, typed.count > 0 else { return reply }
      guard let next = again(pending) else { return reply }
      (pending, before, charge, triesLeft) = (next, typed, nil, triesLeft - 1)
      let text = LogLine(
        "Not accepted. A code works once: wait for the next one, or use a backup code.\n")
      // What a try takes tells how much is enrolled, and whether anything is.
      if !arguments.noDelay { host.wait(until: end) }
      typed = try host.ask(text.bytes + prompt(for: pending, pending.policy), echo: arguments.echo)
      if typed.count == 0 { return reply }
    }
  }

  private func isSame(_ typed: Secret, _ other: Secret?) -> Bool {
    other.map { constantTimeEquals(typed, $0) } == true
  }

  private func firstPrompt(_ pending: PendingLogin) -> [UInt8] {
    let prompt = prompt(for: pending, pending.policy)
    guard let earlier, case .replayed(let until) = earlier.result, earlier.user == pending.name,
      let text = replayText(until)
    else { return prompt }
    return text.bytes + [0x0a] + prompt
  }

  /// The next login of a transaction; nil, and logged, where there is none. Who was refused does
  /// not pass unasked, whatever has changed meanwhile.
  private func again(_ pending: PendingLogin) -> PendingLogin? {
    do throws(StoreTrouble) {
      _ = examiner.isThere()
      let step = try examiner.prepare(
        pending.name, pending.claimant.account, in: pending.context, mayEnroll: false, after: .none)
      if case .prompt(let next) = step { return next }
      host.log(.info, .notAskedAgain(pending.name))
    } catch {
      _ = report(error, pending.context.origin)
    }
    return nil
  }

  func parts(of typed: Secret, _ pending: PendingLogin) throws(HostFailure) -> Parts {
    guard arguments.forwardPass else { return Parts(password: nil, code: typed) }
    if let parts = Response.split(typed, lengths: pending.shape.authenticators.map { $0.digits }) {
      return Parts(password: parts.password, code: parts.code)
    }
    guard let empty = Secret(count: 0) else { throw .memory }
    return Parts(password: typed, code: empty)
  }

  func verify(
    _ parts: Parts, knownAs known: Malformation?, by pending: PendingLogin, as turn: Turn
  ) throws(HostFailure) -> Reply {
    // Before the verdict, whatever it is: the password module after us then fails the same way.
    if let password = parts.password { try host.setPassword(password) }
    let origin = pending.context.origin
    do throws(StoreTrouble) {
      let outcome = try examiner.attempt(parts.code, knownAs: known, by: pending, as: turn)
      if outcome.logLevel == .notice { refusals += 1 }
      let line = LogLine.outcome(
        outcome, number: outcome.logLevel == .notice ? refusals : 1, user: pending.name,
        from: host.remoteHost(), origin)
      host.log(outcome.logLevel, line)
      switch outcome {
      case .accepted(let proof): return .accepted(proof)
      case .refused(.response(.wrongCode(let charge), _)): return .refused(charge)
      case .refused(.response(.replayed(let until), _)):
        if case .last = turn { tellOfReplay(pending, until) }
        return .refused(nil)
      case .refused: return .refused(nil)
      }
    } catch {
      _ = report(error, origin)
      return .unavailable
    }
  }

  /// Tells the user, at this machine, that the code was used: it is accepted never again, and tells
  /// nothing of others. Where no text is wanted, before the next prompt on this handle.
  private func tellOfReplay(_ pending: PendingLogin, _ until: UnixTime) {
    guard isForTheUser(pending), host.realUserID() != 0, let text = replayText(until) else {
      return
    }
    do throws(HostFailure) {
      guard host.isSilent else { return try host.complain(try secret(text)) }
      try host.setMark(Mark(user: pending.name, .replayed(until: until)))
    } catch {
      // The refusal holds all the same.
    }
  }

  /// nil where the wait is over.
  @inline(never)
  private func replayText(_ until: UnixTime) -> LogLine? {
    do throws(StoreTrouble) {
      let wait = until.elapsed(since: try store.now())
      var text = LogLine("That code was used already. Wait about ")
      text.add(wait)
      text.add(" s for the next.")
      return wait == 0 ? nil : text
    } catch {
      return nil
    }
  }

  /// `origin` if it is known; the error may be in the lookup of the account or of local services.
  func report(_ trouble: StoreTrouble, _ origin: Origin? = nil) -> ReturnCode {
    var user: [UInt8] = []
    do throws(HostFailure) { user = try host.user() } catch {}
    let guess = self.origin(of: nil, Policy(), statedAddress)
    let origin = origin ?? (guess == .local(own: false) ? .local(own: true) : guess)
    // What a stranger can cause must not wake anybody up.
    host.log(
      trouble.mayBeTheCallers ? .warning : .alert,
      .trouble(trouble, user: user, from: host.remoteHost(), origin))
    return .unavailable
  }

  /// With `hints` it names the authenticators, and so reveals who is enrolled. nil: no code is
  /// required of this user.
  func prompt(for pending: PendingLogin?, _ policy: Policy) -> [UInt8] {
    if let pending, let wait = waitingTime(pending) {
      return LogLine.tooManyWrongCodes(wait).bytes
    }
    let isAway = pending?.isAway == true
    if let prompt = arguments.prompt, !isAway { return prompt }
    var text = bytes(of: question(isAway: isAway))
    if policy.hints, !isAway, let pending, pending.claimant.isEnrolled {
      var separator: StaticString = " ("
      for authenticator in pending.shape.authenticators {
        text += bytes(of: separator) + authenticator.name.bytes
        separator = ", "
      }
      text.append(UInt8(ascii: ")"))
    }
    return text + bytes(of: ": ")
  }

  private func question(isAway: Bool) -> StaticString {
    if arguments.forwardPass {
      return isAway ? "Password & backup code" : "Password & verification code"
    }
    return isAway ? "Backup code" : "Verification code"
  }

  /// Seconds until a code is checked again; nil if one is checked now, or if anybody but the
  /// user, at this machine, could read it.
  private func waitingTime(_ pending: PendingLogin) -> UInt64? {
    guard isForTheUser(pending) else { return nil }
    do throws(StoreTrouble) {
      let wait = pending.wait(at: try store.now())
      return wait == 0 ? nil : wait
    } catch {
      return nil
    }
  }

  /// Whether only the user, at this machine, or root can read a text about this enrollment.
  func isForTheUser(_ pending: PendingLogin) -> Bool {
    guard pending.claimant.isEnrolled, case .local(own: true) = pending.context.origin else {
      return false
    }
    return true
  }
}

extension ReturnCode {
  init(_ failure: HostFailure) {
    switch failure {
    case .conversation: self = .conversation
    case .memory: self = .memory
    }
  }
}
