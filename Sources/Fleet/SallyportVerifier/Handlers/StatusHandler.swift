import FleetProtocol
package import FleetTransport
package import OneTimePassword
package import SallyportCore

/// Tells hosts how the fleet is (`sallyport fleet status`).
package struct StatusHandler: FrameHandler {
  private let database: Database
  private let verifier: Label
  private let started: UnixTime

  package init(_ database: Database, verifier: Label, started: UnixTime) {
    (self.database, self.verifier, self.started) = (database, verifier, started)
  }

  /// Whatever the body says.
  package func read(_ body: Secret) -> Bool? { true }

  package func answer(_ question: Bool?, from asker: HostIdentity, arrived: UInt64)
    -> VerifierAnswer
  {
    guard let host = FleetHostName(asker.host) else { return .notServed }
    let now = UnixTime(database.clock() / 1000)
    var (peers, awaySince): ([FleetStatusAnswer.Peer], UnixTime?) = ([], nil)
    do throws(DatabaseFault) {
      peers = try database.ask(Statement.verifiers).0.peers
    } catch {
      // Its time shows the host whose clock it is.
      guard error == .aside else { return .databaseAway }
      awaySince = now
    }
    return VerifierAnswer(
      to: .status,
      FleetStatusAnswer(
        verifier: verifier, host: host, enrolls: !asker.rights.held(at: now).isEmpty, now: now,
        started: started, awaySince: awaySince, peers: peers))
  }
}

extension Rows {
  fileprivate var peers: [FleetStatusAnswer.Peer] {
    (0..<count).compactMap { row in
      guard let name = bytes(row, 0).flatMap({ Label($0) }) else { return nil }
      let seen = number(row, 2).map { UnixTime(Int64(clamping: $0)) }
      return FleetStatusAnswer.Peer(name: name, address: bytes(row, 1), seen: seen)
    }
  }
}
