package import SallyportCore
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
  /// To a question whose account, policy and origin are settled. nil: not served.
  func answer(_ question: LoginQuestion, log: LogWriter) throws(StoreTrouble) -> ServiceAnswer?
  /// What a helper's session asks, which has asked for his code. `deadline`: in nanoseconds of
  /// CLOCK_MONOTONIC.
  func answer(_ request: HelpRequest, until deadline: UInt64, log: LogWriter) -> HelpAnswer
}
