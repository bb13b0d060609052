package import PAMStack

/// What a change does to who gets in.
package struct AccessChange {
  /// Accounts whose ways change alike.
  package struct Group {
    package let before, after: Verdict
    package fileprivate(set) var users: [String] = []
    /// As people call them.
    package let ways: [String]
    package let location: FileLocation?

    /// They got in, and do no longer.
    package var shutsOut: Bool { before.mayLetIn && !after.mayLetIn }
  }

  let before, after: AccessTable
  /// Whether sudoers names anybody.
  let hasRules: Bool
  /// Those that get in or did.
  package private(set) var groups: [Group] = []

  /// Services that have a line of ours before or after are told of both times.
  package init(from before: AccessFacts, to after: AccessFacts) {
    let services = [before, after].flatMap { ServiceStack.ours(in: $0.stacks).map(\.service) }
    self.before = AccessTable(before.telling(of: services))
    self.after = AccessTable(after.telling(of: services))
    hasRules = !before.sudoers.callers.isEmpty
    let (old, new) = (Ways(self.before), Ways(self.after))
    var indices: [Step: [[String]: Int]] = [:]
    for user in new.users + old.users.filter({ new[$0].isEmpty }) {
      for (step, ways) in AccessChange.steps(old[user], new[user]) {
        if indices[step]?[ways] == nil {
          indices[step, default: [:]][ways] = groups.count
          groups.append(
            Group(before: step.before, after: step.after, ways: ways, location: step.location))
        }
        if let index = indices[step]?[ways] { groups[index].users.append(user) }
      }
    }
  }

  private struct Step: Hashable {
    let before, after: Verdict
    let location: FileLocation?
  }

  /// Of one account, each with the ways on which it is so.
  private static func steps(_ old: [Ways.Way], _ new: [Ways.Way]) -> [(Step, [String])] {
    let gone = old.filter { way in !new.contains { $0.name == way.name } }
    return (new + gone).map(\.cell).reduce(into: []) { steps, cell in
      let (was, now) = (Ways.verdict(cell.way, in: old), Ways.cell(cell.way, in: new))
      let verdict = now?.verdict ?? .refused(.noMethod)
      guard was != verdict, was.mayLetIn || verdict.mayLetIn else { return }
      let step = Step(before: was, after: verdict, location: now?.location)
      if let same = steps.firstIndex(where: { $0.0 == step }) {
        steps[same].1.append(cell.way.whole)
      } else {
        steps.append((step, [cell.way.whole]))
      }
    }
  }

  /// Whether somebody gets in without a code who did not before, or does no longer get in.
  package var loosensOrShuts: Bool {
    groups.contains { $0.shutsOut || $0.after.badness > $0.before.badness }
  }
}

/// For each account the ways in, each with what lets in the most.
private struct Ways {
  typealias Way = (name: String, cell: Cell)

  private(set) var users: [String] = []
  private var ways: [String: [Way]] = [:]

  init(_ table: AccessTable) {
    for row in table.rows {
      users.append(row.user)
      ways[row.user] = row.cells.reduce(into: []) { ways, cell in
        if let index = ways.firstIndex(where: { $0.name == cell.way.whole }) {
          if ways[index].cell.verdict.isBehind(cell.verdict) { ways[index].cell = cell }
        } else {
          ways.append((cell.way.whole, cell))
        }
      }
    }
  }

  subscript(user: String) -> [Way] { ways[user] ?? [] }

  /// sshd's connections that are like most others are not in the table, nor a way of sudo that is
  /// like the one beside it.
  static func cell(_ way: AccessWay, in ways: [Way]) -> Cell? {
    let names = [way.whole, way.name, way.usual]
    return names.lazy.compactMap { name in ways.first { $0.name == name } }.first?.cell
  }

  static func verdict(_ way: AccessWay, in ways: [Way]) -> Verdict {
    cell(way, in: ways)?.verdict ?? .refused(.noMethod)
  }
}

extension Verdict {
  /// Whether the other one is told in its place. Of the lists by which nobody gets in, that is one
  /// at which we refuse: what another asks for, such as a key, the account may never have had.
  fileprivate func isBehind(_ other: Verdict) -> Bool {
    switch (self, other) {
    case (.refused(let old), .refused(let new)): !old.isOurs && new.isOurs
    case (.refused, _), (.asked, _), (.unseen, _), (.withoutCode, _): badness < other.badness
    }
  }
}

extension AccessWay {
  /// Its name, with where sshd's connection comes from.
  fileprivate var whole: String { origin.map { "\(name) \($0)" } ?? name }
}
