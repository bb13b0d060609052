package import SallyportCore

/// What the fleet says of people whose codes it verifies.
package enum FleetRoster: Equatable, Sendable {
  /// Of each name that was asked, in the same order.
  case told([Person])
  /// No verifier has said it, and why.
  case silent(String)
  /// This host may not know (`enrolls = no`): to it who is enrolled and who is not look the same.
  case keeps

  /// One of them.
  package struct Person: Equatable, Sendable {
    /// Whether he is enrolled, and where.
    package enum Place: Equatable, Sendable {
      case enrolled(Factors)
      case notEnrolled
      /// By the files of this host, which has taken him; all others refuse him.
      case taken(by: String)
      /// What the fleet has of him cannot be believed: he is refused.
      case unreadable
    }

    package let name: UserName
    package let place: Place
    /// What `sallyport require` and `exempt` have set for him in the fleet.
    package let level: UserNote.Level?

    package init(_ name: UserName, _ place: Place, _ level: UserNote.Level?) {
      (self.name, self.place, self.level) = (name, place, level)
    }
  }
}
