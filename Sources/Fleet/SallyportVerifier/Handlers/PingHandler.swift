import FleetProtocol
package import FleetTransport
package import OneTimePassword

/// Answers pings: it checks the mark that a host shows, and gives the next one.
package struct PingHandler: FrameHandler {
  let database: Database

  package init(_ database: Database) { self.database = database }

  /// nil: no mark is shown.
  package func read(_ body: Secret) -> [UInt8]? { Ping.mark(in: body) }

  package func answer(_ shown: [UInt8]?, from asker: HostIdentity, arrived: UInt64)
    -> VerifierAnswer
  {
    guard let shown else { return VerifierAnswer(to: .ping, []) }
    let next = try? database.mark(after: shown, on: asker.host)
    return VerifierAnswer(to: .ping, Ping.answer(next))
  }
}
