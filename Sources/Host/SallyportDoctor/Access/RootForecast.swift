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
  /// Of those whom sudo takes alike when somebody wants to become them, two each.
  private let targets: [[AccountFacts.Account]]
  private var known: [Class: [Way]] = [:]

  /// A way, with the rules for each account that the caller becomes.
  private struct Way {
    let way: AccessWay
    let rules: [(target: String, RootRules)]
    /// Whether it is told of only where it lets in more than the way before it.
    var isVariant = false
  }

  init(_ facts: AccessFacts, _ forecaster: Forecaster) {
    (self.facts, self.forecaster) = (facts, forecaster)
    hasDoas = ["/usr/bin/doas", "/bin/doas"].contains { facts.machine.file($0).value != nil }
    targets = RootForecast.targets(facts, forecaster)
  }

  private static func targets(
    _ facts: AccessFacts, _ forecaster: Forecaster
  ) -> [[AccountFacts.Account]] {
    struct Kind: Hashable {
      let matches: [SudoersMatch]
      let person: [Int]?
    }
    let policy = facts.sudoers.policy
    let (lists, root) = (policy.runasLists, policy.root.user.name)
    let isAsked = policy.sets("targetpw")
    var (kinds, found) = ([Kind: Int](), [[AccountFacts.Account]]())
    for account in facts.accounts.accounts where account.name != root {
      let target = SudoTarget(account, in: facts.accounts)
      let kind = Kind(
        matches: lists.map { policy.aliases.match($0, .runas, by: target.user.match) },
        person: isAsked ? forecaster.numbers(of: account) : nil)
      let index = kinds[kind] ?? found.count
      kinds[kind] = index
      if index == found.count { found.append([]) }
      if found[index].count < 2 { found[index].append(account) }
    }
    return found
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

  /// The ways with their rules. Root needs none of them.
  private func ways(of account: AccountFacts.Account, _ kind: Class) -> [Way] {
    if let ways = known[kind] { return ways }
    var found: [Way] = []
    if kind.sudo != nil {
      let caller = caller(account)
      let others = kind.others.compactMap { facts.accounts[$0] }.map {
        SudoTarget($0, in: facts.accounts)
      }
      found = forms.map { way, form in
        Way(
          way: way, rules: [("root", caller.rules(SudoWay(form: form)))],
          isVariant: form == .askpass)
      }
      found += forms.map { way, form in
        Way(
          way: AccessWay(kind: .sudoAs, service: way.service, name: "\(way.name) -u"),
          rules: others.map { ($0.user.name, caller.rules(.other($0, form))) },
          isVariant: form != .command)
      }
    }
    if let rules = kind.doas {
      let way = AccessWay(kind: .doas, service: Doas.service, name: "doas", givesRoot: true)
      found.append(Way(way: way, rules: [("root", rules)]))
    }
    known[kind] = found
    return found
  }

  private var forms: [(AccessWay, SudoWay.Form)] {
    let askpass = (
      AccessWay(kind: .sudo, service: "sudo", name: "sudo -A", givesRoot: true),
      SudoWay.Form.askpass
    )
    return [
      (AccessWay(kind: .sudo, service: "sudo", name: "sudo", givesRoot: true), .command),
      (AccessWay(kind: .sudoLogin, service: "sudo-i", name: "sudo -i", givesRoot: true), .login),
    ] + (facts.sudoers.policy.sets("pam_askpass_service") ? [askpass] : [])
  }

  private func others(than account: AccountFacts.Account) -> [AccountFacts.Account] {
    targets.compactMap { same in same.first { $0.uid != account.uid } }
  }

  private func caller(_ account: AccountFacts.Account) -> SudoCaller {
    facts.sudoers.caller(account, in: facts.accounts, at: facts.now)
  }

  func hasRule(_ account: AccountFacts.Account, _ kind: Class) -> Bool {
    ways(of: account, kind).contains { $0.rules.contains { !$1.isNone } }
  }

  func cells(for account: AccountFacts.Account, _ kind: Class) -> [Cell] {
    var cells: [Cell] = []
    for way in ways(of: account, kind) {
      let known = cells.first { $0.way.kind == way.way.kind }?.verdict.badness ?? -1
      let own = self.cells(way, account)
      cells += own.filter { !way.isVariant || $0.verdict.badness > known }
    }
    return cells
  }

  /// What becomes of the way: the worst of all whom the caller becomes; and of some commands, if
  /// that is worse.
  private func cells(_ way: Way, _ account: AccountFacts.Account) -> [Cell] {
    func worst(_ rules: (RootRules) -> [RootRule]) -> Cell? {
      way.rules.flatMap { target, found in
        rules(found).map { cell(way.way, $0, account, as: target) }
      }.max { RootForecast.rank($0.verdict) < RootForecast.rank($1.verdict) }
    }
    guard let cell = worst({ [$0.shell] }) else { return [] }
    guard let some = worst(\.someCommands), some.verdict.badness > cell.verdict.badness else {
      return [cell]
    }
    let narrow = AccessWay(
      kind: some.way.kind, service: some.way.service, name: "\(way.way.name), some commands")
    return [cell, Cell(narrow, Decided(some.verdict, at: some.location, some.detail))]
  }

  /// Why a rule lets nobody in says more than that there is none.
  private static func rank(_ verdict: Verdict) -> Int {
    2 * verdict.badness + (verdict == .refused(.noRule) ? 0 : 1)
  }

  private func cell(
    _ way: AccessWay, _ rule: RootRule, _ account: AccountFacts.Account, as target: String
  ) -> Cell {
    var (way, decided) = (way, Decided(.refused(.noRule)))
    switch rule {
    case .none: break
    case .unseen(let gap): decided = Decided(.unseen(.sudoSilent), at: nil, gap.text)
    case .asks(let check, let location):
      way.service = check.service
      decided = self.decided(check, account, by: way, as: target, at: location)
    case .asksNothing(let opening, let check, let location):
      way.service = check.service
      let open = Decided(.withoutCode(reason(opening)), at: location)
      decided = self.decided(check, account, by: way, as: target, around: open)
    }
    if way.kind == .sudoAs { decided.detail = decided.detail ?? target }
    return Cell(way, decided)
  }

  private func reason(_ opening: RuleOpening) -> Opening {
    switch opening {
    case .noPassword, .callerIsRoot, .sameAccount: .noPasswd
    case .notAuthenticated: .notAuthenticated
    case .exemptGroup: .exemptGroup
    case .nopass: .nopass
    }
  }

  /// `around`: what is so where nobody is asked for a password.
  private func decided(
    _ check: RootCheck, _ account: AccountFacts.Account, by way: AccessWay, as target: String,
    around: Decided? = nil, at location: FileLocation? = nil
  ) -> Decided {
    var phases: [PAMPhase] = around == nil ? [.auth] : []
    if check.runsAccountPhase { phases.append(.account) }
    if check.runsSessionPhase { phases.append(.session) }
    var steps = LoginSteps(check.service, phases)
    steps.renewal = around == nil || way.kind == .doas ? .byOwner : .left
    let name: String
    switch check.owner {
    case .caller:
      steps.isOwn = true
      return forecaster.decided(steps, of: account, around: around)
    case .root: name = facts.sudoers.policy.root.user.name
    case .target: name = target
    case .account(let other): name = other
    }
    guard let other = facts.accounts[name] else {
      return Decided(.refused(.noPassword), at: location, name)
    }
    var decided = forecaster.decided(steps, of: other, around: around)
    if case .asked = decided.verdict { decided.verdict = .asked(.codeOfAnother) }
    if decided != around { decided.detail = decided.detail ?? name }
    return decided
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
