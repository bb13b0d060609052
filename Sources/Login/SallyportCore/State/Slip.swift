/// What a wrong response was charged, to give back exactly that.
package struct Charge: Equatable, Sendable {
  /// The enrollment whose login state was charged.
  package let enrollmentID: UInt64
  /// Which of the two buckets was charged.
  package let isKnown: Bool
  package let amount: GuessProbability

  package init(enrollmentID: UInt64, isKnown: Bool, amount: GuessProbability) {
    self.enrollmentID = enrollmentID
    self.isKnown = isKnown
    self.amount = amount
  }
}

/// A wrong code from a known origin that is one typing error away from a correct one. Does not
/// contain the typed code.
package struct Slip: Equatable, Sendable {
  /// In seconds.
  package static let lifetime: UInt64 = 120
  /// How many time steps or counters after the intended code may still correct it. None before it:
  /// then the intended code would still be valid, and a refund would tell a guesser that the guess
  /// was close.
  package static let reach: UInt64 = 2

  /// The `id` of the authenticator, never 0.
  package let authenticator: UInt64
  /// The time step or counter of the intended code.
  package let position: UInt64
  package let time: UnixTime
  /// The charge, to the bucket of known origins.
  package let amount: GuessProbability

  package init(authenticator: UInt64, position: UInt64, time: UnixTime, amount: GuessProbability) {
    self.authenticator = authenticator
    self.position = position
    self.time = time
    self.amount = amount
  }

  /// Whether this authenticator's code of this step or counter corrects it.
  func isCorrected(by authenticator: UInt64, at accepted: UInt64, _ now: UnixTime) -> Bool {
    self.authenticator == authenticator && accepted >= position
      && accepted - position <= Slip.reach && time <= now
      && now.elapsed(since: time) <= Slip.lifetime
  }
}

/// The times of the last three refunds for slips; 1970 if there were fewer.
package struct Refunds: Equatable, Sendable {
  /// In seconds: the period in which there are at most three.
  package static let period: UInt64 = 86_400

  package private(set) var last: UnixTime
  package private(set) var second: UnixTime
  package private(set) var third: UnixTime

  package init(
    last: UnixTime = UnixTime(0), second: UnixTime = UnixTime(0), third: UnixTime = UnixTime(0)
  ) {
    (self.last, self.second, self.third) = (last, second, third)
  }

  /// Records a refund at `now`; returns false if there were three within the period.
  mutating func add(at now: UnixTime) -> Bool {
    guard now.elapsed(since: third) >= Refunds.period else { return false }
    (last, second, third) = (now, last, second)
    return true
  }

  mutating func distrustFuture(_ now: UnixTime) {
    (last, second, third) = (min(last, now), min(second, now), min(third, now))
  }
}

/// The decimal digits of a code, four bits each: two codes are compared digit by digit in a time
/// that depends on neither.
package struct PackedDigits {
  private let bits: UInt32

  /// Takes the eight lowest digits.
  package init(_ code: UInt32) {
    var (rest, packed) = (code, UInt32(0))
    for place in 0..<UInt32(8) {
      // rest / 10 for any 32 bits; a division instruction may take longer for some codes.
      let tenth = UInt32(truncatingIfNeeded: (UInt64(rest) &* 0xcccc_cccd) &>> 35)
      packed |= (rest &- tenth &* 10) &<< (4 &* place)
      rest = tenth
    }
    bits = packed
  }

  /// Whether they differ in exactly one digit, or by two different adjacent digits swapped.
  package func isSlip(of other: PackedDigits) -> Bool {
    let change = bits ^ other.bits
    // The lowest bit of each digit that differs.
    let changed = (change | change &>> 1 | change &>> 2 | change &>> 3) & 0x1111_1111
    let first = changed & (0 &- changed)
    let swap = change ^ (bits ^ bits &>> 4)
    // If two digits are swapped, both differ by the same bits.
    let notSwapped = (swap | (change ^ change &>> 4)) & (first &* 15)
    let isOne = changed == first
    let isSwap = (changed == first &* 17) && (notSwapped == 0)
    return (change != 0) && (isOne || isSwap)
  }
}
