/// An address of the Internet in full: 16 bytes in network order, IPv4 as ::ffff:a.b.c.d.
package struct NumericAddress: Equatable, Sendable {
  package let bytes: [UInt8]

  /// From the 4 bytes of an IPv4 or the 16 of an IPv6 address; nil for other counts.
  package init?(_ bytes: [UInt8]) {
    let padding: [UInt8] = bytes.count == 4 ? [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] : []
    self.bytes = padding + bytes
    guard self.bytes.count == 16 else { return nil }
  }

  package var isIPv4: Bool {
    for index in 0..<10 where bytes[index] != 0 { return false }
    return bytes[10] & bytes[11] == 0xff
  }
}

/// The addresses with the same first bits.
package struct AddressRange: Equatable, Sendable {
  let start: NumericAddress
  /// 0 to 128; of an IPv4 address 96 more than its prefix has.
  let bits: Int

  /// From an address, or one with `/` and the length of a prefix; bits behind it do not count.
  /// `parse` takes the text of an address.
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

  /// An IPv6 range holds no IPv4 address, `::/0` neither.
  package func holds(_ address: NumericAddress) -> Bool {
    guard start.isIPv4 == address.isIPv4 else { return false }
    for bit in 0..<bits {
      let difference = start.bytes[bit / 8] ^ address.bytes[bit / 8]
      if difference >> UInt8(7 - bit % 8) & 1 != 0 { return false }
    }
    return true
  }
}
