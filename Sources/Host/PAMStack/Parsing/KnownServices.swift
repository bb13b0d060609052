/// What is known about programs from their service names.
package enum KnownServices {
  /// Services that never run the auth phase, so that no login asks for a code.
  package static let withoutAuth: Set = [
    "atd", "cron", "crond", "runuser", "runuser-l", "systemd-user",
  ]

  /// Services in which `demand` would lock out programs that run unattended, or root.
  private static let withoutDemand = withoutAuth.union(["su", "su-l"])

  /// Whether `demand` is not allowed in the service, or in the included file, of this name.
  static func forbidsDemand(_ name: String) -> Bool {
    name.hasPrefix("common-") || withoutDemand.contains(name)
  }

  /// Programs that have one answer and give it to every prompt: FTP servers, remote desktops,
  /// RADIUS, VPNs, screen lockers, and mail servers, by themselves or through saslauthd (whose
  /// services are named after protocols).
  private static let withOneField: Set = [
    "vsftpd", "ftp", "proftpd", "pure-ftpd", "xrdp-sesman", "dovecot", "openvpn", "radiusd",
    "saslauthd", "imap", "imaps", "pop", "pop3", "smtp", "smtpd", "sieve", "lmtp", "ldap", "xmpp",
    "nntp", "mupdate", "i3lock", "swaylock", "slock",
  ]

  package static func hasOneField(_ name: String) -> Bool { withOneField.contains(name) }
}
