import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// Who gets in, as text.
struct AccessText {
  let table: AccessTable
  /// In columns.
  let width: Int
  /// Whether the terminal can show ✓ and ✗; nil where nothing is called an error or a warning.
  var hasMarks: Bool?
  /// Where people who were renamed are looked for; nil: nowhere.
  var store: Store?

  /// With a group of accounts for each reason.
  var lines: [String] {
    let groups = table.groups
    var found: [String] = []
    for heading in Heading.allCases {
      let own = groups.filter { Heading($0.verdict, isMeant: $0.purpose != nil) == heading }
      if own.isEmpty, !heading.isAlwaysTold { continue }
      // Of accounts that others refuse nothing is told.
      let text = heading == .refused ? "locked out" : heading.text
      found += own.isEmpty ? [head(text) + "nobody"] : []
      for (index, group) in own.prefix(AccessText.most).enumerated() {
        found += lines(of: group, index == 0 ? text : "")
      }
      if own.count > AccessText.most {
        found.append(head("") + "and \(own.count - AccessText.most) more: sallyport doctor --json")
      }
    }
    found += table.gaps.map { head("not listed") + $0 }
    return ["Who gets in:"] + found
  }

  /// Groups under one heading.
  private static let most = 12
  private static let column = 19

  private func head(_ text: String) -> String { padded("  \(text)", AccessText.column + 2) }

  private func lines(of group: AccessGroup, _ heading: String) -> [String] {
    let margin = String(repeating: " ", count: AccessText.column + 2)
    let who =
      "\(mark(group.severity))\(listed(group.users, 2)) at \(group.ways.joined(separator: ", "))"
    var lines = folded(who, width - margin.count)
    let place = (group.purpose ?? group.location)?.text
    let detail = [group.verdict.words, group.detail ?? "", place ?? ""].filter { !$0.isEmpty }
    if !detail.isEmpty {
      lines += folded(detail.joined(separator: ", "), width - margin.count - 2).map {
        "  \($0)"
      }
    }
    let fixed = lines.enumerated().map { ($0 == 0 ? head(heading) : margin) + $1 }
    let users = group.whose.map { [$0] } ?? group.users
    guard group.severity != .ok, let service = group.services.first,
      let remedy = Remedy(
        group.verdict, of: users, at: service, group.location,
        isEnrolled: group.whose != nil
          || table.rows.contains { $0.user == users.first && $0.isEnrolled },
        adoption: users.first.flatMap(adoption))
    else { return fixed }
    return remedy == place.map(Remedy.edit) ? fixed : fixed + self.lines(of: remedy)
  }

  /// What is copied stays on one line.
  private func lines(of remedy: Remedy) -> [String] {
    guard case .see(let parts) = remedy else { return ["      \(remedy.line)"] }
    return folded(parts, width - 11).enumerated().map {
      ($0 == 0 ? "      see: " : "           ") + $1
    }
  }

  /// The command for a person who has this name now and is enrolled under another.
  private func adoption(of user: String) -> String? {
    guard let store, let row = table.rows.first(where: { $0.user == user }),
      let name = UserName(Array(user.utf8))
    else { return nil }
    return store.adoption(of: Account(name: name, uid: row.uid))?.command
  }

  private func mark(_ severity: Severity) -> String {
    guard severity != .ok, let hasMarks else { return "" }
    return hasMarks ? "\(severity.sign) " : "\(severity): "
  }

  // MARK: one account

  /// Each way of one account, with what changes it. Ways of which the same is true are one.
  func lines(of row: AccessTable.Row) -> [String] {
    var same: [(names: [String], cell: Cell, remedy: Remedy?)] = []
    for cell in row.cells {
      let parts = [cell.way.name, cell.methods.joined(separator: ","), cell.way.origin ?? ""]
      let name = parts.filter { !$0.isEmpty }.joined(separator: " ")
      let remedy =
        cell.purpose == nil
        ? Remedy(
          cell.verdict, of: [cell.whose ?? row.user], at: cell.way.service, cell.location,
          isEnrolled: cell.whose != nil || row.isEnrolled, adoption: adoption(of: row.user))
        : nil
      let index = same.firstIndex { $0.cell.isAlike(cell) && $0.remedy == remedy }
      if let index { same[index].names.append(name) } else { same.append(([name], cell, remedy)) }
    }
    let state = row.isEnrolled ? "enrolled" : "not enrolled"
    return ["\(row.user) (uid \(row.uid); \(state))"]
      + same.flatMap { lines(of: $0.cell, $0.names.joined(separator: ", "), $0.remedy) }
  }

  /// Names that are too long for the column stand on lines of their own.
  private func lines(of cell: Cell, _ names: String, _ remedy: Remedy?) -> [String] {
    let margin = AccessText.column + 2
    let place = (cell.purpose ?? cell.location)?.text ?? ""
    let why = cell.verdict.isAsked ? [] : [cell.detail ?? "", place]
    let reason = ([cell.verdict.words] + why).filter { !$0.isEmpty }
    let title = Heading(cell.verdict, isMeant: cell.purpose != nil).text
    let text = [title, reason.joined(separator: ", ")].filter { !$0.isEmpty }
    let isShort = names.unicodeScalars.count < AccessText.column
    let told = folded(text.joined(separator: ": "), width - margin).enumerated().map {
      index, line in
      (index == 0 && isShort ? head(names) : head("")) + line
    }
    return (isShort ? [] : folded(names, width - 2).map { "  \($0)" }) + told
      + (remedy.map { lines(of: $0) } ?? [])
  }
}

extension Cell {
  /// Whether the same is told of another way.
  fileprivate func isAlike(_ other: Cell) -> Bool {
    let isSame = location == other.location && detail == other.detail && purpose == other.purpose
    return verdict == other.verdict && (verdict.isAsked || isSame)
  }
}
