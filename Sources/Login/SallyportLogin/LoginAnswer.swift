internal import CSystem
import OneTimePassword
package import SallyportCore
package import SallyportSystem

// The answer to a question from a store: what a program of root's does by itself for its own login.

extension LoginQuestion {
  /// By what it is checked.
  package var context: LoginContext {
    LoginContext(policy: policy, origin: place, address: address, service: Label(service))
  }

  /// nil: not served. `uid`: that of an enrollment which is made for this account; nil: `none`.
  package func answer(
    from store: some EnrollmentStore, in context: LoginContext, enrolling uid: UInt32?
  )
    throws(StoreTrouble) -> ServiceAnswer?
  {
    let authority = authority(over: store)
    switch verb {
    case .prepare(let mayEnroll, let first):
      guard context.policy.isEnabled else { return .skip }
      return try prepare(
        authority, in: context, mayEnroll: mayEnroll, after: first, at: try store.now())
    case .attempt(let typed, let known, let role):
      let pending = try authority.claimant(name, account, in: context)
      return .outcome(try authority.attempt(typed, knownAs: known, by: pending, as: role))
    case .enrolled:
      guard let pending = try enrolled(authority, in: context) else { return .notEnrolled }
      return .prompt(.enrolled, pending.shape(at: try store.now()))
    case .notices(let name, let told):
      guard let account,
        let (pending, notices) = try authority.notices(
          for: account, by: name, in: context)
      else { return .notEnrolled }
      if let told {
        try authority.settle(told.among(notices), of: pending, by: name)
        return .done
      }
      let shape = pending.shape(at: try store.now())
      return notices.isEmpty ? .prompt(.enrolled, shape) : .told(shape, notices)
    case .level:
      guard let account else { return nil }
      return .level(try authority.level(of: account, in: context))
    case .remember:
      guard let address = context.address, let pending = try enrolled(authority, in: context) else {
        return nil
      }
      try authority.remember(address, for: pending)
      return .done
    case .count:
      guard let account else { return nil }
      return .count(try authority.countLogin(of: account, in: context))
    case .rehearse:
      guard let account else { return nil }
      try authority.rehearse(for: account, in: context)
      return .done
    case .amend(let change, let id):
      return
        try amend(authority, change, to: id, in: context, enrolling: uid)
    }
  }

  private func prepare(
    _ authority: some CodeAuthority, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor, at now: UnixTime
  ) throws(StoreTrouble) -> ServiceAnswer {
    let step = try authority.prepare(
      name, account, in: context, mayEnroll: mayEnroll, after: first)
    switch step {
    case .skip: return .skip
    case .enroll(let level, _): return .enroll(level)
    case .prompt(let pending):
      switch pending.claimant {
      case .enrolled: return .prompt(.enrolled, pending.shape(at: now))
      case .notEnrolled, .blocked: return .prompt(.notEnrolled, pending.shape)
      case .unknown, .invalid: return .prompt(.unknown, pending.shape)
      }
    }
  }

  private func enrolled(_ authority: some CodeAuthority, in context: LoginContext)
    throws(StoreTrouble) -> PendingLogin?
  {
    guard let account else { return nil }
    return try authority.enrolled(account, in: context)
  }

  /// The time is read under the lock, and before anything is saved: a caller that waits no more
  /// must not find his code used.
  package func authority<Store: RecordStore>(over store: Store) -> RecordAuthority<Store> {
    RecordAuthority(store: store) { () throws(StoreTrouble) in
      if sys_monotonic() > deadline { throw .busy(path: "") }
      return try store.now()
    }
  }

  private func amend(
    _ authority: some CodeAuthority, _ change: EnrollmentChange, to id: UInt64,
    in context: LoginContext, enrolling uid: UInt32?
  ) throws(StoreTrouble) -> ServiceAnswer? {
    guard let account, account.uid != nil else { return nil }
    var (change, pending) = (change, PendingLogin?.none)
    if case .create(let enrollment) = change {
      guard enrollment.user == account.name, enrollment.uid == uid else { return nil }
    } else {
      pending = try enrolled(authority, in: context)
      guard pending?.enrollmentID == id else { return .changed }
      if case .renew(let codes) = change {
        change = .renew(codes.replacing(pending?.record?.enrollment.backupCodes))
      }
    }
    switch try authority.amend(change, of: account.name, pending, in: context) {
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
