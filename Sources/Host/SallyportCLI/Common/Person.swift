package import OneTimePassword
package import SallyportAdministration
package import SallyportCore
package import SallyportLogin
import SallyportSupport
package import SallyportSystem

/// The person that a verb of root is about: one body for each verb. The record is
/// in the files of this machine, or its fleet has it, whose secrets do not come to this machine.
package protocol Person {
  var account: Account { get }
  /// A local login of this person, under the policy that applies.
  var login: LoginContext { get }
  var context: Context { get }
  var isInFleet: Bool { get }
  /// Who decides on codes and changes; a new one for each question.
  func authority() throws(CommandError) -> any CodeAuthority
  /// What it means that the authority has this trouble.
  func error(for trouble: StoreTrouble) -> CommandError
  /// What is enrolled; nil if nothing is.
  func found() throws(CommandError) -> PendingLogin?
  /// Why nothing is enrolled.
  var absence: CommandError { get }
  /// Another enrollment has taken the place of the one that was seen, of that record.
  var changedMeanwhile: CommandError { get }
  /// What it means that a change failed, which was tried before.
  func failed(_ error: CommandError) -> CommandError
  /// How far the clock is off that shows this wrong code, in seconds; nil where that is not known.
  func clockOffset(of typed: Secret) throws(CommandError) -> (seconds: Int64, isToken: Bool)?
  /// What an enrollment would replace. Throws where there is something that it may not replace.
  func existing(force: Bool) throws(CommandError) -> ExistingEnrollment
  /// Tries whether the person can be enrolled or changed, before anything is asked or shown.
  func rehearse() throws(CommandError)
  /// Enrolls the person. Throws `enrolledMeanwhile`, but for one who is to be replaced.
  func enroll(_ enrollment: Enrollment, replacing: Bool, isCodeShown: Bool) throws(CommandError)
  /// Changes what is enrolled, once.
  func amendOnce(_ change: EnrollmentChange, of pending: PendingLogin?) throws(CommandError)
    -> Amendment
  /// What is kept of the person.
  func record() throws(CommandError) -> PersonRecord
  /// What is enrolled, and what was used of it; of a person in the fleet without secrets. Throws
  /// `absence` where nothing is. Files that only say what holds without an enrollment are not read.
  func enrolledRecord() throws(CommandError) -> (enrollment: Enrollment, state: LoginState)
  /// The level that root has set.
  func level() throws(CommandError) -> UserNote.Level?

  // Each changes the enrollment of this id alone.
  func unlock(_ id: UInt64) throws(CommandError)
  func end(_ id: UInt64) throws(CommandError)
  /// What was remembered; nil where that is not told.
  func forget(_ id: UInt64) throws(CommandError) -> [RememberedOrigin]?
  /// nil: the policy's level applies. `owner`: the account as the level is kept for it.
  func set(_ level: UserNote.Level?, of owner: Account) throws(CommandError)
  func resynchronize(by codes: CodePair, named name: Label?, _ id: UInt64)
    throws(CommandError) -> Resync
  /// What would be enrolled after `restore`; of people of a fleet without secrets.
  func former(_ suspension: Suspension, _ id: UInt64) throws(CommandError) -> Enrollment
  func restore(_ suspension: Suspension, _ id: UInt64) throws(CommandError)
  /// Blocks the account on this machine, or in its fleet; false where a login of it may be held up.
  func block(until: UnixTime?) throws(CommandError) -> Bool
  /// False where nothing blocked it.
  func unblock() throws(CommandError) -> Bool
}

/// What is kept of a person; of one in the fleet without secrets.
package struct PersonRecord {
  /// What is enrolled, and what was used of it. Fails where nothing is, or another host has it.
  package let enrolled: Result<(enrollment: Enrollment, state: LoginState), CommandError>
  /// As it holds for the account.
  package let note: UserNote
  /// What is kept under the name, also for another uid.
  package let kept: UserNote
  /// Logins counted without an enrollment.
  package let logins: UInt32
  /// When an enrolling at a login was begun that has not ended.
  package let begun: UnixTime?
  /// By its fleet, perhaps over by now; nil: by none.
  package let blocked: Store.Blocked?

  package init(
    _ enrolled: Result<(enrollment: Enrollment, state: LoginState), CommandError>,
    _ note: UserNote, kept: UserNote? = nil, logins: UInt32, begun: UnixTime? = nil,
    blocked: Store.Blocked? = nil
  ) {
    (self.enrolled, self.note, self.kept) = (enrolled, note, kept ?? note)
    (self.logins, self.begun, self.blocked) = (logins, begun, blocked)
  }
}

extension Person {
  var policy: Policy { login.policy }

  package func ask<Value>(_ question: (any CodeAuthority) throws(StoreTrouble) -> Value)
    throws(CommandError) -> Value
  {
    let authority = try authority()
    return try rethrow(
      { () throws(StoreTrouble) in try question(authority) }, as: { error(for: $0) })
  }

