import OneTimePassword
import SallyportCore
package import SallyportLogin
import SallyportSystem

/// pam_sm_authenticate: who, policy -> load -> ask -> lock, decide, SAVE -> answer.
///
/// `isServed`: the service verifies codes; otherwise the files of the store, unless the policy says
/// that the fleet does.
///
/// Nothing that depends on the code being correct is shown to the user here, but at this machine
/// that a code was used (`tellOfReplay`): on many stacks this runs after a wrong password too.
package func authenticate(
  _ host: some PAMApplication, _ arguments: ModuleArguments, store: some LoginStore,
  service: any CodeAuthority = ServiceAuthority(at: ServiceAuthority.rootSocket),
  isServed: Bool = false
) -> ReturnCode {
  if !arguments.noDelay { host.delayFailure(UInt32(LoginDelay.milliseconds) * 1000) }
  host.log(arguments)
  do throws(PAMFailure) {
    // Of an earlier try on this handle, or of a line of this one with `wrong-password`.
    let earlier = host.mark()
    try host.setMark(nil)
    try host.setEnvironmentMark(false)
    let user = try host.user()
    if arguments.wrongPassword || arguments.isRefusing {
      try host.setMark(Mark(user: user, .wrongPassword))
      return .refused
    }
    if let earlier, case .wrongPassword = earlier.result, earlier.user == user { return .refused }
    return try Login(
      host, arguments, store: store, service: service, isServed: isServed, after: earlier
    ).authenticate(user)
  } catch {
    host.log(.error, .applicationFailed(error))
    return ReturnCode(error)
  }
}

extension Login {
  fileprivate func authenticate(_ user: [UInt8]) throws(PAMFailure) -> ReturnCode {
    let (account, context): (Account?, LoginContext)
    do throws(StoreTrouble) {
      (account, context) = try begin(user)
    } catch {
      return report(error)
    }
    let policy = context.policy
    // Nothing else may stand before this line: a code alone opens nothing. By a value that nothing
    // else in this phase has, a stack lets those without a key go on to the password.
    if arguments.afterKey, !isAfterKey(policy) {
      host.log(.info, .denied(user, .noKey))
      return .denied
    }
    let step: AuthStep
    do throws(StoreTrouble) {
      step =
        policy.isEnabled
        ? try authority.prepare(
          user, account, in: context, mayEnroll: mayEnroll, after: firstFactor(policy))
        : .skip
    } catch {
      return report(error)
    }
    switch step {
    case .prompt(let pending):
      if isRemembered(pending) { return try passRemembered(pending) }
      mayClaim = mayEnroll && firstFactor(policy) != .none
      return try returnCode(for: try verifyCode(of: pending), of: pending)
    case .skip:
      host.log(.info, .notAsked(user))
      // What an earlier line demands of the account phase holds, whatever this one asks.
      if let earlier, earlier.isBinding, earlier.user == account?.name.bytes {
        try host.setMark(earlier)
        try host.setEnvironmentMark(isInSSHD(policy))
      }
      return try passOn(policy)
    case .enroll(let level, let account):
      return try mark(account.name.bytes, as: level, policy)
    }
  }

  // MARK: the code

  /// Of the password that an earlier module asked for, or typed at our prompt.
  private func verifyCode(of pending: PendingLogin) throws(PAMFailure) -> Reply {
    switch arguments.firstPass {
    case .ask:
      return try askForCode(pending, after: arguments.forwardPass ? nil : host.password())
    case .use:
      guard let field = host.password() ?? Secret(count: 0) else { throw .memory }
      return try verify(parts(of: field, pending), by: pending, as: .last(givingBack: nil))
    case .tryThenAsk:
      // Nothing would be given back of what a password of digits costs.
      guard authority.isForRoot, let field = host.password() else {
        return try askForCode(pending, after: nil)
      }
      let parts = try parts(of: field, pending)
      guard hasCode(parts, pending) else { return try askForCode(pending, after: field) }
      let reply = try verify(parts, by: pending, as: .firstPass)
      guard case .refused(let charge) = reply else { return reply }
      let asked = charge == nil ? pending : charged(pending)
      return try askForCode(asked, after: field, givingBack: charge)
    }
  }

  private func hasCode(_ parts: Parts, _ pending: PendingLogin) -> Bool {
    do throws(CryptoError) {
      return try pending.hasFormOfCode(parts.code)
    } catch {
      return true  // checked next, where the error is reported
    }
  }

