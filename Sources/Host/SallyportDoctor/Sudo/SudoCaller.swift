import PAMStack
import SallyportCore

/// How sudo is called.
struct SudoWay: Equatable {
  enum Form: Equatable {
    /// `sudo COMMAND`, `sudo -s`
    case command
    /// `sudo -i`
    case login
    /// `sudo -A COMMAND`, which may run another service
    case askpass
  }

  var form = Form.command
  /// Whom the caller becomes: nil is root.
  var target: SudoTarget?

  static let shell = SudoWay()
  static let login = SudoWay(form: .login)
  static func other(_ target: SudoTarget, _ form: Form = .command) -> SudoWay {
    SudoWay(form: form, target: target)
  }
}

/// What sudoers says about one account that calls sudo. sudo looks for the last rule that is for
/// the account, this host, the target and the command; options come in the order of the lines,
/// those of commands after all others; and a tag of the rule goes before the option.
struct SudoCaller {
  private struct Hit {
    let location: FileLocation
    let isAllowed: Bool
    let asksNothing: Bool?
  }

  /// Callers of one kind get the same answers, but about themselves.
  struct Kind: Hashable {
    fileprivate struct Choice: Hashable {
      let rule, privilege: Int
      let doubt: RuleGap?
    }

    fileprivate let isRoot: Bool
    /// Whether it is called as the account that sudo takes for root.
    fileprivate let isRootByName: Bool
    fileprivate let choices: [Choice]
    /// By the lines of Defaults for some users, and by the groups that are never asked.
    fileprivate let settings, exempt: [SudoersMatch]
  }

  /// A privilege for it on this host, the last first.
  private struct Choice {
    let number: Kind.Choice
    let location: FileLocation
    let privilege: SudoersPrivilege
    /// Why it may be for others or for another host.
    let doubt: RuleGap?
  }

  private enum Command {
    /// Of those that no rule names.
    case unnamed
    case named(String)
  }

  private let policy: SudoersPolicy
  private let user: SudoersUser
  private let now: UnixTime
  private let choices: [Choice]

  init(_ user: SudoersUser, _ policy: SudoersPolicy, at now: UnixTime) {
    (self.policy, self.user, self.now) = (policy, user, now)
    var choices: [Choice] = []
    for (index, rule) in policy.rules.enumerated().reversed() {
      let match = policy.aliases.match(rule.users, .user, by: user.match)
      guard let doubt = SudoCaller.doubt(match) else { continue }
      for (place, privilege) in rule.privileges.enumerated().reversed() {
        let match = policy.aliases.match(privilege.hostItems, .host, by: policy.matchesHost)
        guard let other = SudoCaller.doubt(match) else { continue }
        choices.append(
          Choice(
            number: Kind.Choice(rule: index, privilege: place, doubt: doubt ?? other),
            location: rule.location, privilege: privilege, doubt: doubt ?? other))
      }
    }
    self.choices = choices
  }

  /// nil if it does not match; why that is not sure.
  private static func doubt(_ match: SudoersMatch) -> RuleGap?? {
    switch match {
    case .included: .some(nil)
    case .excluded, .none: nil
    case .unknown(let gap): .some(gap)
    }
  }

  var kind: Kind {
    let exempting = policy.defaults.flatMap(\.options).filter { $0.name == "exempt_group" }
    return Kind(
      isRoot: user.uid == 0, isRootByName: user.name == policy.root.user.name,
      choices: choices.map(\.number),
      settings: policy.defaults.filter { $0.sign == ":" }.map {
        policy.aliases.match($0.items, .user, by: user.match)
      }, exempt: exempting.map { user.isMember(of: $0.value) })
  }

  // MARK: answers

  func rules(_ way: SudoWay) -> RootRules {
    var rules = RootRules()
    let target = way.target ?? policy.root
    if let gap = policy.gap {
      rules.shell = .unseen(gap)
    } else if way.form == .login {
      rules.shell = answer(.named("\(target.shell) \"\""), target, way)
    } else {
      rules.shell = answer(.unnamed, target, way)
      for name in named() { rules.add(answer(.named(name), target, way)) }
    }
    return rules
  }

