import OneTimePassword
import SallyportCore
import SallyportLogin

/// The places from which people log in to a host, as the states of a fleet know them: each is an
/// address that no machine has. nil where libcrypto fails.
struct OriginPseudonyms {
  private let host: [UInt8]

  init(on host: [UInt8]) { self.host = host }

  /// Where a login comes from is the host and the place: who is known on one host is a stranger on
  /// another, so that a host can spend nobody's budget for known places on the others.
  func context(of question: LoginQuestion) -> LoginContext {
    let place: Origin
    switch question.place {
    case .address(let network): place = of(network).map { .address($0) } ?? .unknown
    case .local(own: true): place = local.map { .address($0) } ?? .unknown
    case .local(own: false), .unknown: place = question.place
    }
    return LoginContext(
      policy: question.policy, origin: place, address: question.address.flatMap { of($0) },
      service: Label(question.service))
  }

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