  /// With what the first pass was charged, where the prompt tells it.
  private func charged(_ pending: PendingLogin) -> PendingLogin {
    guard isForTheUser(pending), case .enrolled(let account) = pending.claimant else {
      return pending
    }
    do throws(StoreTrouble) {
      return try authority.enrolled(account, in: pending.context) ?? pending
    } catch {
      return pending
    }
  }

  private func returnCode(for reply: Reply, of pending: PendingLogin) throws(PAMFailure)
    -> ReturnCode
  {
    switch reply {
    case .accepted(.claim):
      try host.setMark(Mark(user: pending.name, .claimed(claim)))
      if isInSSHD(pending.policy) { try host.setEnvironmentMark(true) }
      return .success
    case .accepted(let proof):
      try host.setMark(Mark(user: pending.name, .accepted(proof, mayEnroll: mayEnroll)))
      return .success
    case .refused: return .refused
    case .unavailable: return .unavailable
    }
  }

  // MARK: remembered origins

  private func isRemembered(_ pending: PendingLogin) -> Bool {
    let policy = pending.policy
    guard policy.remember > 0, case .enrolled(let account) = pending.claimant,
      let address = pending.context.address
    else { return false }
    // A code alone opens nothing, so its absence may not either: only after a first factor. One
    // field holds the code as well.
    if firstFactor(policy) == .none || arguments.forwardPass || arguments.firstPass == .use {
      return false
    }
    do throws(StoreTrouble) {
      guard pending.isRemembered(address, at: try store.now()) else { return false }
      // What is missing is only asked for after a code.
      guard mayEnroll, !lacking(pending).isEmpty else { return true }
      return try authority.level(of: account, in: pending.context) != .required
    } catch {
      return false
    }
  }

  private func passRemembered(_ pending: PendingLogin) throws(PAMFailure) -> ReturnCode {
    try host.setMark(Mark(user: pending.name, .remembered))
    host.log(
      .info, .remembered(pending.name, from: host.remoteHost(), pending.context.origin))
    return answerWithoutCode(pending.policy)
  }

  // MARK: without a code

  /// For a user who needs no code. With `forward_pass` the password is still typed at our
  /// prompt, and passed on whole: checking its end here would be an oracle for codes. After a key
  /// no other line may be there to succeed.
  private func passOn(_ policy: Policy) throws(PAMFailure) -> ReturnCode {
    guard arguments.forwardPass else {
      return arguments.afterKey ? answerWithoutCode(policy) : .ignore
    }
    switch arguments.firstPass {
    case .use: return .ignore
    case .tryThenAsk: if host.password() != nil { return .ignore }
    case .ask: break
    }
    try host.setPassword(try host.ask(prompt(for: nil, policy), echo: arguments.echo))
    return .ignore
  }

  private func mark(_ user: [UInt8], as level: EnrollmentLevel, _ policy: Policy)
    throws(PAMFailure) -> ReturnCode
  {
    try host.setMark(Mark(user: user, .due(level)))
    if level == .required, isInSSHD(policy) {
      try host.setEnvironmentMark(true)
    }
    host.log(.info, .due(user, level))
    return answerWithoutCode(policy)
  }

  /// The module that asked for a password must decide on it: a success of this one would let a
  /// wrong password in if that module is `sufficient`.
  private func answerWithoutCode(_ policy: Policy) -> ReturnCode {
    switch firstFactor(policy) {
    case .password: .ignore
    case .key: .success
    case .none: .refused
    }
  }

  // MARK: the first factor

  /// What the application or an earlier module has asked for.
  private func firstFactor(_ policy: Policy) -> FirstFactor {
    if host.password() != nil { return .password }
    return isAfterKey(policy) ? .key : .none
  }

  /// Whether sshd says that a key, a host or a ticket was accepted.
  @inline(never)
  private func isAfterKey(_ policy: Policy) -> Bool {
    // In other programs the user's own settings may be in PAM's environment.
    guard isSSHD(policy), let methods = host.sshAuthenticationInfo() else { return false }
    return rest(of: methods, after: "publickey") != nil
      || rest(of: methods, after: "hostbased") != nil
      || rest(of: methods, after: "gssapi-with-mic") != nil
  }
}
