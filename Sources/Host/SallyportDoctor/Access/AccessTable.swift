import PAMStack
import SallyportCore

/// Who gets in: a row for each account that can log in, a cell for each way.
package struct AccessTable {
  /// One account.
  package struct Row {
    package let user: String
    package let uid: UInt32
    package let isEnrolled: Bool
    package var cells: [Cell]
  }

  package private(set) var rows: [Row] = []
  /// The services whose stacks have a line of ours.
  private let ours: Set<String>
  /// What could not be listed, one line each.
  package let gaps: [String]
  /// Words of `without_code` that mean nothing here.
  private(set) var idlePurposes: [Finding] = []

  package init(_ facts: AccessFacts) {
    gaps = facts.gaps
    let ways = AccessWays(facts)
    let forecaster = Forecaster(facts, services: ways.services)
    ours = Set(ServiceStack.ours(in: facts.stacks).map(\.service))
    for account in facts.accounts.accounts where forecaster.isOfInterest(account) {
      rows.append(
        Row(
          user: account.name, uid: account.uid,
          isEnrolled: facts.isEnrolled(account),
          cells: ways.cells(for: account, forecaster)))
    }
    take(AccessPurposes(facts, forecaster, services: ways.services))
  }

  private mutating func take(_ purposes: AccessPurposes) {
    for row in rows.indices {
      for cell in rows[row].cells.indices {
        rows[row].cells[cell].purpose = purposes.line(
          for: rows[row].cells[cell], of: rows[row].user)
      }
    }
    idlePurposes = purposes.idle(in: rows, isWhole: gaps.isEmpty)
  }
}

extension AccessTable {
  /// The table with these services and this account alone; nil leaves all of them.
  package func narrowed(to services: [String]?, _ user: String?) -> AccessTable {
    var table = self
    table.rows = rows.filter { user == nil || $0.user == user }.map { row in
      var row = row
      row.cells = row.cells.filter { services?.contains($0.way.service) != false }
      return row
    }
    table.rows.removeAll { $0.cells.isEmpty }
    return table
  }

  /// Whether the way comes to a line of ours.
  func isOurs(_ way: AccessWay) -> Bool { ours.contains(way.service) }
}

extension Forecaster {
  /// Whether there is any way in for the account, or something is kept of it.
  fileprivate func isOfInterest(_ account: AccountFacts.Account) -> Bool {
    if account.uid == 0 || account.password != .none { return true }
    if facts.isKnown(account) { return true }
    if SSHForecast(facts, self).mayHaveKey(account) { return true }
    return RootForecast(facts, self).hasRule(account)
  }
}

extension Barrier {
  /// Whether it is of Sallyport's making.
  package var isOurs: Bool {
    switch self {
    case .notEnrolled, .factorsOff, .brokenEnrollment, .afterKey, .noPrompt, .wrongWord: true
    case .moduleMissing, .noRule, .noPassword, .noKey, .noMethod, .rootLogin, .notAllowed, .locked,
      .expired, .noShell, .noLogin, .stackShut, .noAdministrator:
      false
    }
  }
}

/// The ways in of a machine.
struct AccessWays {
  private let facts: AccessFacts
  private let others: [String]
  private let hasSu, hasLogin: Bool
  private let administrators: (names: [String], unseen: String?)

  init(_ facts: AccessFacts) {
    self.facts = facts
    administrators = facts.polkit.administrators(among: facts.accounts)
    let own: Set = ["sshd", "sudo", "sudo-i", "su", "su-l", "login", "polkit-1", "doas"]
    others = ServiceStack.ours(in: facts.stacks).map(\.service).filter {
      !own.contains($0) && !KnownServices.withoutAuth.contains($0)
    }
    let there = { (name: String) in facts.machine.file("/etc/pam.d/\(name)").value != nil }
    (hasSu, hasLogin) = (there("su"), there("login"))
  }

  /// Of which stacks are walked.
  var services: [String] {
    ["sshd", "sudo", "sudo-i", "su", "su-l", "login", "doas", "polkit-1"] + others
  }

  func cells(for account: AccountFacts.Account, _ forecaster: Forecaster) -> [Cell] {
    var cells = SSHForecast(facts, forecaster).cells(for: account)
    cells += RootForecast(facts, forecaster).cells(for: account)
    cells += polkit(account, forecaster)
    let shell = facts.accounts.shell(of: account)
    var plain: [(AccessWay, LoginSteps)] = []
    if hasSu {
      plain.append((AccessWay(kind: .su, service: "su", name: "su"), LoginSteps("su")))
      plain.append((AccessWay(kind: .su, service: "su-l", name: "su -"), LoginSteps("su-l")))
    }
    if hasLogin {
      plain.append((AccessWay(kind: .login, service: "login", name: "login"), roots("login")))
    }
    plain += others.map { (AccessWay(kind: .other, service: $0, name: $0), roots($0)) }
    for (way, steps) in plain {
      var decided = forecaster.decided(steps, of: account)
      if !shell.givesPrompt, decided.isIn { decided = Decided(.refused(.noShell)) }
      cells.append(Cell(way, decided))
    }
    return cells
  }

  // MARK: polkit

  /// Of callers. Who is asked for somebody else's code is told of that one.
  private func polkit(_ account: AccountFacts.Account, _ forecaster: Forecaster) -> [Cell] {
    if account.uid == 0 { return [] }
    return facts.polkit.ways.map { way in
      let name = way == .pkexec ? "pkexec" : "run0"
      let found = AccessWay(kind: .polkit, service: "polkit-1", name: name, givesRoot: true)
      return Cell(
        found,
        decided(facts.polkit.answer(way, for: account, among: facts.accounts), account, forecaster))
    }
  }

  private func decided(
    _ answer: PolkitFacts.Answer, _ account: AccountFacts.Account, _ forecaster: Forecaster
  ) -> Decided {
    var steps = LoginSteps("polkit-1", [.auth, .account])
    (steps.isRoots, steps.renewal) = (true, .never)
    switch answer {
    case .asksNothing(let file):
      return Decided(.withoutCode(.polkitYes), at: FileLocation(file: file))
    case .refuses(let file):
      return Decided(.refused(.noAdministrator), at: FileLocation(file: file))
    case .unseen(let file): return Decided(.unseen(.polkitRules), at: FileLocation(file: file))
    case .asksCaller: return forecaster.decided(steps, of: account)
    case .asksAdministrator:
      let (names, unseen) = administrators
      if let unseen { return Decided(.unseen(.polkitRules), at: FileLocation(file: unseen)) }
      return names.contains(account.name)
        ? forecaster.decided(steps, of: account) : Decided(.refused(.noAdministrator))
    }
  }

  private func roots(_ service: String) -> LoginSteps {
    var steps = LoginSteps(service)
    steps.isRoots = true
    return steps
  }
}

extension Cell {
  init(_ way: AccessWay, _ decided: Decided, methods: [String] = []) {
    self.init(
      way: way, verdict: decided.verdict, methods: methods, location: decided.location,
      detail: decided.detail)
  }
}

extension Decided {
  /// Whether somebody surely gets in.
  var isIn: Bool {
    switch verdict {
    case .asked, .withoutCode: true
    case .refused, .unseen: false
    }
  }
}
