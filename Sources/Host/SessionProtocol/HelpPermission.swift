package import SallyportCore

/// What was found of a helper and of the one whom he wants to help. Whatever was not looked at, or
/// not to be seen, is unknown.
package struct HelpFacts: Equatable, Sendable {
  /// What the policy lets the helpdesk do; nil: there is no helpdesk, or a line of it is wrong.
  package var may: [HelpVerb]?
  package var isHelper = Tristate.unknown
  /// The id of the helper's own enrollment; nil: he is not enrolled.
  package var helperID: UInt64?
  /// Whether a fleet verifies the codes of one of the two.
  package var isInFleet = false

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
  package var canBecomeRoot = Tristate.unknown
  /// The id of his enrollment; nil: he is not enrolled.
  package var enrollmentID: UInt64?

  package init() {}
}

/// Whether a helper may do it.
package enum HelpPermission: Equatable, Sendable {
  /// After the helper's own password, and a code of his enrollment `helper`: for the account `uid`
  /// with the enrollment `id`.
  case afterCode(helper: UInt64, uid: UInt32, id: UInt64)
  case refused(ChangeRefusal)
}

/// Decides whether a member of the helpdesk may do that for somebody. Pure, and the only place
/// where it is decided. Only what is certain lets him; and nobody who is no helper is told of
/// anybody.
package func permission(toHelp verb: HelpVerb, _ facts: HelpFacts) -> HelpPermission {
  guard let may = facts.may, facts.isHelper == .yes else { return .refused(.notHelper) }
  guard may.contains(verb) else { return .refused(.notForHelpers) }
  guard let helper = facts.helperID else { return .refused(.notEnrolled) }
  guard let uid = facts.uid, uid != 0, !facts.isHimself, facts.isHelped != .no else {
    return .refused(.notHelped)
  }
  let bars = [facts.isNever, facts.isAnotherHelper, facts.canBecomeRoot]
  if bars.contains(.yes) { return .refused(.notHelped) }
  guard facts.isHelped == .yes, bars.allSatisfy({ $0 == .no }) else { return .refused(.unclear) }
  if facts.isInFleet { return .refused(.helpInFleet) }
  guard let id = facts.enrollmentID else { return .refused(.helpedNotEnrolled) }
  return .afterCode(helper: helper, uid: uid, id: id)
}
