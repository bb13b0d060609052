package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// Answers from a store: the files of this machine, or the database of a fleet.
package final class RecordAuthority<Store: RecordStore> {
  private let store: Store
  private let clock: (() throws(StoreTrouble) -> UnixTime)?
  private let isRoots: Bool

  /// `now`: nil for the store's own clock. `isRoots`: root changes enrollments by a command, also
  /// of who is blocked.
  package init(
    store: Store, now: (() throws(StoreTrouble) -> UnixTime)? = nil, isRoots: Bool = false
  ) {
    (self.store, clock, self.isRoots) = (store, now, isRoots)
  }

  private func now() throws(StoreTrouble) -> UnixTime {
    guard let clock else { return try store.now() }
    return try clock()
  }

  package func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble)
    -> PendingLogin?
  {
    guard let record = try store.load(account) else { return nil }
    return PendingLogin(.enrolled(account), record, context)
  }

  package func notices(for account: Account, by name: Label?, in context: LoginContext)
    throws(StoreTrouble) -> (PendingLogin, [OwnerNotice])?
  {
    guard let pending = try enrolled(account, in: context), let record = pending.record else {
      return nil
    }
    return (pending, record.state.notices(of: record.enrollment, at: try now()))
  }

  package func settle(_ told: [OwnerNotice], of pending: PendingLogin, by name: Label?)
    throws(StoreTrouble)
  {
    let record = try record(of: pending)
    var state = record.state
    state.settle(told, by: name, of: record.enrollment)
    // Nothing is written where nothing counts as told.
    if state.notices == record.state.notices { return }
    _ = try store.transact(record, asKnown: true) {
      (enrollment, state) throws(StoreTrouble) -> (Bool, LoginState) in
      // Throws where the caller waits no more.
      _ = try now()
      var state = state
      state.settle(told, by: name, of: enrollment)
      return (true, state)
    }
  }

  package func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(StoreTrouble) -> Outcome {
    var pending = pending
    var record = try record(of: pending)
    for _ in 0..<3 {
      let response = try classify(typed, malformation, record.enrollment)
      let isKnown = record.state.isKnown(pending.context.origin)
      let transaction = try store.transact(record, asKnown: isKnown) {
        (enrollment, state) throws(StoreTrouble) -> (Outcome, LoginState) in
        // The time of the lock, not of before it: a login that was stopped in between would bring
        // back an old time, and have all the time since then credited to the budget once more.
        let now = try now()
        let (outcome, next) = try pending.decided(
          on: response, of: enrollment, state, at: now, as: role)
        // Under the lock, which `block` takes once it has written: what it does not wait for sees
        // it.
        if case .accepted = outcome, let account = pending.claimant.account,
          try store.isBlocked(account, at: { now })
        {
          return (.refused(.blocked), state)
        }
        return (outcome, next)
      }
      switch transaction {
      case .committed(let outcome): return outcome
      // A user who was unenrolled since the prompt is checked against the decoy.
      case .changed:
        let account = try store.account(typed: pending.name)
        pending = try claimant(pending.name, account, in: pending.context)
        record = try self.record(of: pending)
      }
    }
    throw .unsettled(path: record.path)
  }

  /// Whose record verifies a response: the user's, or a decoy's if the user is not enrolled.
  package func claimant(_ typed: [UInt8], _ account: Account?, in context: LoginContext)
    throws(StoreTrouble) -> PendingLogin
  {
    guard let account else { return try decoy(.invalid(typed), context) }
    if let pending = try known(account, in: context) { return pending }
    return try decoy(for: account, context)
  }

  /// Of who is enrolled or blocked; nil: neither, for certain.
  @inline(never)
  private func known(_ account: Account, in context: LoginContext) throws(StoreTrouble)
    -> PendingLogin?
  {
    if try isBlocked(account) { return try decoy(.blocked(account), context) }
    return try enrolled(account, in: context)
  }

  @inline(never) private func isBlocked(_ account: Account) throws(StoreTrouble) -> Bool {
    try store.isBlocked(account, at: now)
  }

  private func record(of pending: PendingLogin) throws(StoreTrouble) -> Record {
    guard let record = pending.record else { throw .noStore(path: "") }
    return record
  }

  package func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble) {
    _ = try store.transact(try record(of: pending), asKnown: true) {
      (_, state) throws(StoreTrouble) -> (Bool, LoginState) in
      var state = state
      state.grant(address, service: pending.context.service, at: try now())
      return (true, state)
    }
  }

  private func decoy(for account: Account, _ context: LoginContext) throws(StoreTrouble)
    -> PendingLogin
  {
    try decoy(account.uid == nil ? .unknown(account.name) : .notEnrolled(account), context)
  }

  private func decoy(_ claimant: Claimant, _ context: LoginContext) throws(StoreTrouble)
    -> PendingLogin
  {
    PendingLogin(claimant, try store.loadDecoy(for: claimant.name), context)
  }
}

