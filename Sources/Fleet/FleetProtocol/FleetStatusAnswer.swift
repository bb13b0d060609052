package import SallyportCore

/// What a verifier reports of itself and of the others to a host that asks for the fleet's status.
///
/// As bytes: version (1 byte), the values in the order of their declarations; a time is 8 bytes,
/// and what may be missing follows a byte that says whether it is there.
package struct FleetStatusAnswer: Equatable, Sendable {
  /// One of the fleet's verifiers, as the database knows it.
  package struct Peer: Equatable, Sendable {
    /// Its name, which an administrator gave.
    package let name: Label
    /// Its address; nil if it did not report one.
    package let address: [UInt8]?
    /// When it last saved something.
    package let seen: UnixTime?

    package init(name: Label, address: [UInt8]?, seen: UnixTime?) {
      (self.name, self.address, self.seen) = (name, address, seen)
    }
  }

  /// The verifier's name.
  package let verifier: Label
  /// The host's name in the fleet, and its right.
  package let host: FleetHostName
  package let enrolls: Bool
  /// The verifier's clock.
  package let now: UnixTime
  /// When it was started.
  package let started: UnixTime
  /// Since when its database does not answer; nil: it does.
  package let awaySince: UnixTime?
  /// All verifiers of the fleet; empty while the database is away.
  package let peers: [Peer]

  package static let mostPeers = 16

  package init(
    verifier: Label, host: FleetHostName, enrolls: Bool, now: UnixTime, started: UnixTime,
    awaySince: UnixTime?, peers: [Peer]
  ) {
    (self.verifier, self.host, self.enrolls, self.now) = (verifier, host, enrolls, now)
    (self.started, self.awaySince, self.peers) = (started, awaySince, peers)
  }
}

extension FleetStatusAnswer: FrameAnswer {
  package static let longest = 8192

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    let verifier = fields.label(answer?.verifier)
    let host = fields.host(answer?.host)
    let enrolls = fields.flag(answer?.enrolls)
    let (now, started) = (fields.time(answer?.now), fields.time(answer?.started))
    let away = fields.optional(answer?.awaySince) { $0.time($1) }
    let peers = fields.list(answer?.peers, 0...mostPeers) { Peer.pass($1, &$0) }
    guard let verifier, let host else { return nil }
    return FleetStatusAnswer(
      verifier: verifier, host: host, enrolls: enrolls, now: now, started: started,
      awaySince: away, peers: peers)
  }
}

extension FleetStatusAnswer.Peer {
  /// Without an address its length is 0.
  fileprivate static func pass(_ peer: Self?, _ fields: inout Fields) -> Self? {
    let name = fields.label(peer?.name)
    let address = fields.counted(peer.map { $0.address ?? [] })
    let seen = fields.optional(peer?.seen) { $0.time($1) }
    guard let name, address.isEmpty || isAddressText(address) else { return nil }
    return Self(name: name, address: address.isEmpty ? nil : address, seen: seen)
  }
}
