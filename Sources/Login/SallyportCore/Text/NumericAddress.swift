/// An Internet address: 16 bytes in network order, IPv4 as ::ffff:a.b.c.d.
package struct NumericAddress: Equatable, Sendable {
  package let bytes: [UInt8]

  /// From the 4 bytes of an IPv4 address or the 16 of an IPv6 address; nil for other counts.
  package init?(_ bytes: [UInt8]) {
    let padding: [UInt8] = bytes.count == 4 ? [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] : []
    self.bytes = padding + bytes
    guard self.bytes.count == 16 else { return nil }
  }

  /// From both halves, each a number in network order.
  package init(high: UInt64, low: UInt64) {
    bytes = (0..<16).map {
      UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> (56 - 8 * UInt64($0 % 8)))
    }
  }

  var high: UInt64 { NetworkAddress.number(bytes.prefix(8)) }
  var low: UInt64 { NetworkAddress.number(bytes.suffix(8)) }

  package var isIPv4: Bool {
    for index in 0..<10 where bytes[index] != 0 { return false }
    return bytes[10] & bytes[11] == 0xff
  }

  /// Whether it is the address of one other machine, from wherever it is seen. Not 127.0.0.0/8 and
  /// ::/64, which are this machine, nor 169.254.0.0/16 (RFC 3927) and fe80::/10 (RFC 4291 §2.5.6),
  /// which are another machine on each link.
  package var isElsewhere: Bool {
    if isIPv4 { return bytes[12] != 127 && !(bytes[12] == 169 && bytes[13] == 254) }
    if bytes[0] == 0xfe, bytes[1] & 0xc0 == 0x80 { return false }
    for index in 0..<8 where bytes[index] != 0 { return true }
    return false
  }
}

/// The addresses with the same first bits.
package struct AddressRange: Equatable, Sendable {
  let start: NumericAddress
  /// The length of the prefix, 0 to 128; for IPv4 96 more than written.
  let bits: Int

  /// Parses an address, or one with `/` and the length of a prefix; bits after the prefix are
  /// ignored. `parse` parses an address.
  package init?(_ text: [UInt8], _ parse: ([UInt8]) -> NumericAddress?) {
    let slash = text.firstIndex(of: UInt8(ascii: "/")) ?? text.count
    guard let start = parse([UInt8](text[..<slash])) else { return nil }
    self.start = start
    let more = start.isIPv4 && !text.contains(UInt8(ascii: ":")) ? 96 : 0
    if slash == text.count {
      bits = 128
    } else {
      guard text.count - slash < 5, let length = decimal([UInt8](text[(slash + 1)...])),
        length <= UInt64(128 - more)
      else { return nil }
      bits = Int(length) + more
    }
  }

  /// No IPv6 range contains an IPv4 address, not even `::/0`.
  package func holds(_ address: NumericAddress) -> Bool {
    guard start.isIPv4 == address.isIPv4 else { return false }
    for bit in 0..<bits {
      let difference = start.bytes[bit / 8] ^ address.bytes[bit / 8]
      if difference >> UInt8(7 - bit % 8) & 1 != 0 { return false }
    }
    return true
  }
}
