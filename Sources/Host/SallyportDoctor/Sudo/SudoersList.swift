/// One member of a list in sudoers, such as `alice`, `!%ops`, `ADMINS` or `/bin/ls -l`.
struct SudoersItem: Hashable {
  let isNegated: Bool
  /// Of a command: as it is written.
  let name: String

  init(_ text: String, isCommand: Bool = false) {
    var (rest, isNegated) = (Substring(text), false)
    while let first = rest.first, first == "!" || first.isWhitespace {
      if first == "!" { isNegated.toggle() }
      rest = rest.dropFirst()
    }
    self.isNegated = isNegated
    name = isCommand ? String(rest) : SudoersItem.plain(rest)
  }

  /// Without quotes and backslashes.
  private static func plain(_ text: Substring) -> String {
    var isEscaped = false
    return text.filter { character in
      let isKept = isEscaped || character != "\"" && character != "\\"
      isEscaped = character == "\\" && !isEscaped
      return isKept
    }
  }
}

/// What a list in sudoers says of something. It is the last member that matches which counts.
enum SudoersMatch: Hashable {
  case included, excluded
  /// No member is for it.
  case none
  /// Included or not, by something that cannot be seen.
  case unknown(RuleGap)

  init(_ isIncluded: Bool) { self = isIncluded ? .included : .none }

  fileprivate var negated: SudoersMatch {
    switch self {
    case .included: .excluded
    case .excluded: .included
    case .none: .none
    case .unknown(let gap): .unknown(gap)
    }
  }
}

/// The lists that a file gives names to.
struct SudoersAliases: Equatable {
  enum Kind { case user, host, runas, command }

  private var lists: [Kind: [String: [SudoersItem]]] = [:]
  /// sudo takes an alias that contains itself for empty.
  private static let deepest = 16

  func list(_ kind: Kind, _ name: String) -> [SudoersItem]? { lists[kind]?[name] }

  mutating func add(_ kind: Kind, _ name: String, _ items: [SudoersItem]) {
    lists[kind, default: [:]][name] = items
  }

  /// What the items say of something, by what each name says of it.
  func match(
    _ items: [SudoersItem], _ kind: Kind, depth: Int = 0, by test: (String) -> SudoersMatch
  ) -> SudoersMatch {
    var doubts: [(SudoersMatch, RuleGap)] = []
    var last = SudoersMatch.none
    for item in items.reversed() {
      var found: SudoersMatch
      if let members = list(kind, item.name) {
        found =
          depth < SudoersAliases.deepest
          ? match(members, kind, depth: depth + 1, by: test) : .none
      } else {
        found = test(item.name)
      }
      if item.isNegated { found = found.negated }
      if case .unknown(let gap) = found {
        doubts.append((item.isNegated ? .excluded : .included, gap))
      } else if found != .none {
        last = found
        break
      }
    }
    for (match, gap) in doubts where match != last { return .unknown(gap) }
    return last
  }
}

/// An account as sudo looks for it in lists of users.
struct SudoersUser: Equatable {
  let name: String
  let uid: UInt32
  private let lowercased: String
  private let gids: [UInt32]
  private let groups: [String]
  private let areAllGroups: Bool

  /// `groups`: the names of all its groups; nil if they are not known.
  init(_ account: AccountFacts.Account, groups: [String]?) {
    self.init(account, groups: groups ?? [], areAll: groups != nil)
  }

  init(_ account: AccountFacts.Account, in accounts: AccountFacts) {
    self.init(
      account, groups: accounts.groupNames(of: account),
      areAll: accounts.knowsGroups(of: account))
  }

  private init(_ account: AccountFacts.Account, groups: [String], areAll: Bool) {
    (name, uid) = (account.name, account.uid)
    lowercased = account.name.lowercased()
    gids = [account.group] + account.groups
    (self.groups, areAllGroups) = (groups.map { $0.lowercased() }, areAll)
  }

  func match(_ name: String) -> SudoersMatch {
    switch name.first {
    case _ where name == "ALL": .included
    case "+": .unknown(.netgroup(name))
    case "%": isMember(of: String(name.dropFirst()))
    case "#" where UInt32(name.dropFirst()) == uid: .included
    // sudo does not tell capitals apart.
    case _: SudoersMatch(name.lowercased() == lowercased)
    }
  }

  /// A name that begins with a colon is a plug-in's.
  func isMember(of group: String) -> SudoersMatch {
    if group.hasPrefix("#"), let gid = UInt32(group.dropFirst()), gids.contains(gid) {
      return .included
    }
    if groups.contains(group.lowercased()) { return .included }
    return areAllGroups && !group.hasPrefix(":") ? .none : .unknown(.group(group))
  }
}
