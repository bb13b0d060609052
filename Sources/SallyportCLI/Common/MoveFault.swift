import SallyportLine
import SallyportSystem

/// Why somebody was not moved.
enum MoveFault: Error, Equatable {
  case store(StoreTrouble)
  case notEnrolled
  /// There is no account of this name here.
  case noAccount
  /// The policy has his files judge, in some login or in all.
  case keptByPolicy
  /// Nobody else could become root here while the fleet is away.
  case lastBreakGlass
  /// The fleet has the name, enrolled by another enrollment.
  case otherEnrollment
  /// It was in the fleet, and is not any more: where it went, a later push does not know.
  case gone
  /// Somebody else changed what the fleet has, in the same moment.
  case changed
  /// Of what concerns all: nothing was done.
  case notAllowed
  case line(LineFault)
  case databaseAway
  case notServed
  /// Whether it is in the fleet is not known: he is asked and refused until a later push.
  case unknown

  /// Whether the next one would not be moved either.
  var isOfAll: Bool {
    switch self {
    case .notAllowed, .line, .databaseAway, .notServed, .unknown: true
    case .store, .notEnrolled, .noAccount, .keptByPolicy, .lastBreakGlass, .otherEnrollment, .gone,
      .changed:
      false
    }
  }
}
