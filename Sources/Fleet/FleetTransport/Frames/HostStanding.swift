/// What a verifier knows of the key of a peer.
package enum HostStanding: UInt8, Sendable {
  /// It is a host's of the fleet.
  case member
  /// The database that this verifier asks has no host with it: it may join. That says nothing of
  /// other verifiers.
  case unknown
  /// The host was revoked, under the fleet's key, or has another key since: nobody ever answers it
  /// again.
  case revoked
}

extension HostStanding {
  /// The body of the greeting.
  var greeting: [UInt8] { self == .member ? [Frame.form] : [Frame.form, rawValue] }

  /// nil where it is no greeting.
  init?(greeting kind: UInt8, _ body: [UInt8]) {
    guard body.first == Frame.form else { return nil }
    switch kind {
    // Of the former version.
    case VerifierAnswer.unknownHost.kind: self = .unknown
    case 0x80 | FrameKind.ping.rawValue:
      guard body.count > 1 else {
        self = .member
        return
      }
      // What a later version may have to say is no reason to ask here.
      self = HostStanding(rawValue: body[1]) ?? .unknown
    case _: return nil
    }
  }
}
