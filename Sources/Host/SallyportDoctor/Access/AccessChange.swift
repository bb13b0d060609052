package import PAMStack

/// What a change does to who gets in.
package struct AccessChange {
  /// Accounts whose ways change alike.
  package struct Group {
    package let before, after: Verdict
    package fileprivate(set) var users: [String]
    /// As people call them.
    package fileprivate(set) var ways: [String]
    package let location: FileLocation?
  }

  /// Those that get in or did.
  package private(set) var groups: [Group] = []

  package init(from before: AccessTable, to after: AccessTable) {
    let old = AccessChange.ways(before)
    var changes: [(user: String, way: String, was: Cell?, cell: Cell)] = []
    for (user, ways) in AccessChange.ways(after) {
      for (way, cell) in ways {
        let was = old.first { $0.user == user }?.ways.first { $0.0 == way }?.1
        if was?.verdict != cell.verdict, was?.isIn == true || cell.isIn {
          changes.append((user, way, was, cell))
        }
      }
    }
    for change in changes {
      let before = change.was?.verdict ?? .refused(.noMethod)
      take(change.user, change.way, from: before, to: change.cell)
    }
    merge()
  }

  private mutating func take(_ user: String, _ way: String, from before: Verdict, to cell: Cell) {
    let same = groups.firstIndex {
      $0.before == before && $0.after == cell.verdict && $0.users == [user]
        && $0.location == cell.location
    }
    if let same {
      groups[same].ways.append(way)
    } else {
      groups.append(
        Group(
          before: before, after: cell.verdict, users: [user], ways: [way],
          location: cell.location))
    }
  }

  /// Those on the same ways are one group.
  private mutating func merge() {
    groups = groups.reduce(into: []) { merged, group in
      let same = merged.firstIndex {
        $0.before == group.before && $0.after == group.after && $0.ways == group.ways
          && $0.location == group.location
      }
      if let same { merged[same].users += group.users } else { merged.append(group) }
    }
  }

  /// For each account the ways in, each with what lets in the most.
  private static func ways(_ table: AccessTable) -> [(user: String, ways: [(String, Cell)])] {
    table.rows.map { row in
      var ways: [(String, Cell)] = []
      for cell in row.cells {
        let name = cell.way.origin.map { "\(cell.way.name) \($0)" } ?? cell.way.name
        if let index = ways.firstIndex(where: { $0.0 == name }) {
          if ways[index].1.verdict.badness < cell.verdict.badness { ways[index].1 = cell }
        } else {
          ways.append((name, cell))
        }
      }
      return (row.user, ways)
    }
  }

  /// Whether somebody gets in without a code who did not before, or does no longer get in.
  package var loosensOrShuts: Bool {
    groups.contains { $0.after.badness > $0.before.badness || !$0.after.isIn && $0.before.isIn }
  }
}

extension Cell {
  var isIn: Bool { verdict.isIn }
}

extension Verdict {
  /// Whether somebody gets in, or may.
  var isIn: Bool {
    switch self {
    case .asked, .withoutCode, .unseen: true
    case .refused: false
    }
  }
}
