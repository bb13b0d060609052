/// An address from which, for a while, no code is asked in one service: the policy's `remember`.
package struct RememberedOrigin: Equatable, Sendable {
  /// In full: in an IPv6 network everybody has the same /64.
  package let origin: NumericAddress
  package let service: Label
  /// When the login that it was granted after was through.
  package let granted: UnixTime

  package init(origin: NumericAddress, service: Label, granted: UnixTime) {
    self.origin = origin
    self.service = service
    self.granted = granted
  }

  /// Whether it holds at `now`, where the policy remembers for so many seconds; one of a time to
  /// come does not.
  package func holds(for seconds: UInt64, at now: UnixTime) -> Bool {
    granted <= now && now.elapsed(since: granted) < seconds
  }
}

extension LoginState {
  /// Pairs of address and service that are remembered.
  package static let maximumRemembered = 10

  /// Whether a login from there through that service needs no code after a first factor, where the
  /// policy remembers for so many seconds. Only addresses are remembered, and of other machines: a
  /// name is the attacker's data, and everybody on this machine, or behind a tunnel to it, comes
  /// from the same place.
  package func isRemembered(
    _ origin: NumericAddress, service: Label?, for seconds: UInt64, at now: UnixTime
  ) -> Bool {
    origin.isElsewhere
      && remembered.contains { $0.isOf(origin, service) && $0.holds(for: seconds, at: now) }
  }

  /// Remembers where a login came from, in front of the others and instead of the same pair.
  /// Nothing for an address that is not elsewhere, or a service whose name is no `Label`.
  package mutating func grant(_ origin: NumericAddress, service: Label?, at now: UnixTime) {
    guard origin.isElsewhere, let service else { return }
    var newest = [RememberedOrigin(origin: origin, service: service, granted: now)]
    for one in remembered
    where !one.isOf(origin, service) && newest.count < LoginState.maximumRemembered {
      newest.append(one)
    }
    remembered = newest
  }

  package mutating func forgetRemembered() { remembered = [] }
}

extension RememberedOrigin {
  fileprivate func isOf(_ origin: NumericAddress, _ service: Label?) -> Bool {
    self.origin == origin && self.service == service
  }
}
