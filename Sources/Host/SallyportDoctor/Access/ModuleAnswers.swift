import OneTimePassword
import PAMStack
import SallyportCore

/// What is known of an account that other modules ask about.
struct AccountTraits: Hashable {
  var uid: UInt32
  var password = PasswordState.some
  /// What pam_unix may find in the account phase, one at least.
  var aging = [PasswordAging.State.valid]
  /// Whether it is in the files of this machine.
  var isLocal = true
  /// Of another account, the sources in nsswitch.conf(5) that may have it; nil: any may.
  var sources: [String]?
  var shell = "/bin/sh"
  /// Whether /etc/shells lists its shell.
  var hasListedShell = true
}

/// What the other modules of a stack return for one account, by the sources of Linux-PAM 1.5 to
/// 1.7.
struct ModuleAnswers {
  struct Answer {
    var code: PAMCode
    /// Why it refuses, where that is known.
    var barrier: Barrier?
    /// What it has asked for, whether that was right or not.
    var password: String?
    /// Whether pam_unix has found a password right, or none needed.
    var isByUnix = false
  }

  let traits: AccountTraits
  /// Whether root alone may log in now, by this file of nologin(5); nil: by one of the usual.
  let isNoLogin: (_ file: String?) -> Bool
  /// By login.defs(5).
  var systemUsers = SystemUsers()
  /// Whether the module of an entry cannot be loaded.
  let isMissing: (StackEntry) -> Bool
  let isMember: (_ group: String) -> Tristate

  /// Every value that the module may return, of those that make a difference.
  func of(_ entry: StackEntry, to login: RehearsedLogin, _ handle: RehearsedHandle) -> [Answer] {
    if isMissing(entry) { return [Answer(code: .moduleUnknown, barrier: .moduleMissing)] }
    let name = entry.moduleName
    if let quiet = QuietModule(name) {
      // What a module has no function for fails.
      return quiet.codes(in: entry.phase)?.map { Answer(code: $0) }
        ?? [ModuleAnswers.shut(.moduleUnknown)]
    }
    switch name {
    case "pam_deny":
      return [ModuleAnswers.shut(entry.phase == .session ? .sessionError : .authenticationError)]
    case "pam_rootok": return [Answer(code: login.caller == 0 ? .success : .authenticationError)]
    case "pam_unix": return unix(entry, login, handle)
    case "pam_nologin": return [noLogin(entry)]
    case "pam_shells":
      return traits.hasListedShell
        ? [Answer(code: .success)] : [Answer(code: .authenticationError, barrier: .noShell)]
    case "pam_localuser" where entry.arguments.allSatisfy { $0 == "debug" }:
      return [Answer(code: traits.isLocal ? .success : .permissionDenied)]
    case "pam_succeed_if", "pam_usertype": return condition(entry, login)
    case "pam_faillock": return [Answer(code: failures(entry))]
    case _ where ModuleAnswers.directories.keys.contains(name):
      return directory(entry, login, handle)
    case _: return [Answer(code: .success), ModuleAnswers.shut(.permissionDenied)]
    }
  }

  static func shut(_ code: PAMCode) -> Answer { Answer(code: code, barrier: .stackShut) }

  private func noLogin(_ entry: StackEntry) -> Answer {
    let file = entry.arguments.last { $0.hasPrefix("file=") }.map { String($0.dropFirst(5)) }
    if isNoLogin(file), traits.uid != 0 {
      return Answer(code: .authenticationError, barrier: .noLogin)
    }
    return Answer(code: entry.arguments.contains("successok") ? .success : .ignore)
  }

  /// Of an account that is not locked after wrong passwords.
  private func failures(_ entry: StackEntry) -> PAMCode {
    entry.phase == .auth && entry.arguments.contains("authfail") ? .ignore : .success
  }

  // MARK: pam_unix

  private func unix(
    _ entry: StackEntry, _ login: RehearsedLogin, _ handle: RehearsedHandle
  ) -> [Answer] {
    switch entry.phase {
    case .session, .password: return [Answer(code: .success)]
    case .account: return traits.aging.map { validity($0, entry, handle) }
    case .auth: break
    }
    let words = entry.arguments
    let isTaken =
      ["nullok", "nullok_secure"].contains(where: words.contains)
      || words.contains("nullresetok") && traits.aging == [.mustChange]
    if traits.password == .blank, isTaken, login.mayBeEmpty {
      // It asks for nothing.
      return [Answer(code: .success, isByUnix: true)]
    }
    let isUnlisted = traits.aging == [.unlisted]
    var answer = check(
      entry, login, handle, isTheirs: traits.password == .some,
      wrong: isUnlisted ? .informationUnavailable : .authenticationError)
    if [.none, .blank].contains(traits.password) { answer.barrier = .noPassword }
    return [answer]
  }

