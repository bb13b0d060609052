/// What a module's name says about it: what it may return, and whether it may have asked for a
/// password.
enum ModuleKind: Equatable {
  case ours
  /// Ours as well: asks those whose key sshd has accepted, and lets the others go on.
  case afterKey
  /// Checks a password that it asks for, or that an earlier module has stored.
  case password
  /// Checks another factor: a fingerprint, a smart card, a security key, another one-time code.
  case factor
  /// Always succeeds.
  case permit
  /// Always fails.
  case deny
  /// Succeeds if the caller is root.
  case rootOnly
  /// Asks for nothing.
  case quiet
  /// May do anything, even ask for a password without checking it.
  case unknown

  init(_ entry: StackEntry) {
    switch entry.moduleName {
    case "pam_sallyport" where entry.stopsWrongPassword: self = .deny
    case "pam_sallyport": self = entry.goesOnWithoutKey ? .afterKey : .ours
    case "pam_permit": self = .permit
    case "pam_deny": self = .deny
    case "pam_rootok": self = .rootOnly
    case let name where ModuleKind.passwords.contains(name): self = .password
    case let name where ModuleKind.factors.contains(name): self = .factor
    case let name where ModuleKind.quietOnes.contains(name): self = .quiet
    case _: self = .unknown
    }
  }

  /// Whether PAM_AUTHTOK may be set afterwards, by a correct password or a wrong one.
  var mayAskForPassword: Bool {
    switch self {
    case .password, .unknown: true
    case .ours, .afterKey, .factor, .permit, .deny, .rootOnly, .quiet: false
    }
  }

  private static let passwords: Set = [
    "pam_unix", "pam_unix2", "pam_unix_auth", "pam_tcb", "pam_extrausers", "pam_pwdb", "pam_userdb",
    "pam_sss", "pam_ldap", "pam_ldapd", "pam_krb5", "pam_krb5_migrate", "pam_winbind",
    "pam_systemd_home", "pam_radius_auth", "pam_radius", "pam_tacplus", "pam_mysql", "pam_pgsql",
    "pam_lsass", "pam_centrifydc", "pam_vas3", "pam_aad", "pam_himmelblau", "pam_kanidm",
  ]

  private static let factors: Set = [
    "pam_fprintd", "pam_fprint", "pam_howdy", "pam_u2f", "pam_pkcs11", "pam_p11", "pam_poldi",
    "pam_google_authenticator", "pam_oath", "pam_yubico", "pam_duo", "pam_otpw", "pam_usb",
    "pam_ssh_agent_auth", "pam_rssh", "pam_securid",
  ]

  private static let quietOnes: Set = [
    "pam_access", "pam_cap", "pam_debug", "pam_echo", "pam_env", "pam_faildelay", "pam_faillock",
    "pam_gnome_keyring", "pam_group", "pam_issue", "pam_keyinit", "pam_kwallet5", "pam_lastlog",
    "pam_lastlog2", "pam_limits", "pam_listfile", "pam_localuser", "pam_loginuid", "pam_mail",
    "pam_mkhomedir", "pam_motd", "pam_namespace", "pam_nologin", "pam_rhosts", "pam_securetty",
    "pam_selinux", "pam_sepermit", "pam_shells", "pam_succeed_if", "pam_systemd", "pam_tally",
    "pam_tally2", "pam_time", "pam_tty_audit", "pam_umask", "pam_usertype", "pam_warn", "pam_wheel",
    "pam_xauth",
  ]
}

// MARK: - PAM_IGNORE

extension ModuleKind {
  /// Whether an argument makes it return PAM_IGNORE: for users that it does not know or who have no
  /// second factor (`nullok`, `nouserok`), below a user ID, or while its server is down.
  static func isToldToIgnore(_ entry: StackEntry) -> Bool {
    let words = ModuleKind(entry) == .password ? passwordWords : factorWords
    return entry.arguments.contains { argument in words.contains { argument.hasPrefix($0) } }
  }

  /// Whether it may return PAM_IGNORE, because of its line or for reasons that the line does not
  /// show: a file of its own, or an unknown module.
  static func mayIgnore(_ entry: StackEntry) -> Bool {
    switch ModuleKind(entry) {
    case .password: isToldToIgnore(entry) || configured.contains(entry.moduleName)
    case .factor: isToldToIgnore(entry) || !toldByTheirLine.contains(entry.moduleName)
    case .ours, .afterKey, .permit, .deny, .rootOnly, .quiet, .unknown: true
    }
  }

  private static let passwordWords = ["ignore_", "minimum_uid", "unknown_ok", "localifdown"]
  private static let factorWords = ["ignore_", "nullok", "nouserok", "no_usersfile_okay"]
  /// Their own files can name users, groups or user IDs that they ignore, as krb5.conf's
  /// `ignore_root` and `minimum_uid` do, whatever their line says.
  private static let configured: Set = [
    "pam_krb5", "pam_krb5_migrate", "pam_radius_auth", "pam_radius", "pam_tacplus",
    "pam_mysql", "pam_pgsql", "pam_lsass", "pam_centrifydc", "pam_vas3", "pam_aad",
    "pam_himmelblau", "pam_kanidm",
  ]
  private static let toldByTheirLine: Set = [
    "pam_google_authenticator", "pam_oath", "pam_u2f", "pam_yubico", "pam_fprintd",
  ]
}
