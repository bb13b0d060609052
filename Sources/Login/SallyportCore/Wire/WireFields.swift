// What requests to the service and its answers have in common. A frame is one packet of a
// SOCK_SEQPACKET socket; its first byte is the version, numbers are little-endian.

/// What all frames have in common.
package enum Wire {
  /// The versions that are understood.
  package static let versions: ClosedRange<UInt8> = 1...1
  /// The one that is written, which the release before this one must understand: while a machine is
  /// upgraded, a module of this release asks the service of that one, or the other way round, and
  /// so do hosts and verifiers. A new form is understood for a release before one writes it.
  package static let written: UInt8 = 1
  /// In a request to the service of this machine: as 1, and the caller waits once it has begun. Who
  /// writes it writes 1 where that is not understood.
  static let waiting: UInt8 = 2
  /// Bytes of a request before its fields.
  static let headSize = 5
  /// More than the fields of a frame can have, without the secret at the end of a request.
  static let mostBytesOfFields = 1024

  /// The bytes of numbers from 1 to 7 of which a wrong one would let somebody pass. They differ
  /// from one another, from 0 and from 0xff in four bits (the first-order Reed-Muller code of eight
  /// bits).
  package static func robust(_ number: Int) -> UInt8 {
    (number & 1 != 0 ? 0x55 : 0) ^ (number & 2 != 0 ? 0x33 : 0) ^ (number & 4 != 0 ? 0x0f : 0)
  }
}

extension ByteWriter {
  /// 1 to 7, as `Wire.robust` has it.
  mutating func put(robust number: Int) { put(count: Int(Wire.robust(number))) }

  mutating func put(count: Int, atMost most: Int) {
    if !(0...most).contains(count) { fail() }
    put(count: count)
  }

  /// Up to 255 bytes, after their count.
  mutating func put(counted bytes: [UInt8]) {
    put(count: bytes.count, atMost: 255)
    put(bytes)
  }

  mutating func put(_ charge: Charge) {
    put(charge.enrollmentID)
    put(isThere: charge.isKnown)
    put(charge.amount.units)
  }
}

extension ByteReader {
  /// False where the other side speaks a version that this one does not.
  mutating func takesVersion() -> Bool {
    Wire.versions.contains(UInt8(truncatingIfNeeded: number(bytes: 1)))
  }

  /// A number from 1 to 7; 0 where there is none.
  @inline(never) mutating func robust(atMost most: Int) -> Int {
    let byte = UInt8(truncatingIfNeeded: number(bytes: 1))
    for number in 1...most where Wire.robust(number) == byte { return number }
    fail()
    return 0
  }

  /// Up to 255 bytes, after their count.
  mutating func counted() -> [UInt8] { take(count(atMost: 255)) }

  /// No more than the greatest budget of a year: no bucket holds more.
  mutating func charge() -> Charge {
    let charge = Charge(
      enrollmentID: number64(), isKnown: isThere(), amount: GuessProbability(units: number64()))
    if charge.amount > GuessProbability.budgets.upperBound { fail() }
    return charge
  }
}
