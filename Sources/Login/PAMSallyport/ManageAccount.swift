import OneTimePassword
import SallyportCore
package import SallyportLogin
import SallyportSystem

/// pam_sm_acct_mgmt, which an application calls only after the whole auth stack has succeeded:
/// enrolls users whom the auth phase let through for that, and shows the texts of the login. With
/// `demand` it asks users whom the auth phase did not ask.
package func manageAccount(
  _ host: some PAMApplication, _ arguments: ModuleArguments, store: some LoginStore,
  service: any CodeAuthority = ServiceAuthority(at: ServiceAuthority.rootSocket),
  isServed: Bool = false
) -> ReturnCode {
  let mark = host.mark()?.forPhases
  if mark == nil {
    // What was left for the next line in the auth phase is past. It harms little if it stays.
    do throws(PAMFailure) { try host.setMark(nil) } catch {}
  }
  if host.isProbe { return arguments.isRefusing ? .denied : .ignore }
  let isAsked = mark != nil || arguments.demand || arguments.isRefusing
  if isAsked { host.log(arguments) }
  do throws(PAMFailure) {
    // Used up: it lets nothing else through.
    if isAsked { try host.setMark(nil) }
    let login = Login(
      host, arguments, store: store, service: service, isServed: isServed)
    let answer =
      arguments.isRefusing
      ? .denied : try login.manageAccount(try host.user(), mark, isAsked: isAsked)
    guard isAsked || answer != .ignore else { return answer }
    switch answer {
    case .success, .ignore: try host.setEnvironmentMark(false)
    // Some stacks ignore a failing account phase, so leave a mark that makes the session
    // phase deny.
    case .denied, .refused, .unavailable, .conversation, .memory:
      try host.setMark(Mark(user: mark?.user ?? [], .due(.required)))
    }
    return answer
  } catch {
    host.log(.error, .applicationFailed(error))
    return .denied
  }
}

/// pam_sm_open_session: a guard against a missing account line. A user still marked as one who must
/// enroll has not been asked to.
package func openSession(_ host: some PAMApplication) -> ReturnCode {
  // It too would be in the environment of the user's session.
  let text = host.takeText()
  let answer = guardSession(host)
  if answer == .ignore, !host.isSilent, let text, Label.isPresentable(text),
    let secret = Secret(text)
  {
    // It does not matter if nobody reads it.
    do throws(PAMFailure) { try host.show(secret) } catch {}
  }
  return answer
}

private func guardSession(_ host: some PAMApplication) -> ReturnCode {
  do throws(PAMFailure) {
    let isMarked = host.hasEnvironmentMark
    // The environment of the user's session is made from this one.
    try host.setEnvironmentMark(false)
    guard let mark = host.mark()?.forPhases else {
      return isMarked ? refuseSession(host, nil) : .ignore
    }
    return mark.isBinding ? refuseSession(host, mark.user) : .ignore
  } catch {
    host.log(.error, .applicationFailed(error))
    return .denied
  }
}

private func refuseSession(_ host: some PAMApplication, _ user: [UInt8]?) -> ReturnCode {
  host.log(.alert, .noAccountLine(user))
  return .denied
}

extension Login {
  /// `isAsked`: there is more to do than to refuse who is blocked.
  fileprivate func manageAccount(_ user: [UInt8], _ mark: Mark?, isAsked: Bool)
    throws(PAMFailure) -> ReturnCode
  {
    do throws(StoreTrouble) {
      if try isBlocked(user) { return .denied }
      guard isAsked else { return .ignore }
      let (account, context) = try begin(user)
      let answer = try manageAccount(account, context, mark)
      // It may be so by now: enrolling takes minutes.
      return try isBlocked(user) ? .denied : answer
    } catch {
      // Failed conversations, under `demand` for example, are reported there.
      return report(error)
    }
  }

