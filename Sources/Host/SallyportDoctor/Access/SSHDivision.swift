import SallyportCore

/// Who has a key and who a password, as `--sshd match` tells accounts apart.
package struct SSHDivision {
  /// A key and a code, by name.
  package private(set) var keyed: [String] = []
  /// A key alone, as now: not enrolled, and without a password.
  package private(set) var alone: [String] = []
  /// The password and a code.
  package private(set) var others: [String] = []
  /// Those of which something is not known, with what.
  package private(set) var unknown: [String] = []
  private let keyGroup: String?

  /// `keyGroup`: who is in it has a key, and nobody else.
  package init(_ facts: AccessFacts, keyGroup: String?) {
    self.keyGroup = keyGroup
    guard let ssh = facts.ssh, let anywhere = ssh.connections.first else { return }
    for account in facts.accounts.accounts {
      switch ssh.entrances(of: account, from: anywhere) {
      case .absent: break
      case .unseen:
        if account.password != .none { unknown.append("\(account.name) (what sshd asks for)") }
      case .seen(let entrances):
        let open = entrances.filter { $0.refusal == nil }.map(\.methods)
        if !open.isEmpty { take(account, open, key: ssh.key(of: account, from: anywhere), facts) }
      }
    }
  }

  /// `open`: the lists of methods by which sshd lets it try.
  private mutating func take(
    _ account: AccountFacts.Account, _ open: [[String]], key: SSHKeyAnswer, _ facts: AccessFacts
  ) {
    let name = account.name
    let hasPassword = account.hasPassword != false
    if key == .no, !hasPassword { return }
    let isInGroup = keyGroup.map { facts.isMember(account, of: $0) == .yes }
    if case .unseen(let gap) = key, isInGroup != true {
      unknown.append("\(name) (a key: \(gap.text))")
    }
    let isEnrolled = facts.isSurelyEnrolled(account)
    if key == .yes, !hasPassword, isEnrolled == nil { unknown.append("\(name) (an enrollment)") }
    let isAlone =
      key == .yes && !hasPassword && isEnrolled == false && open.contains(["publickey"])
    if isAlone || keyGroup == nil && key == .yes, !SSHPeople.mayName(name) {
      unknown.append("\(name) (a name that no Match block can have)")
      others.append(name)
    } else if isAlone {
      alone.append(name)
    } else if isInGroup ?? (key == .yes) {
      keyed.append(name)
    } else if hasPassword {
      others.append(name)
    }
  }

  package var people: SSHPeople {
    SSHPeople(keyGroup: keyGroup, keyUsers: keyGroup == nil ? keyed : [], aloneUsers: alone)
  }

  /// Whether some have a key, and others nothing but a password.
  package var isMixed: Bool { !keyed.isEmpty && !others.isEmpty }
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
