package import OneTimePassword

/// What the administrator set, for one login. Here with the built-in defaults.
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
  package var enrollment = EnrollmentLevel.refuse
  /// A rule, and not the defaults, refuses the unenrolled: nothing that is kept of the user himself
  /// changes that.
  package var isRefusedByRule = false
  /// Enrollments are offered at each n-th login where the level is `remind`; 1 to 100.
  package var remindEvery: UInt8 = 3
  /// Before it `required` is `offer`.
  package var requiredFrom = UnixTime(0)
  package var totp = FactorUse.on
  package var hotp = FactorUse.on
  package var backupCode = FactorUse.on
  package var factorOrder = FactorOrder.usual
  /// Kinds of factors that a complete enrollment has, 1 to 3.
  package var minimumFactors: UInt8 = 1
  /// Seconds for which an origin is not asked again; 0: always asked.
  package var remember: UInt64 = 0
  /// Whether the prompt names the authenticators.
  package var hints = false
  /// Services in which a login without PAM_RHOST comes from this machine.
  package var localServices = Policy.usualLocalServices
  /// Services that are an sshd, whose word on a key is taken; nil: sshd alone.
  package var sshdServices: [[UInt8]]?

  package init() {}

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
