import CService
package import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportLogin
import SallyportService
package import SallyportSupport
package import SallyportSystem

/// Answers logins of a host of a fleet while no verifier can be asked: backup codes alone, by the
/// reserve.
///
/// Nobody is known to be "not enrolled" then. Everybody is asked, and a user who is not in the
/// reserve gets its decoy, at every level: nobody passes without a code, enrolls, is remembered or
/// counted, and no answer says who is in it.
package struct ReserveLogins: Sendable {
  private let reserve: Reserve
  private let log: LogWriter
  private let allowance = LineAllowance()

  package init(_ reserve: Reserve, log: @escaping LogWriter) {
    (self.reserve, self.log) = (reserve, log)
  }

  /// nil: not served while the fleet is away.
  package func answer(_ question: LoginQuestion) throws(StoreTrouble) -> ServiceAnswer? {
    switch question.verb {
    case .prepare, .enrolled: .prompt(.enrolled, .away(as: 1))
    case .level: .level(.refuse)
    case .attempt(let typed, let known, let role):
      .outcome(try attempt(typed, known, role, of: question))
    case .remember, .count, .rehearse, .amend, .notices: nil
    }
  }

  /// A verifier has accepted this backup code: it is used up here as well. He gets in also where
  /// that fails, as the fleet has it.
  package func use(_ typed: Secret, of name: UserName) {
    do throws(StoreTrouble) {
      try reserve.use(typed, of: name)
    } catch {
      log(.error, .trouble(error, user: name.bytes, from: nil, .unknown))
    }
  }

  private func attempt(
    _ typed: Secret, _ known: Malformation?, _ role: ResponseRole, of question: LoginQuestion
  ) throws(StoreTrouble) -> Outcome {
    let store = ReserveStore(reserve, for: UInt64(question.policy.reserveFor))
    let authority = question.authority(over: store)
    let pending = try authority.claimant(question.name, question.account, in: question.context)
    let found = try authority.attempt(typed, knownAs: known, by: pending, as: role)
    if case .accepted = found { reserve.hasUsed() }
    let outcome = Self.told(found, try Self.malformation(of: typed, known))
    note(outcome, question, isInReserve: pending.claimant.isEnrolled)
    return outcome
  }

  /// Whether somebody is in the reserve is not told.
  private static func told(_ outcome: Outcome, _ malformation: Malformation?) -> Outcome {
    guard case .refused(let reason) = outcome else { return outcome }
    switch reason {
    case .response: return outcome
    case .notEnrolled, .unknownUser, .blocked:
      let refusal = malformation.map { Refusal.malformed($0) } ?? .wrongCode(nil)
      return .refused(.response(refusal, left: BudgetLeft(known: 0, other: 0)))
    }
  }

  private static func malformation(of typed: Secret, _ known: Malformation?) throws(StoreTrouble)
    -> Malformation?
  {
    if let known { return known }
    return try rethrow(
      { () throws(CryptoError) in try Response.malformation(of: typed, for: .away(as: 1)) },
      as: StoreTrouble.crypto)
  }

  private func note(_ outcome: Outcome, _ question: LoginQuestion, isInReserve: Bool) {
    var line = LogLine("no verifier can be asked: ")
    line.add(LogLine.outcome(outcome, of: question).bytes)
    line.add(isInReserve ? " reserve=yes" : " reserve=no")
    // Users without an account share one log allowance.
    let user = question.account?.uid ?? UInt32.max
    if let line = allowance.line(line, of: user, isCostless: outcome.isCostless) {
      log(.warning, line)
    }
  }
}

/// The reserve, as a login uses it: a code that was used is known to have to go up before
/// it is known to be used.
struct ReserveStore: RecordStore, Sendable {
  private let reserve: Reserve
  private let seconds: UInt64

  /// `seconds`: for how long it is good after the fleet has confirmed it.
  init(_ reserve: Reserve, for seconds: UInt64) {
    (self.reserve, self.seconds) = (reserve, seconds)
  }

  func account(named name: UserName) throws(StoreTrouble) -> Account { try Accounts.find(name) }

  func now() throws(StoreTrouble) -> UnixTime { try Clock.now() }

  /// nil also where it is too old.
  func load(_ account: Account) throws(StoreTrouble) -> Record? {
    guard reserve.isGood(for: seconds) else { return nil }
    return try reserve.store.load(account)
  }

  /// The service has looked in the files before it asked the fleet. Who is blocked in the fleet has
  /// no entry any more, once a verifier was asked.
  func isBlocked(_ account: Account, at now: TimeSource) throws(StoreTrouble) -> Bool { false }

  func loadDecoy(for name: [UInt8]) throws(StoreTrouble) -> Record {
    try reserve.store.loadDecoy(for: name)
  }

  func transact<Verdict>(
    _ record: Record, asKnown isKnown: Bool,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    try reserve.store.transact(record, asKnown: isKnown) {
      (enrollment, state) throws(StoreTrouble) -> (Verdict, LoginState) in
      let (verdict, next) = try body(enrollment, state)
      if !record.isDecoy, next.backupCodes?.used != state.backupCodes?.used {
        try reserve.willUse(enrollment.user)
      }
      return (verdict, next)
    }
  }
}
