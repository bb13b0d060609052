/// What a wrong response has been charged, so that exactly that can be given back.
package struct Charge: Equatable, Sendable {
  /// The enrollment whose login state was charged.
  package let enrollmentID: UInt64
  /// Which of the two buckets.
  package let isKnown: Bool
  package let amount: GuessProbability

  package init(enrollmentID: UInt64, isKnown: Bool, amount: GuessProbability) {
    self.enrollmentID = enrollmentID
    self.isKnown = isKnown
    self.amount = amount
  }
}

/// A wrong code from a known place that was a typing error away from a right one. Never what was
/// typed.
package struct Slip: Equatable, Sendable {
  /// Seconds for which it counts.
  package static let lifetime: UInt64 = 120
  /// How many time steps or counters beyond it may be accepted for it. Never one before it: then
  /// its code would still be good, and giving back would tell a guesser that he was close.
  package static let reach: UInt64 = 2

  /// The `id` of the authenticator, never 0.
  package let authenticator: UInt64
  /// The time step or counter of the code that was meant.
  package let position: UInt64
  package let time: UnixTime
  /// What it was charged, to the bucket of known origins.
  package let amount: GuessProbability

  package init(authenticator: UInt64, position: UInt64, time: UnixTime, amount: GuessProbability) {
    self.authenticator = authenticator
    self.position = position
    self.time = time
    self.amount = amount
  }

  /// Whether it is put right by that authenticator's code of that step or counter.
  func isCorrected(by authenticator: UInt64, at accepted: UInt64, _ now: UnixTime) -> Bool {
    self.authenticator == authenticator && accepted >= position
      && accepted - position <= Slip.reach && time <= now
      && now.elapsed(since: time) <= Slip.lifetime
  }
}

/// When slips were given back, the last three times; 1970 where there were fewer.
package struct Refunds: Equatable, Sendable {
  /// Seconds in which there are no more than three.
  package static let period: UInt64 = 86_400

  package private(set) var last: UnixTime
  package private(set) var second: UnixTime
  package private(set) var third: UnixTime

  package init(
    last: UnixTime = UnixTime(0), second: UnixTime = UnixTime(0), third: UnixTime = UnixTime(0)
  ) {
    (self.last, self.second, self.third) = (last, second, third)
  }

  /// Notes one more at `now`; false where there may be none.
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

  /// Of the eight lowest digits.
  package init(_ code: UInt32) {
    var (rest, packed) = (code, UInt32(0))
    for place in 0..<UInt32(8) {
      // A tenth, rounded down, of any 32 bits: a division may take longer for some codes.
      let tenth = UInt32(truncatingIfNeeded: (UInt64(rest) &* 0xcccc_cccd) &>> 35)
      packed |= (rest &- tenth &* 10) &<< (4 &* place)
      rest = tenth
    }
    bits = packed
  }

  /// Whether they differ in exactly one digit, or by two different neighbouring digits swapped.
  package func isSlip(of other: PackedDigits) -> Bool {
    let change = bits ^ other.bits
    // The lowest bit of each digit that is another.
    let changed = (change | change &>> 1 | change &>> 2 | change &>> 3) & 0x1111_1111
    let first = changed & (0 &- changed)
    let swap = change ^ (bits ^ bits &>> 4)
    // Of two that are swapped, both change by what they differ in.
    let notSwapped = (swap | (change ^ change &>> 4)) & (first &* 15)
    let isOne = changed == first
    let isSwap = (changed == first &* 17) && (notSwapped == 0)
    return (change != 0) && (isOne || isSwap)
  }
}
