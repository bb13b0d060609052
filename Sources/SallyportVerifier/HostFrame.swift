import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// A frame of the service of a host, with what the verifier has to know besides: in front are the
/// form (1 byte, 1), whether a local login is the user's own (1 or 0), the uid of the account on
/// the host (4 bytes, little-endian; 0xffffffff where there is none), and the host's name after its
/// length.
struct HostFrame {
  let host: [UInt8]
  let isOwn: Bool
  let uid: UInt32?
  let request: ServiceRequest

  private static let form: UInt8 = 1
  private static let headLength = 7

  /// Any bytes give a frame of a host whose name has 1 to 253 bytes of A–Z a–z 0–9 `.` `-` `_`,
  /// or nil.
  static func decode(_ packet: Secret) -> HostFrame? {
    let end = headLength + Int(packet[6])
    let host = packet.bytes(in: headLength..<end)
    guard packet.count > end, packet[0] == form, packet[1] <= 1, isName(host),
      let frame = packet.slice(end..<packet.count), let request = ServiceRequest.decode(frame)
    else { return nil }
    let uid = UInt32(truncatingIfNeeded: number(packet.bytes(in: 2..<6)))
    return HostFrame(
      host: host, isOwn: packet[1] == 1, uid: uid == UInt32.max ? nil : uid, request: request)
  }

  private static func isName(_ text: [UInt8]) -> Bool {
    (1...253).contains(text.count)
      && text.allSatisfy {
        switch $0 {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
          UInt8(ascii: "_"):
          true
        case _: false
        }
      }
  }

  /// As the host says it.
  var origin: Origin {
    switch request.origin {
    case .unknown: .unknown
    case .local: .local(own: isOwn)
    case .address(let address): NetworkAddress(address.bytes).map { .address($0) } ?? .unknown
    }
  }

  var event: Event {
    var address: NumericAddress?
    if case .address(let found) = request.origin { address = found }
    return Event(
      host: host, name: request.name, service: request.service, origin: origin, address: address)
  }

  /// Where a login comes from is the host and the place: who is known on one host is a stranger on
  /// another, so that a host can spend nobody's budget for known places on the others.
  func context(under policy: Policy) -> LoginContext {
    var (place, address) = (origin, NumericAddress?.none)
    switch origin {
    case .address(let network):
      place = placed("origin", number(network.high) + number(network.low))
      if case .address(let found) = request.origin, found.isElsewhere {
        address = hashed("address", found.bytes)
      }
    case .local(own: true): place = placed("local", [])
    case .local(own: false), .unknown: break
    }
    return LoginContext(
      policy: policy, origin: place, address: address, service: Label(request.service))
  }
}

extension HostFrame {
  private func placed(_ kind: StaticString, _ place: [UInt8]) -> Origin {
    hashed(kind, place).flatMap { NetworkAddress($0.bytes) }.map { .address($0) } ?? .unknown
  }

  /// The host and a place on it or before it as one address, which is no address of a machine; nil
  /// where libcrypto fails.
  private func hashed(_ kind: StaticString, _ place: [UInt8]) -> NumericAddress? {
    let text = bytes(of: kind) + [0] + host + [0] + place
    guard let digest = try? SHA256.digest(text) else { return nil }
    // One that `isElsewhere`, and of IPv6.
    return NumericAddress([0x20] + digest[1..<16])
  }
}
