import FleetTransport
import OneTimePassword
import SallyportCore

// The keys with which a host and the verifiers seal their frames. Nothing of them is stored: the
// fleet's key and the host's row give them, and another row of it, as each invitation makes one,
// others (docs/fleet-format.md).
extension SealingKey {
  /// `name` and `joined` as the sealed row of the host has them, which no later one has in common
  /// with it.
  func frameKeys(of host: Pin, name: [UInt8], joined: Int64) throws(CryptoError) -> SealKeys {
    let row = [name, host.bytes, number(UInt64(bitPattern: joined))]
    func part(_ number: UInt8) throws(CryptoError) -> Secret {
      let parts = [OneTimePassword.bytes(of: "seal of frames"), [number]] + row
      return try derive(parts.flatMap { FleetKey.counted($0) })
    }
    let keys = SealKeys(
      name: try part(0).bytes(in: 0..<SealKeys.nameLength),
      question: try Self.joined(try part(1), try part(2)),
      answer: try Self.joined(try part(3), try part(4)), proof: try proof(for: host))
    guard let keys else { throw .failed }
    return keys
  }

  /// What proves to this host that it was revoked: nobody without the fleet's key can make it, and
  /// no verifier shows it before.
  func proof(for host: Pin) throws(CryptoError) -> [UInt8] {
    let parts = [OneTimePassword.bytes(of: "proof of revocation"), host.bytes]
    return try derive(parts.flatMap { FleetKey.counted($0) })
      .bytes(in: 0..<SealKeys.proofLength)
  }

  private static func joined(_ first: Secret, _ second: Secret) throws(CryptoError) -> Secret {
    var fields = Fields(writing: first.count + second.count)
    _ = fields.rest(first)
    _ = fields.rest(second)
    guard let both = fields.written else { throw .outOfMemory }
    return both
  }
}

extension FleetKey {
  /// The one that seals, and behind it the other one where there is one that still counts.
  var sealingKeys: [SealingKey] {
    let (present, isFirstOver) = (present, isFirstOver)
    let others = isFirstOver ? [] : ids.filter { $0 != present.id }
    return [present] + others.compactMap { key($0) }
  }
}
