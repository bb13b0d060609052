package import PAMStack

/// Accounts of which the same is true on the same ways, for one reason.
package struct AccessGroup {
  package let verdict: Verdict
  package let severity: Severity
  package let users: [String]
  /// As people call them.
  package let ways: [String]
  /// PAM's names of them.
  package let services: [String]
  package let location: FileLocation?
  package let detail: String?
  /// Whose password and code are asked for; nil for the accounts themselves.
  package let whose: String?
  /// The line of `without_code` that says it is meant so.
  package let purpose: FileLocation?
}

extension AccessTable {
  /// What is true for which accounts, the asked first. Of accounts that others keep out nothing is
  /// told.
  package var groups: [AccessGroup] {
    var keys: [GroupKey] = []
    var ways: [GroupKey: [(user: String, way: AccessWay)]] = [:]
    for row in rows {
      for cell in row.cells {
        if case .refused = cell.verdict, cell.severity == .ok { continue }
        let key = GroupKey(cell, isMixed: row.isMixed(cell.way))
        if ways[key] == nil { keys.append(key) }
        ways[key, default: []].append((row.user, cell.way))
      }
    }
    return keys.flatMap { key in AccessTable.groups(of: key, ways[key] ?? []) }
      .sorted { $0.rank < $1.rank }
  }

  /// Those of one reason, by the ways on which it is so.
  private static func groups(of key: GroupKey, _ found: [(user: String, way: AccessWay)])
    -> [AccessGroup]
  {
    var (order, all) = ([String](), [String: [AccessWay]]())
    for (user, way) in found {
      if all[user] == nil { order.append(user) }
      if all[user]?.contains(way) != true { all[user, default: []].append(way) }
    }
    var groups: [([AccessWay], [String])] = []
    for user in order {
      let ways = all[user] ?? []
      if let same = groups.firstIndex(where: { $0.0 == ways }) {
        groups[same].1.append(user)
      } else {
        groups.append((ways, [user]))
      }
    }
    return groups.map { ways, users in
      let names = ways.map { [$0.name, key.methods, $0.origin.map { "from \($0)" } ?? ""] }
      var services: [String] = []
      for way in ways where !services.contains(way.service) { services.append(way.service) }
      return AccessGroup(
        verdict: key.verdict, severity: key.severity, users: users,
        ways: names.map { $0.filter { !$0.isEmpty }.joined(separator: " ") }, services: services,
        location: key.location, detail: key.detail, whose: key.whose, purpose: key.purpose)
    }
  }

  private struct GroupKey: Hashable {
    let verdict: Verdict
    let severity: Severity
    let methods: String
    let location: FileLocation?
    let detail, whose: String?
    let purpose: FileLocation?

    /// `isMixed`: the account has other cells of this way with other verdicts.
    init(_ cell: Cell, isMixed: Bool) {
      (verdict, severity, purpose) = (cell.verdict, cell.severity, cell.purpose)
      methods = isMixed ? "(\(cell.methods.joined(separator: ",")))" : ""
      var isAsked = false
      if case .asked = cell.verdict { isAsked = true }
      // Where it is asked for does not matter.
      (location, detail) = isAsked ? (nil, nil) : (cell.location, cell.detail)
      whose = isAsked ? nil : cell.whose
    }
  }
}

extension AccessTable.Row {
  fileprivate func isMixed(_ way: AccessWay) -> Bool {
    guard way.kind == .ssh else { return false }
    let own = cells.filter { $0.way == way }
    return own.contains { $0.verdict.name != own[0].verdict.name }
  }
}

extension AccessGroup {
  fileprivate var rank: Int {
    if purpose != nil { return 2 }
    switch verdict {
    case .asked: return 0
    case .withoutCode: return 1
    case .refused: return 3
    case .unseen: return 4
    }
  }
}