  /// The commands that rules for it or options name, as they are written.
  private func named() -> [String] {
    var names: [String] = []
    func add(_ items: [SudoersItem], depth: Int = 0) {
      for item in items {
        if let members = policy.aliases.list(.command, item.name) {
          if depth < 16 { add(members, depth: depth + 1) }
        } else if item.name != "ALL", !item.name.hasPrefix("list"),
          !names.contains(item.name)
        {
          names.append(item.name)
        }
      }
    }
    for choice in choices { add(choice.privilege.commands.map(\.item)) }
    if !choices.isEmpty {
      for line in policy.defaults where line.sign == "!" { add(line.items) }
    }
    return names
  }

  private func answer(_ command: Command, _ target: SudoTarget, _ way: SudoWay) -> RootRule {
    let settings = settings(target, command)
    let (last, maybe) = find(command, target, settings)
    let answer = outcome(of: last, settings, target, way)
    for (hit, gap) in maybe where !outcome(of: hit, settings, target, way).isLike(answer) {
      return .unseen(gap)
    }
    return answer
  }

  /// The last rule that is surely for it, and later ones that may be.
  private func find(
    _ command: Command, _ target: SudoTarget, _ settings: SudoSettings
  ) -> (Hit?, maybe: [(Hit, RuleGap)]) {
    var maybe: [(Hit, RuleGap)] = []
    for choice in choices {
      for spec in choice.privilege.commands.reversed() where spec.isValid(at: now) {
        guard let runas = SudoCaller.doubt(matches(target, spec.runas, settings)),
          let isAllowed = isAllowed(command, spec.item)
        else { continue }
        let hit = Hit(
          location: choice.location, isAllowed: isAllowed, asksNothing: spec.asksNothing)
        guard let gap = choice.doubt ?? runas else { return (hit, maybe) }
        maybe.append((hit, gap))
      }
    }
    return (nil, maybe)
  }

  private func matches(
    _ target: SudoTarget, _ runas: SudoersCommand.Runas?, _ settings: SudoSettings
  ) -> SudoersMatch {
    guard let runas else {
      return target.user.match(settings["runas_default"]?.value ?? "root")
    }
    if runas.users.isEmpty {
      return SudoersMatch(!runas.isGroupOnly && target.user.name == user.name)
    }
    return policy.aliases.match(runas.items, .runas, by: target.user.match)
  }

  /// nil if the item is for another command.
  private func isAllowed(_ command: Command, _ item: SudoersItem) -> Bool? {
    switch policy.aliases.match([item], .command, by: { matches(command, $0) }) {
    case .included: true
    case .excluded: false
    case .none, .unknown: nil
    }
  }

  private func matches(_ command: Command, _ name: String) -> SudoersMatch {
    switch command {
    case .unnamed: SudoersMatch(name == "ALL")
    case .named(let command):
      SudoersMatch(name == "ALL" || name == command || SudoersPath(name).includes(command))
    }
  }

  private func outcome(
    of hit: Hit?, _ settings: SudoSettings, _ target: SudoTarget, _ way: SudoWay
  ) -> RootRule {
    guard let hit, hit.isAllowed else { return .none }
    if user.uid == 0, settings["root_sudo"]?.isOn == false { return .none }
    for option in SudoCaller.ofChecks { if let gap = settings[option]?.gap { return .unseen(gap) } }
    let check = check(settings, way)
    func open(_ opening: RuleOpening, _ location: FileLocation) -> RootRule {
      .asksNothing(opening, check, location)
    }
    if user.uid == 0 { return open(.callerIsRoot, hit.location) }
    if user.uid == target.user.uid { return open(.sameAccount, hit.location) }
    if hit.asksNothing == true { return open(.noPassword, hit.location) }
    if hit.asksNothing == nil, let setting = settings["authenticate"] {
      if let gap = setting.gap { return .unseen(gap) }
      if !setting.isOn { return open(.notAuthenticated, setting.location) }
    }
    return exempt(settings, check) ?? .asks(check, hit.location)
  }

