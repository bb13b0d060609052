package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// What the login needs of accounts, clock and store.
package protocol LoginStore {
  func account(named name: UserName) throws(StoreTrouble) -> Account
  /// The policy file that holds; nil: the usual one, which need not exist.
  func policy(at path: [UInt8]?, base: Policy, _ login: PolicyRequest) -> PolicyReading
  func isMember(_ account: Account, of group: [UInt8]) -> Tristate
  /// Whether the address is this machine's own; true also where that cannot be found out.
  func isOwn(_ address: NumericAddress) -> Bool
  func now() throws(StoreTrouble) -> UnixTime
  /// nil: not enrolled, for certain.
  func load(_ account: Account) throws(StoreTrouble) -> Record?
  func loadDecoy(for name: [UInt8]) throws(StoreTrouble) -> Record
  /// What is kept of a user apart from an enrollment.
  func note(of name: UserName) throws(StoreTrouble) -> UserNote
  /// Counts a login of one who is not enrolled; how many there were, with this one.
  func countLogin(of name: UserName) throws(StoreTrouble) -> UInt32
  /// Enrolls; throws `exists` where somebody else did meanwhile.
  func create(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble)
  /// Puts another enrollment in the place of the record's.
  func rewrite(
    _ record: Record, _ enrollment: Enrollment, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void>
  /// Locks, reads again, and writes what `body` returns before `committed` is; `changed`: the
  /// enrollment is another than the record's, and nothing was written. `asKnown`: from a known
  /// place, which strangers let go ahead.
  func transact<Verdict>(
    _ record: Record, asKnown isKnown: Bool,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict>
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

/// What a user is to the store.
package enum EnrollmentStatus: Equatable, Sendable {
  case enrolled
  case notEnrolled
  case unknownUser
  /// The name breaks the rules of `UserName`, so nobody can be enrolled under it. Not looked up:
  /// whom a name service would take "alice " for is not known, so no policy lets it pass.
  case noName
}

/// A login before the response: whose it is, and the record that the response will be judged by.
package final class PendingLogin: Sendable {
  package let standing: EnrollmentStatus
  /// The account's name, or the name as typed.
  package let name: [UInt8]
  package let account: Account?
  /// The user's, or the decoy's: the same prompt, the same work and the same write for everybody.
  package let record: Record

  init(standing: EnrollmentStatus, name: [UInt8], account: Account?, record: Record) {
    self.standing = standing
    self.name = name
    self.account = account
    self.record = record
  }
}

/// How the auth phase of a login goes on.
package enum AuthStep: Sendable {
  case prompt(PendingLogin)
  /// Not enrolled, and need not be.
  case skip
  /// Not enrolled: the account phase asks to.
  case enroll(EnrollmentLevel, Account)
}

/// What a login attempt came to; the state that says so is on disk.
package enum Outcome: Equatable, Sendable {
  case accepted(Proof)
  case refused(Reason)

  package enum Reason: Equatable, Sendable {
    case response(Refusal, left: BudgetLeft)
    case notEnrolled
    case unknownUser
  }
}

/// Wrong codes that will still be judged.
package struct BudgetLeft: Equatable, Sendable {
  package let known: UInt64
  package let other: UInt64
}

/// Where a login comes from and how it is to be judged.
package struct LoginContext: Sendable {
  package let origin: Origin
  package let service: Label?
  package let policy: Policy
}

/// The two verbs of a login, answered by the store of this machine.
package struct Verifier<Store: LoginStore> {
  package let store: Store

  package init(store: Store) { self.store = store }

  /// nil for a name that nobody can have. The key of everything is the account's own name: where
  /// the account database folds spellings, a name as typed would walk around the second factor.
  @inline(never)
  package func account(_ typed: [UInt8]) throws(StoreTrouble) -> Account? {
    guard let name = UserName(typed) else { return nil }
    return try store.account(named: name)
  }

  /// Reads what is enrolled for `account`, that of the name `typed`, and says how its login goes
  /// on. `mayEnroll`: the line has the word `enroll`.
  package func prepare(
    _ typed: [UInt8], _ account: Account?, under policy: Policy, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep {
    guard let account else { return .prompt(try decoy(.noName, name: typed, account: nil)) }
    if let pending = try enrolled(account) { return .prompt(pending) }
    let action = try level(of: account, under: policy)
      .action(hasAccount: account.uid != nil, mayEnroll: mayEnroll, after: first)
    switch action {
    case .refuse: return .prompt(try decoy(for: account))
    case .pass: return .skip
    case .enroll(let level): return .enroll(level, account)
    }
  }

  /// The level that holds now for one who is not enrolled.
  package func level(of account: Account, under policy: Policy) throws(StoreTrouble)
    -> EnrollmentLevel
  {
    policy.level(of: try store.note(of: account.name).level, at: try store.now())
  }

  /// nil: not enrolled, for certain.
  package func enrolled(_ account: Account) throws(StoreTrouble) -> PendingLogin? {
    guard let record = try store.load(account) else { return nil }
    return PendingLogin(
      standing: .enrolled, name: account.name.bytes, account: account, record: record)
  }

  /// Judges a response and saves the new state; throws where it was not judged or not saved.
  ///
  /// `malformation`: what the response is already known to be, whatever it looks like.
  package func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    _ visit: LoginContext,
    as turn: Turn
  ) throws(StoreTrouble) -> Outcome {
    var pending = pending
    for _ in 0..<3 {
      let response = try classify(typed, malformation, pending.record.enrollment)
      let isKnown = pending.record.state.isKnown(visit.origin)
      let transaction = try store.transact(pending.record, asKnown: isKnown) {
        (enrollment, state) throws(StoreTrouble) -> (Outcome, LoginState) in
        // The time of the lock, not of before it: a login that was stopped in between would bring
        // back an old time, and have all the time since then credited to the budget once more.
        let now = try store.now()
        return try judge(response, enrollment, state, pending.standing, visit, now, turn)
      }
      switch transaction {
      case .committed(let outcome): return outcome
      // Asked is asked: whoever has been unenrolled meanwhile is judged by the decoy.
      case .changed:
        guard let account = try account(pending.name) else { continue }
        if let another = try enrolled(account) {
          pending = another
        } else {
          pending = try decoy(for: account)
        }
      }
    }
    throw .unsettled(path: pending.record.path)
  }

  private func decoy(for account: Account) throws(StoreTrouble) -> PendingLogin {
    let standing: EnrollmentStatus = account.uid == nil ? .unknownUser : .notEnrolled
    return try decoy(standing, name: account.name.bytes, account: account)
  }

  private func decoy(_ standing: EnrollmentStatus, name: [UInt8], account: Account?)
    throws(StoreTrouble) -> PendingLogin
  {
    PendingLogin(
      standing: standing, name: name, account: account, record: try store.loadDecoy(for: name))
  }
}

private func classify(_ typed: Secret, _ known: Malformation?, _ enrollment: Enrollment)
  throws(StoreTrouble) -> Response
{
  do throws(CryptoError) {
    // Before the lock: the first fetch of an algorithm takes a millisecond or two.
    try prepareCrypto()
    let response = try Response.classify(typed, for: enrollment)
    return known.map { .malformed($0) } ?? response
  } catch {
    throw .crypto(error)
  }
}

/// Decides, and turns the decision on a decoy into a refusal whatever it was.
private func judge(
  _ response: Response, _ enrollment: Enrollment, _ state: LoginState, _ standing: EnrollmentStatus,
  _ visit: LoginContext, _ now: UnixTime, _ turn: Turn
) throws(StoreTrouble) -> (Outcome, LoginState) {
  let decision: Decision
  do throws(CryptoError) {
    decision = try decide(
      on: response, enrollment: enrollment, state: state, from: visit.origin,
      through: visit.service, at: now, under: visit.policy, as: turn)
  } catch {
    throw .crypto(error)
  }
  switch (standing, decision) {
  case (.enrolled, .accept(let proof, let next)):
    return (.accepted(proof), next)
  case (.enrolled, .refuse(let refusal, let next)):
    let left = budgetLeft(enrollment, next, visit.policy, now)
    return (.refused(.response(refusal, left: left)), next)
  case (.notEnrolled, .accept(_, let next)), (.notEnrolled, .refuse(_, let next)):
    return (.refused(.notEnrolled), next)
  case (.unknownUser, .accept(_, let next)), (.unknownUser, .refuse(_, let next)),
    (.noName, .accept(_, let next)), (.noName, .refuse(_, let next)):
    return (.refused(.unknownUser), next)
  }
}

private func budgetLeft(
  _ enrollment: Enrollment, _ state: LoginState, _ policy: Policy, _ now: UnixTime
) -> BudgetLeft {
  let throttle = Throttle(for: enrollment, state, under: policy)
  return BudgetLeft(
    known: throttle.responsesLeft(in: state.known, at: now),
    other: throttle.responsesLeft(in: state.other, at: now))
}
