import FleetTransport
import SallyportSystem

/// Why somebody was not moved to the fleet, or back.
enum MoveFault: Error, Equatable {
  case store(StoreTrouble)
  case notEnrolled
  /// The name of what is stored is another spelling of this account's.
  case otherSpelling(of: String)
  /// There is no account of this name here.
  case noAccount
  /// The policy has his files judge, in some login or in all.
  case keptByPolicy
  /// Taken back he would be refused: the policy has the fleet judge him, in some login or in all.
  case isTheFleets
  /// Nobody else could become root here while the fleet is away.
  case lastBreakGlass
  /// The fleet has the name, enrolled by another enrollment.
  case otherEnrollment
  /// It was in the fleet, and is not any more: where it went, a later push does not know.
  case gone
  /// His files are under way from the fleet, not to it.
  case beingTaken
  /// His files are under way to the fleet, not from it.
  case isPushed
  /// To be taken, but enrolled here.
  case isHere
  /// To be taken, but not enrolled in the fleet.
  case notInFleet
  /// To be taken, but let in on these hosts of late.
  case usedElsewhere([String])
  /// After a loss nobody is taken for a while.
  case held
  /// Of an earlier take: the fleet has ended his enrollment, or enrolled him anew, since.
  case takenOtherwise
  /// Somebody else changed what the fleet has, in the same moment.
  case changed
  /// Of what concerns all: nothing was done.
  case notAllowed
  case line(TransportFault)
  case databaseAway
  case notServed
  /// Whether it was done is not known: he is asked and refused until it is.
  case unknown

  /// Whether the next one would not be moved either.
  var isOfAll: Bool {
    switch self {
    case .notAllowed, .line, .databaseAway, .notServed, .unknown, .held: true
    case .store, .notEnrolled, .otherSpelling, .noAccount, .keptByPolicy, .isTheFleets,
      .lastBreakGlass, .otherEnrollment, .gone, .beingTaken, .isPushed, .isHere, .notInFleet,
      .usedElsewhere,
      .takenOtherwise, .changed:
      false
    }
  }
}
