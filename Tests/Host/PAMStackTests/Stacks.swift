@testable import PAMStack

/// Files of pam.d as distributions ship them, shortened to what counts, and services made of them.
enum Stacks {
  static let debian: [String: String] = [
    "common-auth": """
    # here are the per-package modules (the "Primary" block)
    auth\t[success=1 default=ignore]\tpam_unix.so nullok
    # here's the fallback if no module succeeds
    auth\trequisite\t\t\tpam_deny.so
    auth\trequired\t\t\tpam_permit.so
    # and here are more per-package modules (the "Additional" block)
    auth\toptional\t\t\tpam_cap.so
    # end of pam-auth-update config
    """,
    "common-account": """
    account\t[success=1 new_authtok_reqd=done default=ignore]\tpam_unix.so
    account\trequisite\t\t\tpam_deny.so
    account\trequired\t\t\tpam_permit.so
    """,
    "common-session": """
    session\t[default=1]\t\t\tpam_permit.so
    session\trequisite\t\t\tpam_deny.so
    session\trequired\t\t\tpam_permit.so
    session\trequired\tpam_unix.so
    session\toptional\tpam_systemd.so
    """,
    "common-session-noninteractive": """
    session\t[default=1]\t\t\tpam_permit.so
    session\trequisite\t\t\tpam_deny.so
    session\trequired\t\t\tpam_permit.so
    session\trequired\tpam_unix.so
    """,
    "common-password": """
    password\t[success=1 default=ignore]\tpam_unix.so obscure yescrypt
    password\trequisite\t\t\tpam_deny.so
    password\trequired\t\t\tpam_permit.so
    """,
    "other": """
    @include common-auth
    @include common-account
    @include common-password
    @include common-session
    """,
    "sshd": """
    # Standard Un*x authentication.
    @include common-auth

    # Disallow non-root logins when /etc/nologin exists.
    account    required     pam_nologin.so
    # Standard Un*x authorization.
    @include common-account

    # SELinux needs to be the first session rule.
    session [success=ok ignore=ignore module_unknown=ignore default=bad]        pam_selinux.so close
    session    required     pam_loginuid.so
    session    optional     pam_keyinit.so force revoke
    @include common-session
    session    optional     pam_motd.so  motd=/run/motd.dynamic
    session    required     pam_limits.so
    session [success=ok ignore=ignore module_unknown=ignore default=bad]        pam_selinux.so open

    # Standard Un*x password updating.
    @include common-password
    """,
    "sudo": """
    #%PAM-1.0

    # Set up user limits from /etc/security/limits.conf.
    session    required   pam_limits.so

    @include common-auth
    @include common-account
    @include common-session-noninteractive
    """,
    "su": """
    # This allows root to su without passwords (normal operation)
    auth       sufficient pam_rootok.so

    session       required   pam_env.so readenv=1
    session    optional   pam_mail.so nopen
    session    required   pam_limits.so

    @include common-auth
    @include common-account
    @include common-session


    """,
    "su-l": """
    #%PAM-1.0
    auth\t\tinclude\t\tsu
    account\t\tinclude\t\tsu
    password\tinclude\t\tsu
    session\t\toptional\tpam_keyinit.so force revoke
    session\t\tinclude\t\tsu
    """,
    // Debian's also has account lines; without them `other` stands in.
    "cups": """
    @include common-auth
    @include common-session
    """,
    "runuser": """
    #%PAM-1.0
    auth\t\tsufficient\tpam_rootok.so
    session\t\toptional\tpam_keyinit.so revoke
    session\t\trequired\tpam_limits.so
    session\t\trequired\tpam_unix.so
    """,
    "login": """
    auth       optional   pam_faildelay.so  delay=3000000
    auth       requisite  pam_nologin.so
    session [success=ok ignore=ignore module_unknown=ignore default=bad] pam_selinux.so close
    session    required     pam_loginuid.so
    session [success=ok ignore=ignore module_unknown=ignore default=bad] pam_selinux.so open
    session       required   pam_env.so readenv=1

    # Standard Un*x authentication.
    @include common-auth

    auth       optional   pam_group.so
    session    required   pam_limits.so
    session    optional   pam_keyinit.so force revoke

    # Standard Un*x account and session
    @include common-account
    @include common-session
    @include common-password
    """,
  ]

