/// What a verifier knows of the keys of its hosts.
package protocol HostSeals: Sendable {
  /// Those of this host that this verifier can make, the present ones first, as it knew the host
  /// last; empty: none.
  func keys(of host: Pin) -> [SealKeys]
  /// Whether only what this host has sealed is answered; nil: nothing is known of it, and it may
  /// join.
  func isOnlySealed(_ host: Pin) -> Bool?
  /// What proves to this host that it was revoked.
  func proofs(for host: Pin) -> [[UInt8]]
  /// A question of it was opened; `former`: not by the present keys.
  func noteSealed(_ host: Pin, former: Bool)
  /// It was not answered, since it has not sealed what it asked.
  func noteUnsealed(_ host: Pin)
}
