import SallyportCore
import SallyportLogin
import SallyportSystem

extension PAMApplication {
  /// The words that mean nothing.
  @inline(never) func log(_ arguments: ModuleArguments) {
    for word in arguments.unknown { log(.error, .unknownWord(word)) }
  }
}

// The sentences of the log, one line each. Never a code, a secret or a backup code.
extension LogLine {
  @inline(never) static func unknownWord(_ word: [UInt8]) -> LogLine {
    var line = LogLine("unknown argument \"")
    line.add(escaped(word))
    line.add("\"")
    let meant = ModuleWord(meantBy: word)
    if let meant {
      line.add(", meant as \"")
      line.add(meant.name)
      line.add("\"")
    }
    line.add(meant?.isNarrowing == true ? ": this line refuses everybody" : LogLine.strict)
    return line
  }

  static func applicationFailed(_ failure: PAMFailure) -> LogLine {
    switch failure {
    case .conversation: LogLine("the application could not ask for a code (conversation failed)")
    case .memory: LogLine("out of memory in libpam")
    }
  }

  /// By the policy.
  static func notAsked(_ user: [UInt8]) -> LogLine {
    var line = LogLine("not asked: state = disabled, or not enrolled:")
    line.add(user: user)
    return line
  }

  /// Refused, and unenrolled before the next prompt.
  static func notAskedAgain(_ user: [UInt8]) -> LogLine {
    var line = LogLine("not asked again: unenrolled meanwhile:")
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

  /// Why users read English.
  static func brokenCatalog(_ trouble: StoreTrouble) -> LogLine {
    var line = LogLine("language: ")
    line.add(trouble)
    line.add("; English is used")
    return line
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
  enum LoginRefusal {
    /// Not enrolled, but must be.
    case notEnrolled
    /// Enrolled, and let in by a pass whose login must enroll again.
    case mustEnroll
    /// Enrolled by somebody else since the auth phase.
    case meanwhile
    /// PAM_USER is not whom the auth phase let through.
    case anotherUser
    /// `demand`, but the application does not prompt here.
    case noPrompt
    /// `after-key`, and sshd has accepted none.
    case noKey
    /// Root has blocked the account.
    case blocked
  }

  @inline(never)
  static func denied(_ user: [UInt8], _ reason: LoginRefusal) -> LogLine {
    var line = LogLine("denied: reason=")
    switch reason {
    case .notEnrolled: line.add("not-enrolled")
    case .mustEnroll: line.add("must-enroll")
    case .meanwhile: line.add("enrolled-meanwhile")
    case .anotherUser: line.add("another-user")
    case .noPrompt: line.add("no-prompt")
    case .noKey: line.add("no-key")
    case .blocked: line.add("blocked")
    }
    line.add(user: user)
    if reason == .noPrompt {
      line.add(": demand needs a prompt, and this login has none (in sshd a key alone: set ")
      line.add("AuthenticationMethods publickey,keyboard-interactive)")
    }
    return line
  }

  /// The account stack returned `code`, so nobody is asked to enroll.
  static func notLetIn(_ user: [UInt8], _ code: Int32, isRefused: Bool) -> LogLine {
    var line = LogLine("")
    line.add(isRefused ? "denied:" : "not asked to enroll:")
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
    of user: [UInt8], by action: StaticString, _ authenticators: [Authenticator],
    _ codes: BackupCodeSet?, from host: [UInt8]?, _ origin: Origin
  ) -> LogLine {
    var line = LogLine("enrollment changed in the login: ")
    line.add("action=")
    line.add(action)
    line.add(user: user)
    for authenticator in authenticators {
      line.add(authenticator: authenticator.name)
    }
    line.add(" backup-codes=", codes?.digests.count ?? 0)
    line.add(origin, host)
    return line
  }
}
