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
  package let host: FleetHost
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
    verifier: Label, host: FleetHost, enrolls: Bool, now: UnixTime, started: UnixTime,
    awaySince: UnixTime?, peers: [Peer]
  ) {
    (self.verifier, self.host, self.enrolls, self.now) = (verifier, host, enrolls, now)
    (self.started, self.awaySince, self.peers) = (started, awaySince, peers)
  }

  /// nil where a value has no place in a frame.
  package func encoded() -> [UInt8]? {
    var fields = ByteWriter(count: 8192)
    fields.putVersion()
    fields.put(verifier)
    fields.put(counted: host.bytes)
    fields.put(robust: enrolls ? 2 : 1)
    fields.put(now)
    fields.put(started)
    fields.put(awaySince)
    fields.put(count: peers.count, atMost: FleetStatusAnswer.mostPeers)
    for peer in peers {
      fields.put(peer.name)
      if let address = peer.address, !isAddressText(address) { fields.fail() }
      fields.put(counted: peer.address ?? [])
      fields.put(peer.seen)
    }
    return fields.isWhole ? [UInt8](fields.bytes.prefix(fields.position)) : nil
  }

  /// Total: any bytes give an answer that `encoded` gives, or nil.
  package static func decode(_ frame: [UInt8]) -> FleetStatusAnswer? {
    var fields = ByteReader(frame, 0..<frame.count)
    guard fields.takesVersion(), let verifier = fields.label(),
      let host = FleetHost(fields.counted())
    else { return nil }
    let enrolls = fields.robust(atMost: 2) == 2
    let (now, started, away) = (fields.time(), fields.time(), fields.optionalTime())
    var peers: [Peer] = []
    for _ in 0..<fields.count(atMost: mostPeers) {
      guard let name = fields.label() else { return nil }
      let address = fields.counted()
      if !address.isEmpty, !isAddressText(address) { return nil }
      peers.append(
        Peer(name: name, address: address.isEmpty ? nil : address, seen: fields.optionalTime()))
    }
    guard fields.isWhole, fields.isAtEnd else { return nil }
    return FleetStatusAnswer(
      verifier: verifier, host: host, enrolls: enrolls, now: now, started: started,
      awaySince: away, peers: peers)
  }
}

extension ByteWriter {
  fileprivate mutating func put(_ time: UnixTime?) {
    put(isThere: time != nil)
    if let time { put(time) }
  }
}

extension ByteReader {
  fileprivate mutating func optionalTime() -> UnixTime? { isThere() ? time() : nil }
}
