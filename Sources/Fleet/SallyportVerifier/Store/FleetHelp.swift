import FleetProtocol
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

// What helpers do who are not root: each is one save, with what is counted of it, so that all
// verifiers of a fleet together let no more through than one.
extension FleetStore {
  /// `policy`: what a lent try counts against.
  func help(_ order: HelpOrder, _ account: Account, under policy: (Policy) -> Policy)
    throws(StoreTrouble) -> HelpAnswer
  {
    switch order.verb {
    case .show: return .told(try helped(account))
    case .lend(let stated, let id): return try lend(account, id: id, under: policy(stated))
    case .give(let pass, let id): return try give(pass, to: account, id: id)
    case .block(let until): return try block(account, until: until, by: order.helper)
    case .unblock: return try unblockForHelper(account)
    }
  }

  private func helped(_ account: Account) throws(StoreTrouble) -> HelpedPerson {
    let (facts, now) = (try told(of: account.name), try now())
    let counts = try row(of: account.name.bytes)?.document.helped ?? HelpCounts()
    var enrolled: (Enrollment, LoginState)?
    if case .enrolled(let moving) = facts.place { enrolled = (moving.enrollment, moving.state) }
    return HelpedPerson(
      enrolled, block: facts.block.map { setter(of: $0, account, at: now) } ?? .nobody,
      hasEnough: (counts.isEnough(.pass, at: now), counts.isEnough(.unlock, at: now)))
  }

  private func lend(_ account: Account, id: UInt64, under policy: Policy) throws(StoreTrouble)
    -> HelpAnswer
  {
    try helping(.unlock, account, id: id) { (document, state, now) in
      guard let enrollment = document.enrollment else { return .refused(.changed) }
      let lending = Throttle(for: enrollment, state, under: policy).lending(in: &state, at: now)
      switch lending {
      case .lent(let tries, _): return .lent(UInt8(clamping: tries))
      case .notLocked: return .refused(.notLocked)
      case .spent: return .refused(.spent)
      }
    }
  }

  private func give(_ pass: Pass, to account: Account, id: UInt64) throws(StoreTrouble)
    -> HelpAnswer
  {
    // Asked again, as where the answer was lost.
    let isThere: (Enrollment) -> Bool = { $0.passes.contains { $0.id == pass.id } }
    return try helping(.pass, account, id: id, unless: isThere) { (document, state, now) in
      amend(EnrollmentChange.give(pass).stamped(now), &document, &state) ? .done : .refused(.enough)
    }
  }

  /// What changes what can be logged in with: for who is enrolled and not blocked, and as often as
  /// helpers may. `isDone`: it was before. `body` changes and answers; a refusal is not saved.
  private func helping(
    _ verb: HelpVerb, _ account: Account, id: UInt64,
    unless isDone: (Enrollment) -> Bool = { _ in false },
    _ body: (inout FleetDocument, inout LoginState, UnixTime) -> HelpAnswer
  ) throws(StoreTrouble) -> HelpAnswer {
    try answered(account) { (old, state, now) in
      guard let enrollment = old.enrollment, enrollment.id == id, var next = state else {
        return (.refused(.changed), nil)
      }
      if let block = old.block {
        switch setter(of: block, account, at: now) {
        case .nobody: break
        case .helper: return (.refused(.blockedByHelper), nil)
        case .root: return (.refused(.blockedByRoot), nil)
        }
      }
      // The primary alone may have it.
      if isDone(enrollment) { return (.done, (old, state)) }
      if old.helped.isEnough(verb, at: now) { return (.refused(.enough), nil) }
      var new = old
      next.reconcile(with: enrollment)
      let answer = body(&new, &next, now)
      if case .refused = answer { return (answer, nil) }
      new.helped = old.helped.adding(verb == .unlock ? .unlock : .pass, at: now)
      return (answer, (new, next))
    }
  }

  /// With his passes in the same save; never what root has set.
  private func block(_ account: Account, until: UnixTime?, by helper: UserName)
    throws(StoreTrouble) -> HelpAnswer
  {
    try answered(account) { (old, state, now) in
      // By the files of a host, which do not say it; or it would block nobody.
      if case .taken = old.place { return (.refused(.changed), nil) }
      if let until, until <= now { return (.refused(.changed), nil) }
      if let block = old.block, setter(of: block, account, at: now) == .root {
        return (.refused(.blockedByRoot), nil)
      }
      var (new, next) = (old, state)
      new.block = FleetBlock(since: now, until: until, helper: helper)
      if var changed = next, old.enrollment?.passes.isEmpty == false {
        _ = amend(.revoke, &new, &changed)
        next = changed
      }
      return (.done, (new, next))
    }
  }

  private func unblockForHelper(_ account: Account) throws(StoreTrouble) -> HelpAnswer {
    try answered(account) { (old, state, now) in
      switch old.block.map({ setter(of: $0, account, at: now) }) ?? .nobody {
      case .nobody: return (.refused(.notBlocked), nil)
      case .root: return (.refused(.blockedByRoot), nil)
      case .helper: break
      }
      var new = old
      new.block = nil
      return (.done, (new, state))
    }
  }

  /// What a turn before the last would have saved, it has not: the last one answers.
  private func answered(
    _ account: Account,
    _ body: (FleetDocument, LoginState?, UnixTime) -> (HelpAnswer, (FleetDocument, LoginState?)?)
  ) throws(StoreTrouble) -> HelpAnswer {
    var answer = HelpAnswer.trouble
    try change(account.name) { (old, state) throws(StoreTrouble) in
      let next: (FleetDocument, LoginState?)?
      (answer, next) = body(old, state, try now())
      return next
    }
    return answer
  }

  /// False where that change has no place.
  private func amend(
    _ change: EnrollmentChange, _ document: inout FleetDocument, _ state: inout LoginState
  ) -> Bool {
    guard let enrollment = document.enrollment,
      let changed = try? change.applied(to: enrollment, state)
    else { return false }
    document.place = .enrolled(changed)
    state = change.applied(to: state, of: changed)
    return true
  }

  private func setter(of block: FleetBlock, _ account: Account, at now: UnixTime) -> BlockSetter {
    if block.block(of: account.name).isOver(at: now) { return .nobody }
    return block.helper == nil ? .root : .helper
  }
}
