package import SallyportCore
package import SallyportSystem

/// Where enrollments and login states are kept, and what it takes to verify codes by them.
package protocol RecordStore {
  func account(named name: UserName) throws(StoreTrouble) -> Account
  func now() throws(StoreTrouble) -> UnixTime
  /// nil: not enrolled, for certain.
  func load(_ account: Account) throws(StoreTrouble) -> Record?
  func loadDecoy(for name: [UInt8]) throws(StoreTrouble) -> Record
  /// Whether root has blocked this account: nothing of it is accepted, whatever is enrolled.
  func isBlocked(_ account: Account, at now: TimeSource) throws(StoreTrouble) -> Bool
  /// Locks, reads again, and writes what `body` returns before `committed` is; `changed`: the
  /// enrollment is another than the record's, and nothing was written. `asKnown`: from a known
  /// place, which strangers let go ahead.
  func transact<Verdict>(
    _ record: Record, asKnown isKnown: Bool,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict>
}

/// A store in which a login also enrolls a user, and changes what is enrolled. The reserve of a
/// host is none.
package protocol EnrollmentStore: RecordStore {
  /// The level that root has set for this account.
  func level(of account: Account) throws(StoreTrouble) -> UserNote.Level?
  /// Whether his enrollment is in the files of one machine of the fleet: all others refuse him.
  func isElsewhere(_ name: UserName) throws(StoreTrouble) -> Bool
  /// Counts a login of a user who is not enrolled; how many there were, including this one.
  func countLogin(of account: Account) throws(StoreTrouble) -> UInt32
  /// Throws where an enrollment could not be made or changed now.
  func rehearse() throws(StoreTrouble)
  /// Keeps that an enrolling of this user was begun; nil to forget that.
  func noteEnrolling(of account: Account, begun time: UnixTime?) throws(StoreTrouble)
  /// Enrolls; throws `exists` where somebody else did meanwhile.
  func create(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble)
  /// Puts another enrollment in the place of the record's.
  func rewrite(
    _ record: Record, _ enrollment: Enrollment, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void>
  /// As `rewrite`, for the login with this random, if it was the last one to claim a pass; the
  /// record's enrollment is suspended. A store that keeps none answers `changed`.
  func suspend(
    _ record: Record, for enrollment: Enrollment, claim: UInt64, at now: UnixTime
  ) throws(StoreTrouble) -> Transaction<Void>
}

/// What a login on this machine needs besides: its policy, groups and addresses.
package protocol LoginStore: EnrollmentStore {
  /// The policy file that applies; nil: the default one, which need not exist.
  func policy(at path: [UInt8]?, base: Policy, _ login: PolicyRequest) -> PolicyReading
  func isMember(_ account: Account, of group: [UInt8]) -> Tristate
  /// Whether anybody may be blocked on this machine; what it takes is little.
  func mayBlock() throws(StoreTrouble) -> Bool
  /// Whether the address is this machine's own; true if that cannot be determined.
  func isOwn(_ address: NumericAddress) -> Bool
  /// Whether sallyport-session may be there for the users of this machine.
  var hasSessions: Bool { get }
  /// Whether this machine belongs to a fleet; true if that cannot be determined.
  var isInFleet: Bool { get }
  /// The sentences of a language, as `Policy` has its number; not for English.
  func sentences(in language: UInt64) throws(StoreTrouble) -> Sentences
}

extension LoginStore {
  package func sentences(in language: UInt64) throws(StoreTrouble) -> Sentences { Sentences() }

  /// The policy that was read. Where it could not be read who verifies codes, on a machine of a
  /// fleet the fleet does, but never for a login of uid 0.
  @inline(never)
  package func policy(of reading: PolicyReading, isSuperuser: Bool) -> Policy {
    var policy = reading.policy
    if reading.lacksVerifier { policy.isFleet = !isSuperuser && isInFleet }
    return policy
  }
}

extension EnrollmentStore {
  /// A fleet keeps none: its hosts hold back no enrollment that was begun.
  package func noteEnrolling(of account: Account, begun time: UnixTime?) throws(StoreTrouble) {}

  package func isElsewhere(_ name: UserName) throws(StoreTrouble) -> Bool { false }

  package func suspend(
    _ record: Record, for enrollment: Enrollment, claim: UInt64, at now: UnixTime
  ) throws(StoreTrouble) -> Transaction<Void> { .changed }
}

extension RecordStore {
  /// nil for a name that nobody can have. The key of everything is the account's own name: where
  /// the account database folds spellings, a name as typed would walk around the second factor.
  @inline(never)
  package func account(typed: [UInt8]) throws(StoreTrouble) -> Account? {
    guard let name = UserName(typed) else { return nil }
    return try account(named: name)
  }
}

extension Store: LoginStore {
  package func account(named name: UserName) throws(StoreTrouble) -> Account {
    try Accounts.find(name)
  }

  package func isMember(_ account: Account, of group: [UInt8]) -> Tristate {
    Accounts.isMember(account, of: group)
  }

  package func isOwn(_ address: NumericAddress) -> Bool { Addresses.isOwn(address) }

  package func now() throws(StoreTrouble) -> UnixTime { try Clock.now() }
}
