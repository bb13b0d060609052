import OneTimePassword
import SallyportCore

/// The places from which people log in to a host, as the states of a fleet know them: each is an
/// address that no machine has. nil where libcrypto fails.
struct OriginPseudonyms {
  private let host: [UInt8]

  init(on host: [UInt8]) { self.host = host }

  func of(_ network: NetworkAddress) -> NetworkAddress? {
    placed("origin", number(network.high) + number(network.low))
  }

  /// In full, to be remembered.
  func of(_ address: NumericAddress) -> NumericAddress? { hashed("address", address.bytes) }

  /// Of a local login of the user's own.
  var local: NetworkAddress? { placed("local", []) }

  private func placed(_ kind: StaticString, _ place: [UInt8]) -> NetworkAddress? {
    hashed(kind, place).flatMap { NetworkAddress($0.bytes) }
  }

  /// The host and a place on it or before it as one address.
  private func hashed(_ kind: StaticString, _ place: [UInt8]) -> NumericAddress? {
    let text = bytes(of: kind) + [0] + host + [0] + place
    guard let digest = try? SHA256.digest(text) else { return nil }
    // One that `isElsewhere`, and of IPv6.
    return NumericAddress([0x20] + digest[1..<16])
  }
}
