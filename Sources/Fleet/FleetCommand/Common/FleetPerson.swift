import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// A user whose codes the fleet verifies, as root's verbs see and change the enrollment. The
/// service of this machine asks a verifier, which makes the change where this host may. No
/// secret of the enrollment comes to this machine but a new one.
struct FleetPerson: Person {
  package let account: Account
  package let login: LoginContext
  package let context: Context
  let place: FleetEnvironment

  init(_ account: Account, under policy: Policy, in context: Context, of place: FleetEnvironment) {
    (self.account, self.context, self.place) = (account, context, place)
    login = .command(under: policy)
  }

  package var isInFleet: Bool { true }
  package var absence: CommandError { .notEnrolled }
  package var changedMeanwhile: CommandError { isBlocked ? .blockedInFleet : .changed }

  /// Why nobody enrolls him, and nothing new is enrolled of him; false where it cannot be told.
  private var isBlocked: Bool {
    guard let now = try? context.time(), let blocked = (try? record())?.blocked else {
      return false
    }
    return !blocked.isOver(at: now)
  }

  /// It was tried before whether it can be done: what fails now may have been done.
  package func failed(_ error: CommandError) -> CommandError {
    guard case .store(.service) = error.cause else { return error }
    return .unsettled(account.name.typedOrShown)
  }

  /// Its secrets do not come here.
  package func clockOffset(of typed: Secret) -> (seconds: Int64, isToken: Bool)? { nil }

  package func found() throws(CommandError) -> PendingLogin? {
    let found = try ask { (authority) throws(StoreTrouble) in
      try authority.enrolled(account, in: login)
    }
    if found?.isAway == true { throw .away(account.name.typedOrShown) }
    return found
  }

  /// Tries whether this host may change him, before anything is asked or shown.
  package func rehearse() throws(CommandError) {
    try ask { (authority) throws(StoreTrouble) in
      try authority.rehearse(for: account, in: login)
    }
  }

  /// Nobody is replaced in the fleet.
  package func existing(force: Bool) throws(CommandError) -> ExistingEnrollment {
    if try found() != nil { throw .enrolled(account.name.typedOrShown) }
    try rehearse()
    return .none
  }

  package func enroll(_ enrollment: Enrollment, replacing: Bool, isCodeShown: Bool)
    throws(CommandError)
  {
    switch try amendOnce(.create(enrollment), of: nil) {
    case .done: return
    case .changed: throw isBlocked ? .blockedInFleet : .enrolledMeanwhile(isCodeShown: isCodeShown)
    case .flawed(let flaw):
      throw CommandError(flaw, authenticators: enrollment.authenticators.count)
    }
  }

  /// Each has the time of a whole login.
  package func authority() throws(CommandError) -> any CodeAuthority {
    // The service looks up the account, too.
    guard account.uid != nil else { throw .noSuchUser }
    return place.authority()
  }

  package func error(for trouble: StoreTrouble) -> CommandError {
    guard case .service(_, .notServed) = trouble else { return .store(trouble) }
    guard let file = try? place.membership() else { return .isNoHost }
    let (told, user) = (place.rights(for: account.name), account.name.typedOrShown)
    return CommandError {
      let right: HostRight = $0.verb == "enroll" ? .enrolls : .changes
      // A host that may, with verifiers that cannot yet.
      if told.map({ $0.left(of: right) > 0 }) ?? file.enrolls {
        return CommandError.move(.notServed, nil).message($0)
      }
      return CommandError.mayNotChange(user, MissingRight(right, told, host: file.host)).message($0)
    }
  }
}
