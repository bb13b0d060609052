package import FleetTransport
package import OneTimePassword
import SallyportCore

/// Gives a host the keys with which it seals what it asks. Where it has some, the question and the
/// answer are sealed with them; where it has none, it asks once, by the TLS of root's service or
/// command.
package struct KeysHandler: FrameHandler {
  private let seals: SealedHosts

  package init(_ seals: SealedHosts) { self.seals = seals }

  /// It says nothing more.
  package func read(_ body: Secret) -> Bool? { body.count == 0 ? true : nil }

  package func answer(_ question: Bool?, from asker: HostIdentity, arrived: UInt64)
    -> VerifierAnswer
  {
    guard question != nil else { return .notServed }
    let keys = (try? seals.newKeys(of: asker.pin))?.encoded()
    return keys.map { VerifierAnswer(to: .keys, $0.bytes(in: 0..<$0.count)) } ?? .databaseAway
  }
}
