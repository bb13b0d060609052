import OneTimePassword
import PAMStack
import SallyportCore

/// What is known of an account that other modules ask about.
struct AccountTraits: Hashable {
  var uid: UInt32
  var password = PasswordState.some
  var aging = PasswordAging.State.valid
  /// Whether it is in the files of this machine.
  var isLocal = true
  /// Whether /etc/shells lists its shell.
  var hasListedShell = true
}

/// What the other modules of a stack return for one account.
struct ModuleAnswers {
  struct Answer {
    var code: PAMCode
    /// Why it refuses, where that is known.
    var barrier: Barrier?
    /// What it has asked for, whether that was right or not.
    var password: String?
  }

  let traits: AccountTraits
  /// Whether root alone may log in now.
  let isNoLogin: Bool
  /// Whether the module of an entry cannot be loaded.
  let isMissing: (StackEntry) -> Bool
  let isMember: (_ group: String) -> Tristate

  /// Every value that the module may return, of those that make a difference.
  func of(_ entry: StackEntry, to login: RehearsedLogin, _ handle: RehearsedHandle) -> [Answer] {
    if isMissing(entry) { return [Answer(code: .moduleUnknown, barrier: .moduleMissing)] }
    switch entry.moduleName {
    case "pam_permit": return [Answer(code: .success)]
    case "pam_deny":
      let code: PAMCode = entry.phase == .session ? .sessionError : .authenticationError
      return [Answer(code: code, barrier: .stackShut)]
    case "pam_rootok": return [Answer(code: login.caller == 0 ? .success : .authenticationError)]
    case "pam_unix": return [unix(entry, login, handle)]
    case "pam_nologin":
      return isNoLogin && traits.uid != 0
        ? [Answer(code: .authenticationError, barrier: .noLogin)]
        : [Answer(code: entry.arguments.contains("successok") ? .success : .ignore)]
    case "pam_shells":
      return traits.hasListedShell
        ? [Answer(code: .success)] : [Answer(code: .authenticationError, barrier: .noShell)]
    case "pam_localuser": return [Answer(code: traits.isLocal ? .success : .permissionDenied)]
    case "pam_succeed_if": return condition(entry)
    case "pam_faillock":
      let isFailing = entry.phase == .auth && entry.arguments.contains("authfail")
      return [Answer(code: isFailing ? .authenticationError : .success)]
    case let name where ModuleAnswers.silent.contains(name):
      // Nothing of theirs counts in the auth phase.
      return [Answer(code: entry.phase == .auth ? .ignore : .success)]
    case let name where ModuleAnswers.directories.contains(name):
      return [directory(entry, login, handle)]
    case _: return [Answer(code: .success), Answer(code: .permissionDenied, barrier: .stackShut)]
    }
  }

  private static let silent: Set = [
    "pam_env", "pam_cap", "pam_group", "pam_faildelay", "pam_mail", "pam_motd", "pam_limits",
    "pam_loginuid", "pam_keyinit", "pam_selinux", "pam_systemd", "pam_lastlog", "pam_lastlog2",
    "pam_umask", "pam_mkhomedir", "pam_namespace", "pam_xauth", "pam_gnome_keyring",
    "pam_kwallet5", "pam_warn", "pam_echo", "pam_issue", "pam_tty_audit", "pam_sepermit",
    "pam_ck_connector",
  ]

  private static let directories: Set = [
    "pam_sss", "pam_ldap", "pam_winbind", "pam_krb5", "pam_systemd_home", "pam_extrausers",
  ]

  // MARK: passwords

  private func unix(
    _ entry: StackEntry, _ login: RehearsedLogin, _ handle: RehearsedHandle
  ) -> Answer {
    if entry.phase == .session { return Answer(code: .success) }
    if entry.phase == .account { return validity }
    let words = entry.arguments
    if traits.password == .blank {
      // It asks for nothing, or takes nothing.
      let isTaken = words.contains("nullok") || words.contains("nullok_secure")
      return isTaken && login.mayBeEmpty
        ? Answer(code: .success) : Answer(code: .authenticationError, barrier: .noPassword)
    }
    return check(entry, login, handle, isTheirs: traits.isLocal)
  }

