import PAMStack

/// What sudo or doas does when an account wants to become another one.
enum RootRule: Hashable {
  /// No rule is for it, or the last one forbids it.
  case none
  /// The location is the rule's.
  case asks(RootCheck, FileLocation)
  /// The location is that of the line which opens the way.
  case asksNothing(RuleOpening, RootCheck, FileLocation)
  case unseen(RuleGap)
}

/// What sudo or doas has PAM do.
struct RootCheck: Hashable {
  /// Whose account it is about, also where nobody is asked for a password.
  var owner = PasswordOwner.caller
  let service: String
  var runsAccountPhase = true
  var runsSessionPhase = true
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
  /// For commands that a line names: each answer that is another one than for a shell, once.
  private(set) var someCommands: [RootRule] = []

  mutating func add(_ rule: RootRule) {
    let isKnown = ([shell] + someCommands).contains { $0.isLike(rule) }
    if rule != .none, !isKnown { someCommands.append(rule) }
  }

  /// Whether a rule lets it do anything, as far as is known.
  var isNone: Bool { shell == .none && someCommands.isEmpty }
}

extension RootRule {
  /// Whether it does the same, whichever line says so.
  func isLike(_ other: RootRule) -> Bool {
    switch (self, other) {
    case (.none, .none), (.unseen, .unseen): true
    case (.asks(let check, _), .asks(let other, _)),
      (.asksNothing(_, let check, _), .asksNothing(_, let other, _)):
      check == other
    case (.none, _), (.asks, _), (.asksNothing, _), (.unseen, _): false
    }
  }
}

extension RuleGap {
  /// For people.
  var text: String {
    switch self {
    case .file(let reason), .complaint(let reason): reason
    case .source(let name): "the rules of \(name) are not looked up"
    case .netgroup(let name): "who and what is in the netgroup \(name.dropFirst())"
    case .group(let name): "who is in the group \(name)"
    case .host(let name): "whether \(name) is this machine"
    }
  }
}
