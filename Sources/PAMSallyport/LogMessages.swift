import SallyportCore
import SallyportLogin
import SallyportSystem

// The sentences of the log, one line each. Never a code, a secret or a backup code.
extension LogLine {
  /// What went wrong with the machine or the store: the fact, its path, and the fix where one
  /// command fixes it.
  static func trouble(
    _ trouble: StoreTrouble, user: [UInt8], from host: [UInt8]?, _ origin: Origin
  ) -> LogLine {
    var line = LogLine("error:")
    line.add(user: user)
    line.add(origin, host)
    line.add(": ")
    line.add(trouble)
    if case .noStore = trouble { line.add(" (sallyport enroll makes one)") }
    return line
  }

  /// Why a policy file cannot be used, and what holds in its place.
  static func brokenPolicy(_ trouble: StoreTrouble, hasLastGood: Bool) -> LogLine {
    var line = LogLine("policy: ")
    line.add(trouble)
    line.add(
      hasLastGood
        ? "; the last good file applies"
        : "; the strict policy applies (one adjacent interval, unenrolled users refused)")
    return line
  }

  static func unknownWord(_ word: [UInt8]) -> LogLine {
    var line = LogLine("unknown argument \"")
    line.add(escaped(word))
    line.add("\": the strict policy applies (one adjacent interval, unenrolled users refused)")
    return line
  }

  static var disabled: LogLine { LogLine("not asked: the policy has state = disabled here") }

  static func hostFailed(_ failure: HostFailure) -> LogLine {
    switch failure {
    case .conversation: LogLine("the application could not ask for a code (conversation failed)")
    case .memory: LogLine("out of memory in libpam")
    }
  }

  static func notAsked(_ user: [UInt8]) -> LogLine {
    var line = LogLine("not asked: no enrollment, and none is required:")
    line.add(user: user)
    return line
  }

  static func due(_ user: [UInt8], _ level: EnrollmentLevel) -> LogLine {
    var line = LogLine("not asked: the account phase asks to enroll:")
    line.add(user: user)
    line.add(" enrollment=")
    line.add(level.name)
    return line
  }

  static func remembered(_ user: [UInt8], from host: [UInt8]?, _ origin: Origin) -> LogLine {
    var line = LogLine("not asked: this origin is remembered:")
    line.add(user: user)
    line.add(origin, host)
    return line
  }

  /// A prompt, if only the user can read it. The time is rounded up.
  static func tooManyWrongCodes(_ seconds: UInt64) -> LogLine {
    var text = LogLine("Too many wrong codes. Next try in ")
    if seconds <= 5400 {
      text.add((seconds + 59) / 60)
      text.add(" min")
    } else {
      text.add((seconds + 3599) / 3600)
      text.add(" h")
    }
    text.add(", or a backup code: ")
    return text
  }

  static func noRoom(_ user: [UInt8]) -> LogLine {
    var line = LogLine("no room for a required authenticator, remove one:")
    line.add(user: user)
    return line
  }

  static func putOff(_ user: [UInt8]) -> LogLine {
    var line = LogLine("enrollment put off:")
    line.add(user: user)
    return line
  }

  /// Why a phase lets nobody pass, whatever was typed.
  enum Denial {
    /// Not enrolled, but must be.
    case notEnrolled
    /// Enrolled by somebody else since the auth phase.
    case meanwhile
    /// PAM_USER is not whom the auth phase let through.
    case anotherUser
    /// `demand`, but the application does not prompt here.
    case noPrompt
    /// `after-key`, and sshd has accepted none.
    case noKey
  }

  @inline(never)
  static func denied(_ user: [UInt8], _ reason: Denial) -> LogLine {
    var line = LogLine("denied: reason=")
    switch reason {
    case .notEnrolled: line.add("not-enrolled")
    case .meanwhile: line.add("enrolled-meanwhile")
    case .anotherUser: line.add("another-user")
    case .noPrompt: line.add("no-prompt")
    case .noKey: line.add("no-key")
    }
    line.add(user: user)
    if reason == .noPrompt {
      line.add(": demand needs a prompt, and this login has none (in sshd a key alone: set ")
      line.add("AuthenticationMethods publickey,keyboard-interactive)")
    }
    return line
  }

