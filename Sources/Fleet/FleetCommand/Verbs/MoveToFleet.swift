import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportSystem

/// Moves people from the files of this machine to its fleet (docs/fleet-format.md).
///
/// A code is good on one side alone, whenever this process or the machine stops: the files of a
/// user are locked; their mark is on disk before anything is sent, and no login uses marked
/// files; the fleet acknowledges; then they are removed. Where it is not known what came of it
/// the mark stays, and the next push asks again, which changes nothing that is done. The mark goes
/// only where it is this push's own, and nothing was sent or done.
struct MoveToFleet {
  let store: Store
  let verifiers: any FleetVerifiers
  /// Why they refuse this host.
  let missing: (UserName) -> MissingRight
  /// Where the fleet has the name under another enrollment: the fleet's stays.
  let keepsFleet: Bool
  /// Those that people have, by the inventory.
  var tokens: [Token] = []

  /// Throws nothing where he is in the fleet, and not here any more.
  func push(_ account: Account) throws(MoveFault) {
    // First, so that after a crash none of his counts as nobody's by files that are gone.
    try note(tokens, of: account)
    var isComplete = true
    let done: Void? = try store.moved(account) { (user) throws(MoveFault) in
      isComplete = user.enrollment.authenticators.allSatisfy { own in
        own.clockOffset == nil || tokens.contains { $0.authenticator.id == own.id }
      }
      try push(user, of: account)
    }
    guard done != nil else { throw .notEnrolled }
    // He may have got one since they were read.
    if isComplete { return }
    try note(try keeping { () throws(StoreTrouble) in try store.heldTokens() }, of: account)
  }

  /// Of those that he has.
  private func note(_ tokens: [Token], of account: Account) throws(MoveFault) {
    let own = tokens.filter {
      $0.holder?.user == account.name || account.uid != nil && $0.holder?.uid == account.uid
    }
    try keeping { () throws(StoreTrouble) in try store.note(.fleet, for: own) }
  }

  private func push(_ user: MovingUser, of account: Account) throws(MoveFault) {
    if case .take = user.mark { throw .beingTaken }
    // Which no fleet has; one that is on its way was asked before.
    let own = user.enrollment
    let now = try keeping { () throws(StoreTrouble) in try Clock.now() }
    if user.mark == nil, own.isReplaced(at: now) { throw .replacedByPass }
    let isNew = user.mark == nil
    // One that is on its way goes on: no login uses his files until it has ended.
    if isNew, try keeping({ () throws(StoreTrouble) in try store.isBlocked(account, at: { now }) })
    {
      throw .blockedHere
    }
    let request = try request(for: user, at: now)
    let mark: MoveMark
    if case .put(_, let version) = request { mark = .push(version: version) } else { mark = .merge }
    if user.mark != mark { try keeping { () throws(StoreTrouble) in try user.write(mark) } }
    do throws(MoveFault) {
      try settle(request)
    } catch {
      // Only what was never sent, or is known not to be done.
      if isNew, error.cause != .unknown {
        try keeping { () throws(StoreTrouble) in try user.write(nil) }
      }
      throw error
    }
    try keeping { () throws(StoreTrouble) in try user.remove() }
  }

  /// What to ask, by what the fleet has now.
  private func request(for user: MovingUser, at now: UnixTime) throws(MoveFault) -> MoveRequest {
    let own = user.enrollment
    let moving = user.moving(at: now)
    let found = try standing(of: own.user)
    switch found.person {
    // The same one, from this push before it was stopped, or from a host with a copy of the files.
    case .enrolled(own.id):
      return keepsFleet || user.mark == .merge
        ? .merge(moving) : .put(moving, version: found.version)
    case .enrolled:
      guard keepsFleet || user.mark == .merge else { throw .otherEnrollment }
      return .merge(moving)
    case .nobody, .removed:
      switch user.mark {
      case nil: break
      case .push(let version):
        // It may have been there, and be in use elsewhere by now.
        if case .removed = found.person, version != found.version { throw .gone }
      case .merge, .take: throw .gone
      }
      return .put(moving, version: found.version)
    }
  }

  // MARK: asking

  private func standing(of name: UserName) throws(MoveFault) -> FleetStanding {
    switch try looking({ () throws(MoveFault) in try ask(.look(name)) }) {
    case .standing(let found): return found
    case .notAllowed: throw .notAllowed(missing(name))
    case .done: throw .notServed
    case .trouble: throw .databaseAway
    }
  }

  /// Throws `unknown` where it may have been done.
  private func settle(_ request: MoveRequest) throws(MoveFault) {
    switch try ask(request) {
    case .done: return
    case .standing(let found):
      if case .enrolled = found.person { throw .otherEnrollment }
      // By these files for good: it was removed, or another host has taken it.
      if case .put(let moving, _) = request, found.person == .removed(moving.enrollment.id) {
        throw .gone
      }
      throw .changed
    case .notAllowed: throw .notAllowed(missing(request.name))
    case .trouble: throw .unknown
    }
  }

  private func ask(_ request: MoveRequest) throws(MoveFault) -> MoveAnswer {
    guard let answer = MoveAnswer.decode(try verifiers.move(request)) else { throw .unknown }
    return answer
  }
}

extension Enrollment {
  /// Whether a pass has replaced it, so that it can be restored, or may replace it.
  func isReplaced(at now: UnixTime) -> Bool {
    suspended.contains { now < $0.until } || passes.contains { $0.enrolls && now < $0.expires }
  }
}

extension MovingUser {
  /// Without passes and replaced enrollments that have ended.
  fileprivate func moving(at now: UnixTime) -> MoveRequest.Moving {
    var (enrollment, state) = (enrollment.with(uid: nil), state)
    enrollment.passes = enrollment.openPasses(state, at: now)
    enrollment.suspended = []
    state.reconcile(with: enrollment)
    return MoveRequest.Moving(enrollment, state)
  }
}
