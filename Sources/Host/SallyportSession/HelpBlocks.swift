import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol

// A helper blocks somebody, or lifts what a helper has blocked: by what root's command does it.

extension Session {
  func block(_ helping: Helping, until: UnixTime?) throws(Ending) -> FromSession {
    let (person, now) = (helping.person, try found(Clock.now))
    // It would block nobody.
    if let until, until <= now { throw .refused(.changed) }
    let facts = until?.internetText.map { [Act.Fact("until", $0.utf8)] } ?? []
    let act = SessionAct(.block, facts, of: person.name, by: client, in: store)
    let before = try found { () throws(StoreTrouble) in
      try store.blocks(of: person).first { !$0.isOver(at: now) }
    }
    let blocking = try recorded(act) { () throws(StoreTrouble) in
      try store.block(person, until: until, at: now, by: client.account.name)
    } isDone: {
      $0 != .isRoots
    }
    switch blocking {
    case .done: break
    case .heldUp: tell(Session.heldUp)
    case .isRoots: throw helping.refused(.blockedByRoot)
    }
    if blocking != .isRoots, let block = before?.block, block.until != until {
      tell(Session.replaced(block.until))
    }
    // He is blocked already: what fails here lets nothing in.
    do throws(Ending) { try revokePasses(helping) } catch { tell(Session.unrevoked) }
    return .done(of: person.name, backupCodes: [], names: [])
  }

  private static func replaced(_ end: UnixTime?) -> String {
    let extent = end.map { "up to \(Helping.text(end: $0))" } ?? "without an end"
    return "before this it was blocked \(extent)"
  }

  private static let heldUp =
    "a login that began before is held up, and its code may still be accepted; the account line "
    + "refuses it"
  private static let unrevoked =
    "the passes were not ended: what is enrolled cannot be read or changed"

  /// Where it cannot be sent, it is done all the same.
  private func tell(_ text: String) { try? send(.text(Array(text.utf8))) }

  private func revokePasses(_ helping: Helping) throws(Ending) {
    let (person, context) = (helping.person, helping.context)
    let pending = try found { () throws(StoreTrouble) -> PendingLogin? in
      guard let record = try store.load(person), !record.enrollment.passes.isEmpty else {
        return nil
      }
      return try authority.enrolled(person, in: context)
    }
    guard let pending else { return }
    let act = SessionAct(.revoke, of: person.name, by: client, in: store)
    let amendment = try recorded(act) { () throws(StoreTrouble) in
      try authority.amend(.revoke, of: person.name, pending, in: context)
    } isDone: {
      $0 == .done
    }
    guard amendment == .done else { throw .refused(.changed) }
  }

  /// Who was blocked while a pass was given has none, and nobody sees its code: a block that comes
  /// after this look ends the pass itself.
  func insistOnNoBlock(_ helping: Helping) throws(Ending) {
    let (isBlocked, isRoots) = try found { () throws(StoreTrouble) in
      let now = try Clock.now()
      let blocks = try store.blocks(of: helping.person).filter { !$0.isOver(at: now) }
      return (!blocks.isEmpty, blocks.contains { $0.isRoots(at: now) })
    }
    if !isBlocked { return }
    // The code is refused as long as he is blocked, and is nobody's afterwards.
    try? revokePasses(helping)
    throw helping.refused(isRoots ? .blockedByRoot : .blockedByHelper)
  }

  func unblock(_ helping: Helping) throws(Ending) -> FromSession {
    let act = SessionAct(.unblock, [], of: helping.person.name, by: client, in: store)
    let lifting = try recorded(act) { () throws(StoreTrouble) in
      try store.unblock(
        helping.person, at: try Clock.now(), by: client.account.name, environment.find)
    } isDone: {
      $0 == .done
    }
    switch lifting {
    case .done: return .done(of: helping.person.name, backupCodes: [], names: [])
    case .notBlocked: throw helping.refused(.notBlocked)
    case .isRoots: throw helping.refused(.blockedByRoot)
    }
  }
}
