package import OneTimePassword

// Short texts as bytes. `String` and `Character` would add Unicode tables to the module.

/// `bytes` for a log or a terminal: bytes outside 0x20–0x7e become %XX, and after `limit` bytes of
/// input three dots follow.
package func printable(_ bytes: some Collection<UInt8>, limit: Int = 64) -> String {
  String(decoding: escaped([UInt8](bytes), limit: limit), as: UTF8.self)
}

/// The text of `printable` as bytes. `asField`: a space, `%`, `"` and `=` become %XX too, so that a
/// name cannot look like another field of a log line to a log watcher.
@inline(never)
package func escaped(_ bytes: [UInt8], limit: Int = 64, asField: Bool = false) -> [UInt8] {
  var text: [UInt8] = []
  text.reserveCapacity(bytes.count)
  for index in 0..<min(bytes.count, limit) {
    switch bytes[index] {
    case 0x20, UInt8(ascii: "%"), UInt8(ascii: "\""), UInt8(ascii: "="):
      if asField { text += percentEncoded(bytes[index]) } else { text.append(bytes[index]) }
    case 0x21...0x7e: text.append(bytes[index])
    case _: text += percentEncoded(bytes[index])
    }
  }
  if bytes.count > limit { text += [0x2e, 0x2e, 0x2e] }
  return text
}

/// Whether a text begins or ends with a space, which a settings file would lose.
func hasOuterSpace(_ text: [UInt8]) -> Bool { text.first == 0x20 || text.last == 0x20 }

private func hexadecimalDigit(_ value: UInt8, ten: UInt8) -> UInt8 {
  let digit = value & 15
  return digit < 10 ? UInt8(ascii: "0") + digit : ten + (digit - 10)
}

package func percentEncoded(_ byte: UInt8) -> [UInt8] {
  let ten = UInt8(ascii: "A")
  return [
    UInt8(ascii: "%"), hexadecimalDigit(byte >> 4, ten: ten), hexadecimalDigit(byte, ten: ten),
  ]
}

/// Lower-case hexadecimal.
package func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
  var text: [UInt8] = []
  text.reserveCapacity(bytes.count * 2)
  for byte in bytes {
    text.append(hexadecimalDigit(byte >> 4, ten: UInt8(ascii: "a")))
    text.append(hexadecimalDigit(byte, ten: UInt8(ascii: "a")))
  }
  return text
}

/// Sixteen lower-case hexadecimal digits.
package func hexadecimal(_ value: UInt64) -> [UInt8] {
  hexadecimal((0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) })
}

/// 16 or more for anything but a digit. Not an optional, because a login reads hundreds of them.
@inline(__always) private func hexadecimalValue(_ character: UInt8) -> UInt8 {
  let digit = character &- UInt8(ascii: "0")
  if digit < 10 { return digit }
  let letter = (character | 0x20) &- UInt8(ascii: "a")
  return letter < 6 ? letter + 10 : 16
}

extension Secret {
  /// The `count` bytes for the hexadecimal digits in `range`, which must be twice as many; nil for
  /// anything else.
  @inline(never) package func octets(_ count: Int, spelledIn range: Range<Int>) -> [UInt8]? {
    guard range.count == 2 * count, range.lowerBound >= 0, range.upperBound <= self.count else {
      return nil
    }
    var octets = [UInt8](repeating: 0, count: count)
    // SAFETY: the index is below `count`, the range inside the text and twice as long.
    let areDigits = unsafe octets.withUnsafeMutableBytes { octets in
      unsafe withBytes { text in
        for index in 0..<count {
          let place = range.lowerBound &+ 2 &* index
          let high = hexadecimalValue(unsafe text[place])
          let low = hexadecimalValue(unsafe text[place &+ 1])
          if high | low > 15 { return false }
          unsafe octets[index] = high << 4 | low
        }
        return true
      }
    }
    return areDigits ? octets : nil
  }
}

extension Secret {
  /// The number in 16 hexadecimal digits; nil for anything else.
  @inline(never) package func hexadecimal(in range: Range<Int>) -> UInt64? {
    guard range.count == 16 else { return nil }
    var number: UInt64 = 0
    for place in range {
      let digit = hexadecimalValue(self[place])
      guard digit < 16 else { return nil }
      number = number << 4 | UInt64(digit)
    }
    return number
  }
}

/// Parses a decimal number without sign or spaces; nil for anything else, and on overflow.
package func decimal(_ text: [UInt8]) -> UInt64? {
  guard !text.isEmpty else { return nil }
  var value: UInt64 = 0
  for character in text {
    guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) else { return nil }
    let (shifted, tooBig) = value.multipliedReportingOverflow(by: 10)
    let (sum, overflow) = shifted.addingReportingOverflow(UInt64(character - UInt8(ascii: "0")))
    if tooBig || overflow { return nil }
    value = sum
  }
  return value
}

/// The decimal digits of `value`.
package func decimalText(_ value: UInt64) -> [UInt8] {
  var digits = value > 9 ? decimalText(value / 10) : []
  digits.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value % 10))
  return digits
}
