package import OneTimePassword

/// The administrator's settings for one login; here with the built-in defaults.
package struct Policy: Equatable, Sendable {
  /// If this is false, the module does nothing.
  package var isEnabled = true
  /// The greatest value of `adjacentIntervals`.
  package static let mostAdjacentIntervals: UInt8 = 10
  /// Accepted time steps on either side of now, 0 to 10 (RFC 6238 §5.2).
  package var adjacentIntervals: UInt8 = 5
  /// Accepted counters beyond the next one, 0 to 100 (RFC 4226 §7.4).
  package var lookAhead: UInt8 = 10
  /// The probability of a correct guess in a year of trying, 0.01 % to 10 % (RFC 4226 §7.3).
  package var guessBudget = GuessProbability.percent
  /// What the throttle goes by in all services alike; nil for what this policy has.
  package var shared: SharedBudgetBox?
  package var enrollment = EnrollmentLevel.refuse
  /// Whether a rule, not the defaults, refuses unenrolled users: then the user's note changes
  /// nothing.
  package var isRefusedByRule = false
  /// How often to offer an enrollment at the level `remind`: at every n-th login, 1 to 100.
  package var remindEvery: UInt8 = 3
  /// The time before which `required` means `offer`.
  package var requiredFrom = UnixTime(0)
  package var totp = FactorUse.on
  package var hotp = FactorUse.on
  package var backupCode = FactorUse.on
  /// Whether a pass is accepted.
  package var acceptsPasses = true
  package var factorOrder = FactorOrder.usual
  /// The number of kinds of factors in a complete enrollment, 1 to 3.
  package var minimumFactors: UInt8 = 1
  /// Seconds during which an origin is not asked again; 0 to ask always.
  package var remember: UInt64 = 0
  /// Whether people may change their own enrollment without root, in `sallyport-session`.
  package var isSelfService = false
  /// Whether the fleet verifies this login (`verification`), and not the files of this machine.
  package var isFleet = false
  /// Whether nobody is let in by a backup code while the fleet cannot be asked (`away`).
  package var isRefusedAway = false
  /// Whether the prompt names the authenticators.
  package var hints = false
  /// Whether a login tells its owner what happened since the one before.
  package var tells = true
  /// In which language users are told what follows a success, as `PolicyFile` reads it; 0 for
  /// English.
  package var language: UInt64 = 0
  /// The same for what is asked before.
  package var promptLanguage: UInt64 = 0
  /// Seconds for which the backup codes kept on this machine are good after the fleet was asked
  /// about them.
  package var reserveFor: UInt32 = 7 * 86_400
  /// How often sshd's keyboard-interactive asks for a code in one transaction, 1 to 5.
  package var tries: UInt8 = 3
  /// The services in which a login without PAM_RHOST is local.
  package var localServices = Policy.usualLocalServices
  /// The services that are an sshd, so that what they say about a key is believed; nil for sshd
  /// alone.
  package var sshdServices: [[UInt8]]?

  @inline(never) package init() {}

  /// What applies if the administrator's settings cannot be understood: closed to unenrolled users,
  /// open to enrolled ones.
  package static var strict: Policy {
    var policy = Policy()
    policy.adjacentIntervals = 1
    policy.isRefusedByRule = true
    return policy
  }

  package static let usualLocalServices: [[UInt8]] = [
    "sudo", "sudo-i", "su", "su-l", "login", "runuser", "runuser-l", "doas", "polkit-1",
    "gdm-password", "lightdm", "sddm", "kde", "xdm", "greetd", "chsh", "chfn", "passwd",
    "sallyport",
  ].map { (name: StaticString) in name.withUTF8Buffer { unsafe [UInt8]($0) } }

  package func accepts(_ type: AuthenticatorType) -> Bool { use(of: type.factor) != .off }

  package func isLocal(service: [UInt8]) -> Bool { localServices.contains(service) }

  package func isSSHD(service: [UInt8]) -> Bool {
    sshdServices.map { $0.contains(service) } ?? same("sshd", service)
  }
}

/// What happens to users without an enrollment; the stricter the smaller.
package enum EnrollmentLevel: UInt8, Sendable {
  /// They are refused, and cannot be told from enrolled users.
  case refuse
  /// No session before they enroll.
  case required
  /// Asked at every login, and may postpone it.
  case offer
  /// Asked at every `remind_every`-th login.
  case remind
  /// They pass without a code.
  case voluntary

  package var name: StaticString {
    switch self {
    case .refuse: "refuse"
    case .required: "required"
    case .offer: "offer"
    case .remind: "remind"
    case .voluntary: "voluntary"
    }
  }
}
