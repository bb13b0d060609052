/// Whether a password can let an account in, by passwd(5) and shadow(5) as pam_unix reads them.
enum PasswordState: Equatable {
  /// No password is the right one.
  case none
  /// The field is empty: with `nullok`, pam_unix lets the account in with nothing.
  case blank
  case some
  /// None that pam_unix could check; the directory whose account it is may have one.
  case elsewhere
  /// It cannot be read.
  case unknown
}

extension PasswordState {
  /// The field of a password as the C library has it: crypt(3) makes nothing of other short texts.
  init(hash: some Collection<UInt8>) {
    let first = hash.first
    if first == nil {
      self = .blank
    } else if first == UInt8(ascii: "!") || first == UInt8(ascii: "*") {
      self = .none
    } else {
      self = first == UInt8(ascii: "$") || hash.count >= 13 ? .some : .none
    }
  }
}

/// When a password and its account end, by shadow(5), in days since 1970; nil for an empty field.
struct PasswordAging: Equatable {
  var changed: Int?
  var maximum: Int?
  var inactive: Int?
  var expires: Int?

  /// What pam_unix answers in the account phase. A password that was changed today, or will be on
  /// a later day, keeps nobody out.
  enum State: Equatable {
    case valid
    /// The login goes on with a new password. Where nobody can be asked for one, it ends there.
    case mustChange
    /// The password was not changed in time: refused.
    case inactive
    /// The account is over: refused.
    case expired
    /// The password should stand in shadow, and no line there is of the account: refused.
    case unlisted
  }

  /// What it may be on a day: before Linux-PAM 1.6, the last two of the limits held a day longer,
  /// and counted where nothing says when the password was changed.
  func states(on day: Int) -> [State] {
    let (new, old) = (state(on: day), formerState(on: day))
    return new == old ? [new] : [new, old]
  }

  private func formerState(on day: Int) -> State {
    if let expires, expires != -1, day >= expires { return .expired }
    if changed == 0 { return .mustChange }
    let changed = changed ?? -1
    guard day >= changed, let maximum, maximum != -1 else { return .valid }
    let (passed, limit) = (day - changed, maximum.addingReportingOverflow(inactive ?? -1))
    guard passed > maximum else { return .valid }
    let isOver = passed > limit.partialValue && !limit.overflow
    return isOver && inactive.map { $0 != -1 && passed > $0 } == true ? .inactive : .mustChange
  }

  /// As Linux-PAM 1.6 and later.
  func state(on day: Int) -> State {
    if let expires, expires >= 0, day >= expires { return .expired }
    if changed == 0 { return .mustChange }
    guard let changed, changed > 0, day >= changed, let maximum, maximum >= 0 else {
      return .valid
    }
    if let inactive, inactive >= 0, day - changed - maximum >= inactive { return .inactive }
    return day - changed >= maximum ? .mustChange : .valid
  }
}

/// What a login finds at the path of a shell.
struct LoginShell: Equatable {
  /// Whether it is a file that somebody may execute. sshd refuses the account where it is not.
  var isThere = true
  /// Whether it ends at once, such as nologin. ssh -N and sftp need no shell.
  var endsAtOnce = false
  /// Whether /etc/shells names it, as pam_shells demands.
  var isListed = true

  /// Whether a login comes to a prompt, where no pam_shells is in the way.
  var givesPrompt: Bool { isThere && !endsAtOnce }
}

extension LoginShell {
  /// An empty path is that of sh.
  static func path(_ shell: String) -> String { shell.isEmpty ? "/bin/sh" : shell }

  static func endsAtOnce(_ path: String) -> Bool {
    let name = path.split(separator: "/").last.map(String.init) ?? "sh"
    return ["nologin", "false", "true", "sync", "halt", "shutdown"].contains(name)
  }

  init(at path: String, of machine: Machine, listed: Set<Substring>) {
    let file = machine.file(path).value
    isThere = file.map { $0.isRegular && $0.mode & 0o111 != 0 } ?? false
    endsAtOnce = LoginShell.endsAtOnce(path)
    isListed = listed.contains(Substring(path))
  }

  /// Those that /etc/shells names; none if anybody may write it, as pam_shells has it.
  static func listed(on machine: Machine) -> Set<Substring> {
    guard machine.file("/etc/shells").value.map({ $0.mode & 0o002 == 0 }) == true else { return [] }
    return Set(linesOf(machine.text("/etc/shells").value ?? "").filter { $0.first == "/" })
  }
}

/// A line of shadow(5).
struct ShadowEntry {
  let name: String
  let hash: String
  let aging: PasswordAging
}
