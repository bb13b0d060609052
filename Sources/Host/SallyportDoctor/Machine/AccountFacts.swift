import SallyportCore
import SallyportSystem

/// Everybody whom the machine's own files and its account database list, whatever the uid, and the
/// groups.
struct AccountFacts: Equatable {
  struct Account: Equatable {
    let name: String
    let uid: UInt32
    let group: UInt32
    let shell: String
    var home = "/"
    var password = PasswordState.unknown
    /// Whether a `!` stands before the password: without PAM, sshd refuses such an account.
    var isLocked = false
    /// nil if the password should stand in shadow and no line there is of the account.
    var aging: PasswordAging? = PasswordAging()
    /// Whether its home has a file of authorized keys that it may read; nil if that cannot be seen.
    var hasKeys: Bool? = false
    /// The groups that list it.
    var groups: [UInt32] = []
    var source = Source.files
  }

  enum Source: Equatable {
    case files
    /// One of these in nsswitch.conf(5).
    case database([String])
    /// No source lists it, but the account database finds it by its name.
    case named
  }

  struct Group: Equatable {
    let name: String
    let number: UInt32
    let members: [String]
    var isInFile = true
  }

  /// A source that may have more than is seen here.
  enum Gap: Equatable {
    /// A file cannot be read, for this reason.
    case unread(String, String)
    /// Of a file, the end was not read.
    case cut(String)
    /// Sources in nsswitch.conf(5) that may list nobody, but find an account by its name.
    case unlisted([String])
    /// The account database cannot be listed, for this reason.
    case unlistable(String)
    /// More than this number of names, of which the others were not looked up.
    case tooManyNames(Int)
  }

  private(set) var accounts: [Account]
  let groups: [Group]
  private(set) var gaps: [Gap]
  /// Whether every group is in `groups`, with all of its members.
  let hasAllGroups: Bool
  /// By path, of every account.
  private(set) var shells: [String: LoginShell]
  private var numbers: [String: Int]
  private let groupNumbers: [String: UInt32]
  private let groupNames: [UInt32: [String]]

  /// Of several accounts or groups with one name, the first counts.
  init(
    accounts: [Account] = [], groups: [Group] = [], gaps: [Gap] = [], hasAllGroups: Bool = true,
    shells: [String: LoginShell] = [:]
  ) {
    var numbers: [String: Int] = [:]
    let first = accounts.filter { account in
      if numbers[account.name] != nil { return false }
      numbers[account.name] = numbers.count
      return true
    }
    (self.accounts, self.numbers) = (first, numbers)
    (self.groups, self.gaps, self.hasAllGroups) = (groups, gaps, hasAllGroups)
    self.shells = shells
    groupNumbers = Dictionary(
      groups.map { ($0.name, $0.number) }, uniquingKeysWith: { first, _ in first })
    groupNames = Dictionary(grouping: groups, by: \.number).mapValues { $0.map(\.name) }
  }
}

extension AccountFacts {
  subscript(_ name: String) -> Account? { numbers[name].map { accounts[$0] } }

  func shell(of account: Account) -> LoginShell {
    let path = LoginShell.path(account.shell)
    return shells[path] ?? LoginShell(endsAtOnce: LoginShell.endsAtOnce(path))
  }

  /// The names of its groups, the primary one first.
  func groupNames(of account: Account) -> [String] {
    ([account.group] + account.groups.filter { $0 != account.group }).flatMap {
      groupNames[$0] ?? []
    }
  }

  /// Whether these are all of its groups.
  func knowsGroups(of account: Account) -> Bool { hasAllGroups && account.source == .files }

  /// Whether the account is in a group, as the module finds it; nil where a directory decides.
  func isMember(_ account: Account, of group: String) -> Tristate? {
    if let number = groupNumbers[group], account.isIn(number) { return .yes }
    guard knowsGroups(of: account) else { return nil }
    return groupNumbers[group] == nil ? .unknown : .no
  }

  /// Whether an account is in a group, as the module asks; without the name service where the list
  /// tells.
  func isMember(_ account: SallyportCore.Account, of group: String) -> Tristate {
    let name = String(decoding: account.name.bytes, as: UTF8.self)
    if let listed = self[name], listed.uid == account.uid,
      let answer = isMember(listed, of: group)
    {
      return answer
    }
    return Accounts.isMember(account, of: Array(group.utf8))
  }

  /// The members of a group, by its list or as their primary group.
  func members(of name: String) -> [String] {
    guard let group = groups.first(where: { $0.name == name }) else { return [] }
    let listed = Set(group.members)
    let own = accounts.filter { $0.group == group.number }.map(\.name)
    return group.members + own.filter { !listed.contains($0) }
  }

  /// Those in the machine's own files who have a password or keys, and a shell: people by their
  /// uids also where a key cannot be seen, the others only where one is.
  var people: [Account] {
    accounts.filter { account in
      guard account.source == .files, !LoginShell.endsAtOnce(account.shell) else { return false }
      switch account.password {
      case .blank, .some: return true
      case .unknown: return account.isPerson || account.hasKeys == true
      case .none, .elsewhere:
        return account.hasKeys == true || account.isPerson && account.hasKeys == nil
      }
    }
  }

  /// Adds accounts that no source lists.
  mutating func add(_ found: AccountFacts) {
    let memberships = AccountFacts.memberships(in: groups)
    for account in found.accounts where numbers[account.name] == nil {
      numbers[account.name] = accounts.count
      accounts.append(account)
      accounts[accounts.count - 1].groups = memberships[account.name] ?? []
    }
    shells.merge(found.shells) { known, _ in known }
    gaps += found.gaps
  }

  /// The groups that list each name.
  static func memberships(in groups: [Group]) -> [String: [UInt32]] {
    var found: [String: [UInt32]] = [:]
    for group in groups {
      for name in group.members { found[name, default: []].append(group.number) }
    }
    return found
  }
}

extension AccountFacts.Account {
  /// Whether it is root or in the range of ordinary users, and has a shell.
  var isPerson: Bool {
    (uid == 0 || HomeAccount.people.contains(uid)) && !LoginShell.endsAtOnce(shell)
  }

  /// Whether some password is the right one; nil if unknown.
  var hasPassword: Bool? {
    switch password {
    case .none, .blank: false
    case .some: true
    case .elsewhere, .unknown: nil
    }
  }

  fileprivate func isIn(_ number: UInt32) -> Bool { group == number || groups.contains(number) }
}
