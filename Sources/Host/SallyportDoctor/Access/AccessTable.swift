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

  package internal(set) var rows: [Row] = []
  /// The services whose stacks have a line of ours.
  private let ours: Set<String>
  /// What could not be listed, one line each.
  package let gaps: [String]
  /// Whom each line of sudoers names that keeps sudo from asking.
  let unasked: [FileLocation: Set<String>]
  /// Words of `without_code` that mean nothing here.
  private(set) var idlePurposes: [Finding] = []

  package init(_ facts: AccessFacts) {
    gaps = facts.gaps
    let ways = AccessWays(facts)
    unasked = facts.sudoers.unasked(among: facts.accounts)
    ours = Set(ServiceStack.ours(in: facts.stacks).map(\.service))
    for account in facts.accounts.accounts {
      let kind = ways.classOf(account)
      guard ways.isOfInterest(account, kind) else { continue }
      rows.append(
        Row(
          user: account.name, uid: account.uid,
          isEnrolled: facts.isEnrolled(account),
          cells: ways.cells(for: account, kind)))
    }
    take(AccessPurposes(facts, ways.forecaster, services: ways.services))
    weigh()
  }

  private mutating func take(_ purposes: AccessPurposes) {
    for row in rows.indices {
      for cell in rows[row].cells.indices {
        let line = purposes.line(for: rows[row].cells[cell], of: rows[row].user)
        if let line { rows[row].cells[cell].purpose = line }
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

  /// The table with these cells alone.
  package func narrowed(toCells isTaken: (Cell) -> Bool) -> AccessTable {
    var table = self
    for row in table.rows.indices { table.rows[row].cells = rows[row].cells.filter(isTaken) }
    table.rows.removeAll { $0.cells.isEmpty }
    return table
  }

  /// Whether the way comes to a line of ours.
  func isOurs(_ way: AccessWay) -> Bool { ours.contains(way.service) }
}

extension Barrier {
  /// Whether it is of Sallyport's making.
  package var isOurs: Bool {
    switch self {
    case .notEnrolled, .blocked, .factorsOff, .brokenEnrollment, .afterKey, .noPrompt, .wrongWord:
      true
    case .moduleMissing, .noRule, .noPassword, .noKey, .keyLeftOut, .noMethod, .rootLogin,
      .notAllowed, .locked, .expired, .noShell, .noLogin, .stackShut, .noAdministrator:
      false
    }
  }
}

/// The ways in of a machine.
final class AccessWays {
  /// What tells accounts apart: of those with one class, every cell is the same.
  struct Class: Hashable {
    fileprivate let isRoot: Bool
    /// The numbers of what the modules of the stacks tell apart.
    fileprivate let person: [Int]
    /// The name of the caller, where that is another account.
    fileprivate let caller: String?
    fileprivate let ssh: SSHClass?
    fileprivate let root: RootForecast.Class
    fileprivate let polkit: [PolkitFacts.Answer]
    fileprivate let isAdministrator, givesPrompt: Bool
  }

  private let facts: AccessFacts
  private let others: [String]
  /// From where others than sshd may be called.
  private let connections: [SSHConnection]
  private let hasSu, hasLogin: Bool
  private let administrators: (names: Set<String>, unseen: String?)
  let forecaster: Forecaster
  /// Of which stacks are walked.
  let services: [String]
  private let root: RootForecast
  /// By its uid, which is all that sudo, doas and polkit know of a caller: the first account.
  private let callers: [UInt32: AccountFacts.Account]
  private var known: [Class: [Cell]] = [:]

  init(_ facts: AccessFacts) {
    self.facts = facts
    let (names, unseen) = facts.polkit.administrators(among: facts.accounts)
    administrators = (Set(names), unseen)
    let own = ["sshd", "sudo", "sudo-i", "su", "su-l", "login", "doas", "polkit-1"]
    let ours = ServiceStack.ours(in: facts.stacks).map(\.service)
    let others = Set(ours + facts.services).sorted().filter {
      !own.contains($0) && !KnownServices.withoutAuth.contains($0)
    }
    self.others = others
    let asked = facts.ssh?.connections ?? []
    connections = asked.isEmpty ? [.elsewhere(port: "22")] : asked
    // Without a file of its own, a program runs that of `other`.
    let there = { (name: String) in
      facts.stacks.stack(of: name).file != nil
        || ["/bin", "/usr/bin"].contains { facts.machine.file("\($0)/\(name)").value != nil }
    }
    (hasSu, hasLogin) = (there("su"), there("login"))
    services = own + others
    forecaster = Forecaster(facts, services: services + facts.sudoers.services.map(\.service))
    root = RootForecast(facts, forecaster)
    callers = Dictionary(facts.accounts.accounts.map { ($0.uid, $0) }) { first, _ in first }
  }

  private func caller(_ account: AccountFacts.Account) -> AccountFacts.Account {
    callers[account.uid] ?? account
  }

  func classOf(_ account: AccountFacts.Account) -> Class {
    let caller = caller(account)
    return Class(
      isRoot: account.uid == 0, person: forecaster.numbers(of: account),
      caller: caller.name == account.name ? nil : caller.name,
      ssh: facts.ssh?.classOf(account), root: root.classOf(caller),
      polkit: facts.polkit.ways.map {
        facts.polkit.answer($0, for: caller, among: facts.accounts)
      },
      isAdministrator: administrators.names.contains(caller.name),
      givesPrompt: facts.accounts.shell(of: account).givesPrompt)
  }

  /// Whether there is any way in for the account, or something is kept of it.
  func isOfInterest(_ account: AccountFacts.Account, _ kind: Class) -> Bool {
    if account.uid == 0 || account.password != .none { return true }
    if facts.isKnown(account) { return true }
    if let ssh = kind.ssh, ssh.hasKey ?? kind.givesPrompt { return true }
    return root.hasRule(caller(account), kind.root)
  }

  func cells(for account: AccountFacts.Account, _ kind: Class) -> [Cell] {
    if let cells = known[kind] { return cells }
    let cells = newCells(for: account, kind)
    known[kind] = cells
    return cells
  }

  private func newCells(for account: AccountFacts.Account, _ kind: Class) -> [Cell] {
    var cells = SSHForecast(facts, forecaster).cells(for: account)
    let caller = caller(account)
    cells += root.cells(for: caller, kind.root)
    cells += polkit(caller)
    let shell = facts.accounts.shell(of: account)
    var plain: [(AccessWay, LoginSteps)] = []
    if hasSu {
      plain.append((AccessWay(kind: .su, service: "su", name: "su"), LoginSteps("su")))
      plain.append((AccessWay(kind: .su, service: "su-l", name: "su -"), LoginSteps("su-l")))
    }
    if hasLogin {
      plain.append((AccessWay(kind: .login, service: "login", name: "login"), roots("login")))
    }
    for (way, steps) in plain {
      var decided = forecaster.decided(steps, of: account)
      if !shell.givesPrompt, decided.isIn { decided = Decided(.refused(.noShell)) }
      cells.append(Cell(way, decided))
    }
    return cells + others.map { other($0, account) }
  }

  /// A service that may give a mailbox as well as a shell, and be called from anywhere: what lets
  /// in the most.
  private func other(_ service: String, _ account: AccountFacts.Account) -> Cell {
    var way = AccessWay(kind: .other, service: service, name: service)
    var (worst, steps) = (forecaster.decided(roots(service), of: account), roots(service))
    for connection in connections {
      steps.remote = connection.address
      let decided = forecaster.decided(steps, of: account)
      if decided.verdict.badness > worst.verdict.badness {
        (worst, way.origin) = (decided, connection.name)
      }
    }
    return Cell(way, worst)
  }

  // MARK: polkit

  /// Of callers. Who is asked for somebody else's code is told of that one.
  private func polkit(_ account: AccountFacts.Account) -> [Cell] {
    if account.uid == 0 { return [] }
    return facts.polkit.ways.map { way in
      let name = way == .pkexec ? "pkexec" : "run0"
      let found = AccessWay(kind: .polkit, service: "polkit-1", name: name, givesRoot: true)
      return Cell(
        found,
        decided(facts.polkit.answer(way, for: account, among: facts.accounts), account))
    }
  }

  private func decided(_ answer: PolkitFacts.Answer, _ account: AccountFacts.Account) -> Decided {
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
        ? forecaster.decided(steps, of: account) : asStranger(steps, names)
    }
  }

  /// Of a caller who is asked as an administrator of his choice, and knows none of their passwords.
  private func asStranger(_ steps: LoginSteps, _ names: Set<String>) -> Decided {
    var steps = steps
    steps.knowsPassword = false
    for name in names.sorted() {
      guard let other = facts.accounts[name] else { continue }
      var decided = forecaster.decided(steps, of: other)
      guard case .withoutCode = decided.verdict else { continue }
      decided.detail = name
      return decided
    }
    return Decided(.refused(.noAdministrator))
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
      detail: decided.detail, whose: decided.whose)
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
