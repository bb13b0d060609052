/// What was used of a pass, and until when it may be.
package struct PassState: Equatable, Sendable {
  package let id: UInt64
  /// In how many logins; more than it is good for where uses may have been lost.
  package var used: UInt8
  /// The latest time of any attempt of the user while the pass was there: the pass ends by it, and
  /// a clock that is set back does not renew it.
  package var seen: UnixTime
  /// Random, of the login that claimed it last; 0: none has, or claims may have been lost.
  package var claim: UInt64

  package init(id: UInt64, used: UInt8 = 0, seen: UnixTime = UnixTime(0), claim: UInt64 = 0) {
    (self.id, self.used, self.seen, self.claim) = (id, used, seen, claim)
  }
}

extension Pass {
  /// For how many more logins it is good at `now`; 0 where it has ended.
  package func usesLeft(_ state: PassState, at now: UnixTime) -> Int {
    guard state.used < uses, isOpen(state, at: now) else { return 0 }
    return Int(uses - state.used)
  }

  /// Whether it has begun, and has not ended, however often it was used.
  func isOpen(_ state: PassState, at now: UnixTime) -> Bool {
    let begins = UnixTime(created.seconds - min(created.seconds, Pass.clockSkew))
    return now >= begins && max(now, state.seen) < expires
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

  /// Whether the login with this random was the last one to claim a pass, which has not ended.
  package func isClaimed(by claim: UInt64, _ state: LoginState, at now: UnixTime) -> Bool {
    for pass in passes where pass.enrolls && claim != 0 {
      for stored in state.passes where stored.id == pass.id && stored.claim == claim {
        return pass.isOpen(stored, at: now)
      }
    }
    return false
  }
}
