import SallyportCore

/// Who has a key and who a password, as `--sshd match` tells accounts apart.
package struct SSHDivision {
  /// A key and a code, by name.
  package private(set) var keyed: [String] = []
  /// A key alone, as now: not enrolled, and without a password.
  package private(set) var alone: [String] = []
  /// Of the keyed, those whom sshd lets in by no key alone today either, and who have no code.
  package private(set) var shutOut: [String] = []
  /// The password and a code.
  package private(set) var others: [String] = []
  /// Those of which something is not known, with what.
  package private(set) var unknown: [String] = []
  private let keyGroup: String?

  /// `keyGroup`: who is in it has a key, and nobody else.
  package init(_ facts: AccessFacts, keyGroup: String?) {
    self.keyGroup = keyGroup
    guard let ssh = facts.ssh else { return }
    for account in facts.accounts.accounts {
      var (open, keys) = ([[String]](), [SSHKeyAnswer]())
      // Somebody may be let in from some addresses alone.
      for connection in ssh.connections {
        switch ssh.entrances(of: account, from: connection) {
        case .absent: break
        case .unseen:
          if account.password != .none { unknown.append("\(account.name) (what sshd asks for)") }
        case .seen(let entrances):
          let found = entrances.filter { $0.refusal == nil }.map(\.methods)
          if !found.isEmpty { keys.append(ssh.key(of: account, from: connection)) }
          open += found
        }
      }
      if !open.isEmpty { take(account, by: open, keys, facts) }
    }
    unknown = unknown.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  /// `open`: the lists of methods by which sshd lets it try. `keys`: whether it has one there.
  private mutating func take(
    _ account: AccountFacts.Account, by open: [[String]], _ keys: [SSHKeyAnswer],
    _ facts: AccessFacts
  ) {
    let name = account.name
    let hasPassword = account.hasPassword != false
    let gaps = keys.compactMap(\.gap)
    let hasKey = keys.contains { $0 != .no && $0.gap == nil }
    let mayHaveKey =
      hasKey || !gaps.isEmpty && (hasPassword || facts.accounts.shell(of: account).givesPrompt)
    if !mayHaveKey, !hasPassword { return }
    let isInGroup = keyGroup.map { facts.isMember(account, of: $0) == .yes }
    if !hasKey, let gap = gaps.first, isInGroup != true {
      unknown.append("\(name) (a key: \(gap.text))")
    }
    let isEnrolled = facts.isSurelyEnrolled(account)
    if mayHaveKey, !hasPassword, isEnrolled == nil { unknown.append("\(name) (an enrollment)") }
    // As now: who may have a key is let in by it alone today.
    let isAlone =
      mayHaveKey && !hasPassword && isEnrolled == false && open.contains(["publickey"])
    if isAlone || keyGroup == nil && hasKey, !SSHPeople.mayName(name) {
      unknown.append("\(name) (a name that no Match block can have)")
      if hasPassword { others.append(name) }
    } else if isAlone {
      alone.append(name)
    } else if isInGroup ?? hasKey {
      keyed.append(name)
      if isEnrolled == false, !hasPassword { shutOut.append(name) }
    } else if hasPassword {
      others.append(name)
    }
  }

  package var people: SSHPeople {
    SSHPeople(keyGroup: keyGroup, keyUsers: keyGroup == nil ? keyed : [], aloneUsers: alone)
  }

  /// Whether some have a key, and others nothing but a password.
  package var isMixed: Bool { !(keyed.isEmpty && alone.isEmpty) && !others.isEmpty }
}

extension AccessFacts {
  /// nil if only the fleet knows, and has not told.
  fileprivate func isSurelyEnrolled(_ account: AccountFacts.Account) -> Bool? {
    if isEnrolled(account) { return true }
    if case .unknown = fleet { return nil }
    return false
  }
}

extension SSHKeyGap {
  fileprivate var text: String {
    switch self {
    case .elsewhere(let keyword): keyword
    case .slow(let path): "\(path) was not read in time"
    case .unread(let reason): reason
    }
  }
}