  private func directory(
    _ entry: StackEntry, _ login: RehearsedLogin, _ handle: RehearsedHandle
  ) -> Answer {
    switch entry.phase {
    case .auth: return check(entry, login, handle, isTheirs: !traits.isLocal)
    case .account: return Answer(code: traits.isLocal ? .userUnknown : .success)
    case .session, .password: return Answer(code: .success)
    }
  }

  /// `isTheirs`: whether the module knows the account.
  private func check(
    _ entry: StackEntry, _ login: RehearsedLogin, _ handle: RehearsedHandle, isTheirs: Bool
  ) -> Answer {
    let typed = typed(at: entry, login, handle)
    let right = login.person.password
    if isTheirs, let right, typed == right { return Answer(code: .success, password: typed) }
    let isWrong = isTheirs && right != nil
    return Answer(
      code: isTheirs ? .authenticationError : .userUnknown,
      barrier: isTheirs && !isWrong ? .noPassword : nil, password: typed)
  }

  private func typed(
    at entry: StackEntry, _ login: RehearsedLogin, _ handle: RehearsedHandle
  ) -> String {
    let takes = ["use_first_pass", "try_first_pass"].contains { entry.arguments.contains($0) }
    if takes, let password = handle.password {
      return String(decoding: password.bytes(in: 0..<password.count), as: UTF8.self)
    }
    return login.person.password ?? "wrong"
  }

  private var validity: Answer {
    switch traits.aging {
    case .valid: Answer(code: traits.isLocal ? .success : .userUnknown)
    case .mustChange: Answer(code: .newPasswordRequired)
    case .inactive: Answer(code: .passwordExpired, barrier: .expired)
    case .expired: Answer(code: .permissionDenied, barrier: .expired)
    }
  }
}

// MARK: - pam_succeed_if

extension ModuleAnswers {
  /// Conditions on the uid, the name and groups; any other one may hold or not.
  private func condition(_ entry: StackEntry) -> [Answer] {
    let options: Set = ["debug", "use_uid", "quiet", "quiet_fail", "quiet_success", "audit"]
    let words = entry.arguments.filter { !options.contains($0) }
    var isTrue: Bool? = true
    for start in stride(from: 0, to: words.count, by: 3) {
      let test = Array(words[start..<min(start + 3, words.count)])
      let holds = test.count == 3 ? holds(test) : nil
      if holds == false { isTrue = false }
      if holds == nil, isTrue == true { isTrue = nil }
    }
    let yes = Answer(code: .success)
    let no = Answer(code: .authenticationError, barrier: .stackShut)
    guard let isTrue, !entry.arguments.contains("use_uid") else { return [yes, no] }
    return [isTrue ? yes : no]
  }

  private func holds(_ test: [String]) -> Bool? {
    switch (test[0], test[1]) {
    case ("uid", _):
      guard let number = UInt32(test[2]) else { return nil }
      return compare(traits.uid, test[1], number)
    case ("user", "ingroup"), ("user", "notingroup"):
      let isIn = test[2].split(separator: ":").map { isMember(String($0)) }
      let found = isIn.contains(.yes) ? true : isIn.contains(.unknown) ? nil : false
      return found.map { $0 == (test[1] == "ingroup") }
    case _: return nil
    }
  }

  private func compare(_ uid: UInt32, _ sign: String, _ number: UInt32) -> Bool? {
    switch sign {
    case "lt", "<": uid < number
    case "le", "<=": uid <= number
    case "eq", "=": uid == number
    case "ge", ">=": uid >= number
    case "gt", ">": uid > number
    case "ne", "!=": uid != number
    case _: nil
    }
  }
}
