import PAMStack

extension Sudoers {
  /// Who is surely named by each line that keeps sudo from asking, of the accounts that are there.
  func unasked(among accounts: AccountFacts) -> [FileLocation: Set<String>] {
    let lists = Dictionary(
      entries.map { ($0.location, policy.users(of: $0.location)) },
      uniquingKeysWith: { one, _ in one })
    var found = lists.mapValues { _ in Set<String>() }
    if lists.isEmpty { return found }
    for account in accounts.accounts {
      let user = SudoersUser(account, in: accounts)
      for (line, users) in lists
      where policy.aliases.match(users, .user, by: user.match) == .included {
        found[line]?.insert(account.name)
      }
    }
    return found
  }
}

extension AccountFacts {
  /// Whether a rule of sudoers may be for the account.
  func mayCall(_ account: Account, _ sudoers: Sudoers?) -> Bool {
    sudoers?.callers.contains { means($0, account) } != false
  }

  /// Whether the first field of a sudoers rule includes the account; false for an alias.
  private func means(_ caller: String, _ account: Account) -> Bool {
    if caller.hasPrefix("%") {
      // Of each account, so without a list of all members.
      guard let group = groups.first(where: { $0.name == caller.dropFirst() }) else { return false }
      return group.number == account.group || group.members.contains(account.name)
    }
    let isAlias = caller.allSatisfy { $0.isUppercase || $0.isNumber || $0 == "_" }
    return isAlias || caller == account.name || caller == "#\(account.uid)"
  }
}