  /// The account stack returned `code`, so nobody is asked to enroll.
  static func notLetIn(_ user: [UInt8], _ code: Int32, isDenied: Bool) -> LogLine {
    var line = LogLine("")
    line.add(isDenied ? "denied:" : "not asked to enroll:")
    line.add(" reason=account-stack")
    line.add(user: user)
    line.add(" code=", Int(code))
    return line
  }

  static func noAccountLine(_ user: [UInt8]?) -> LogLine {
    var line = LogLine(
      "denied: must enroll, and was not asked to: the stack has no line \"account ")
    line.add("required pam_sallyport.so\", or an earlier line ends it")
    if let user { line.add(user: user) }
    return line
  }

  /// Every change of an enrollment by a login begins with the same words: alerts look for them.
  static func changed(
    _ user: [UInt8], isNew: Bool, _ authenticators: [Authenticator], _ codes: BackupCodeSet?,
    from host: [UInt8]?, _ origin: Origin
  ) -> LogLine {
    var line = LogLine("enrollment changed in the login: ")
    line.add(isNew ? "action=enrolled" : "action=added")
    line.add(user: user)
    for authenticator in authenticators {
      line.add(" authenticator=\"")
      line.add(authenticator.name.bytes)
      line.add("\"")
    }
    line.add(" backup-codes=", codes?.digests.count ?? 0)
    line.add(origin, host)
    return line
  }

  static func outcome(
    _ outcome: Outcome, user: [UInt8], from host: [UInt8]?, _ origin: Origin
  ) -> LogLine {
    var line: LogLine
    switch outcome {
    case .accepted(.authenticator(let name, let drift)):
      line = LogLine("code accepted:")
      line.add(user: user)
      line.add(" authenticator=\"")
      line.add(name.bytes)
      line.add("\"")
      if drift != 0 { line.add(" drift=", Int(drift)) }
      line.add(origin, host)
    case .accepted(.backupCode(let left)):
      line = LogLine("backup code accepted:")
      line.add(user: user)
      line.add(" left=", left)
      line.add(origin, host)
    case .refused(let reason):
      line = LogLine("refused: reason=")
      line.add(reason.name)
      line.add(user: user)
      line.add(origin, host)
      line.add(detailOf: reason)
    }
    return line
  }

  mutating func add(user: [UInt8]) {
    add(" user=")
    add(field: user)
  }

  mutating func add(_ origin: Origin, _ host: [UInt8]?) {
    add(" origin=")
    switch origin {
    case .address: add(field: host ?? [])
    case .local(let own): add(own ? "local" : "local(another user)")
    case .unknown:
      add("unknown")
      guard let host else { return }
      add("(")
      add(field: host)
      add(")")
    }
  }

  private mutating func add(detailOf reason: Outcome.Reason) {
    guard case .response(let refusal, let left) = reason else { return }
    switch refusal {
    case .malformed(let malformation):
      add(": ")
      add(malformation.text)
    case .wrongCode, .throttled:
      add(" budget=known:")
      add(left.known)
      add(",other:")
      add(left.other)
    case .replayed: break
    case .clock(let end):
      add(": the last accepted code is ahead of the clock; codes are refused until unix ")
      add("time ", Int(end.seconds))
      add(", backup codes work")
    }
  }
}

extension Outcome.Reason {
  fileprivate var name: StaticString {
    switch self {
    case .notEnrolled: "not-enrolled"
    case .unknownUser: "unknown-user"
    case .response(.malformed, _): "malformed"
    case .response(.wrongCode, _): "wrong-code"
    case .response(.replayed, _): "replayed"
    case .response(.throttled, _): "throttled"
    case .response(.clock, _): "clock"
    }
  }
}

extension Malformation {
  fileprivate var text: StaticString {
    switch self {
    case .empty: "no code given"
    case .tooLong: "too long for a code"
    case .length: "wrong number of digits"
    case .characters: "neither a code nor a backup code"
    case .sshdDummy: "sshd forbids this user to log in (PermitRootLogin, AllowUsers)"
    case .password:
      """
      the password again; sshd's PasswordAuthentication answers every prompt with it, codes need \
      KbdInteractiveAuthentication
      """
    }
  }
}
