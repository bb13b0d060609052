/// What wrong codes have used up of the allowance of one kind of origin.
package struct Bucket: Equatable, Sendable {
  package private(set) var spent: GuessProbability
  /// When `spent` was true; refilled evenly from then on.
  package private(set) var since: UnixTime

  package init(spent: GuessProbability, since: UnixTime) {
    self.spent = spent
    self.since = since
  }

  package static let full = Bucket(spent: .none, since: UnixTime(0))

  package mutating func distrustFuture(_ now: UnixTime) { since = min(since, now) }

  /// As if that had not been charged; never more than all.
  mutating func giveBack(_ amount: GuessProbability) {
    spent = GuessProbability(units: spent.units - min(spent.units, amount.units))
  }
}