  /// What is enrolled. Throws `absence` where nothing is.
  func enrolled() throws(CommandError) -> PendingLogin {
    guard let found = try found() else { throw absence }
    return found
  }

  /// What the code proves, as in a local login; it is used up. Throws `code` if it is refused.
  func proof(_ typed: Secret, _ pending: PendingLogin) throws(CommandError) -> Proof {
    let outcome = try ask { (authority) throws(StoreTrouble) in
      try authority.attempt(typed, knownAs: nil, by: pending, as: .last(givingBack: nil))
    }
    switch outcome {
    case .accepted(let proof): return proof
    case .refused(.response(let refusal, _)):
      throw .code(try rejection(refusal, of: typed, pending))
    // The user was unenrolled meanwhile.
    case .refused(.notEnrolled), .refused(.unknownUser): throw absence
    case .refused(.blocked): throw .blocked
    }
  }

  /// For root, who can read the secrets of files: a login never computes it.
  private func rejection(_ refusal: Refusal, of typed: Secret, _ pending: PendingLogin)
    throws(CommandError) -> CodeRefused
  {
    switch refusal {
    case .throttled:
      let now = try context.time()
      let current = (try? found()) ?? pending
      return CodeRefused(refusal: refusal, wait: current.wait(at: now))
    case .wrongCode:
      let found = try clockOffset(of: typed)
      return CodeRefused(
        refusal: refusal, wait: 0, clockOffset: found?.seconds, isToken: found?.isToken ?? false,
        ignored: found == nil ? try ignored(byAppOf: [typed]) : nil)
    case .malformed:
      return CodeRefused(refusal: refusal, wait: 0, ignored: try ignored(byAppOf: [typed]))
    case .replayed, .clock, .mustEnroll: return CodeRefused(refusal: refusal, wait: 0)
    }
  }

  /// Asks for a code or a backup code before a change that needs the user's consent, and uses it
  /// up. Throws `code` if it is refused. Returns what is left of that where nothing else is
  /// changed.
  @discardableResult
  func prove(_ prompt: String, _ pending: PendingLogin, _ subject: Subject)
    throws(CommandError) -> Consequence
  {
    let (context, output) = (subject.context, subject.output)
    context.terminal.watchForInterruption()
    let typed = try output.ask(prompt, echo: false, or: .nothingChanged)
    let consequence: Consequence =
      switch try proof(typed, pending.forChange) {
      // The next one comes soon.
      case .authenticator, .pass, .claim: .nothingChanged
      case .backupCode: .backupCodeUsed
      }
    try context.stopIfInterrupted(consequence)
    return consequence
  }

  /// Changes what is enrolled, and again where others changed the same enrollment meanwhile.
  func amend(_ change: EnrollmentChange, of before: PendingLogin) throws(CommandError) {
    var pending = before
    for _ in 0..<3 {
      switch try amendOnce(change, of: pending) {
      case .done: return
      case .flawed(let flaw):
        throw CommandError(flaw, authenticators: pending.shape.authenticators.count)
      case .changed: pending = try enrolled()
      }
      guard pending.enrollmentID == before.enrollmentID else { break }
    }
    throw changedMeanwhile
  }

  package func amendOnce(_ change: EnrollmentChange, of pending: PendingLogin?)
    throws(CommandError) -> Amendment
  {
    do throws(CommandError) {
      return try ask { (authority) throws(StoreTrouble) in
        try authority.amend(change, of: account.name, pending, in: login)
      }
    } catch {
      throw failed(error)
    }
  }

  /// Of the authenticators.
  func names(of pending: PendingLogin) -> [Label] { pending.shape.authenticators.map(\.name) }
}

/// Checks a change by the names of the user's authenticators, before a code is spent on it.
func checking(_ names: [Label], _ check: ([Label]) throws(EnrollmentChange.Flaw) -> Void)
  throws(CommandError)
{
  try rethrow(
    { () throws(EnrollmentChange.Flaw) in try check(names) },
    as: { CommandError($0, authenticators: names.count) })
}

extension CommandError {
  /// Why a change is refused, for a user with this number of authenticators.
  package init(_ flaw: EnrollmentChange.Flaw, authenticators count: Int) {
    switch flaw {
    case .enrolled: self = .enrolledAlready(authenticators: count)
    case .noSuchAuthenticator(let name): self = .noSuchAuthenticator(name.text)
    case .lastAuthenticator: self = .lastAuthenticator
    case .nameTaken(let name): self = .nameTaken(name.text)
    case .tooManyAuthenticators: self = .tooManyAuthenticators
    case .tooManyPasses: self = .tooManyPasses
    case .secretTaken(let name): self = .secretTaken(name.text)
    }
  }
}
