package import SallyportCore

/// What is found of a helper and of the one whom he wants to help before anything is asked: nothing
/// that the helper could not see anyway. Whatever was not looked at, or not to be seen, is unknown.
package struct HelpFacts: Equatable, Sendable {
  /// What the policy lets the helpdesk do; nil: there is no helpdesk, or a line of it is wrong.
  package var may: [HelpVerb]?
  package var isHelper = Tristate.unknown
  /// The id of the helper's own enrollment; nil: he is not enrolled.
  package var helperID: UInt64?

  /// The uid of the one to be helped; nil where no account has this very name, or its uid another
  /// one.
  package var uid: UInt32?
  /// Whether he is the helper, by whatever name.
  package var isHimself = true
  /// In a group of `helpdesk_for`.
  package var isHelped = Tristate.unknown
  /// In a group of `helpdesk_never`.
  package var isNever = Tristate.unknown
  package var isAnotherHelper = Tristate.unknown

  package init() {}
}

/// Whether a helper is asked for his password and his code.
package enum HelpPermission: Equatable, Sendable {
  /// For the account `uid`; the code is one of his enrollment `helper`.
  case afterCode(helper: UInt64, uid: UInt32)
  case refused(ChangeRefusal)
}

/// Decides whether a member of the helpdesk is asked to prove himself for this. Pure, and with
/// `refusal(toHelp:)` the only place where it is decided. Only what is certain lets him; and nobody
/// who is no helper is told of anybody.
package func permission(toHelp verb: HelpVerb, _ facts: HelpFacts) -> HelpPermission {
  guard let may = facts.may, facts.isHelper == .yes else { return .refused(.notHelper) }
  guard may.contains(verb) else { return .refused(.notForHelpers) }
  guard let helper = facts.helperID else { return .refused(.notEnrolled) }
  guard let uid = facts.uid, uid != 0, !facts.isHimself, facts.isHelped != .no else {
    return .refused(.notHelped)
  }
  let bars = [facts.isNever, facts.isAnotherHelper]
  if bars.contains(.yes) { return .refused(.notHelped) }
  guard facts.isHelped == .yes, bars.allSatisfy({ $0 == .no }) else { return .refused(.unclear) }
  return .afterCode(helper: helper, uid: uid)
}

/// What root alone sees of the one to be helped: looked at once the helper's code was accepted.
package struct HelpedFacts: Equatable, Sendable {
  package var canBecomeRoot = Tristate.unknown
  /// Of what blocks him.
  package var block = BlockSetter.root
  /// The id of his enrollment; nil: he is not enrolled.
  package var enrollmentID: UInt64?

  package init() {}
}

/// Why it is not done after all; nil: he may. Who is blocked gets nothing but an end of that.
package func refusal(toHelp act: HelpAct, _ facts: HelpedFacts) -> ChangeRefusal? {
  if facts.canBecomeRoot == .yes { return .notHelped }
  guard facts.canBecomeRoot == .no else { return .unclear }
  if facts.block == .root { return .blockedByRoot }
  switch act {
  case .block: return nil
  case .unblock: return facts.block == .helper ? nil : .notBlocked
  case .status, .unlock, .pass, .passEnroll:
    if facts.block == .helper { return .blockedByHelper }
    return facts.enrollmentID == nil ? .helpedNotEnrolled : nil
  }
}
