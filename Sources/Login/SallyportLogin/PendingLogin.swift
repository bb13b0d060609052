package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// Whose login it is, as the account database and the store know the name that was typed.
package enum Claimant: Sendable {
  case enrolled(Account)
  case notEnrolled(Account)
  /// Whatever is enrolled: root has blocked the account.
  case blocked(Account)
  /// There is no account of that name.
  case unknown(UserName)
  /// The name breaks the rules of `UserName`, so nobody can be enrolled under it. Not looked up:
  /// whom a name service would take "alice " for is not known, so no policy lets it pass.
  case invalid([UInt8])

  /// The account's name, or the name as typed.
  package var name: [UInt8] {
    switch self {
    case .enrolled(let account), .notEnrolled(let account), .blocked(let account):
      account.name.bytes
    case .unknown(let name): name.bytes
    case .invalid(let name): name
    }
  }

  /// nil for a name that nobody can have.
  package var account: Account? {
    switch self {
    case .enrolled(let account), .notEnrolled(let account), .blocked(let account): account
    case .unknown(let name): Account(name: name, uid: nil)
    case .invalid: nil
    }
  }

  package var isEnrolled: Bool { if case .enrolled = self { true } else { false } }
}

/// Where a login comes from and how it is checked.
package final class LoginContext: Sendable {
  package let policy: Policy
  package let origin: Origin
  /// The origin in full, where it is an address.
  package let address: NumericAddress?
  /// nil for a service whose name is no label.
  package let service: Label?

  package init(policy: Policy, origin: Origin, address: NumericAddress? = nil, service: Label?) {
    (self.policy, self.origin, self.service) = (policy, origin, service)
    self.address = address
  }
}

/// Whether a local login is the user's own: the real uid of the process is his or root's.
package func isOwn(_ account: Account?, caller: UInt32, through service: [UInt8]) -> Bool {
  // polkit's helper runs as root for the user who asks.
  caller == 0 ? !same("polkit-1", service) : caller == account?.uid
}

/// A login before the response: whose it is, where it comes from, and what a front end may know of
/// what the response is checked against.
package final class PendingLogin: Sendable {
  /// What is known of the enrollment, the user's or the decoy's: the same prompt, the same work and
  /// the same write for everybody.
  private enum Basis {
    case record(Record)
    case shape(Shape)
  }

  package let claimant: Claimant
  package let context: LoginContext
  private let basis: Basis

  /// Of this machine's files.
  package init(_ claimant: Claimant, _ record: Record, _ context: LoginContext) {
    (self.claimant, basis, self.context) = (claimant, .record(record), context)
  }

  /// Of the service.
  package init(_ claimant: Claimant, _ shape: Shape, _ context: LoginContext) {
    (self.claimant, basis, self.context) = (claimant, .shape(shape), context)
  }

  private init(_ claimant: Claimant, _ basis: Basis, _ context: LoginContext) {
    (self.claimant, self.basis, self.context) = (claimant, basis, context)
  }

  /// Before a change of what is enrolled, which a pass does not prove.
  package var forChange: PendingLogin {
    var policy = policy
    policy.acceptsPasses = false
    return PendingLogin(
      claimant, basis,
      LoginContext(
        policy: policy, origin: context.origin, address: context.address,
        service: context.service))
  }

  package var name: [UInt8] { claimant.name }
  package var policy: Policy { context.policy }

  /// nil where the service has it.
  var record: Record? { if case .record(let record) = basis { record } else { nil } }

  /// Computed each time.
  package var shape: Shape {
    switch basis {
    case .shape(let shape): shape
    case .record(let record):
      Shape(of: record.enrollment, record.state, wait: 0, isRemembered: false)
    }
  }

  /// The id of the enrollment.
  package var enrollmentID: UInt64 {
    switch basis {
    case .shape(let shape): shape.enrollmentID
    case .record(let record): record.enrollment.id
    }
  }

  /// Whether the fleet is away, so that a backup code is asked for.
  @inline(never) package var isAway: Bool {
    if case .shape(let shape) = basis { shape.isAway } else { false }
  }

  /// Backup codes that are good; nil where there is no set of them.
  package var backupCodesLeft: Int? {
    switch basis {
    case .shape(let shape): shape.backupCodesLeft
    case .record(let record): record.enrollment.backupCodes?.left(record.state.backupCodes)
    }
  }

  /// The kinds of factors that are enrolled, used-up backup codes included.
  package var factors: Factors {
    switch basis {
    case .shape(let shape): shape.factors
    case .record(let record): record.enrollment.factors
    }
  }

  /// Whether `typed` has the form of a code or a backup code, right or wrong.
  package func hasFormOfCode(_ typed: Secret) throws(CryptoError) -> Bool {
    try Response.malformation(of: typed, for: shape) == nil
  }

  /// Whether nobody has to be asked who logs in from `address` now.
  package func isRemembered(_ address: NumericAddress, at now: UnixTime) -> Bool {
    guard case .record(let record) = basis else { return shape.isRemembered }
    let state = record.state
    // It may have been forgotten in a state that is lost, or be that of an account before.
    if record.mayLackTheLatest || record.isOfAnyUID { return false }
    let throttle = Throttle(for: record.enrollment, state, under: policy)
    // If somebody guesses from there, ask.
    return throttle.responsesLeft(in: state.known, at: now) > 0
      && state.isRemembered(address, service: context.service, for: policy.remember, at: now)
  }

  /// Seconds from `now` until a code from a known place is checked again, whatever its length; 0 if
  /// each is checked now, nil if none ever is.
  package func wait(at now: UnixTime) -> UInt64? {
    guard case .record(let record) = basis else { return shape.wait }
    let (enrollment, state) = (record.enrollment, record.state)
    let throttle = Throttle(for: enrollment, state, under: policy)
    var longest: UInt64?
    for authenticator in enrollment.authenticators {
      let digits = authenticator.parameters.digits
      guard let wait = throttle.wait(for: state.known, digits: digits, at: now) else { continue }
      longest = max(longest ?? wait, wait)
    }
    return longest
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
