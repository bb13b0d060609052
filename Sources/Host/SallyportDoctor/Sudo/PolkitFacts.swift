import SallyportAdministration
import SallyportCore
import SallyportSupport

/// Whom polkit asks before somebody becomes root by it.
struct PolkitFacts: Equatable {
  /// A way to root, with the action of which polkit decides.
  enum Way: String, CaseIterable {
    case pkexec = "org.freedesktop.policykit.exec"
    case run0 = "org.freedesktop.systemd1.manage-units"
  }

  /// What a file says.
  enum Rules: Equatable {
    case understood(PolkitRules)
    case unseen
  }

  /// What polkit does with a caller.
  enum Answer: Hashable {
    /// It asks one of the administrators, whom the caller chooses.
    case asksAdministrator
    case asksCaller
    /// The caller is root without being asked, by this file.
    case asksNothing(String)
    /// By this file.
    case refuses(String)
    /// This file has rules that are not understood, or rules that depend on the session.
    case unseen(String)
  }

  /// Those of which the program, polkitd and the action are there.
  var ways: [Way] = []
  /// By path, in polkit's order.
  var files: [(path: String, rules: Rules)] = []
  /// What the action's file says of each way, for callers without a session.
  var defaults: [Way: String] = [:]

  static func == (one: PolkitFacts, other: PolkitFacts) -> Bool {
    one.ways == other.ways && one.defaults == other.defaults
      && one.files.map(\.path) == other.files.map(\.path)
      && one.files.map(\.rules) == other.files.map(\.rules)
  }
}

extension PolkitFacts {
  private static let directories = [
    "/etc/polkit-1/rules.d", "/run/polkit-1/rules.d", "/usr/local/share/polkit-1/rules.d",
    "/usr/share/polkit-1/rules.d",
  ]
  /// What polkit had before it had rules. It counts where there are no rules at all, or where
  /// this file of rules asks for it.
  private static let older = [
    "/etc/polkit-1/localauthority/*/*.pkla", "/var/lib/polkit-1/localauthority/*/*.pkla",
    "/etc/polkit-1/localauthority.conf.d/*.conf",
  ]
  private static let asksOlder = "49-polkit-pkla-compat.rules"

  init(of machine: Machine) {
    let daemons = [
      "/usr/lib/polkit-1/polkitd", "/usr/libexec/polkitd", "/usr/lib/policykit-1/polkitd",
    ]
    guard daemons.contains(where: { machine.file($0).value != nil }) else { return }
    let programs: [(Way, String)] = [(.pkexec, "/usr/bin/pkexec"), (.run0, "/usr/bin/run0")]
    for (way, program) in programs where machine.file(program).value != nil {
      guard let value = PolkitFacts.implicit(way, on: machine) else { continue }
      ways.append(way)
      defaults[way] = value
    }
    let paths = PolkitFacts.directories.flatMap { machine.paths("\($0)/*.rules") }
    let older = PolkitFacts.older.flatMap(machine.paths)
    files = paths.sorted { PolkitFacts.order($0) < PolkitFacts.order($1) }.compactMap {
      guard $0.hasSuffix("/\(PolkitFacts.asksOlder)") else {
        return (path: $0, rules: PolkitFacts.rules(at: $0, on: machine))
      }
      return older.first.map { (path: $0, rules: .unseen) }
    }
    if paths.isEmpty { files = older.map { (path: $0, rules: .unseen) } }
  }

  /// By the name of the file, then by its directory.
  private static func order(_ path: String) -> (String, String) {
    (path.split(separator: "/").last.map(String.init) ?? "", path)
  }

  private static func rules(at path: String, on machine: Machine) -> Rules {
    guard let text = machine.text(path).value, let rules = PolkitRules(text) else {
      return .unseen
    }
    return .understood(rules)
  }

  /// `allow_any` of the action; nil if no file has it.
  private static func implicit(_ way: Way, on machine: Machine) -> String? {
    for path in machine.paths("/usr/share/polkit-1/actions/*.policy") {
      let text = machine.text(path).value ?? ""
      let parts = text.split(
        separator: "<action id=\"\(way.rawValue)\"", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { continue }
      let action = parts[1].split(separator: "</action>", maxSplits: 1).first ?? ""
      let value = action.split(separator: "<allow_any>", maxSplits: 1).dropFirst().first ?? "no"
      return trimmed(String(value.prefix { $0 != "<" }))
    }
    return nil
  }
}

extension PolkitFacts {
  /// The names of those whom polkit asks where it asks an administrator; nil with the file that is
  /// not understood. A group has those whom it lists, without root; nobody is root.
  func administrators(among accounts: AccountFacts) -> (names: [String], unseen: String?) {
    var identities: [String] = []
    for (path, rules) in files {
      guard case .understood(let rules) = rules else { return ([], path) }
      guard let first = rules.administrators.first else { continue }
      identities = first
      break
    }
    let names = identities.flatMap { identity -> [String] in
      let words = identity.split(separator: ":", maxSplits: 1).map(String.init)
      guard words.count == 2 else { return [] }
      switch words[0] {
      case "unix-user": return PolkitFacts.users(words[1], accounts)
      case "unix-group": return PolkitFacts.members(words[1], accounts)
      case _: return []
      }
    }
    return (
      names.isEmpty ? accounts.accounts.first { $0.uid == 0 }.map { [$0.name] } ?? [] : names, nil
    )
  }

  private static func users(_ word: String, _ accounts: AccountFacts) -> [String] {
    if let number = UInt32(word) {
      return accounts.accounts.first { $0.uid == number }.map { [$0.name] } ?? []
    }
    return accounts[word].map { [$0.name] } ?? []
  }

  /// Those who are in it as their primary group alone are asked when they call, as any of them may.
  private static func members(_ word: String, _ accounts: AccountFacts) -> [String] {
    let name =
      UInt32(word).flatMap { number in accounts.groups.first { $0.number == number }?.name } ?? word
    return accounts.members(of: name).filter { $0 != "root" && accounts[$0] != nil }
  }

  func answer(_ way: Way, for account: AccountFacts.Account, among accounts: AccountFacts)
    -> Answer
  {
    for (path, rules) in files {
      guard case .understood(let rules) = rules else { return .unseen(path) }
      for rule in rules.rules where rule.isFor(way.rawValue) {
        let isUser = rule.users.allSatisfy { $0 == account.name }
        let isMember = rule.groups.map { accounts.isMember(account, of: $0) }
        guard isUser, isMember.allSatisfy({ $0 != .no && $0 != .unknown }) else { continue }
        let isSure = isMember.allSatisfy { $0 == .yes } && !rule.needsSession
        return isSure ? PolkitFacts.answer(rule.result, path) : .unseen(path)
      }
    }
    return PolkitFacts.answer((defaults[way] ?? "no").uppercased(), "/usr/share/polkit-1/actions")
  }

  private static func answer(_ result: String, _ path: String) -> Answer {
    switch result {
    case "YES": .asksNothing(path)
    case "AUTH_SELF", "AUTH_SELF_KEEP": .asksCaller
    case "AUTH_ADMIN", "AUTH_ADMIN_KEEP": .asksAdministrator
    case _: .refuses(path)
    }
  }
}
