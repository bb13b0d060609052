import CService
import OneTimePassword
package import SallyportCore
package import SallyportLogin
package import SallyportSystem

/// For whom something is asked, and how it is judged.
package struct Question: Sendable {
  /// As it was typed.
  package let name: [UInt8]
  package let account: Account?
  package let context: LoginContext
  /// When whoever asks has given up, in nanoseconds of CLOCK_MONOTONIC.
  package let deadline: UInt64
  /// The uid that an enrollment has which is made for this account; nil: `none`.
  private let uidToEnroll: UInt32?

  /// About an account of this machine.
  package init(
    _ request: ServiceRequest, _ account: Account?, _ context: LoginContext, _ deadline: UInt64
  ) {
    self.init(request, account, context, deadline, uidToEnroll: account?.uid)
  }

  package init(
    _ request: ServiceRequest, _ account: Account?, _ context: LoginContext, _ deadline: UInt64,
    uidToEnroll: UInt32?
  ) {
    (name, self.account, self.context) = (request.name, account, context)
    (self.deadline, self.uidToEnroll) = (deadline, uidToEnroll)
  }

  /// nil: not served.
  package func answer(_ verb: ServiceRequest.Verb, from store: some RecordStore)
    throws(StoreTrouble) -> ServiceAnswer?
  {
    let examiner = examiner(of: store)
    switch verb {
    case .prepare(let mayEnroll, let first):
      guard context.policy.isEnabled else { return .skip }
      return try prepare(examiner, mayEnroll: mayEnroll, after: first, at: try store.now())
    case .attempt(let typed, let known, let turn):
      let pending = try examiner.claimant(name, account, in: context)
      return .outcome(try examiner.attempt(typed, knownAs: known, by: pending, as: turn))
    case .enrolled:
      guard let pending = try enrolled(examiner) else { return .notEnrolled }
      return .prompt(.enrolled, pending.shape(at: try store.now()))
    case .level:
      guard let account else { return nil }
      return .level(try examiner.level(of: account, in: context))
    case .remember:
      guard let address = context.address, let pending = try enrolled(examiner) else { return nil }
      try examiner.remember(address, for: pending)
      return .done
    case .count:
      guard let account else { return nil }
      return .count(try examiner.countLogin(of: account, in: context))
    case .rehearse:
      guard let account else { return nil }
      try examiner.rehearse(for: account, in: context)
      return .done
    case .amend(let change, let id): return try amend(examiner, change, to: id)
    }
  }

  private func prepare(
    _ examiner: some CodeAuthority, mayEnroll: Bool, after first: FirstFactor, at now: UnixTime
  ) throws(StoreTrouble) -> ServiceAnswer {
    let step = try examiner.prepare(
      name, account, in: context, mayEnroll: mayEnroll, after: first)
    switch step {
    case .skip: return .skip
    case .enroll(let level, _): return .enroll(level)
    case .prompt(let pending):
      switch pending.claimant {
      case .enrolled: return .prompt(.enrolled, pending.shape(at: now))
      case .notEnrolled: return .prompt(.notEnrolled, pending.shape)
      case .unknown, .invalid: return .prompt(.unknown, pending.shape)
      }
    }
  }

  private func enrolled(_ examiner: some CodeAuthority) throws(StoreTrouble) -> PendingLogin? {
    guard let account else { return nil }
    return try examiner.enrolled(account, in: context)
  }

  /// The time is asked for under the lock, and before anything is saved: whoever waits no more must
  /// not find his code used.
  private func examiner<Store: RecordStore>(of store: Store) -> LocalAuthority<Store> {
    LocalAuthority(store: store) { () throws(StoreTrouble) in
      if sys_monotonic() > deadline { throw .busy(path: "") }
      return try store.now()
    }
  }

  private func amend(_ examiner: some CodeAuthority, _ change: EnrollmentChange, to id: UInt64)
    throws(StoreTrouble) -> ServiceAnswer?
  {
    guard let account, account.uid != nil else { return nil }
    var pending: PendingLogin?
    if case .create(let enrollment) = change {
      guard enrollment.user == account.name, enrollment.uid == uidToEnroll else { return nil }
    } else {
      pending = try enrolled(examiner)
      guard pending?.enrollmentID == id else { return .changed }
    }
    switch try examiner.amend(change, of: account.name, pending, in: context) {
    case .done: return .done
    case .changed: return .changed
    case .flawed(let flaw): return .flaw(flaw)
    }
  }
}

extension PendingLogin {
  /// With the wait, and whether nobody has to be asked now.
  fileprivate func shape(at now: UnixTime) -> Shape {
    let shape = shape
    var isRemembered = false
    if policy.remember > 0, let address = context.address {
      isRemembered = self.isRemembered(address, at: now)
    }
    return Shape(
      enrollmentID: shape.enrollmentID, authenticators: shape.authenticators,
      hasScratchCodes: shape.hasScratchCodes, backupCodesLeft: shape.backupCodesLeft,
      wait: wait(at: now), isRemembered: isRemembered)
  }
}
