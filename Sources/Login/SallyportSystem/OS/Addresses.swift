internal import CSystem
package import SallyportCore

/// Numeric addresses as text, as in PAM_RHOST and in messages.
package enum Addresses {
  /// Parses an IPv4 address in dotted quads, or an IPv6 address, without its `%zone`. Returns nil
  /// for anything else, such as host names, ports, brackets or spaces.
  package static func parse(_ text: [UInt8]) -> NetworkAddress? {
    withoutZone(text).flatMap { NetworkAddress($0.bytes) }
  }

  /// The same, with all bits of the address.
  package static func withoutZone(_ text: [UInt8]) -> NumericAddress? {
    let isIPv6 = text.contains(UInt8(ascii: ":"))
    let end = isIPv6 ? text.firstIndex(of: UInt8(ascii: "%")) ?? text.count : text.count
    return numeric([UInt8](text[..<end]))
  }

  /// The same, but nil if there is a zone.
  @inline(never) package static func numeric(_ text: [UInt8]) -> NumericAddress? {
    guard (1..<Int(INET6_ADDRSTRLEN)).contains(text.count), !text.contains(0) else {
      return nil
    }
    let cString = text + [0]
    var bytes = [UInt8](repeating: 0, count: 16)
    // SAFETY: the text ends with NUL; the shim writes at most 16 bytes.
    let count = unsafe bytes.withUnsafeMutableBytes { bytes -> Int32 in
      guard let base = bytes.baseAddress else { return 0 }
      return unsafe sys_parse_address(cString, base)
    }
    return NumericAddress([UInt8](bytes.prefix(Int(count))))
  }

  /// Whether an interface of this machine has the address; true also if that is unknown.
  package static func isOwn(_ address: NumericAddress) -> Bool {
    // SAFETY: the 16 bytes live for the call.
    unsafe sys_is_own_address(address.bytes) != 0
  }

  /// `192.0.2.7`, `2001:db8::7`.
  package static func text(_ address: NumericAddress) -> String {
    let text = text(address.isIPv4 ? [UInt8](address.bytes.suffix(4)) : address.bytes)
    return String(decoding: text, as: UTF8.self)
  }

  /// As `bytes`.
  package static func text(_ address: NetworkAddress) -> String {
    String(decoding: bytes(address), as: UTF8.self)
  }

  /// `192.0.2.7`; for IPv6 the network that is compared, as `2001:db8::/64`.
  package static func bytes(_ address: NetworkAddress) -> [UInt8] {
    var fields = ByteWriter(count: 16)
    for number in [address.high, address.low] { fields.put(number.byteSwapped) }
    if address.ipv4 != nil { return text([UInt8](fields.bytes.suffix(4))) }
    return text(fields.bytes) + [UInt8(ascii: "/"), UInt8(ascii: "6"), UInt8(ascii: "4")]
  }

  private static func text(_ bytes: [UInt8]) -> [UInt8] {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    // SAFETY: both buffers live for the call and have the sizes that the shim wants.
    let done = unsafe text.withUnsafeMutableBufferPointer { text -> Int32 in
      guard let base = text.baseAddress else { return 0 }
      return unsafe bytes.withUnsafeBytes { bytes in
        guard let address = bytes.baseAddress else { return 0 }
        return unsafe sys_address_text(address, Int32(bytes.count), base)
      }
    }
    return done == 1 ? text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) } : []
  }
}