  /// Whether root has blocked the user on this machine, whatever the policy says, and logged if so.
  /// Read from the files where the service verifies codes, too: nothing is locked or written. What
  /// is not root's cannot read them, and is its user's own to change; the service refuses his
  /// codes.
  @inline(never) private func isBlocked(_ user: [UInt8]) throws(StoreTrouble) -> Bool {
    if !authority.isForRoot { return false }
    do throws(StoreTrouble) {
      guard try store.mayBlock() else { return false }
      let account = try store.account(typed: user)
      // For whom a name service takes what nobody can be called is not known.
      if let account, try !store.isBlocked(account, at: store.now) { return false }
      host.log(.notice, .denied(account?.name.bytes ?? user, .blocked))
      return true
    } catch {
      // Else nobody could mend it.
      guard same("root", user) else { throw error }
      _ = report(error)
      return false
    }
  }

  private func manageAccount(_ account: Account?, _ context: LoginContext, _ mark: Mark?)
    throws(StoreTrouble) -> ReturnCode
  {
    // Finish what the auth phase began, even if this line names a policy that is disabled.
    guard context.policy.isEnabled || mark != nil else { return .ignore }
    guard let mark, let account, mark.user == account.name.bytes else {
      return try answer(another: mark, account, context)
    }
    switch mark.result {
    case .due(let level): return try enroll(account, context, atLeast: level)
    case .accepted(let proof, let mayEnroll):
      return try finish(account, context, proof, mayEnroll: mayEnroll)
    case .claimed(let claim): return try enroll(account, context, byPass: claim)
    case .remembered, .replayed, .wrongPassword: return .ignore
    }
  }

  /// The auth phase did not see this user: it let another one through.
  private func answer(another mark: Mark?, _ account: Account?, _ context: LoginContext)
    throws(StoreTrouble) -> ReturnCode
  {
    let isRefused = mark?.isBinding == true
    if arguments.demand, !isRefused { return try demand(account, context) }
    guard mark != nil else { return .ignore }
    if !isRefused, let account, try mayPassUnasked(account, context) { return .ignore }
    host.log(.notice, .denied(account?.name.bytes ?? [], .anotherUser))
    return .denied
  }

  /// An enrolled user must be asked, and an unenrolled one too if the level refuses.
  private func mayPassUnasked(_ account: Account, _ context: LoginContext) throws(StoreTrouble)
    -> Bool
  {
    guard try authority.enrolled(account, in: context) == nil else { return false }
    guard context.policy.isEnabled else { return true }
    return try passesUnenrolled(account, context)
  }

  private func passesUnenrolled(_ account: Account, _ context: LoginContext) throws(StoreTrouble)
    -> Bool
  {
    switch try authority.level(of: account, in: context) {
    case .refuse, .required: false
    case .offer, .remind, .voluntary: true
    }
  }

  // MARK: demand

  private func demand(_ account: Account?, _ context: LoginContext) throws(StoreTrouble)
    -> ReturnCode
  {
    guard let account else { return .denied }
    guard let pending = try authority.enrolled(account, in: context) else {
      if try passesUnenrolled(account, context) { return .ignore }
      host.log(.notice, .denied(account.name.bytes, .notEnrolled))
      return .denied
    }
    let reply: Reply
    do throws(PAMFailure) {
      reply = try askForCode(pending, after: nil)
    } catch {
      host.log(.notice, .denied(account.name.bytes, .noPrompt))
      return .denied
    }
    switch reply {
    case .accepted(let proof):
      _ = try finish(account, context, proof, mayEnroll: false)
      return .success
    case .refused: return .denied
    case .unavailable: return .unavailable
    }
  }

  // MARK: after our own success

  /// The texts of the login, its origin, and what its enrollment lacks.
  private func finish(
    _ account: Account, _ context: LoginContext, _ proof: Proof, mayEnroll: Bool
  ) throws(StoreTrouble) -> ReturnCode {
    // A pass proves this login, and nothing beyond it.
    if proof.isPass { return .ignore }
    guard let (pending, notices) = try told(account, context, proof) else { return .ignore }
    tell(notices, of: proof, pending, account)
    let missing = mayEnroll ? lacking(pending) : Factors()
    let answer = missing.isEmpty ? .ignore : try complete(account, pending, missing)
    // Nothing is remembered of a login that ends here.
    if context.policy.remember > 0, answer != .denied, !pending.isAway { grant(pending) }
    return answer
  }

