package import FleetTransport
package import OneTimePassword
package import SallyportCore
import SallyportLogin
import SallyportService
package import SallyportSupport
package import SallyportSystem

/// The reserve of this host with all that it needs: what verifies codes by it, and what keeps it as
/// the fleet has it. The thread of the latter is started where this machine is in a fleet, at once
/// or when a verifier is asked for the first time: on every other machine there is none, and no
/// file.
package struct HostReserve: OfflineReserve {
  private let logins: ReserveLogins
  private let keeper: ReserveSync

  /// `isMember`: whether this machine is in a fleet now.
  package init(
    _ reserve: Reserve = Reserve(), _ verifiers: any FleetVerifiers,
    isMember: @escaping @Sendable () -> Bool,
    log: @escaping LogWriter
  ) throws(ServiceError) {
    logins = ReserveLogins(reserve, log: log)
    keeper = try ReserveSync(reserve, verifiers, isMember: isMember, log: log)
  }

  package func start() { keeper.start() }

  package func stop() { keeper.stop() }

  /// As `ReserveLogins` has it.
  package func answer(_ question: LoginQuestion) throws(StoreTrouble) -> ServiceAnswer? {
    keeper.start()
    return try logins.answer(question)
  }

  /// As `ReserveSync` has it; so for those below.
  package func mayAsk(_ name: UserName, within milliseconds: UInt64) -> Bool {
    keeper.start()
    return keeper.mayAsk(name, within: milliseconds)
  }

  package func noteAway() {
    keeper.start()
    keeper.noteAway()
  }

  package var isConfirmed: Bool { keeper.isConfirmed }

  package func noteBack() { keeper.noteBack() }

  /// As `ReserveLogins` has it.
  package func use(_ typed: Secret, of name: UserName) {
    keeper.start()
    logins.use(typed, of: name)
  }

  /// As `ReserveSync` has it.
  package func fetch(_ name: UserName, after backupCode: Bool) {
    keeper.start()
    keeper.fetch(name, after: backupCode)
  }
}
