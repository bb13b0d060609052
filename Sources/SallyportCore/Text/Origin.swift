/// Where a login comes from. Names are the attacker's data and never count.
package enum Origin: Equatable, Sendable {
  /// A numeric PAM_RHOST.
  case address(NetworkAddress)
  /// No PAM_RHOST, in a service listed as local. `own`: the real uid is root's or the user's own,
  /// so that `su alice` by bob does not spend the budget of alice's known places.
  case local(own: Bool)
  /// A host name, or no PAM_RHOST in a service that is not local.
  case unknown
}

/// What tells one network origin from another: an IPv4 address, or an IPv6 /64, because a host
/// picks the lower half freely.
package struct NetworkAddress: Equatable, Sendable {
  /// 16 bytes in network order as two numbers; IPv4 as ::ffff:a.b.c.d.
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    let isIPv4 = high == 0 && low >> 32 == 0xffff
    self.low = isIPv4 ? low : 0
  }

  /// From the 4 bytes of an IPv4 or the 16 of an IPv6 address, network order; nil for other counts.
  package init?(_ bytes: [UInt8]) {
    let padding: [UInt8] = bytes.count == 4 ? [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] : []
    let all = padding + bytes
    guard all.count == 16 else { return nil }
    self.init(high: NetworkAddress.number(all.prefix(8)), low: NetworkAddress.number(all.suffix(8)))
  }

  /// The IPv4 address, where it is one.
  package var ipv4: UInt32? {
    high == 0 && low >> 32 == 0xffff ? UInt32(truncatingIfNeeded: low) : nil
  }

  static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
