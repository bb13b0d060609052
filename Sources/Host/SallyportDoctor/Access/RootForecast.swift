import PAMStack
import SallyportCore

/// The ways from an account to another one: sudo and doas.
final class RootForecast {
  /// What tells callers apart.
  struct Class: Hashable {
    fileprivate let sudo: [SudoCaller.Kind]
    fileprivate let doas: RootRules?
    /// The accounts that `sudo -u` is tried with.
    fileprivate let others: [[String]]

    /// It needs no rule, or has none.
    static let none = Class(sudo: [], doas: nil, others: [])
  }

  private let facts: AccessFacts
  private let forecaster: Forecaster
  private let hasDoas: Bool
  private let programs: [Program]
  private var known: [Class: [Way]] = [:]

  /// sudo or sudo-rs.
  private struct Program {
    let sudoers: Sudoers
    /// Of those whom it takes alike when somebody wants to become them, two each.
    let targets: [[AccountFacts.Account]]

    func others(than account: AccountFacts.Account) -> [AccountFacts.Account] {
      targets.compactMap { same in same.first { $0.uid != account.uid } }
    }
  }

  /// A way, with the rules for each account that the caller becomes.
  private struct Way {
    let way: AccessWay
    let rules: [(target: String, RootRules)]
    /// Whether it starts the login shell of the account that the caller becomes.
    var isLogin = false
  }

  init(_ facts: AccessFacts, _ forecaster: Forecaster) {
    (self.facts, self.forecaster) = (facts, forecaster)
    hasDoas = ["/usr/bin/doas", "/bin/doas"].contains { facts.machine.file($0).value != nil }
    let both = [facts.sudoers, facts.secondSudoers].compactMap { $0 }
    programs = both.filter(\.isThere).map {
      Program(sudoers: $0, targets: RootForecast.targets($0.policy, facts, forecaster))
    }
  }

