import FleetProtocol
import FleetTransport
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportSystem

/// Takes people from the fleet of this machine back to its files (docs/fleet-format.md).
///
/// A code is good on one side alone, whenever this process or the machine stops: the fleet verifies
/// his codes while there is a marked copy, which no login uses; it ends his enrollment in just the
/// version that was copied, and acknowledges that; then the mark goes. Where he has used a code
/// meanwhile, he is copied again. Where the result is unknown the mark stays, and the next take
/// asks again with the token that the mark has, which changes nothing that is done.
struct MoveFromFleet {
  /// Copies of one who is let in all the time.
  private static let attempts = 8

  let store: Store
  /// What this host knows of backup codes that were used while it was cut off.
  let reserve: Store
  let verifiers: any FleetVerifiers
  /// Why they refuse this host.
  let missing: (UserName) -> MissingRight
  /// Although he was used on other hosts.
  let isForced: Bool
  /// Makes what is missing of the store.
  let prepare: () throws(StoreTrouble) -> Void

  /// What came of a marked copy.
  private enum Step {
    case done
    /// It is gone: he has logged in by the fleet since.
    case outdated
  }

  /// Throws nothing where he is enrolled here, and not in the fleet any more.
  func take(_ account: Account) throws(MoveFault) {
    // What an earlier take has left.
    if try settle(account) == .done { return }
    for _ in 0..<MoveFromFleet.attempts {
      try copy(account)
      if try settle(account) == .done { return }
    }
    throw .changed
  }

  // MARK: the copy

  private func copy(_ account: Account) throws(MoveFault) {
    let (moving, version) = try fetched(account.name)
    let enrollment = moving.enrollment.with(uid: account.uid)
    try keeping { () throws(StoreTrouble) in
      try prepare()
      let mark = MoveMark.take(version: version, token: try Random.identifier())
      try store.create(enrollment, try used(moving.state, account), marked: mark)
    }
  }

  private func fetched(_ name: UserName) throws(MoveFault) -> (MoveRequest.Moving, UInt64) {
    let told = try looking { () throws(MoveFault) in
      FetchAnswer.decode(try verifiers.move(.fetch(name, isForced: isForced)))
    }
    switch told {
    case nil: throw .transport(.unknown)
    case .copy(let moving, let version):
      guard moving.enrollment.user == name else { throw .transport(.unknown) }
      return (moving, version)
    case .used(let hosts): throw .usedElsewhere(hosts.map(\.text))
    case .held: throw .held
    case .other(.standing): throw .notInFleet
    case .other(.notAllowed): throw try reason(name)
    case .other(.done): throw .notServed
    case .other(.trouble): throw .databaseAway
    }
  }

  /// Why this host may not take him, whether or not it may take others.
  private func reason(_ name: UserName) throws(MoveFault) -> MoveFault {
    let body = PersonRequest(.tell, of: name).encoded()
    let answer = try looking { () throws(MoveFault) in try verifiers.manage(body) }
    guard case .told(let facts)? = PersonAnswer.decode(answer) else {
      return .notAllowed(missing(name))
    }
    let now = try keeping { () throws(StoreTrouble) in try Clock.now() }
    if let block = facts.block, !block.block(of: name).isOver(at: now) { return .blocked }
    if case .enrolled(let found) = facts.place, found.enrollment.isReplaced(at: now) {
      return .replacedByPass
    }
    return .notAllowed(missing(name))
  }

  /// With the codes that the reserve of this host has used, and the fleet may not know yet.
  private func used(_ state: LoginState, _ account: Account) throws(StoreTrouble) -> LoginState {
    var state = state
    let record: Record?
    do throws(StoreTrouble) {
      record = try reserve.load(account)
    } catch {
      guard case .noStore = error else { throw error }
      record = nil
    }
    if let kept = record?.state.backupCodes, kept.setID == state.backupCodes?.setID {
      state.backupCodes?.used |= kept.used
    }
    return state
  }

  // MARK: the end

  /// `.outdated` where there are no files.
  private func settle(_ account: Account) throws(MoveFault) -> Step {
    try store.moved(account) { (user) throws(MoveFault) in try settle(user) } ?? .outdated
  }

  private func settle(_ user: MovingUser) throws(MoveFault) -> Step {
    switch user.mark {
    case nil: throw .isHere
    case .push, .merge: throw .isPushed
    case .take(let version, let token):
      let burial = MoveRequest.Tombstone(id: user.enrollment.id, version: version, token: token)
      return try settle(user, by: burial)
    }
  }

  /// The copy may be the only one, by this question or by that of another take with its token. So
  /// it stays whatever fails, and is removed only where the fleet says that it has him.
  private func settle(_ user: MovingUser, by burial: MoveRequest.Tombstone) throws(MoveFault)
    -> Step
  {
    guard let answer = MoveAnswer.decode(try verifiers.move(.bury(user.enrollment.user, burial)))
    else {
      throw .unknown
    }
    switch answer {
    case .done:
      try keeping { () throws(StoreTrouble) in try user.write(nil) }
      return .done
    case .standing(let found):
      guard case .enrolled(burial.id) = found.person else { throw .takenOtherwise }
      try keeping { () throws(StoreTrouble) in try user.remove() }
      return .outdated
    case .notAllowed: throw .notAllowed(missing(user.enrollment.user))
    case .trouble: throw .unknown
    }
  }
}
