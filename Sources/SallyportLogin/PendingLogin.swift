package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// Whose login it is, as the account database and the store know the name that was typed.
package enum Claimant: Sendable {
  case enrolled(Account)
  case notEnrolled(Account)
  /// There is no account of that name.
  case unknown(UserName)
  /// The name breaks the rules of `UserName`, so nobody can be enrolled under it. Not looked up:
  /// whom a name service would take "alice " for is not known, so no policy lets it pass.
  case invalid([UInt8])

  /// The account's name, or the name as typed.
  package var name: [UInt8] {
    switch self {
    case .enrolled(let account), .notEnrolled(let account): account.name.bytes
    case .unknown(let name): name.bytes
    case .invalid(let name): name
    }
  }

  package var isEnrolled: Bool { if case .enrolled = self { true } else { false } }
}

/// Where a login comes from and how it is checked.
package final class LoginContext: Sendable {
  package let policy: Policy
  package let origin: Origin
  /// nil for a service whose name is no label.
  package let service: Label?

  package init(policy: Policy, origin: Origin, service: Label?) {
    (self.policy, self.origin, self.service) = (policy, origin, service)
  }
}

/// A login before the response: whose it is, where it comes from, and what a front end may know of
/// what the response is checked against.
package final class PendingLogin: Sendable {
  package let claimant: Claimant
  package let context: LoginContext
  /// The user's, or the decoy's: the same prompt, the same work and the same write for everybody.
  let record: Record

  package init(_ claimant: Claimant, _ record: Record, _ context: LoginContext) {
    (self.claimant, self.record, self.context) = (claimant, record, context)
  }

  package var name: [UInt8] { claimant.name }
  package var policy: Policy { context.policy }

  /// The lengths of authenticators' codes.
  package var lengths: [Digits] { record.enrollment.authenticators.map { $0.parameters.digits } }

  /// The names of the authenticators.
  package var names: [Label] { record.enrollment.authenticators.map { $0.name } }

  /// The kinds of factors that are enrolled, used-up backup codes included.
  package var factors: Factors { record.enrollment.factors }

  /// Backup codes that are good; nil where there is no set of them.
  package var backupCodesLeft: Int? {
    record.enrollment.backupCodes?.left(record.state.backupCodes)
  }

  /// Whether `typed` has the form of a code or a backup code, right or wrong.
  package func hasFormOfCode(_ typed: Secret) throws(CryptoError) -> Bool {
    switch try Response.classify(typed, for: record.enrollment) {
    case .code, .backupCode: true
    case .malformed: false
    }
  }

  /// Whether nobody has to be asked who logs in from `address` now.
  package func isRemembered(_ address: NumericAddress, at now: UnixTime) -> Bool {
    let state = record.state
    // It may have been forgotten in a state that is lost.
    if record.mayLackTheLatest { return false }
    let throttle = Throttle(for: record.enrollment, state, under: policy)
    // If somebody guesses from there, ask.
    return throttle.responsesLeft(in: state.known, at: now) > 0
      && state.isRemembered(address, service: context.service, for: policy.remember, at: now)
  }

  /// Seconds from `now` until a code from a known place is checked again; 0 if one is checked now,
  /// nil if none ever is.
  package func wait(at now: UnixTime) -> UInt64? {
    let (enrollment, state) = (record.enrollment, record.state)
    let throttle = Throttle(for: enrollment, state, under: policy)
    var shortest: UInt64?
    for authenticator in enrollment.authenticators {
      let digits = authenticator.parameters.digits
      guard let wait = throttle.wait(for: state.known, digits: digits, at: now) else { continue }
      shortest = min(shortest ?? wait, wait)
    }
    return shortest
  }
}

/// How the auth phase of a login goes on.
package enum AuthStep: Sendable {
  case prompt(PendingLogin)
  /// Not enrolled, and not required to be.
  case skip
  /// Not enrolled: the account phase asks to.
  case enroll(EnrollmentLevel, Account)
}