  static let fedora: [String: String] = [
    "system-auth": """
    auth        required                                     pam_env.so
    auth        required                                     pam_faildelay.so delay=2000000
    auth        sufficient                                   pam_fprintd.so
    auth        [default=1 ignore=ignore success=ok]         pam_usertype.so isregular
    auth        [default=1 ignore=ignore success=ok]         pam_localuser.so
    auth        sufficient                                   pam_unix.so nullok
    auth        [default=1 ignore=ignore success=ok]         pam_usertype.so isregular
    auth        sufficient                                   pam_sss.so forward_pass
    auth        required                                     pam_deny.so

    account     required                                     pam_unix.so
    account     sufficient                                   pam_localuser.so
    account     sufficient                                   pam_usertype.so issystem
    account     [default=bad success=ok user_unknown=ignore] pam_sss.so
    account     required                                     pam_permit.so

    session     optional                                     pam_keyinit.so revoke
    session     required                                     pam_limits.so
    -session    optional                                     pam_systemd.so
    session     [success=1 default=ignore]                   pam_succeed_if.so service in crond
    session     required                                     pam_unix.so
    session     optional                                     pam_sss.so
    """,
    "password-auth": """
    auth        required                                     pam_env.so
    auth        required                                     pam_faildelay.so delay=2000000
    auth        [default=1 ignore=ignore success=ok]         pam_usertype.so isregular
    auth        [default=1 ignore=ignore success=ok]         pam_localuser.so
    auth        sufficient                                   pam_unix.so nullok
    auth        [default=1 ignore=ignore success=ok]         pam_usertype.so isregular
    auth        sufficient                                   pam_sss.so forward_pass
    auth        required                                     pam_deny.so

    account     required                                     pam_unix.so
    account     sufficient                                   pam_localuser.so
    account     required                                     pam_permit.so

    session     required                                     pam_limits.so
    session     required                                     pam_unix.so
    """,
    "postlogin": """
    session     optional                                     pam_umask.so silent
    session     [success=1 default=ignore]                   pam_succeed_if.so service !~ su*
    session     [default=1]                                  pam_lastlog.so nowtmp silent
    session     optional                                     pam_lastlog.so silent noupdate
    """,
    "sshd": """
    #%PAM-1.0
    auth       substack     password-auth
    auth       include      postlogin
    account    required     pam_sepermit.so
    account    required     pam_nologin.so
    account    include      password-auth
    password   include      password-auth
    # pam_selinux.so close should be the first session rule
    session    required     pam_selinux.so close
    session    required     pam_loginuid.so
    session    required     pam_selinux.so open env_params
    session    optional     pam_keyinit.so force revoke
    session    include      password-auth
    session    include      postlogin
    """,
    "sudo": """
    #%PAM-1.0
    auth       include      system-auth
    account    include      system-auth
    password   include      system-auth
    session    optional     pam_keyinit.so revoke
    session    required     pam_limits.so
    session    include      system-auth
    """,
  ]

  static let arch: [String: String] = [
    "system-auth": """
    auth       required                    pam_faillock.so      preauth
    -auth      [success=2 default=ignore]  pam_systemd_home.so
    auth       [success=1 default=bad]     pam_unix.so          try_first_pass nullok
    auth       [default=die]               pam_faillock.so      authfail
    auth       optional                    pam_permit.so
    auth       required                    pam_env.so
    auth       required                    pam_faillock.so      authsucc

    -account   [success=1 default=ignore]  pam_systemd_home.so
    account    required                    pam_unix.so
    account    optional                    pam_permit.so
    account    required                    pam_time.so

    session    required                    pam_limits.so
    session    required                    pam_unix.so
    session    optional                    pam_permit.so
    """,
    "sudo": """
    #%PAM-1.0
    auth		include		system-auth
    account		include		system-auth
    session		include		system-auth
    """,
    "other": """
    #%PAM-1.0
    auth      required   pam_deny.so
    auth      required   pam_warn.so
    account   required   pam_deny.so
    session   required   pam_deny.so
    """,
  ]

  /// A service's file on Debian: these auth lines, and what others share.
  static func ends(_ auth: String) -> String {
    "\(auth)\n@include common-account\n@include common-session"
  }

  /// The stacks of `service` in files of /etc/pam.d.
  static func parse(
    _ service: String, in files: [String: String], debian: Bool = true,
    _ rules: LibpamRules = .before16
  ) -> ServiceStack {
    let read: (String) -> [UInt8]? = { path in
      guard path.hasPrefix("/etc/pam.d/") else { return nil }
      return files[String(path.dropFirst(11))].map { Array(($0 + "\n").utf8) }
    }
    return StackParser.parse(
      service: service, debian ? .debian(rules, read) : .upstream(rules, read))
  }

  /// `files` with lines put in before or after a line that starts so.
  static func with(
    _ lines: String, after start: String, in name: String, of files: [String: String]
  ) -> [String: String] {
    var files = files
    let text = (files[name] ?? "").split(separator: "\n", omittingEmptySubsequences: false)
    files[name] = text.flatMap { $0.hasPrefix(start) ? [String($0), lines] : [String($0)] }
      .joined(separator: "\n")
    return files
  }
}
