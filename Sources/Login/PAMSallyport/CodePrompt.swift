import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

// The prompt for a code, and the verification of what was typed.

extension Login {
  /// The result of one response; the state that records it is on the disk.
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

  /// Prompts and checks the response, and where sshd would keep the refusal to itself prompts
  /// again: each time for a login of its own, at its own time. It hangs on nothing but the policy
  /// and what is typed, so that all are asked alike. `given`: what was typed before in this
  /// transaction, in answer to another prompt. Some clients, and sshd's method `password`, answer
  /// every prompt with that. It tells nobody anything that he has not typed. `firstPass`: what an
  /// earlier response of this call was charged.
  func askForCode(
    _ first: PendingLogin, after given: Secret?, givingBack firstPass: Charge? = nil
  ) throws(PAMFailure) -> Reply {
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
      // What a try takes tells how much is enrolled, and whether anything is.
      if !arguments.noDelay { host.wait(until: end) }
      typed = try host.ask(
        joined(
          prompting.prompt(.notAccepted, end: 0x0a), prompt(for: pending, pending.policy)),
        echo: arguments.echo)
      if typed.count == 0 { return reply }
    }
  }

  private func isSame(_ typed: Secret, _ other: Secret?) -> Bool {
    other.map { constantTimeEquals(typed, $0) } == true
  }

  // MARK: the prompt

  private func firstPrompt(_ pending: PendingLogin) -> [UInt8] {
    let prompt = prompt(for: pending, pending.policy)
    guard let earlier, case .replayed(let until) = earlier.result, earlier.user == pending.name,
      var text = replayText(until)
    else { return prompt }
    text.append(0x0a)
    return joined(text, prompt)
  }

  /// With `hints` it names the authenticators, and so reveals who is enrolled. nil: no code is
  /// required of this user.
  func prompt(for pending: PendingLogin?, _ policy: Policy) -> [UInt8] {
    if let pending, let wait = waitingTime(pending) {
      return prompting.prompt(.tooManyWrongCodes, prompting.wait(wait))
    }
    let isAway = pending?.isAway == true
    if let prompt = arguments.prompt, !isAway { return prompt }
    var names: [UInt8] = []
    if policy.hints, !isAway, let pending, pending.claimant.isEnrolled {
      var separator: StaticString = " ("
      for authenticator in pending.shape.authenticators {
        names += bytes(of: separator) + authenticator.name.bytes
        separator = ", "
      }
      names.append(UInt8(ascii: ")"))
    }
    return prompting.prompt(question(isAway: isAway), names)
  }

  private func question(isAway: Bool) -> Sentence {
    if arguments.forwardPass { return isAway ? .passwordAndBackupCode : .passwordAndCode }
    return isAway ? .backupCode : .verificationCode
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

  /// nil where the wait is over.
  @inline(never)
  private func replayText(_ until: UnixTime) -> [UInt8]? {
    do throws(StoreTrouble) {
      let wait = until.elapsed(since: try store.now())
      return wait == 0 ? nil : prompting.text(.codeWasUsed, decimalText(wait))
    } catch {
      return nil
    }
  }

  // MARK: the response

  func parts(of typed: Secret, _ pending: PendingLogin) throws(PAMFailure) -> Parts {
    guard arguments.forwardPass else { return Parts(password: nil, code: typed) }
    let parts = Response.split(typed) { digits in
      pending.shape.authenticators.contains { $0.digits == digits }
    }
    if let parts {
      return Parts(password: parts.password, code: parts.code)
    }
    guard let empty = Secret(count: 0) else { throw .memory }
    return Parts(password: typed, code: empty)
  }

  /// Has the response verified, and logs what came of it.
  func verify(
    _ parts: Parts, knownAs known: Malformation? = nil, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(PAMFailure) -> Reply {
    // Before the outcome, whatever it is: the password module after us then fails the same way.
    if let password = parts.password { try host.setPassword(password) }
    let origin = pending.context.origin
    do throws(StoreTrouble) {
      var outcome = try authority.attempt(parts.code, knownAs: known, by: pending, as: role)
      if case .refused(.response(.mustEnroll, _)) = outcome, case .last = role, canClaim(pending) {
        claim = try Random.identifier()
        outcome = try authority.attempt(
          parts.code, knownAs: nil, by: pending, as: .claim(claim))
      }
      if outcome.logLevel == .notice { refusals += 1 }
      let line = LogLine.outcome(
        outcome, number: outcome.logLevel == .notice ? refusals : 1, user: pending.name,
        from: host.remoteHost(), origin)
      host.log(outcome.logLevel, line)
      switch outcome {
      case .accepted(let proof): return .accepted(proof)
      case .refused(.response(.wrongCode(let charge), _)): return .refused(charge)
      case .refused(.response(.replayed(let until), _)):
        if case .last = role { tellOfReplay(pending, until) }
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
    do throws(PAMFailure) {
      guard host.isSilent else { return try host.complain(try secret(text)) }
      try host.setMark(Mark(user: pending.name, .replayed(until: until)))
    } catch {
      // The refusal holds all the same.
    }
  }

  /// Whether this login can end in enrolling, as far as is known before: what an enrolling asks for
  /// first is asked here, and a line of ours must be there to ask for it.
  @inline(never)
  private func canClaim(_ pending: PendingLogin) -> Bool {
    let policy = pending.policy
    guard mayClaim, policy.missing(from: Factors()).hasAuthenticator, !policy.isRefusedByRule
    else { return false }
    switch host.probeAccountStack() {
    case .yes: return true
    case .yesWithoutUs: host.log(.notice, .noAccountLine(pending.name))
    case .no(let code): host.log(.notice, .notLetIn(pending.name, code, isRefused: true))
    }
    return false
  }

  /// The next login of a transaction; nil, and logged, where there is none. Who was refused does
  /// not pass unasked, whatever has changed meanwhile.
  private func again(_ pending: PendingLogin) -> PendingLogin? {
    do throws(StoreTrouble) {
      _ = authority.canBeAsked()
      let step = try authority.prepare(
        pending.name, pending.claimant.account, in: pending.context, mayEnroll: false, after: .none)
      if case .prompt(let next) = step { return next }
      host.log(.info, .notAskedAgain(pending.name))
    } catch {
      _ = report(error, pending.context.origin)
    }
    return nil
  }
}
