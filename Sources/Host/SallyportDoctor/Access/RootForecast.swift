import PAMStack
import SallyportCore

/// The ways from an account to another one: sudo and doas.
struct RootForecast {
  private let facts: AccessFacts
  private let forecaster: Forecaster

  init(_ facts: AccessFacts, _ forecaster: Forecaster) {
    (self.facts, self.forecaster) = (facts, forecaster)
  }

  /// The ways with a set of rules each. Root needs none of them.
  private func rules(for account: AccountFacts.Account) -> [(AccessWay, RootRules)] {
    if account.uid == 0 { return [] }
    let (sudoers, doas) = (facts.sudoers, facts.doas)
    var found: [(AccessWay, RootRules)] = []
    if sudoers.isThere {
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
    if ["/usr/bin/doas", "/bin/doas"].contains(where: { facts.machine.file($0).value != nil }) {
      let way = AccessWay(kind: .doas, service: Doas.service, name: "doas", givesRoot: true)
      found.append((way, doas.rules(for: account)))
    }
    return found
  }

  /// Those that rules name to run as, and one for all others.
  private func others(than account: AccountFacts.Account) -> [AccountFacts.Account] {
    let named = facts.sudoers.targets
    let listed = facts.accounts.accounts.filter { $0.uid != 0 && $0.uid != account.uid }
    let unnamed = listed.first { !named.contains($0.name) }
    return listed.filter { named.contains($0.name) } + [unnamed].compactMap { $0 }
  }

  /// What becomes of `sudo -u`: the worst of all targets.
  private func other(_ account: AccountFacts.Account) -> Cell? {
    guard account.uid != 0, facts.sudoers.isThere else { return nil }
    let caller = caller(account)
    let way = AccessWay(kind: .sudoAs, service: "sudo", name: "sudo -u")
    let cells = others(than: account).map { target in
      let groups = facts.accounts.groupNames(of: target)
      let rules = caller.rules(.other(SudoTarget(target, groups: groups)))
      var cell = Cell(way, decided(rules.shell, rules, of: account, by: way, as: target.name))
      cell.detail = cell.detail ?? target.name
      return cell
    }
    return cells.max { $0.verdict.badness < $1.verdict.badness }
  }

  private func caller(_ account: AccountFacts.Account) -> SudoCaller {
    let isSure = facts.accounts.knowsGroups(of: account)
    return facts.sudoers.caller(
      account, groups: isSure ? facts.accounts.groupNames(of: account) : nil, at: facts.now)
  }

  func hasRule(_ account: AccountFacts.Account) -> Bool {
    rules(for: account).contains { $0.1.shell != .none || $0.1.someCommands != nil }
  }

  func cells(for account: AccountFacts.Account) -> [Cell] {
    rules(for: account).flatMap { way, rules in cells(rules, way, account) }
      + [other(account)].compactMap { $0 }
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
