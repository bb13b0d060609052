package import SallyportCore

/// Why a session changes nothing.
package enum ChangeRefusal: UInt8, CaseIterable, Sendable {
  /// `self_service = no`.
  case off = 1
  /// `state = disabled`.
  case disabled
  /// Not enrolled, and the level lets nobody enroll by himself.
  case level
  case notEnrolled
  case enrolled
  /// About the name.
  case noSuchAuthenticator
  /// About the name.
  case nameTaken
  case tooMany
  case last
  /// The password is wrong, or the account may not log in.
  case password
  case code
  /// Too many wrong codes.
  case throttled
  /// No first code of the new authenticator was right.
  case firstCode
  /// Another session of this user is going on.
  case busy
  case root
  /// No account, or not one.
  case noAccount
  /// The enrollment is another one by now.
  case changed
  /// Something of the machine failed; it is in the log.
  case failed
  /// As `failed`, while the change was under way.
  case unknown
  /// The fleet has the enrollment, and shows it to root alone.
  case inFleet
  /// There is no helpdesk, or the user is not in it.
  case notHelper
  /// The helpdesk may not do this.
  case notForHelpers
  /// About the one to be helped: the helpdesk may not help him.
  case notHelped
  /// About the one to be helped: it cannot be found out whether he may be helped.
  case unclear
  /// A fleet verifies the codes of the one to be helped, and its verifiers do not do it: they
  /// cannot be asked, or not by this host, or not yet.
  case helpInFleet
  /// About the one to be helped.
  case helpedNotEnrolled
  /// About the one to be helped: this was done as often as it may be.
  case helpedEnough
  /// The helper did as much today as he may.
  case helpedToday
  /// About the one to be helped.
  case notLocked
  /// About the one to be helped: his budget has nothing to lend.
  case nothingToLend
  /// About the one to be helped, as the two that follow.
  case blockedByRoot
  case blockedByHelper
  case notBlocked
}

/// How a session goes on, before anybody is asked for anything.
package enum Permission: Equatable, Sendable {
  /// The status is shown; nothing is changed.
  case show
  /// After the password and a code that is accepted, of the enrollment with this id.
  case afterCode(id: UInt64)
  /// After the password and a first code of the new authenticator.
  case afterFirstCode
  case refused(ChangeRefusal)
}

/// What is enrolled, before anybody is asked.
package enum OwnEnrollment: Equatable, Sendable {
  /// `off`: the names of those whose kind the policy has switched off.
  case enrolled(id: UInt64, names: [Label], off: [Label] = [])
  /// With the level that applies now.
  case notEnrolled(EnrollmentLevel)
}

/// Decides whether a user may make his change, and by what. Pure, and the only place where that is
/// decided; that the password and the code are right is asked for afterwards.
package func permission(
  for change: ChangeRequest, _ enrollment: OwnEnrollment, under policy: Policy
)
  -> Permission
{
  guard policy.isSelfService else { return .refused(.off) }
  guard policy.isEnabled else { return .refused(.disabled) }
  // Others are helped by what `HelpFacts` says.
  if case .help = change { return .refused(.notHelper) }
  switch enrollment {
  case .notEnrolled(let level):
    guard case .enroll = change else { return .refused(.notEnrolled) }
    switch level {
    case .required, .offer, .remind: return .afterFirstCode
    case .refuse, .voluntary: return .refused(.level)
    }
  case .enrolled(let id, let names, let off):
    if let flaw = flaw(of: change, names, off) { return .refused(flaw) }
    return change == .status ? .show : .afterCode(id: id)
  }
}

/// What the change would be refused for; found before a code is spent on it. Nobody takes away what
/// the policy leaves him to log in with: root may.
private func flaw(of change: ChangeRequest, _ names: [Label], _ off: [Label]) -> ChangeRefusal? {
  do throws(EnrollmentChange.Flaw) {
    switch change {
    case .status, .renew, .help: return nil
    case .enroll: return .enrolled
    case .add(let name, _): try names.check(adding: name)
    case .remove(let name):
      try names.check(removing: name)
      if !names.contains(where: { $0 != name && !off.contains($0) }) { return .last }
    case .rename(let name, let new): try names.check(renaming: name, to: new)
    }
    return nil
  } catch {
    return ChangeRefusal(error)
  }
}

extension ChangeRefusal {
  package init(_ flaw: EnrollmentChange.Flaw) {
    switch flaw {
    case .enrolled: self = .enrolled
    case .noSuchAuthenticator: self = .noSuchAuthenticator
    case .lastAuthenticator: self = .last
    // A session makes the secret itself.
    case .nameTaken, .secretTaken: self = .nameTaken
    case .tooManyAuthenticators, .tooManyPasses: self = .tooMany
    }
  }
}
