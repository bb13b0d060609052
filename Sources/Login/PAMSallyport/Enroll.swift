import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

// Enrolling inside the login: a question, the secret, a first code, the backup codes.

extension Login {
  /// For a user whom the auth phase let through without an enrollment.
  ///
  /// `atLeast`: the level at which it let the user through. If this line names another policy,
  /// the stricter of both applies.
  func enroll(_ account: Account, _ context: LoginContext, atLeast marked: EnrollmentLevel)
    throws(StoreTrouble) -> ReturnCode
  {
    if try authority.enrolled(account, in: context) != nil { return refuseMeanwhile(account) }
    let policy = context.policy
    let now = try authority.level(of: account, in: context)
    let level = marked.rawValue < now.rawValue ? marked : now
    switch level {
    case .refuse:
      host.log(.notice, .denied(account.name.bytes, .notEnrolled))
      return .denied
    case .voluntary: return .ignore
    case .remind:
      guard isReminded(account, context) else { return .ignore }
    case .required, .offer: break
    }
    let wanted = policy.missing(from: Factors())
    return hold(
      EnrollmentConversation(
        login: self, account: account, context: context, level: level, wanted: wanted,
        enrolled: nil))
  }

  /// For a user whose pass the auth phase claimed with this random: what is made takes the place of
  /// all that is enrolled.
  func enroll(_ account: Account, _ context: LoginContext, byPass claim: UInt64)
    throws(StoreTrouble) -> ReturnCode
  {
    guard let pending = try authority.enrolled(account, in: context) else {
      host.log(.notice, .denied(account.name.bytes, .notEnrolled))
      return .denied
    }
    return hold(
      EnrollmentConversation(
        login: self, account: account, context: context, level: .required,
        wanted: context.policy.missing(from: Factors()), enrolled: pending, claim: claim))
  }

  /// What an enrollment lacks and has room for: only root can make room, and a user with a correct
  /// code would be locked out until then.
  func lacking(_ pending: PendingLogin) -> Factors {
    let missing = pending.policy.missing(from: pending.factors)
    // While the fleet is away, what is enrolled is not known.
    if missing.isEmpty || pending.isAway { return Factors() }
    let more = (missing.contains(.totp) ? 1 : 0) + (missing.contains(.hotp) ? 1 : 0)
    let all = pending.shape.authenticators.count + more
    guard all > Enrollment.maximumAuthenticators else { return missing }
    host.log(.error, .noRoom(pending.name))
    return Factors()
  }

  /// For a user whose enrollment lacks what the policy requires.
  func complete(_ account: Account, _ pending: PendingLogin, _ missing: Factors)
    throws(StoreTrouble) -> ReturnCode
  {
    let level = try authority.level(of: account, in: pending.context)
    switch level {
    case .refuse, .voluntary: return .ignore
    case .remind:
      guard isReminded(account, pending.context) else { return .ignore }
    case .required, .offer: break
    }
    return hold(
      EnrollmentConversation(
        login: self, account: account, context: pending.context, level: level, wanted: missing,
        enrolled: pending))
  }

  /// Every n-th login; a login that cannot be counted is not reminded.
  private func isReminded(_ account: Account, _ context: LoginContext) -> Bool {
    do throws(StoreTrouble) {
      let logins = try authority.countLogin(of: account, in: context)
      return logins % UInt32(max(context.policy.remindEvery, 1)) == 0
    } catch {
      _ = report(error)
      return false
    }
  }

  /// A user whom the account stack refuses cannot enroll: the password of an expired account, or of
  /// one that may not log in here, does not prove ownership.
  private func hold(_ conversation: EnrollmentConversation<Application, Store>) -> ReturnCode {
    let user = conversation.account.name.bytes
    let isRefused = conversation.level == .required
    if case .no(let code) = host.probeAccountStack() {
      host.log(isRefused ? .notice : .info, .notLetIn(user, code, isRefused: isRefused))
      return isRefused ? .denied : .ignore
    }
    switch conversation.run() {
    case .done: return .success
    case .meanwhile: return refuseMeanwhile(conversation.account, isCodeShown: true)
    case .putOff:
      let reason: LogLine.LoginRefusal = conversation.claim != 0 ? .mustEnroll : .notEnrolled
      host.log(isRefused ? .notice : .info, isRefused ? .denied(user, reason) : .putOff(user))
      return isRefused ? .denied : .ignore
    }
  }

  private func refuseMeanwhile(_ account: Account, isCodeShown: Bool = false) -> ReturnCode {
    host.log(.notice, .denied(account.name.bytes, .meanwhile))
    let sentence: Sentence = isCodeShown ? .enrolledMeanwhileShown : .enrolledMeanwhile
    do throws(PAMFailure) { try show(telling.text(sentence, account.name.bytes)) } catch {}
    return .denied
  }
}

/// One conversation that sets up what an enrollment lacks.
struct EnrollmentConversation<Application: PAMApplication, Store: LoginStore> {
  enum End { case done, putOff, meanwhile }

  let login: Login<Application, Store>
  let account: Account
  let context: LoginContext
  let level: EnrollmentLevel
  let wanted: Factors
  /// nil if there is no enrollment yet.
  let enrolled: PendingLogin?
  /// Of the pass by which it is replaced; 0: it is not.
  var claim: UInt64 = 0

  /// Whether nothing of what is enrolled stays.
  var isNew: Bool { enrolled == nil || claim != 0 }

