import OneTimePassword
import SallyportCLI
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// A user whose codes the fleet verifies, as root's verbs see and change the enrollment. The
/// service of this machine asks a verifier, which makes the change where this host `enrolls`. No
/// secret of the enrollment comes to this machine but a new one.
struct FleetPerson: FleetAccount {
  package let account: Account
  private let login: LoginContext
  let context: Context
  let place: FleetEnvironment

  init(_ account: Account, under policy: Policy, in context: Context, of place: FleetEnvironment) {
    (self.account, self.context, self.place) = (account, context, place)
    login = LoginContext(policy: policy, origin: .local(own: true), service: .sallyport)
  }

  package var policy: Policy { login.policy }

  /// What is enrolled. Throws `notEnrolled`.
  package func enrolled() throws(CommandError) -> PendingLogin {
    guard let found = try found() else { throw .notEnrolled }
    return found
  }

  /// Throws where somebody is enrolled.
  package func mustBeNew() throws(CommandError) {
    if try found() != nil { throw .fleet(.enrolled(account.name.typedOrShown)) }
  }

  private func found() throws(CommandError) -> PendingLogin? {
    let found = try ask { (examiner) throws(StoreTrouble) in
      try examiner.enrolled(account, in: login)
    }
    if found?.isAway == true { throw .fleet(.away(account.name.typedOrShown)) }
    return found
  }

  /// Tries whether this host may change him, before anything is asked or shown.
  package func rehearse() throws(CommandError) {
    try ask { (examiner) throws(StoreTrouble) in
      try examiner.rehearse(for: account, in: login)
    }
  }

  /// What the code proves, which is used up. Throws `code` if it is refused.
  package func proof(_ typed: Secret, _ pending: PendingLogin) throws(CommandError) -> Proof {
    let outcome = try ask { (examiner) throws(StoreTrouble) in
      try examiner.attempt(typed, knownAs: nil, by: pending, as: .last(givingBack: nil))
    }
    switch outcome {
    case .accepted(let proof): return proof
    case .refused(.response(let refusal, _)):
      throw .code(CodeRefused(refusal: refusal, wait: pending.shape.wait))
    case .refused(.notEnrolled), .refused(.unknownUser): throw .notEnrolled
    }
  }

  /// `pending`: what is changed; nil to enroll him.
  package func amend(_ change: EnrollmentChange, of pending: PendingLogin?) throws(CommandError) {
    let done: Amendment
    do throws(CommandError) {
      done = try ask { (examiner) throws(StoreTrouble) in
        try examiner.amend(change, of: account.name, pending, in: login)
      }
    } catch {
      // It was tried before whether it can be done: what fails now may have been done.
      guard case .store(.service) = error.cause else { throw error }
      throw .fleet(.unsettled(account.name.typedOrShown))
    }
    switch done {
    case .done: break
    case .changed: throw pending == nil ? .enrolledMeanwhile(isCodeShown: true) : .fleet(.changed)
    case .flawed(let flaw):
      throw CommandError(flaw, authenticators: pending?.shape.authenticators.count ?? 0)
    }
  }

  private func ask<Value>(_ question: (any CodeAuthority) throws(StoreTrouble) -> Value)
    throws(CommandError) -> Value
  {
    // The service looks up the account, too.
    guard account.uid != nil else { throw .noSuchUser }
    do throws(StoreTrouble) {
      // Each has the time of a whole login.
      return try question(place.examiner())
    } catch {
      if case .service(_, .notServed) = error {
        throw .fleet(.mayNotChange(account.name.typedOrShown))
      }
      throw .store(error)
    }
  }
}
