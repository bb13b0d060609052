/// The accounts and groups in the machine's own files, without those that come from a directory
/// service.
struct AccountFacts: Equatable {
  struct Account: Equatable {
    let name: String
    let uid: UInt32
    let group: UInt32
    let shell: String
    var home = "/"
    /// Whether a password can be correct for it; nil if /etc/shadow cannot be read.
    var hasPassword: Bool?
    /// Whether its home has a file of authorized keys that it may read; nil if that cannot be seen.
    var hasKeys: Bool? = false
    /// The groups that list it.
    var groups: [UInt32] = []

    /// Whether it is root or in the range of ordinary users, and has a shell.
    var isPerson: Bool {
      let isNumber = uid == 0 || HomeAccount.people.contains(uid)
      let shell = shell.split(separator: "/").last ?? "sh"
      return isNumber && !["nologin", "false", "true", "sync"].contains(shell)
    }
  }

  struct Group: Equatable {
    let name: String
    let number: UInt32
    let members: [String]
  }

  var accounts: [Account] = []
  var groups: [Group] = []

  /// The members of a group, by its list or as their primary group.
  func members(of name: String) -> [String] {
    guard let group = groups.first(where: { $0.name == name }) else { return [] }
    let own = accounts.filter { $0.group == group.number }.map(\.name)
    return group.members + own.filter { !group.members.contains($0) }
  }

  /// The ordinary users and root, if they have a password or keys to log in with.
  var people: [Account] {
    accounts.filter { $0.isPerson && ($0.hasPassword != false || $0.hasKeys != false) }
  }
}

extension AccountFacts {
  init(of machine: Machine) {
    let shadow = machine.text("/etc/shadow")
    var locked: Set<String> = []
    for fields in AccountFacts.rows(shadow.value) where fields.count > 1 {
      if fields[1].isEmpty || fields[1].hasPrefix("!") || fields[1].hasPrefix("*") {
        locked.insert(fields[0])
      }
    }
    let knowsPasswords = shadow.value != nil
    groups = AccountFacts.rows(machine.text("/etc/group").value).compactMap { fields in
      guard fields.count > 3, let number = UInt32(fields[2]) else { return nil }
      let members = fields[3].split(separator: ",").map(String.init)
      return Group(name: fields[0], number: number, members: members)
    }
    var memberships: [String: [UInt32]] = [:]
    for group in groups {
      for name in group.members { memberships[name, default: []].append(group.number) }
    }
    accounts = AccountFacts.rows(machine.text("/etc/passwd").value).compactMap { fields in
      guard fields.count > 6, let uid = UInt32(fields[2]), let group = UInt32(fields[3]) else {
        return nil
      }
      var account = Account(
        name: fields[0], uid: uid, group: group, shell: fields[6], home: fields[5],
        hasPassword: knowsPasswords ? !locked.contains(fields[0]) : nil)
      account.groups = memberships[account.name] ?? []
      account.hasKeys = machine.hasText("\(account.home)/.ssh/authorized_keys", of: account)
      return account
    }
  }

  private static func rows(_ text: String?) -> [[String]] {
    (text ?? "").split(separator: "\n").map { line in
      line.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    }
  }
}