  /// What is enrolled, and what happened since the owner was told last.
  @inline(never) private func told(_ account: Account, _ context: LoginContext, _ proof: Proof)
    throws(StoreTrouble) -> (PendingLogin, [OwnerNotice])?
  {
    if context.policy.tells, !host.isSilent {
      do throws(StoreTrouble) {
        if let told = try authority.notices(
          for: account, by: proof.authenticator, in: context)
        {
          return told
        }
      } catch {
        // Nobody is refused for that.
        _ = report(error)
      }
    }
    guard let pending = try authority.enrolled(account, in: context) else { return nil }
    return (pending, [])
  }

  /// What nobody was shown counts as told to nobody.
  private func tell(
    _ notices: [OwnerNotice], of proof: Proof, _ pending: PendingLogin, _ account: Account
  ) {
    if host.isSilent { return }
    do throws(StoreTrouble) {
      var text =
        notices.isEmpty ? LogLine("") : .notices(notices, at: try store.now(), in: telling)
      add(leftOf: pending, after: proof, account, to: &text)
      if !text.bytes.isEmpty, tell(text, pending.policy), !notices.isEmpty {
        try authority.settle(notices, of: pending, by: proof.authenticator)
      }
    } catch {
      // Nobody is refused for that.
      _ = report(error)
    }
  }

  /// How many backup codes are left, where one was used or they are few.
  private func add(
    leftOf pending: PendingLogin, after proof: Proof, _ account: Account, to text: inout LogLine
  ) {
    guard let left = pending.backupCodesLeft else { return }
    var isBackupCode = true
    if case .authenticator = proof {
      if left > 2 { return }
      isBackupCode = false
    }
    let isOwn = hasSelfService(account)
    let needsRoot = !isOwn && account.uid != 0
    var command = LogLine(needsRoot ? "sudo " : "")
    command.add(isBackupCode ? "sallyport add" : "sallyport backup-codes")
    // A name that a shell does not take as it is would name somebody else, or run.
    if !isOwn, isPlain(pending.name) {
      command.add(" ")
      command.add(pending.name)
    }
    if !isBackupCode { command.add(" --regenerate") }
    if !text.bytes.isEmpty { text.add(" ") }
    text.add(telling.counted(UInt64(left), .codeLeft, .codesLeft))
    text.add(" ")
    let sentence: Sentence =
      if isBackupCode {
        needsRoot ? .lostPhoneOrAsk : .lostPhone
      } else {
        needsRoot ? .newCodesOrAsk : .newCodes
      }
    text.add(telling.text(sentence, command.bytes, HostName.label.bytes))
  }

  /// Once. Up to 10.2, sshd shows what an account phase says before the session and again in it,
  /// where a shell begins; what the session phase says, only there.
  private func tell(_ text: LogLine, _ policy: Policy) -> Bool {
    do throws(PAMFailure) {
      if isInSSHD(policy) { try host.leaveText(text) } else { try show(text.bytes) }
      return true
    } catch {
      return false
    }
  }

  /// If it cannot be saved, the next login is asked again.
  private func grant(_ pending: PendingLogin) {
    guard let address = pending.context.address else { return }
    do throws(StoreTrouble) {
      try authority.remember(address, for: pending)
    } catch {
      _ = report(error)
    }
  }

  @inline(never)
  func show(_ text: [UInt8]) throws(PAMFailure) { try host.show(try secret(text)) }

  func secret(_ text: [UInt8]) throws(PAMFailure) -> Secret {
    guard let secret = Secret(text) else { throw .memory }
    return secret
  }
}

private func isPlain(_ name: [UInt8]) -> Bool {
  name.allSatisfy { byte in
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x40, 0x5f: true
    case _: false
    }
  }
}
