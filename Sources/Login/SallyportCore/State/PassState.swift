/// What was used of a pass, and until when it may be.
package struct PassState: Equatable, Sendable {
  package let id: UInt64
  /// In how many logins; more than it is good for where uses may have been lost.
  package var used: UInt8
  /// The latest time of any attempt of the user while the pass was there: the pass ends by it, and
  /// a clock that is set back does not renew it.
  package var seen: UnixTime

  package init(id: UInt64, used: UInt8 = 0, seen: UnixTime = UnixTime(0)) {
    (self.id, self.used, self.seen) = (id, used, seen)
  }
}

extension Pass {
  /// For how many more logins it is good at `now`; 0 where it has ended.
  package func usesLeft(_ state: PassState, at now: UnixTime) -> Int {
    let begins = UnixTime(created.seconds - min(created.seconds, Pass.clockSkew))
    guard state.used < uses, now >= begins, max(now, state.seen) < expires else { return 0 }
    return Int(uses - state.used)
  }
}

extension Enrollment {
  /// The passes that are good at `now`.
  package func openPasses(_ state: LoginState, at now: UnixTime) -> [Pass] {
    var open: [Pass] = []
    for pass in passes {
      var known = PassState(id: pass.id)
      for stored in state.passes where stored.id == pass.id { known = stored }
      if pass.usesLeft(known, at: now) > 0 { open.append(pass) }
    }
    return open
  }
}