  /// What decides whose account PAM is asked about, and by which service.
  private static let ofChecks = [
    "rootpw", "runaspw", "targetpw", "runas_default", "pam_service", "pam_login_service",
    "pam_askpass_service", "pam_acct_mgmt", "pam_session",
  ]

  private func check(_ settings: SudoSettings, _ way: SudoWay) -> RootCheck {
    RootCheck(
      owner: owner(settings), service: service(settings, way),
      runsAccountPhase: settings["pam_acct_mgmt"]?.isOn != false,
      runsSessionPhase: settings["pam_session"]?.isOn != false)
  }

  /// What `exempt_group` opens for it.
  private func exempt(_ settings: SudoSettings, _ check: RootCheck) -> RootRule? {
    guard let setting = settings["exempt_group"] else { return nil }
    if let gap = setting.gap { return .unseen(gap) }
    guard setting.isOn else { return nil }
    switch user.isMember(of: setting.value) {
    case .included:
      return .asksNothing(.exemptGroup(setting.value), check, setting.location)
    case .excluded, .none: return nil
    case .unknown(let gap): return .unseen(gap)
    }
  }

  private func owner(_ settings: SudoSettings) -> PasswordOwner {
    let isOn = { settings[$0]?.isOn == true }
    if isOn("rootpw") { return .root }
    if isOn("runaspw") {
      let name = settings["runas_default"]?.value ?? "root"
      return name == "root" ? .root : .account(name)
    }
    return isOn("targetpw") ? .target : .caller
  }

  private func service(_ settings: SudoSettings, _ way: SudoWay) -> String {
    func named(_ option: String) -> String? {
      settings[option].flatMap { $0.isOn ? $0.value : nil }
    }
    switch way.form {
    case .command: return named("pam_service") ?? "sudo"
    case .login: return named("pam_login_service") ?? "sudo-i"
    case .askpass: return named("pam_askpass_service") ?? named("pam_service") ?? "sudo"
    }
  }

  // MARK: options

  private typealias SudoSettings = [String: SudoSetting]

  private func settings(_ target: SudoTarget, _ command: Command) -> SudoSettings {
    var settings = SudoSettings()
    // sudo reads this one before all others, since these may be bound to it.
    for isEarly in [true, false] {
      for line in policy.defaults where line.sign != "!" {
        let match = match(line, target)
        for option in line.options where (option.name == "runas_default") == isEarly {
          SudoCaller.take(option, line.location, match, into: &settings)
        }
      }
    }
    for line in policy.defaults where line.sign == "!" {
      let match = policy.aliases.match(line.items, .command) { matches(command, $0) }
      for option in line.options { SudoCaller.take(option, line.location, match, into: &settings) }
    }
    return settings
  }

  private func match(_ line: SudoersPolicy.Defaults, _ target: SudoTarget) -> SudoersMatch {
    switch line.sign {
    case ":": policy.aliases.match(line.items, .user, by: user.match)
    case ">": policy.aliases.match(line.items, .runas, by: target.user.match)
    case "@": policy.aliases.match(line.items, .host, by: policy.matchesHost)
    case _: .included
    }
  }

  private static let usuallyOn: Set = [
    "authenticate", "pam_acct_mgmt", "pam_session", "root_sudo",
  ]

  private static func take(
    _ option: SudoersOption, _ location: FileLocation, _ match: SudoersMatch,
    into settings: inout SudoSettings
  ) {
    guard let gap = doubt(match) else { return }
    let known = settings[option.name]
    let isOn = known?.isOn ?? usuallyOn.contains(option.name)
    if gap != nil, isOn == option.isOn, known?.value ?? "" == option.value { return }
    settings[option.name] = SudoSetting(
      isOn: option.isOn, value: option.value, location: location, gap: gap)
  }
}

/// What the lines of Defaults leave an option at.
private struct SudoSetting {
  let isOn: Bool
  let value: String
  let location: FileLocation
  /// Why the line may not be for it.
  let gap: RuleGap?
}
