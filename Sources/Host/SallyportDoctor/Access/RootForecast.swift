import PAMStack
import SallyportCore

/// The ways from an account to another one: sudo and doas.
final class RootForecast {
  /// What tells callers apart.
  struct Class: Hashable {
    fileprivate let sudo: SudoCaller.Kind?
    fileprivate let doas: RootRules?
    /// The accounts that `sudo -u` is tried with.
    fileprivate let others: [String]

    /// It needs no rule, or has none.
    static let none = Class(sudo: nil, doas: nil, others: [])
  }

  private let facts: AccessFacts
  private let forecaster: Forecaster
  private let hasDoas: Bool
  /// The accounts that rules name to run as.
  private let targets: [AccountFacts.Account]
  private let targetNames: Set<String>
  private var known: [Class: [(AccessWay, RootRules)]] = [:]
  private var knownOthers: [Class: [(String, RootRules)]] = [:]

  init(_ facts: AccessFacts, _ forecaster: Forecaster) {
    (self.facts, self.forecaster) = (facts, forecaster)
    hasDoas = ["/usr/bin/doas", "/bin/doas"].contains { facts.machine.file($0).value != nil }
    let names = facts.sudoers.targets
    targets = facts.accounts.accounts.filter { $0.uid != 0 && names.contains($0.name) }
    targetNames = names
  }

  /// Each account of one class has the same rules.
  func classOf(_ account: AccountFacts.Account) -> Class {
    if account.uid == 0 { return .none }
    let isThere = facts.sudoers.isThere
    return Class(
      sudo: isThere ? caller(account).kind : nil,
      doas: hasDoas ? facts.doas.rules(for: account) : nil,
      others: isThere ? others(than: account).map(\.name) : [])
  }

  /// The ways with a set of rules each. Root needs none of them.
  private func rules(for account: AccountFacts.Account, _ kind: Class) -> [(AccessWay, RootRules)] {
    if let rules = known[kind] { return rules }
    var found: [(AccessWay, RootRules)] = []
    if kind.sudo != nil {
      let caller = caller(account)
      found = [
        (
          AccessWay(kind: .sudo, service: "sudo", name: "sudo", givesRoot: true),
          caller.rules(.shell)
        ),
        (
          AccessWay(kind: .sudoLogin, service: "sudo-i", name: "sudo -i", givesRoot: true),
          caller.rules(.login)
        ),
      ]
    }
    if let rules = kind.doas {
      found.append(
        (AccessWay(kind: .doas, service: Doas.service, name: "doas", givesRoot: true), rules))
    }
    known[kind] = found
    return found
  }

  /// Those that rules name to run as, and one for all others.
  private func others(than account: AccountFacts.Account) -> [AccountFacts.Account] {
    let unnamed = facts.accounts.accounts.first {
      $0.uid != 0 && $0.uid != account.uid && !targetNames.contains($0.name)
    }
    return targets.filter { $0.uid != account.uid } + [unnamed].compactMap { $0 }
  }

  /// What becomes of `sudo -u`: the worst of all targets.
  private func other(_ account: AccountFacts.Account, _ kind: Class) -> Cell? {
    if kind.sudo == nil { return nil }
    let way = AccessWay(kind: .sudoAs, service: "sudo", name: "sudo -u")
    let cells = otherRules(for: account, kind).map { target, rules in
      var cell = Cell(way, decided(rules.shell, rules, of: account, by: way, as: target))
      cell.detail = cell.detail ?? target
      return cell
    }
    return cells.max { $0.verdict.badness < $1.verdict.badness }
  }

  /// By the name of the target.
  private func otherRules(
    for account: AccountFacts.Account, _ kind: Class
  ) -> [(String, RootRules)] {
    if let rules = knownOthers[kind] { return rules }
    let caller = caller(account)
    let rules = others(than: account).map { target in
      let groups = facts.accounts.groupNames(of: target)
      return (target.name, caller.rules(.other(SudoTarget(target, groups: groups))))
    }
    knownOthers[kind] = rules
    return rules
  }

  private func caller(_ account: AccountFacts.Account) -> SudoCaller {
    let isSure = facts.accounts.knowsGroups(of: account)
    return facts.sudoers.caller(
      account, groups: isSure ? facts.accounts.groupNames(of: account) : nil, at: facts.now)
  }

  func hasRule(_ account: AccountFacts.Account, _ kind: Class) -> Bool {
    rules(for: account, kind).contains { $0.1.shell != .none || $0.1.someCommands != nil }
  }

  func cells(for account: AccountFacts.Account, _ kind: Class) -> [Cell] {
    rules(for: account, kind).flatMap { way, rules in cells(rules, way, account) }
      + [other(account, kind)].compactMap { $0 }
  }

  private func cells(
    _ rules: RootRules, _ way: AccessWay, _ account: AccountFacts.Account
  ) -> [Cell] {
    var cells = [Cell(way, decided(rules.shell, rules, of: account, by: way))]
    if let some = rules.someCommands {
      let narrow = AccessWay(
        kind: way.kind, service: way.service, name: "\(way.name), some commands")
      cells.append(Cell(narrow, decided(some, rules, of: account, by: narrow)))
    }
    return cells
  }

  private func decided(
    _ rule: RootRule, _ rules: RootRules, of account: AccountFacts.Account, by way: AccessWay,
    as target: String = "root"
  ) -> Decided {
    switch rule {
    case .none: return Decided(.refused(.noRule))
    case .unseen(let gap): return Decided(.unseen(.sudoSilent), at: nil, "\(gap)")
    case .asks(let owner, let service, let location):
      return asked(owner, service, at: location, of: account, by: way, as: target)
    case .asksNothing(let opening, let service, let location):
      let open = Decided(.withoutCode(reason(opening)), at: location)
      guard rules.runsAccountPhase else { return open }
      var steps = LoginSteps(service, [.account, .session])
      (steps.isOwn, steps.renewal) = (true, way.kind == .doas ? .byOwner : .left)
      return forecaster.decided(steps, of: account, around: open)
    }
  }

  private func reason(_ opening: RuleOpening) -> Opening {
    switch opening {
    case .noPassword, .callerIsRoot, .sameAccount: .noPasswd
    case .notAuthenticated: .notAuthenticated
    case .exemptGroup: .exemptGroup
    case .nopass: .nopass
    }
  }

  private func asked(
    _ owner: PasswordOwner, _ service: String, at location: FileLocation,
    of account: AccountFacts.Account, by way: AccessWay, as target: String
  ) -> Decided {
    var steps = LoginSteps(service)
    let name: String
    switch owner {
    case .caller:
      steps.isOwn = true
      return forecaster.decided(steps, of: account)
    case .root: name = "root"
    case .target: name = target
    case .account(let other): name = other
    }
    guard let other = facts.accounts[name] else {
      return Decided(.refused(.noPassword), at: location, name)
    }
    var decided = forecaster.decided(steps, of: other)
    if case .asked = decided.verdict { decided.verdict = .asked(.codeOfAnother) }
    decided.detail = decided.detail ?? name
    return decided
  }
}

extension Sudoers {
  /// The accounts that rules name to run as.
  fileprivate var targets: Set<String> {
    let commands = policy.rules.flatMap(\.privileges).flatMap(\.commands)
    return Set(commands.flatMap { $0.runas?.users ?? [] })
  }
}

extension Verdict {
  /// The greater the more it lets in.
  var badness: Int {
    switch self {
    case .refused: 0
    case .asked: 1
    case .unseen: 2
    case .withoutCode: 3
    }
  }
}
