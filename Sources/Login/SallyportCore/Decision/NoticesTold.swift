// What logins take down for the owner, and what they tell.

extension LoginState {
  /// These were told at a login. Events count as told only where the authenticator that proved the
  /// login is older than all of them: the one that a thief added does not use up the notice of it.
  /// `name`: nil after a backup code.
  package mutating func settle(
    _ told: [OwnerNotice], by name: Label?, of enrollment: Enrollment
  ) {
    var (older, latest) = (UnixTime(Int64.min), notices.told)
    if let name, let index = enrollment.index(of: name) {
      older = enrollment.authenticators[index].created
    }
    var isTold = true
    for notice in told {
      if case .wrongCodes(let count) = notice {
        notices.wrongCodes -= min(notices.wrongCodes, count)
      }
      guard let time = notice.time else { continue }
      if time <= older || older.seconds == Int64.min { isTold = false }
      latest = max(latest, time)
    }
    if isTold { notices.told = latest }
  }

  /// Whether this authenticator, or with nil a backup code, was accepted from there a moment ago.
  /// Never of a place that other logins share.
  package func hasJustUsed(
    _ name: Label?, of enrollment: Enrollment, from origin: Origin, at now: UnixTime
  ) -> Bool {
    var use = backupCodes?.lastUse
    if let name {
      guard let index = enrollment.index(of: name) else { return false }
      let id = enrollment.authenticators[index].id
      use = authenticators.first { $0.id == id }?.lastUse
    }
    guard let use, case .address = origin, use.origin == origin else { return false }
    // Clocks differ a little.
    return max(now.elapsed(since: use.time), use.time.elapsed(since: now)) < 300
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
