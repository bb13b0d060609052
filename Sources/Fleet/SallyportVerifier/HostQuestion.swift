import OneTimePassword
import SallyportCore
import SallyportLine
import SallyportLogin
import SallyportSystem

/// A question of a host of the fleet.
struct HostQuestion {
  /// Its name.
  let host: [UInt8]
  let frame: HostFrame

  var request: ServiceRequest { frame.request }

  /// As the host says it.
  var origin: Origin {
    switch request.origin {
    case .unknown: .unknown
    case .local: .local(own: frame.isOwn)
    case .address(let address): NetworkAddress(address.bytes).map { .address($0) } ?? .unknown
    }
  }

  var event: Event {
    var address: NumericAddress?
    if case .address(let found) = request.origin { address = found }
    return Event(
      host: host, name: request.name, service: request.service, origin: origin, address: address,
      caller: frame.caller)
  }

  /// Where a login comes from is the host and the place: who is known on one host is a stranger on
  /// another, so that a host can spend nobody's budget for known places on the others.
  func context(under policy: Policy) -> LoginContext {
    var (place, address) = (origin, NumericAddress?.none)
    let places = Places(on: host)
    switch origin {
    case .address(let network):
      place = places.of(network).map { .address($0) } ?? .unknown
      if case .address(let found) = request.origin, found.isElsewhere {
        address = places.of(found)
      }
    case .local(own: true): place = places.local.map { .address($0) } ?? .unknown
    case .local(own: false), .unknown: break
    }
    return LoginContext(
      policy: policy, origin: place, address: address, service: Label(request.service))
  }
}

/// The places from which people log in to a host, as the states of a fleet know them: each is an
/// address that no machine has. nil where libcrypto fails.
struct Places {
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
