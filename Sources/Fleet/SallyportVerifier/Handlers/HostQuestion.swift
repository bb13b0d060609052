import FleetTransport
import OneTimePassword
import SallyportCore
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
    let places = OriginPseudonyms(on: host)
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