  private func validity(
    _ state: PasswordAging.State, _ entry: StackEntry, _ handle: RehearsedHandle
  ) -> Answer {
    let counts = !entry.arguments.contains("no_pass_expiry") || handle.isByUnix
    switch state {
    case .valid: return Answer(code: .success)
    case .mustChange: return Answer(code: counts ? .newPasswordRequired : .success)
    case .inactive:
      return counts
        ? Answer(code: .passwordExpired, barrier: .expired) : Answer(code: .success)
    case .expired: return Answer(code: .accountExpired, barrier: .expired)
    case .unlisted:
      return entry.arguments.contains("broken_shadow")
        ? Answer(code: .success) : ModuleAnswers.shut(.informationUnavailable)
    }
  }

  /// `isTheirs`: whether the module has the password of the account.
  private func check(
    _ entry: StackEntry, _ login: RehearsedLogin, _ handle: RehearsedHandle, isTheirs: Bool,
    wrong: PAMCode
  ) -> Answer {
    guard let typed = typed(at: entry, login, handle) else {
      return Answer(code: .authenticationError)
    }
    if isTheirs, typed == login.person.password {
      return Answer(code: .success, password: typed, isByUnix: entry.moduleName == "pam_unix")
    }
    return Answer(code: wrong, password: typed)
  }

  /// What an earlier module has left is taken, but by modules that ask again; nil where it has to
  /// be there and is not.
  private func typed(
    at entry: StackEntry, _ login: RehearsedLogin, _ handle: RehearsedHandle
  ) -> String? {
    let words = entry.arguments
    let takes = ["use_first_pass", "try_first_pass", "force_first_pass"].contains {
      words.contains($0)
    }
    let asksAgain =
      ["pam_krb5", "pam_winbind"].contains(entry.moduleName) && !takes
      || words.contains("prompt_always")
    if !asksAgain, let password = handle.password { return text(password) }
    let mustBeThere = entry.moduleName == "pam_krb5" ? "force_first_pass" : "use_first_pass"
    if words.contains(mustBeThere) { return nil }
    return login.field ?? login.person.answer
  }

  private func text(_ secret: Secret) -> String {
    String(decoding: secret.bytes(in: 0..<secret.count), as: UTF8.self)
  }

  // MARK: directories

  /// The source in nsswitch.conf(5) of whose accounts a module has the passwords; nil: of any.
  private static let directories: [String: String?] = [
    "pam_sss": "sss", "pam_ldap": "ldap", "pam_winbind": "winbind", "pam_krb5": nil,
    "pam_systemd_home": "systemd", "pam_extrausers": "extrausers",
  ]

  /// Whether the module knows the account. It may know one of the machine's files too, with another
  /// password.
  private func knows(_ entry: StackEntry) -> Tristate {
    let name = entry.moduleName
    let least = entry.arguments.last { $0.hasPrefix("minimum_uid=") }
    if let least, let number = UInt32(least.dropFirst(12)), traits.uid < number { return .no }
    if traits.isLocal {
      let isNever = traits.uid == 0 || ["pam_systemd_home", "pam_extrausers"].contains(name)
      return isNever && name != "pam_krb5" ? .no : .unknown
    }
    guard let source = ModuleAnswers.directories[name] ?? nil, let sources = traits.sources else {
      return .yes
    }
    return sources.contains(source) ? .yes : .unknown
  }

  private func directory(
    _ entry: StackEntry, _ login: RehearsedLogin, _ handle: RehearsedHandle
  ) -> [Answer] {
    let isIgnored = entry.arguments.contains { ["ignore_unknown_user", "unknown_ok"].contains($0) }
    let unknown: PAMCode = isIgnored ? .ignore : .userUnknown
    let known = knows(entry)
    switch entry.phase {
    case .session, .password: return [Answer(code: .success)]
    // Without a ticket of the auth phase it has nothing to say.
    case .account where entry.moduleName == "pam_krb5":
      return [Answer(code: .ignore), Answer(code: .success)]
    case .account:
      return [Answer(code: unknown), Answer(code: .success)].filter {
        $0.code == .success ? known != .no : known != .yes
      }
    case .auth:
      let yes = check(entry, login, handle, isTheirs: true, wrong: .authenticationError)
      let no = check(entry, login, handle, isTheirs: false, wrong: unknown)
      // Somebody without a password here may have one there.
      var other = yes
      if traits.isLocal, login.person.password == nil,
        other.password == login.person.answer
      {
        other = Answer(code: .success, password: other.password)
      }
      switch known {
      case .yes: return [yes]
      case .no: return [no]
      case .unknown: return [no, other]
      }
    }
  }
}
