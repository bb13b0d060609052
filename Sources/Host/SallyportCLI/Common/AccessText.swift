import PAMStack
import SallyportDoctor
import SallyportSupport

/// Who gets in, as text.
struct AccessText {
  let table: AccessTable
  /// In columns.
  let width: Int

  /// With a group of accounts for each reason.
  var lines: [String] {
    let groups = table.groups
    var found: [String] = []
    for heading in Heading.allCases {
      let own = groups.filter { Heading($0) == heading }
      if own.isEmpty, !heading.isAlwaysTold { continue }
      found += own.isEmpty ? [head(heading.text) + "nobody"] : []
      for (index, group) in own.prefix(AccessText.most).enumerated() {
        found += lines(of: group, index == 0 ? heading.text : "")
      }
      if own.count > AccessText.most {
        found.append(head("") + "and \(own.count - AccessText.most) more: doctor --json")
      }
    }
    found += table.gaps.map { head("not listed") + $0 }
    return ["Who gets in:"] + found
  }

  /// Groups under one heading.
  private static let most = 12
  private static let column = 19

  private enum Heading: CaseIterable {
    case asked, withoutCode, onPurpose, refused, unseen

    init(_ group: AccessGroup) {
      switch group.verdict {
      case .asked: self = .asked
      case .withoutCode: self = group.purpose == nil ? .withoutCode : .onPurpose
      case .refused: self = .refused
      case .unseen: self = .unseen
      }
    }

    var text: String {
      switch self {
      case .asked: "asked for a code"
      case .withoutCode: "without a code"
      case .onPurpose: "on purpose"
      case .refused: "locked out"
      case .unseen: "not known"
      }
    }

    var isAlwaysTold: Bool {
      switch self {
      case .asked, .withoutCode, .refused: true
      case .onPurpose, .unseen: false
      }
    }
  }

  private func head(_ text: String) -> String { padded("  \(text)", AccessText.column + 2) }

  private func lines(of group: AccessGroup, _ heading: String) -> [String] {
    let margin = String(repeating: " ", count: AccessText.column + 2)
    let who = "\(listed(group.users, 2)) at \(group.ways.joined(separator: ", "))"
    var lines = folded(who, width - margin.count)
    let place = (group.purpose ?? group.location)?.text
    let detail = [group.verdict.words, group.detail ?? "", place ?? ""].filter { !$0.isEmpty }
    if !detail.isEmpty {
      lines += folded(detail.joined(separator: ", "), width - margin.count - 2).map {
        "  \($0)"
      }
    }
    let fixed = lines.enumerated().map { ($0 == 0 ? head(heading) : margin) + $1 }
    guard group.severity != .ok, let user = group.users.first,
      let fix = group.verdict.fix(for: user, at: group.services)
    else { return fixed }
    return fixed + ["      # \(fix)"]
  }

  // MARK: one account

  /// Each way of one account.
  func lines(of row: AccessTable.Row) -> [String] {
    let rows = row.cells.map { cell -> [String] in
      let name = [cell.way.name, cell.methods.joined(separator: ","), cell.way.origin ?? ""]
      let purpose = cell.purpose.map { "on purpose, \($0.text)" }
      let place = purpose ?? cell.location?.text ?? ""
      let reason = [cell.verdict.words, cell.detail ?? "", place]
      return [
        name.filter { !$0.isEmpty }.joined(separator: " "), cell.verdict.title,
        reason.filter { !$0.isEmpty }.joined(separator: ", "),
      ]
    }
    let state = row.isEnrolled ? "enrolled" : "not enrolled"
    return ["\(row.user) (uid \(row.uid); \(state))"] + SallyportCLI.table(rows).map { "  \($0)" }
  }
}
