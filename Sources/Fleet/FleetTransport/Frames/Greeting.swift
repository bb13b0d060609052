/// What a verifier says when the handshake is done: what it knows of the peer, and how a host that
/// has keys seals its questions here.
///
/// As bytes: the form of the frames and `HostStanding`, as in `HostStanding.greeting`. To a host
/// whose frames it can open, a member: 0, then the nonce of the connection (16) and the names of
/// one or two sets of keys (8 each), the present ones first. To one that was revoked: 2, then what
/// proves it by one or two keys of the fleet (16 each). The former version reads no more than the
/// first byte.
struct Greeting: Equatable {
  var standing: HostStanding
  /// nil: a verifier of the former version, or one that cannot open what this host seals.
  var nonce: [UInt8]?
  var names: [[UInt8]] = []
  var proofs: [[UInt8]] = []

  init(_ standing: HostStanding) { self.standing = standing }

  var body: [UInt8] {
    switch standing {
    case .member:
      nonce.map { [Frame.form, standing.rawValue] + $0 + names.flatMap { $0 } }
        ?? standing.greeting
    case .unknown: standing.greeting
    case .revoked: standing.greeting + proofs.flatMap { $0 }
    }
  }

  /// nil where it is no greeting.
  init?(kind: UInt8, _ body: [UInt8]) {
    guard let standing = HostStanding(greeting: kind, body) else { return nil }
    self.init(standing)
    let rest = body.dropFirst(2)
    switch standing {
    case .member:
      guard rest.count > SealedPlace.nonceLength else { return }
      nonce = Array(rest.prefix(SealedPlace.nonceLength))
      names = Self.pieces(rest.dropFirst(SealedPlace.nonceLength), SealKeys.nameLength)
    case .unknown: break
    case .revoked: proofs = Self.pieces(rest, SealKeys.proofLength)
    }
  }

  /// The whole ones of this length.
  private static func pieces(_ bytes: ArraySlice<UInt8>, _ length: Int) -> [[UInt8]] {
    (0..<bytes.count / length).map { Array(bytes.dropFirst($0 * length).prefix(length)) }
  }
}
