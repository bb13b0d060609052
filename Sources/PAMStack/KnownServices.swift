/// What is known of programs by the names of their services.
package enum KnownServices {
  /// They never run the auth phase: there is no login in which a code could be asked for.
  package static let withoutAuth: Set = [
    "atd", "cron", "crond", "runuser", "runuser-l", "systemd-user",
  ]

  /// `demand` keeps out what runs without a person there, and root's own ways in.
  private static let withoutDemand = withoutAuth.union(["su", "su-l"])

  /// Whether `demand` may not stand in this service, or in this file of another.
  static func forbidsDemand(_ name: String) -> Bool {
    name.hasPrefix("common-") || withoutDemand.contains(name)
  }

  /// They have one answer, and give it to every prompt: FTP servers, mail servers by themselves or
  /// by saslauthd (whose services are named after protocols), remote desktops, RADIUS and VPNs.
  private static let withOneField: Set = [
    "vsftpd", "ftp", "proftpd", "pure-ftpd", "xrdp-sesman", "dovecot", "openvpn", "radiusd",
    "saslauthd", "imap", "imaps", "pop", "pop3", "smtp", "smtpd", "sieve", "lmtp", "ldap", "xmpp",
    "nntp", "mupdate",
  ]

  package static func hasOneField(_ name: String) -> Bool { withOneField.contains(name) }
}
