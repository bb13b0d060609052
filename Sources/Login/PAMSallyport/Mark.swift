package import SallyportCore

/// What the auth phase found out, for the account and session phases of the same transaction.
package final class Mark: Sendable {
  /// What became of the line in the auth phase.
  package enum AuthResult: Sendable {
    /// Let through without an enrollment: the account phase asks to enroll.
    case due(EnrollmentLevel)
    /// A code was accepted. `mayEnroll`: the line has the word `enroll`.
    case accepted(Proof, mayEnroll: Bool)
    /// A pass was claimed with this random: the account phase asks to enroll, and must.
    case claimed(UInt64)
    /// Not asked, because the origin is remembered.
    case remembered
    /// Refused, as the code had been used, until then: for the next prompt on this handle, and for
    /// no phase.
    case replayed(until: UnixTime)
    /// Left by a line with `wrong-password` for the next line in the auth phase, and for no phase.
    case wrongPassword
  }

  /// The account's name. The modules of a stack can change PAM_USER between tries on one handle.
  package let user: [UInt8]
  package let result: AuthResult

  package init(user: [UInt8], _ result: AuthResult) {
    self.user = user
    self.result = result
  }

  /// nil where the other phases are to see no mark.
  var forPhases: Mark? {
    switch result {
    case .replayed, .wrongPassword: nil
    case .due, .accepted, .claimed, .remembered: self
    }
  }

  /// Whether the login may not go on before the account phase has enrolled somebody.
  var isBinding: Bool {
    switch result {
    case .due(let level): level == .required || level == .refuse
    case .claimed: true
    case .accepted, .remembered, .replayed, .wrongPassword: false
    }
  }
}
