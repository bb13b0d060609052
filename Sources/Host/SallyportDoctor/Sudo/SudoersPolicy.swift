import Glibc
import PAMStack
import SallyportCore

/// The rules, the options and the aliases of all sudoers files, in the order of the files.
struct SudoersPolicy: Equatable {
  struct Rule: Equatable {
    let location: FileLocation
    let users: [SudoersItem]
    let privileges: [SudoersPrivilege]
  }

  /// A line of Defaults.
  struct Defaults: Equatable {
    let location: FileLocation
    /// `:` users, `>` users to run as, `@` hosts, `!` commands; nil for everything.
    let sign: Character?
    let items: [SudoersItem]
    let options: [SudoersOption]
  }

  var program = SudoProgram.sudo
  var rules: [Rule] = []
  var defaults: [Defaults] = []
  var aliases = SudoersAliases()
  /// What keeps every answer from being known.
  var gap: RuleGap?
  /// The name of this machine in lower case; empty if unknown.
  var host = ""
  /// root, as the one to become.
  var root = SudoTarget.root

  mutating func take(_ line: SudoersLine, at location: FileLocation) {
    switch line.kind {
    case .rule:
      let users = line.callers.map { SudoersItem($0) }
      rules.append(Rule(location: location, users: users, privileges: line.privileges))
    case .defaults:
      let (sign, items, _) = line.binding
      defaults.append(
        Defaults(
          location: location, sign: sign,
          items: items.map { SudoersItem($0, isCommand: sign == "!") },
          options: line.options.map(SudoersOption.init).filter { program.knows($0.name) }))
    case nil:
      for (kind, name, items) in line.aliases { aliases.add(kind, name, items) }
    }
  }

  /// Whether a line sets the option for somebody.
  func sets(_ option: String) -> Bool {
    defaults.contains { $0.options.contains { $0.name == option && $0.isOn } }
  }

  /// For whom the line is: a rule, or Defaults for some users; else nobody.
  func users(of line: FileLocation) -> [SudoersItem] {
    rules.first { $0.location == line }?.users
      ?? defaults.first { $0.location == line && $0.sign == ":" }?.items ?? []
  }

  /// The lists of accounts that tell apart those whom somebody becomes.
  var runasLists: Set<[SudoersItem]> {
    let ofCommands = rules.flatMap(\.privileges).flatMap(\.commands).compactMap(\.runas?.items)
    let bound = defaults.filter { $0.sign == ">" }.map(\.items)
    let usual = defaults.flatMap(\.options).filter { $0.name == "runas_default" }
      .map { [SudoersItem($0.value)] }
    return Set(ofCommands + bound + usual)
  }

  /// Whether hosts include this one. A name with a domain may be its name in the DNS.
  func matchesHost(_ name: String) -> SudoersMatch {
    if name == "ALL" { return .included }
    let name = name.lowercased()
    let short = host.prefix { $0 != "." }
    if host.isEmpty { return .unknown(.host(name)) }
    if program == .rust { return SudoersMatch(name == host) }
    if name.hasPrefix("+") { return .unknown(.netgroup(name)) }
    let isAddress = name.contains(":") || name.allSatisfy { $0.isNumber || "./".contains($0) }
    if isAddress { return .unknown(.host(name)) }
    guard name.contains(".") else { return SudoersMatch(matchesPattern(name, String(short))) }
    if matchesPattern(name, host) { return .included }
    let mayBe = !host.contains(".") || name.prefix { $0 != "." } == short
    let label = String(name.prefix { $0 != "." })
    return mayBe && matchesPattern(label, String(short)) ? .unknown(.host(name)) : .none
  }
}

/// Whether a text matches a pattern of the shell. In a path, only a slash matches a slash.
func matchesPattern(_ pattern: String, _ text: String, isPath: Bool = false) -> Bool {
  // SAFETY: both C strings live for the call.
  unsafe fnmatch(pattern, text, isPath ? FNM_PATHNAME : 0) == 0
}

/// `!authenticate`, `pam_service=corp`
struct SudoersOption: Equatable {
  let name: String
  let isOn: Bool
  let value: String

  init(_ text: String) {
    let item = SudoersItem(text, isCommand: true)
    let parts = item.name.split(separator: "=", maxSplits: 1).map { trimmed(String($0)) }
    name = parts.first ?? ""
    isOn = !item.isNegated
    value = parts.count > 1 ? parts[1].filter { $0 != "\"" } : ""
  }
}

/// The account that somebody wants to become.
struct SudoTarget: Equatable {
  let user: SudoersUser
  let shell: String

  init(_ account: AccountFacts.Account, groups: [String]?) {
    self.init(SudoersUser(account, groups: groups), account.shell)
  }

  init(_ account: AccountFacts.Account, in accounts: AccountFacts) {
    self.init(SudoersUser(account, in: accounts), account.shell)
  }

  private init(_ user: SudoersUser, _ shell: String) {
    (self.user, self.shell) = (user, shell.isEmpty ? "/bin/sh" : shell)
  }

  static let root = SudoTarget(
    AccountFacts.Account(name: "root", uid: 0, group: 0, shell: "/bin/bash"), groups: ["root"])

  /// root by the files of the machine.
  static func root(of machine: Machine) -> SudoTarget {
    let rows = { (file: String) in
      linesOf(machine.text(file).value ?? "").map { line in
        line.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
      }
    }
    let shell = rows("/etc/passwd").first { $0.first == "root" && $0.count > 6 }?[6]
    let groups = rows("/etc/group").filter { fields in
      fields.first == "root" || fields.last?.split(separator: ",").contains("root") == true
    }
    return SudoTarget(
      AccountFacts.Account(name: "root", uid: 0, group: 0, shell: shell ?? "/bin/bash"),
      groups: groups.compactMap(\.first))
  }
}
