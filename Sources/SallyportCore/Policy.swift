package import OneTimePassword

/// What the administrator set, for one login. Here with the built-in defaults.
package struct Policy: Equatable, Sendable {
  /// Where this is false the module has nothing to say.
  package var isEnabled = true
  /// Accepted time steps on either side of now, 0 to 10 (RFC 6238 §5.2).
  package var adjacentIntervals: UInt8 = 5
  /// Accepted counters beyond the next one, 0 to 100 (RFC 4226 §7.4).
  package var lookAhead: UInt8 = 10
  /// The chance of guessing right that a year of trying may have, 0.01 % to 10 % (RFC 4226 §7.3).
  package var guessBudget = Luck.percent
  package var enrollment = EnrollmentLevel.refuse
  /// Factors that are not accepted are kept, and worked on like the others.
  package var acceptsTOTP = true
  package var acceptsHOTP = true
  package var acceptsBackupCodes = true
  /// Services in which a login without PAM_RHOST comes from this machine.
  package var localServices = Policy.usualLocalServices

  package init() {}

  /// What holds where the administrator's words cannot be understood: shut for the unenrolled, not
  /// shut for the enrolled.
  package static var strict: Policy {
    var policy = Policy()
    policy.adjacentIntervals = 1
    return policy
  }

  package static let usualLocalServices: [[UInt8]] = [
    "sudo", "sudo-i", "su", "su-l", "login", "runuser", "runuser-l", "doas", "polkit-1",
    "gdm-password", "lightdm", "sddm", "kde", "xdm", "greetd", "chsh", "chfn", "passwd",
  ].map { (name: StaticString) in name.withUTF8Buffer { unsafe [UInt8]($0) } }

  package func accepts(_ type: AuthenticatorType) -> Bool {
    switch type {
    case .totp: acceptsTOTP
    case .hotp: acceptsHOTP
    }
  }

  package func isLocal(service: [UInt8]) -> Bool { localServices.contains(service) }
}

/// What happens to users without an enrollment.
package enum EnrollmentLevel: Equatable, Sendable {
  /// They are refused, and nothing tells them from the enrolled.
  case refuse
  /// They pass without a code.
  case voluntary
}
