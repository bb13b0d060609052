/// An address from which, for a while, no code is asked in one service: the policy's `remember`.
package struct RememberedOrigin: Equatable, Sendable {
  /// The whole address, since in an IPv6 network everybody has the same /64.
  package let origin: NumericAddress
  package let service: Label
  /// The time of the login after which it was granted.
  package let granted: UnixTime

  package init(origin: NumericAddress, service: Label, granted: UnixTime) {
    self.origin = origin
    self.service = service
    self.granted = granted
  }

  /// Whether it is valid at `now`, if the policy remembers for this many seconds. Not if it was
  /// granted in the future.
  package func holds(for seconds: UInt64, at now: UnixTime) -> Bool {
    granted <= now && now.elapsed(since: granted) < seconds
  }
}

extension LoginState {
  /// The most pairs of address and service that are remembered.
  package static let maximumRemembered = 10

  /// Whether a login from there through that service needs no code after a first factor, if the
  /// policy remembers for this many seconds. Only addresses of other machines are remembered: a
  /// host name is chosen by the other side, and everybody on this machine, or behind a tunnel to
  /// it, has the same address.
  package func isRemembered(
    _ origin: NumericAddress, service: Label?, for seconds: UInt64, at now: UnixTime
  ) -> Bool {
    origin.isElsewhere
      && remembered.contains { $0.isOf(origin, service) && $0.holds(for: seconds, at: now) }
  }

  /// Remembers the address of a login, before the others and instead of the same pair. Does nothing
  /// for an address that is not another machine's, or for a service whose name is not a valid
  /// `Label`.
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