  private static func targets(
    _ policy: SudoersPolicy, _ facts: AccessFacts, _ forecaster: Forecaster
  ) -> [[AccountFacts.Account]] {
    struct Kind: Hashable {
      let matches: [SudoersMatch]
      let givesPrompt: Bool
      let person: [Int]?
    }
    let (lists, root) = (policy.runasLists, policy.root.user.name)
    let isAsked = policy.sets("targetpw")
    var (kinds, found) = ([Kind: Int](), [[AccountFacts.Account]]())
    for account in facts.accounts.accounts where account.name != root {
      let target = SudoTarget(account, in: facts.accounts)
      let kind = Kind(
        matches: lists.map { policy.aliases.match($0, .runas, by: target.user.match) },
        givesPrompt: facts.accounts.shell(of: account).givesPrompt,
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
    return Class(
      sudo: programs.map { caller(account, $0).kind },
      doas: hasDoas ? facts.doas.rules(for: account) : nil,
      others: programs.map { $0.others(than: account).map(\.name) })
  }

  /// The ways with their rules. Root needs none of them.
  private func ways(of account: AccountFacts.Account, _ kind: Class) -> [Way] {
    if let ways = known[kind] { return ways }
    var found: [Way] = []
    for (program, others) in zip(programs, kind.others) {
      found += ways(of: caller(account, program), program.sudoers, others: others)
    }
    if let rules = kind.doas {
      let way = AccessWay(kind: .doas, service: Doas.service, name: "doas", givesRoot: true)
      found.append(Way(way: way, rules: [("root", rules)]))
    }
    known[kind] = found
    return found
  }

  private func ways(of caller: SudoCaller, _ sudoers: Sudoers, others: [String]) -> [Way] {
    let targets = others.compactMap { facts.accounts[$0] }.map {
      SudoTarget($0, in: facts.accounts)
    }
    let (name, forms) = (sudoers.name, RootForecast.forms(of: sudoers))
    return forms.map { way, form in
      Way(
        way: way, rules: [("root", caller.rules(SudoWay(form: form)))], isLogin: form == .login)
    }
      + forms.map { way, form in
        Way(
          way: AccessWay(
            kind: .sudoAs, service: way.service, name: "\(way.name) -u",
            usual: form == .command ? nil : "\(name) -u"),
          rules: targets.map { ($0.user.name, caller.rules(.other($0, form))) },
          isLogin: form == .login)
      }
  }

  private static func forms(of sudoers: Sudoers) -> [(AccessWay, SudoWay.Form)] {
    func way(_ option: String, _ kind: AccessWay.Kind, _ service: String) -> AccessWay {
      AccessWay(kind: kind, service: service, name: sudoers.name + option, givesRoot: true)
    }
    let usual = [
      (way("", .sudo, "sudo"), SudoWay.Form.command), (way(" -i", .sudoLogin, "sudo-i"), .login),
    ]
    let hasOther = sudoers.policy.sets("pam_askpass_service")
    if !hasOther { return usual }
    var askpass = way(" -A", .sudo, "sudo")
    askpass.usual = sudoers.name
    return usual + [(askpass, .askpass)]
  }

  private func caller(_ account: AccountFacts.Account, _ program: Program) -> SudoCaller {
    program.sudoers.caller(account, in: facts.accounts, at: facts.now)
  }

  /// Whether a rule is for it, as far as its lines tell: where nothing of all lines is known, that
  /// is told once.
  func hasRule(_ account: AccountFacts.Account, _ kind: Class) -> Bool {
    let unknown = programs.compactMap(\.sudoers.policy.gap).map(RootRule.unseen)
    return ways(of: account, kind).contains { way in
      way.rules.contains { !$1.isNone && !unknown.contains($1.shell) }
    }
  }

  func cells(for account: AccountFacts.Account, _ kind: Class) -> [Cell] {
    var cells: [Cell] = []
    for way in ways(of: account, kind) {
      let usual = cells.first { $0.way.name == way.way.usual }?.verdict.badness ?? -1
      let own = self.cells(way, account)
      cells += own.filter { $0.verdict.badness > usual }
    }
    return cells
  }

  /// What becomes of the way: the worst of all whom the caller becomes; and of some commands, if
  /// that is worse.
  private func cells(_ way: Way, _ account: AccountFacts.Account) -> [Cell] {
    func worst(_ rules: (RootRules) -> [RootRule]) -> Cell? {
      way.rules.flatMap { target, found in
        rules(found).map { cell(way, $0, account, as: target) }
      }.max { RootForecast.rank($0.verdict) < RootForecast.rank($1.verdict) }
    }
    guard let cell = worst({ [$0.shell] }) else { return [] }
    guard let some = worst(\.someCommands), some.verdict.badness > cell.verdict.badness else {
      return [cell]
    }
    let narrow = AccessWay(
      kind: some.way.kind, service: some.way.service, name: "\(way.way.name), some commands")
    var decided = Decided(some.verdict, at: some.location, some.detail)
    decided.whose = some.whose
    return [cell, Cell(narrow, decided)]
  }

  /// Why a rule lets nobody in says more than that there is none.
  private static func rank(_ verdict: Verdict) -> Int {
    2 * verdict.badness + (verdict == .refused(.noRule) ? 0 : 1)
  }

  private func cell(
    _ taken: Way, _ rule: RootRule, _ account: AccountFacts.Account, as target: String
  ) -> Cell {
    var (way, decided) = (taken.way, Decided(.refused(.noRule)))
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
    if taken.isLogin, decided.isIn, let other = facts.accounts[target],
      !facts.accounts.shell(of: other).givesPrompt
    {
      decided = Decided(.refused(.noShell))
      decided.whose = target
    }
    if way.kind == .sudoAs, decided.verdict.mayLetIn {
      decided.detail = decided.detail ?? "as \(target)"
    }
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
      var decided = Decided(.refused(.noPassword), at: location, name)
      decided.whose = name
      return decided
    }
    var decided = forecaster.decided(steps, of: other, around: around)
    if case .asked = decided.verdict { decided.verdict = .asked(.codeOfAnother) }
    if decided != around {
      decided.detail = decided.detail ?? name
      decided.whose = name
    }
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
