/// Where a login comes from. Host names are chosen by the other side and never count.
package enum Origin: Equatable, Sendable {
  /// PAM_RHOST is a numeric address.
  case address(NetworkAddress)
  /// No PAM_RHOST, in a service listed as local. `own`: the real uid is root's or the user's own,
  /// so that `su alice` by bob does not spend alice's budget for known origins.
  case local(own: Bool)
  /// PAM_RHOST is a host name, or it is missing in a service that is not local.
  case unknown
}

/// The part of an address that identifies an origin: an IPv4 address, or an IPv6 /64, because a
/// host can choose the lower half freely.
package struct NetworkAddress: Equatable, Sendable {
  /// 16 bytes in network order as two numbers; IPv4 as ::ffff:a.b.c.d.
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    let isIPv4 = high == 0 && low >> 32 == 0xffff
    self.low = isIPv4 ? low : 0
  }

  /// From the 4 bytes of an IPv4 address or the 16 of an IPv6 address, in network order; nil for
  /// other counts.
  package init?(_ bytes: [UInt8]) {
    let padding: [UInt8] = bytes.count == 4 ? [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] : []
    let all = padding + bytes
    guard all.count == 16 else { return nil }
    self.init(high: NetworkAddress.number(all.prefix(8)), low: NetworkAddress.number(all.suffix(8)))
  }

  /// The IPv4 address; nil for IPv6.
  package var ipv4: UInt32? {
    high == 0 && low >> 32 == 0xffff ? UInt32(truncatingIfNeeded: low) : nil
  }

  static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
