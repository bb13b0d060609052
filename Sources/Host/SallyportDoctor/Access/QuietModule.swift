import PAMStack

/// A module that asks for nothing and whose answer hangs on no account.
struct QuietModule {
  /// What it returns; nil in a phase that it has no function for.
  private let auth, account, session: [PAMCode]?

  func codes(in phase: PAMPhase) -> [PAMCode]? {
    switch phase {
    case .auth: auth
    case .account: account
    case .session: session
    case .password: nil
    }
  }

  /// nil for another module.
  init?(_ name: String) {
    // By whether something is known of the user, or there is anything to say or any right to.
    let maybe: [PAMCode] = [.success, .ignore]
    let codes: ([PAMCode]?, [PAMCode]?, [PAMCode]?)
    switch name {
    case "pam_limits", "pam_systemd", "pam_umask", "pam_mkhomedir", "pam_namespace", "pam_xauth",
      "pam_tty_audit", "pam_lastlog2", "pam_ck_connector":
      codes = (nil, nil, [.success])
    case "pam_motd": codes = (nil, nil, [.ignore])
    case "pam_group", "pam_faildelay", "pam_issue": codes = ([.ignore], nil, nil)
    case "pam_cap": codes = (maybe, nil, nil)
    case "pam_mail", "pam_keyinit": codes = ([.ignore], nil, [.success])
    case "pam_gnome_keyring", "pam_kwallet", "pam_kwallet5": codes = (maybe, nil, [.success])
    case "pam_selinux": codes = ([.authenticationError], nil, [.success])
    case "pam_loginuid": codes = (nil, maybe, maybe)
    case "pam_env": codes = ([.ignore], [.serviceError], [.success])
    // Its file names nobody, as it is shipped.
    case "pam_sepermit": codes = ([.ignore], [.ignore], nil)
    case "pam_echo": codes = (maybe, maybe, maybe)
    case "pam_warn": codes = ([.ignore], [.ignore], [.ignore])
    case "pam_permit": codes = ([.success], [.success], [.success])
    case _: return nil
    }
    (auth, account, session) = codes
  }
}
