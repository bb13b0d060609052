/// How much of the allowance for one kind of origin wrong codes have spent.
package struct Bucket: Equatable, Sendable {
  package private(set) var spent: GuessProbability
  /// The time at which `spent` was correct; it is refilled evenly from then on.
  package private(set) var since: UnixTime

  package init(spent: GuessProbability, since: UnixTime) {
    self.spent = spent
    self.since = since
  }

  package static let full = Bucket(spent: .none, since: UnixTime(0))

  package mutating func distrustFuture(_ now: UnixTime) { since = min(since, now) }

  /// Undoes a charge; never gives back more than was spent.
  mutating func giveBack(_ amount: GuessProbability) {
    spent = GuessProbability(units: spent.units - min(spent.units, amount.units))
  }
}

extension LoginState {
  /// As if no wrong code had been typed.
  package var unlocked: LoginState {
    var state = self
    (state.known, state.other, state.slip) = (.full, .full, nil)
    return state
  }
}
