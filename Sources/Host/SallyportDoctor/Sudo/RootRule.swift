import PAMStack

/// What sudo or doas does when an account wants to become another one.
enum RootRule: Hashable {
  /// No rule is for it, or the last one forbids it.
  case none
  /// The location is the rule's.
  case asks(PasswordOwner, service: String, FileLocation)
  /// The location is that of the line which opens the way. The service is whose account phase runs.
  case asksNothing(RuleOpening, service: String, FileLocation)
  case unseen(RuleGap)
}

/// Whose password, and so whose code, is asked for.
enum PasswordOwner: Hashable {
  case caller, root, target
  /// `runaspw` where `runas_default` names another account than root.
  case account(String)
}

enum RuleOpening: Hashable {
  /// NOPASSWD
  case noPassword
  /// `Defaults !authenticate`
  case notAuthenticated
  case exemptGroup(String)
  /// sudo asks root nothing.
  case callerIsRoot
  /// sudo asks nothing of an account that becomes itself.
  case sameAccount
  /// doas: `nopass`
  case nopass
}

/// What an answer may depend on and cannot be seen.
enum RuleGap: Hashable {
  /// Why a file of rules cannot be read.
  case file(String)
  /// A source of nsswitch.conf whose rules are not looked up.
  case source(String)
  case netgroup(String)
  /// A group whose members are not known.
  case group(String)
  /// A name or an address that may be this machine's.
  case host(String)
  /// What sudo says of rules that it cannot parse.
  case complaint(String)
}

/// The rules for one account and one way.
struct RootRules: Hashable {
  /// For a shell, and for whatever else no rule names.
  var shell = RootRule.none
  /// The loosest answer for a command that a rule names, where it is looser than the one above.
  var someCommands: RootRule?
  /// Whether rules for it are there, but for other hosts alone.
  var isOnlyElsewhere = false
  /// Whether PAM's account phase is run.
  var runsAccountPhase = true
  /// What `sudo -A` runs in place of the service, if that is another.
  var askpassService: String?
  /// For how many minutes sudo does not ask again, if a line says so; negative: never again.
  var ticketMinutes: Double?
}

extension RootRule {
  /// Whether it does the same, whichever line says so.
  func isLike(_ other: RootRule) -> Bool {
    switch (self, other) {
    case (.none, .none): true
    case (.asks(let owner, let service, _), .asks(let other, let otherService, _)):
      owner == other && service == otherService
    case (.asksNothing(_, let service, _), .asksNothing(_, let other, _)): service == other
    case (.unseen, .unseen): true
    case (.none, _), (.asks, _), (.asksNothing, _), (.unseen, _): false
    }
  }

  /// Larger where less is asked.
  var looseness: Int {
    switch self {
    case .none: 0
    case .asks: 1
    case .unseen: 2
    case .asksNothing: 3
    }
  }
}
