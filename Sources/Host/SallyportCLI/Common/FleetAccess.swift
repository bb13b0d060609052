package import ArgumentParser
package import SallyportCore
package import SallyportDoctor
package import SallyportSystem

/// What the command asks of the fleet of this machine. A command that is built without the fleet
/// has nobody to ask.
package protocol FleetAccess {
  /// The command with the fleet's verb.
  var command: any ParsableCommand.Type { get }
  /// Whether this machine is a host of a fleet, or it cannot be known.
  var isHost: Bool { get }
  /// Throws where this machine is no host, or what it has of its fleet cannot be read.
  func mustBeHost() throws(CommandError)
  /// A person whose codes the fleet verifies.
  func person(_ account: Account, under policy: Policy, in context: Context) -> any Person
  /// The command that moves the files of this account to the fleet.
  func push(of account: Account, from store: Store) -> String
  /// What doctor tells of the fleet; nil where this machine is in none, or what it has of it cannot
  /// be read.
  func doctorFacts(_ store: Store, in context: Context) throws(CommandError) -> FleetFacts?
  /// What the fleet has of these people.
  func roster(of names: [UserName]) -> FleetRoster
  /// All people who have a row in the fleet, in the order of their names, a page at a time.
  /// What is thrown after a page is of the rest.
  func eachPage(_ body: ([FleetMember]) throws(CommandError) -> Void) throws(CommandError)
  /// What logins came to on all hosts of the fleet, and what was changed on them, of these users,
  /// or of everybody where there are none; nil where this host may not know.
  func log(of wanted: FleetLog.Wanted, since start: UnixTime, of names: [UserName]) -> FleetLog?
}
