package import FleetTransport
package import OneTimePassword
package import SallyportCore
import SallyportLogin
import SallyportService
package import SallyportSupport
package import SallyportSystem

// What the relay needs of others, as they have it.

extension Membership: FleetVerifiers {
  /// Of the fleet of this machine as it is now; `.away` where it is in none.
  package func ask(_ kind: FrameKind, within milliseconds: UInt64, _ body: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    let fleet: any FleetVerifiers
    do throws(MembershipFault) { fleet = try verifiers() } catch { throw .away }
    return try fleet.ask(kind, within: milliseconds, body)
  }

  /// Whether this machine is in a fleet; true if that cannot be determined.
  package var isMember: Bool {
    do throws(MembershipFault) {
      _ = try verifiers()
      return true
    } catch {
      if case .notAMember = error { return false }
      return true
    }
  }
}

extension ReserveSync: OfflineReserve {
  package func answer(_ question: LoginQuestion) throws(StoreTrouble) -> ServiceAnswer? {
    try logins.answer(question)
  }

  package func use(_ typed: Secret, of name: UserName) { logins.use(typed, of: name) }
}

extension Relay {
  /// All that a service of a machine of a fleet needs; where it is in none, nothing is made or
  /// started but what says so.
  package init(of membership: Membership, log: @escaping LogWriter) throws(ServiceError) {
    let reserve = try ReserveSync(
      Reserve(), membership, isMember: { membership.isMember }, log: log)
    membership.onReconnection { reserve.noteBack() }
    membership.onConnection { reserve.showMark($0) }
    self.init(
      { () throws(MembershipFault) in try membership.verifiers() }, away: reserve, news: log)
  }
}
