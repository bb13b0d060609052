/// What was asked before the module's line in this transaction.
package enum FirstFactor: UInt8, CaseIterable, Sendable {
  /// An earlier module asked for a password. That module decides whether it was correct.
  case password
  /// sshd says that a key, a host or a Kerberos ticket was accepted.
  case key
  /// Neither, as far as is known.
  case none
}

/// What happens at a login without an enrollment; the table is in docs/decisions.md.
package enum UnenrolledAction: Equatable, Sendable {
  /// The user is asked like enrolled users, and refused whatever is typed.
  case refuse
  /// The user passes without a code.
  case pass
  /// The user passes the auth phase. The account phase, which runs only if the whole auth stack has
  /// succeeded, asks to enroll.
  case enroll(EnrollmentLevel)
}

extension Policy {
  /// The level that applies to a user now. In this order: a rule that refuses; the user's note
  /// (`sallyport require`, `exempt`); everything else.
  package func level(of own: UserNote.Level?, at now: UnixTime) -> EnrollmentLevel {
    if enrollment == .refuse, isRefusedByRule { return .refuse }
    if own.isExempt(at: now) { return .voluntary }
    if case .required(let from) = own { return now < (from ?? now) ? .offer : .required }
    return enrollment == .required && now < requiredFrom ? .offer : enrollment
  }
}

extension EnrollmentLevel {
  /// `mayEnroll`: the line has the argument `enroll`.
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
