package import SallyportCore
package import SallyportLogin
package import SallyportSupport
package import SallyportSystem

/// The fleet of this machine, as the handler asks it. `Relay` of FleetHost is one; a service that
/// is built without the fleet has none.
package protocol FleetSide: Sendable {
  /// Starts what it does beside the logins; called once the sockets are open.
  func start()
  func stop()
  /// Whether the fleet was away not long ago: what a program that is not root says of it counts
  /// only then.
  var wasAway: Bool { get }
  /// nil: not served.
  func answer(_ errand: Errand, log: LogWriter) throws(StoreTrouble) -> ServiceAnswer?
}

/// A question for the fleet. The handler has settled the account, its policy and its origin.
package struct Errand: Sendable {
  package let verb: ServiceRequest.Verb
  /// As it was typed.
  package let name: [UInt8]
  package let account: Account?
  package let context: LoginContext
  package let origin: ServiceRequest.StatedOrigin
  /// The real uid of the program that asks, where it is not root's.
  package let caller: UInt32?
  /// When the caller gives up, in nanoseconds of CLOCK_MONOTONIC.
  package let deadline: UInt64
  /// Whether a backup code was asked for, as the fleet was away.
  package let isAway: Bool

  package init(
    verb: ServiceRequest.Verb, name: [UInt8], account: Account?, context: LoginContext,
    origin: ServiceRequest.StatedOrigin, caller: UInt32?, deadline: UInt64, isAway: Bool
  ) {
    (self.verb, self.name, self.account, self.context) = (verb, name, account, context)
    (self.origin, self.caller, self.deadline, self.isAway) = (origin, caller, deadline, isAway)
  }
}
