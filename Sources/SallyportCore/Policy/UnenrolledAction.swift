/// What has already been asked in this transaction, before the module's line.
package enum FirstFactor: UInt8, CaseIterable, Sendable {
  /// An earlier module asked for a password. That it was right is for that module to say.
  case password
  /// sshd says that a key, a host or a Kerberos ticket was accepted.
  case key
  /// Neither is known.
  case none
}

/// How a login without an enrollment goes on; the table of docs/decisions.md.
package enum UnenrolledAction: Equatable, Sendable {
  /// Asked like enrolled users, and refused whatever is typed.
  case refuse
  /// Passes without a code.
  case pass
  /// Passes the auth phase; the account phase, which comes only after the whole auth stack has
  /// succeeded, asks to enroll.
  case enroll(EnrollmentLevel)
}

extension Policy {
  /// The level that holds for one user now. In this rank: a rule that refuses, what is kept of the
  /// user himself (`sallyport require`, `exempt`), everything else.
  package func level(of own: UserNote.Level?, at now: UnixTime) -> EnrollmentLevel {
    if enrollment == .refuse, isRefusedByRule { return .refuse }
    switch own {
    case .exempt: return .voluntary
    case .required(let from): return now < (from ?? now) ? .offer : .required
    case nil: return enrollment == .required && now < requiredFrom ? .offer : enrollment
    }
  }
}

extension EnrollmentLevel {
  /// `mayEnroll`: the line has the word `enroll`.
  package func action(hasAccount: Bool, mayEnroll: Bool, after first: FirstFactor)
    -> UnenrolledAction
  {
    let canEnroll = hasAccount && mayEnroll && first != .none
    switch self {
    case .refuse: return .refuse
    case .required: return canEnroll ? .enroll(self) : .refuse
    case .offer, .remind: return canEnroll ? .enroll(self) : .pass
    case .voluntary: return .pass
    }
  }
}