  var host: Application { login.host }
  var policy: Policy { context.policy }

  /// A missing answer or a failed conversation ends it, like a no. Nothing is stored before the
  /// first codes were correct; what is stored stays.
  func run() -> End {
    do throws(PAMFailure) {
      guard wanted.hasAuthenticator || !isNew, try isWelcome() else { return .putOff }
      var made: [Authenticator] = []
      for kind in policy.factorOrder.kinds {
        guard kind != .backupCode, wanted.contains(kind) else { continue }
        guard let authenticator = try setUp(kind, beside: made) else { return .putOff }
        made.append(authenticator)
      }
      return try finish(made)
    } catch {
      host.log(.info, .applicationFailed(error))
      return .putOff
    }
  }

  // MARK: the question

  /// No secret is shown if nobody answers, and an empty answer is not a yes.
  private func isWelcome() throws(PAMFailure) -> Bool {
    let sentences = login.telling
    let welcome: Sentence =
      if claim != 0 {
        .requiredByPass
      } else if isNew {
        level == .required ? .required : .offered
      } else {
        level == .required ? .requiredBeside : .offeredBeside
      }
    try login.show(
      joined(sentences.prompt(welcome, HostName.label.bytes), sentences.text(.installApp)))
    for left in (0..<3).reversed() {
      let answer = try host.ask(
        sentences.prompt(level == .required ? .setUpNow : .setUpNowOrLater), echo: true)
      let isYes = answer.count > 0 ? isYes(answer) : false
      if isYes == true { return true }
      if isYes == false { break }
      if left > 0 { try login.show(sentences.text(.yesOrNo)) }
    }
    if level == .required {
      try login.show(sentences.text(.logInAgain, HostName.label.bytes))
    }
    return false
  }

  /// By its first letter, in the user's language or else in English; nil for any other.
  private func isYes(_ answer: Secret) -> Bool? {
    let sentences = login.telling
    let (yes, no) = (sentences.text(.yes)[0] | 0x20, sentences.text(.no)[0] | 0x20)
    var letter = answer[0]
    // Full-width ones: U+FF21 to U+FF5A.
    if letter == 0xef {
      letter = answer[1] == 0xbc ? answer[2] &- 0x60 : answer[1] == 0xbd ? answer[2] &- 0x20 : 0
    }
    letter |= 0x20
    // Words of a catalog that begin alike say nothing.
    if yes != no {
      if letter == yes { return true }
      if letter == no { return false }
    }
    switch letter {
    case UInt8(ascii: "y"): return true
    case UInt8(ascii: "n"): return false
    case _: return nil
    }
  }

  // MARK: the end

  private func finish(_ made: [Authenticator]) throws(PAMFailure) -> End {
    let hasCodes = policy.backupCode != .off && (isNew || wanted.contains(.backupCode))
    do throws(StoreTrouble) {
      let codes = try BackupCodeSet.fresh(count: hasCodes ? BackupCodeSet.usualCodes : 0)
      guard try save(made, codes.set) else { return .meanwhile }
      let action: StaticString =
        claim != 0 ? "replaced-by-pass" : isNew ? "enrolled" : "added"
      host.log(
        .notice,
        .changed(
          of: account.name.bytes, by: action, made, codes.set, from: host.remoteHost(),
          context.origin))
      showEnd(codes.codes)
      return .done
    } catch {
      return try unavailable(error)
    }
  }

  /// False if somebody else changed the enrollment meanwhile.
  private func save(_ made: [Authenticator], _ codes: BackupCodeSet?) throws(StoreTrouble) -> Bool {
    let change: EnrollmentChange
    if claim != 0 {
      change = .replace(made, backupCodes: codes, claim: claim)
    } else if enrolled != nil {
      change = .add(made, backupCodes: codes)
    } else {
      let enrollment = Enrollment(
        id: try Random.identifier(), user: account.name, uid: account.uid,
        created: try login.store.now(), authenticators: made, backupCodes: codes)
      change = .create(enrollment)
    }
    return try login.authority.amend(change, of: account.name, enrolled, in: context) == .done
  }

  /// Waits at the end: without a prompt the texts would never be seen under `ssh -T` and scp.
  /// A user who loses the connection here is enrolled, and can make new codes.
  private func showEnd(_ codes: [Secret]) {
    do throws(PAMFailure) {
      let sentences = login.telling
      guard !codes.isEmpty else { return try login.show(sentences.text(.enrolled)) }
      var text = SecretText(capacity: 2048)
      text.add(sentences.prompt(.enrolled, end: 0x0a))
      text.add(sentences.text(.backupCodes))
      for (index, code) in codes.enumerated() {
        text.add(index % 2 == 0 ? "\n    " : "    ")
        for position in 0..<code.count {
          if position > 0, position % 4 == 0 { text.put(UInt8(ascii: "-")) }
          text.put(code[position])
        }
      }
      guard let shown = text.finish() else { throw .memory }
      try host.show(shown)
      _ = try host.ask(sentences.prompt(.haveThem), echo: true)
    } catch {
      host.log(.info, .applicationFailed(error))
    }
  }

  @inline(never)
  func unavailable(_ trouble: StoreTrouble) throws(PAMFailure) -> End {
    _ = login.report(trouble)
    var sentence = Sentence.notSetUp
    if case .service(_, .notServed) = trouble { sentence = .notSetUpByFleet }
    try login.show(login.telling.text(sentence))
    return .putOff
  }
}
