package import ArgumentParser
package import OneTimePassword
package import SallyportAdministration
package import SallyportCore
package import SallyportDoctor
package import SallyportLogin
import SallyportSupport
package import SallyportSystem

/// What the command asks of the fleet of this machine. A command that is built without the fleet
/// has nobody to ask.
package protocol FleetAccess {
  /// The command with the fleet's verb.
  var command: any ParsableCommand.Type { get }
  /// Whether this machine is a host of a fleet, or it cannot be known.
  var isThere: Bool { get }
  /// Throws where this machine is no host, or what it has of its fleet cannot be read.
  func mustBeHost() throws(CommandError)
  /// An account whose codes the fleet verifies.
  func account(_ account: Account, under policy: Policy, in context: Context) -> any FleetAccount
  /// The command that moves the files of this account to the fleet.
  func push(of account: Account, from store: Store) -> String
  /// What doctor tells of the fleet; nil where this machine is in none, or what it has of it cannot
  /// be read.
  func doctorFacts(_ store: Store, in context: Context) throws(CommandError) -> FleetFacts?
}

/// An account whose enrollment the fleet has, as root's verbs see and change it. No secret of it
/// comes to this machine but a new one.
package protocol FleetAccount {
  var account: Account { get }
  var policy: Policy { get }
  /// What is enrolled. Throws `notEnrolled`.
  func enrolled() throws(CommandError) -> PendingLogin
  /// Throws where there is an enrollment.
  func mustBeNew() throws(CommandError)
  /// Tries whether this host may change the account, before anything is asked or shown.
  func rehearse() throws(CommandError)
  /// What the code proves, which is used up. Throws `code` if it is refused.
  func proof(_ typed: Secret, _ pending: PendingLogin) throws(CommandError) -> Proof
  /// `pending`: what is changed; nil to enroll the user.
  func amend(_ change: EnrollmentChange, of pending: PendingLogin?) throws(CommandError)
  func record() throws(CommandError) -> FleetRecord
  /// Forgets wrong codes. `id`: of the enrollment; another one is not changed.
  func unlock(_ id: UInt64) throws(CommandError)
  /// Ends the enrollment of that id.
  func end(_ id: UInt64) throws(CommandError)
  /// nil: the policy's level applies.
  func set(_ level: UserNote.Level?) throws(CommandError)
  /// Synchronizes an authenticator, the one of this name or the one that the codes match.
  func resynchronize(by codes: CodePair, named name: Label?, of enrollment: Enrollment)
    throws(CommandError) -> Resync
}

/// What the fleet has of an account, without secrets.
package struct FleetRecord {
  /// What is enrolled, and what was used of it. Fails where nothing is, or another host has it.
  package let enrolled: Result<(enrollment: Enrollment, state: LoginState), CommandError>
  package let note: UserNote
  /// Logins counted without an enrollment.
  package let logins: UInt32

  package init(
    _ enrolled: Result<(enrollment: Enrollment, state: LoginState), CommandError>,
    _ note: UserNote, logins: UInt32
  ) {
    (self.enrolled, self.note, self.logins) = (enrolled, note, logins)
  }
}

extension FleetAccount {
  /// Asks for one of the user's codes, and uses it up. Throws `code` if it is refused.
  @discardableResult
  func prove(_ prompt: String, _ pending: PendingLogin, _ subject: Subject)
    throws(CommandError) -> Consequence
  {
    try subject.context.prove(prompt, subject.output) { (typed) throws(CommandError) in
      try proof(typed, pending)
    }
  }

  /// Of the authenticators.
  func names(of pending: PendingLogin) -> [Label] { pending.shape.authenticators.map(\.name) }
}

extension Subject {
  /// The user, where the fleet verifies the codes: this machine is a host of one, the policy has
  /// `verification = fleet` for the user, no store is named, and there are no files here. nil: the
  /// verb is about the files, as it is where what is stored under another spelling is meant; where
  /// the fleet verifies the codes all the same, says so.
  func inFleet(_ options: PolicyOptions? = nil) throws(CommandError) -> (any FleetAccount)? {
    guard !isStoreNamed, entry == nil, context.fleet?.isThere ?? true else { return nil }
    let account = try account()
    let fleet = context.fleet
    let policy = context.policy(at: options?.conf, for: account, in: store, warns: fleet != nil)
    guard policy.isFleet else { return nil }
    guard let fleet else { throw .noFleet }
    if hasFiles {
      let shown = printable(user.utf8, limit: 64)
      let text = "the files of \(shown) verify no codes: the policy has verification = fleet"
      let hint = "\(fleet.push(of: account, from: store))      moves them"
      let message = Message(text, .configuration, hints: [hint])
      context.terminal.write(Array(message.written.utf8), to: .aside)
      return nil
    }
    guard account.uid != nil || users.allowMissing else { throw .noSuchUser }
    return fleet.account(account, under: policy, in: context)
  }

  /// Also where they are marked, or cannot be read.
  private var hasFiles: Bool {
    do throws(CommandError) {
      _ = try record()
      return true
    } catch {
      if case .store(.noStore) = error.cause { return false }
      return !error.isAbsence
    }
  }
}
