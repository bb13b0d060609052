import OneTimePassword
import SallyportCore

// What a host brings is made now, by the verifier's clock: one that is wrong, or a host that lies,
// would hide a phone from its owner, whose notice it is older than, or give a pass that ends at
// another time. Nothing compares these times afterwards.

extension EnrollmentChange {
  /// Of a login, a session or a helper. What is moved from files keeps its times.
  func stamped(_ now: UnixTime) -> EnrollmentChange {
    switch self {
    case .create(let made):
      .create(
        Enrollment(
          id: made.id, user: made.user, uid: made.uid, created: now,
          authenticators: made.authenticators.map { $0.stamped(now) },
          backupCodes: made.backupCodes, passes: made.passes.map { $0.stamped(now) },
          suspended: made.suspended))
    case .add(let made, let codes): .add(made.map { $0.stamped(now) }, backupCodes: codes)
    case .replace(let made, let codes, let claim):
      .replace(made.map { $0.stamped(now) }, backupCodes: codes, claim: claim)
    case .give(let pass): .give(pass.stamped(now))
    case .remove, .rename, .renew, .revoke: self
    }
  }
}

extension EnrollmentChange {
  /// Whether an older verifier does not read what it writes.
  var isNew: Bool {
    switch self {
    case .give: true
    case .create(let made): made.authenticators.contains { $0.clockOffset != nil }
    case .add(let made, _), .replace(let made, _, _): made.contains { $0.clockOffset != nil }
    case .remove, .rename, .renew, .revoke: false
    }
  }
}

extension Authenticator {
  fileprivate func stamped(_ now: UnixTime) -> Authenticator {
    Authenticator(
      id: id, name: name, parameters: parameters, secret: secret,
      initialLastAccepted: initialLastAccepted, created: now, clockOffset: clockOffset)
  }
}

extension Pass {
  /// Good for as long as it was to be, and no longer than any.
  fileprivate func stamped(_ now: UnixTime) -> Pass {
    let (least, most) = (Int64(Pass.lifetimes.lowerBound), Int64(Pass.lifetimes.upperBound))
    let (length, isTooLong) = expires.seconds.subtractingReportingOverflow(created.seconds)
    let seconds = isTooLong ? least : max(least, min(length, most))
    return Pass(
      id: id, digest: digest, created: now, expires: UnixTime(now.seconds + seconds), uses: uses,
      enrolls: enrolls)
  }
}
