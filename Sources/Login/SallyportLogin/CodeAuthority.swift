package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// Who answers the questions of a login: is this user enrolled, and is this response correct?
///
/// A front end asks, and shows or hides the answers; it never sees the secrets that verify a
/// response.
package protocol CodeAuthority: AnyObject {
  /// Whether it remembers, counts, changes enrollments and gives back what a first pass was
  /// charged; not for a program that is not root, whose word it would be.
  var isForRoot: Bool { get }
  /// Before the first question of each login, and right before it: false where there is nobody to
  /// ask, and the files may answer.
  func canBeAsked() -> Bool
  /// Says how the login of `account`, that of the name `typed`, goes on; nil for a name that nobody
  /// can have. `mayEnroll`: the account phase can ask to enroll.
  func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep
  /// Checks a response and saves the new state; throws if it was not checked or not saved.
  ///
  /// `malformation`: what the response is already known to be, whatever it looks like.
  func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(StoreTrouble) -> Outcome
  /// nil: not enrolled, for certain.
  func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble) -> PendingLogin?
  /// The same after a login that this authenticator proved, or with nil a backup code; and what its
  /// owner is to be told, which is only read. nil also where that cannot be asked.
  func notices(for account: Account, by name: Label?, in context: LoginContext)
    throws(StoreTrouble) -> (PendingLogin, [OwnerNotice])?
  /// She was told these, and they count as told; else the next login tells them once more.
  func settle(_ told: [OwnerNotice], of pending: PendingLogin, by name: Label?)
    throws(StoreTrouble)
  /// The level that applies now to a user who is not enrolled.
  func level(of account: Account, in context: LoginContext) throws(StoreTrouble) -> EnrollmentLevel
  /// From now on, and for as long as the policy says, `address` is not asked for a code.
  func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble)
  /// Tries whether an enrollment of that account could be made or changed now: before the secret is
  /// shown.
  func rehearse(for account: Account, in context: LoginContext) throws(StoreTrouble)
  /// Changes what is enrolled for the account of that name. `pending`: what the change was asked
  /// for; nil for `create`.
  func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment
  /// Counts a login of a user who is not enrolled; how many there were, including this one.
  func countLogin(of account: Account, in context: LoginContext) throws(StoreTrouble) -> UInt32
}

extension CodeAuthority {
  package func notices(for account: Account, by name: Label?, in context: LoginContext)
    throws(StoreTrouble) -> (PendingLogin, [OwnerNotice])?
  { nil }

  package func settle(_ told: [OwnerNotice], of pending: PendingLogin, by name: Label?) {}
}

/// What came of a change.
package enum Amendment: Equatable, Sendable {
  /// It is on disk.
  case done
  /// The enrollment is another one by now, or there is one; nothing was written.
  case changed
  case flawed(EnrollmentChange.Flaw)
}
