/// The result of a login attempt; the state that records it is on disk.
package enum Outcome: Equatable, Sendable {
  case accepted(Proof)
  case refused(Reason)

  /// Why it was refused; the user is not told.
  package enum Reason: Equatable, Sendable {
    case response(Refusal, left: BudgetLeft)
    case notEnrolled
    case unknownUser
    /// Root has blocked the account.
    case blocked
  }
}

/// How many wrong codes are still allowed.
package struct BudgetLeft: Equatable, Sendable {
  package let known: UInt64
  package let other: UInt64

  package init(known: UInt64, other: UInt64) { (self.known, self.other) = (known, other) }
}
