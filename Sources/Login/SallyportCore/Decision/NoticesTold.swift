// What logins take down for the owner, and what they tell.

extension LoginState {
  /// These were told at a login. Events count as told only where the authenticator that proved the
  /// login is older than all of them: the one that a thief added does not use up the notice of it.
  package mutating func settle(
    _ told: [OwnerNotice], by proof: Proof, of enrollment: Enrollment
  ) {
    var (older, latest) = (UnixTime(Int64.min), notices.told)
    if case .authenticator(let name, _) = proof, let index = enrollment.index(of: name) {
      older = enrollment.authenticators[index].created
    }
    var isTold = true
    for notice in told {
      switch notice {
      case .wrongCodes(let count): notices.wrongCodes -= min(notices.wrongCodes, count)
      case .added(_, let time), .passGiven(let time), .passUsed(let time, _), .restored(let time):
        if time <= older || older.seconds == Int64.min { isTold = false }
        latest = max(latest, time)
      }
    }
    if isTold { notices.told = latest }
  }

  /// Takes down what came of a response from there, for the owner.
  mutating func takeDown(_ verdict: Decision.Verdict, _ use: Use) {
    switch verdict {
    case .refuse(let refusal):
      guard case .wrongCode = refusal, !isKnown(use.origin) else { return }
      if notices.wrongCodes < UInt16.max { notices.wrongCodes += 1 }
    case .accept(let proof):
      guard proof.isPass else { return }
      notices.passUsed = use.time
      notices.passOrigin = NetworkAddress(high: 0, low: 0)
      if case .address(let address) = use.origin { notices.passOrigin = address }
    }
  }
}