extension RecordAuthority: CodeAuthority where Store: EnrollmentStore {
  package var isForRoot: Bool { true }
  package func canBeAsked() -> Bool { true }

  package func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep {
    guard let account else { return .prompt(try decoy(.invalid(typed), context)) }
    if let pending = try known(account, in: context) { return .prompt(pending) }
    let action = try level(of: account, in: context)
      .action(hasAccount: account.uid != nil, mayEnroll: mayEnroll, after: first)
    switch action {
    case .refuse: return .prompt(try decoy(for: account, context))
    case .pass: return .skip
    case .enroll(let level): return .enroll(level, account)
    }
  }

  package func level(of account: Account, in context: LoginContext) throws(StoreTrouble)
    -> EnrollmentLevel
  {
    if try store.isElsewhere(account.name) { return .refuse }
    if try isBlocked(account) { return .refuse }
    return context.policy.level(of: try store.level(of: account), at: try now())
  }

  package func rehearse(for account: Account, in context: LoginContext) throws(StoreTrouble) {
    try store.rehearse()
    // Until it has ended, `status` can tell of it, whatever becomes of this process. That alone
    // keeps nobody from enrolling.
    do throws(StoreTrouble) { try store.noteEnrolling(of: account, begun: try now()) } catch {}
  }

  package func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment {
    if case .create(let enrollment) = change {
      do throws(EnrollmentChange.Flaw) {
        try enrollment.checkSecrets()
      } catch {
        return .flawed(error)
      }
      return try isBlocked(Account(name: user, uid: enrollment.uid)) ? .changed : create(enrollment)
    }
    guard let record = pending?.record else { return .changed }
    if !isRoots, change.isNewWayIn,
      try isBlocked(Account(name: user, uid: record.enrollment.uid))
    {
      return .changed
    }
    var changed: Enrollment
    do throws(EnrollmentChange.Flaw) {
      changed = try change.applied(to: record.enrollment, record.state)
    } catch {
      return .flawed(error)
    }
    let done: Transaction<Void>
    if case .replace(_, _, let claim) = change {
      let now = try now()
      changed.suspended.append(Suspension(id: try Random.identifier(), since: now))
      done = try store.suspend(record, for: changed, claim: claim, at: now)
    } else {
      let changed = changed
      done = try store.rewrite(record, changed) { change.applied(to: $0, of: changed) }
    }
    switch done {
    case .committed: return .done
    case .changed: return .changed
    }
  }

  private func create(_ enrollment: Enrollment) throws(StoreTrouble) -> Amendment {
    do throws(StoreTrouble) {
      try store.create(enrollment, LoginState(initialFor: enrollment))
      return .done
    } catch {
      if case .exists = error { return .changed }
      throw error
    }
  }

  package func countLogin(of account: Account, in context: LoginContext) throws(StoreTrouble)
    -> UInt32
  {
    try store.countLogin(of: account)
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

extension PendingLogin {
  /// Decides, and turns any decision on a decoy into a refusal.
  fileprivate func decided(
    on response: Response, of enrollment: Enrollment, _ state: LoginState, at now: UnixTime,
    as role: ResponseRole
  ) throws(StoreTrouble) -> (Outcome, LoginState) {
    let decision: Decision
    do throws(CryptoError) {
      decision = try decide(
        on: response, enrollment: enrollment, state: state, from: context.origin,
        through: context.service, at: now, under: policy, as: role)
    } catch {
      throw .crypto(error)
    }
    switch claimant {
    case .enrolled: break
    case .notEnrolled: return (.refused(.notEnrolled), decision.state)
    case .blocked: return (.refused(.blocked), decision.state)
    case .unknown, .invalid: return (.refused(.unknownUser), decision.state)
    }
    switch decision.verdict {
    case .accept(let proof): return (.accepted(proof), decision.state)
    case .refuse(let refusal):
      let left = budgetLeft(of: enrollment, decision.state, under: policy, at: now)
      return (.refused(.response(refusal, left: left)), decision.state)
    }
  }
}

private func budgetLeft(
  of enrollment: Enrollment, _ state: LoginState, under policy: Policy, at now: UnixTime
) -> BudgetLeft {
  let throttle = Throttle(for: enrollment, state, under: policy)
  return BudgetLeft(
    known: throttle.responsesLeft(in: state.known, at: now),
    other: throttle.responsesLeft(in: state.other, at: now))
}
