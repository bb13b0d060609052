package import SallyportCore

/// What the auth phase found out, for the account and session phases of the same transaction.
package final class Mark: Sendable {
  /// What became of the line in the auth phase.
  package enum Finding: Sendable {
    /// Let through without an enrollment: the account phase asks to enroll.
    case due(EnrollmentLevel)
    /// A code was accepted. `mayEnroll`: the line has the word `enroll`.
    case accepted(Proof, mayEnroll: Bool)
    /// Not asked, because the origin is remembered.
    case remembered
  }

  /// The account's name. The modules of a stack can change PAM_USER between tries on one handle.
  package let user: [UInt8]
  package let finding: Finding

  package init(user: [UInt8], _ finding: Finding) {
    self.user = user
    self.finding = finding
  }
}
