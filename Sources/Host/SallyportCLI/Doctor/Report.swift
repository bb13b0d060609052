import PAMStack
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// A diagnosis as text and as JSON.
struct Report {
  let diagnosis: Diagnosis
  /// nil if the caller may not read the store.
  var access: AccessTable?
  /// The account about which alone was asked.
  var user: String?
  /// Where people who were renamed are looked for; nil: nowhere.
  var store: Store?
  /// The terminal can show ✓ and ✗.
  let hasMarks: Bool
  /// In columns, at least 40; only what is to be copied may be wider.
  let width: Int

  // MARK: text

  var text: String {
    let found = areas.flatMap { area in [area.name] + section(area) }
    let lines = user == nil ? found + [count] + end : end
    return lines.map(Report.clean).joined(separator: "\n")
  }

  /// Who gets in.
  private var end: [String] {
    guard let access else {
      return folded("Who gets in: only root can tell (sudo sallyport doctor)", width)
    }
    let text = AccessText(table: access, width: width, hasMarks: hasMarks, store: store)
    return user == nil ? text.lines : access.rows.flatMap(text.lines(of:))
  }

  /// The exit status: 0 if nothing was found, 1 for warnings or something that could not be
  /// examined, 2 if somebody is locked out or gets in without a code.
  var status: Int32 {
    let worst = access?.severity ?? .ok
    return user == nil ? max(diagnosis.status, worst.status) : worst.status
  }

  private var areas: [Area] {
    diagnosis.findings.map(\.area).reduce(into: []) { list, area in
      if !list.contains(area) { list.append(area) }
    }
  }

  /// Problems first, then advice, then one line for all that is right.
  private func section(_ area: Area) -> [String] {
    let all = diagnosis.findings.filter { $0.area == area }
    let wrong = Severity.allCases.reversed().filter { $0 != .ok }.flatMap { severity in
      all.filter { $0.severity == severity }
    }
    let advised = all.filter { $0.severity == .ok && !$0.fixes.isEmpty }
    let right = all.filter { $0.severity == .ok && $0.fixes.isEmpty }
    let summary = right.count == 1 ? right[0].text : counted(right.count, "check")
    return Report.together(wrong + advised).flatMap { lines(of: $0) }
      + (right.isEmpty ? [] : ["  \(mark(.ok)) \(summary)"])
  }

  /// Tells once what several users have, in the place of the first of them.
  private static func together(_ all: [Finding]) -> [Finding] {
    var groups: [[Finding]] = []
    for finding in all {
      let same = groups.firstIndex { $0[0].isShared(with: finding) }
      if let same { groups[same].append(finding) } else { groups.append([finding]) }
    }
    return groups.map { $0[0].together(with: $0.dropFirst()) }
  }

  private func lines(of finding: Finding) -> [String] {
    let location = finding.location?.text ?? ""
    let head = "  \(mark(finding.severity)) "
    let margin = String(repeating: " ", count: head.unicodeScalars.count)
    let also = finding.alsoIn.isEmpty ? "" : " (also in \(listed(finding.alsoIn)))"
    var lines = folded(finding.text + also, width - margin.count)
    lines = lines.enumerated().map { ($0 == 0 ? head : margin) + $1 }
    let last = lines.last ?? ""
    if !location.isEmpty {
      let gap = width - last.unicodeScalars.count - location.unicodeScalars.count
      if gap >= 3 {
        lines[lines.count - 1] = last + String(repeating: " ", count: gap) + location
      } else {
        let indent = max(6, width - location.unicodeScalars.count)
        lines.append(String(repeating: " ", count: indent) + location)
      }
    }
    return lines + finding.fixes.flatMap { self.lines(of: $0) }
  }

  /// What the user copies stays on one line, however long.
  private func lines(of fix: Fix) -> [String] {
    switch fix.kind {
    case .command: return ["      # \(fix.text)"]
    case .line, .add: return ["      \(fix.kind): \(fix.text)"]
    case .advice:
      return folded(fix.parts, width - 11).enumerated().map { index, line in
        (index == 0 ? "      see: " : "           ") + line
      }
    }
  }

  private func mark(_ severity: Severity) -> String {
    hasMarks ? severity.sign : padded("\(severity)", 7)
  }

  /// Of the findings, and of what the table tells of several accounts together; what both tell
  /// counts once.
  private func number(_ severity: Severity) -> Int {
    let groups = access?.groups ?? []
    let findings = diagnosis.findings.count { finding in
      finding.severity == severity && !groups.contains { $0.tells(of: finding) }
    }
    let own = groups.filter { $0.severity == severity }
    let places = own.filter { $0.location != nil }.map { Place($0.verdict, $0.location) }
    let again = places.count - Set(places).count
    let gaps = severity == .unseen ? access?.gaps.count ?? 0 : 0
    return findings + own.count - again + gaps
  }

  private struct Place: Hashable {
    let verdict: Verdict
    let location: FileLocation?

    init(_ verdict: Verdict, _ location: FileLocation?) {
      (self.verdict, self.location) = (verdict, location)
    }
  }

  private var count: String {
    let unseen = number(.unseen)
    let parts = [counted(number(.error), "error"), counted(number(.warning), "warning")]
    let rest = unseen > 0 ? ", \(unseen) not checked" : ""
    return parts.joined(separator: ", ") + rest + "."
  }

  /// Removes control characters, which text from files and programs may contain.
  private static func clean(_ line: String) -> String {
    String(
      String.UnicodeScalarView(
        line.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
  }

  // MARK: JSON

  var facts: some Encodable {
    Facts(
      findings: diagnosis.findings.map(FindingFacts.init), errors: number(.error),
      warnings: number(.warning), unseen: number(.unseen),
      lockedOut: diagnosis.lockedOut + (told(.refused) ?? []),
      inWithoutCode: told(.withoutCode) ?? diagnosis.letIn, access: access.map(AccessFactsJSON.init)
    )
  }

  /// The groups under this heading that count for the exit status; nil without a table.
  private func told(_ heading: Heading) -> [String]? {
    let groups = access?.groups.filter { group in
      group.severity != .ok && Heading(group.verdict, isMeant: group.purpose != nil) == heading
    }
    return groups?.map { group in
      let (users, ways) = (group.users.joined(separator: ", "), group.ways.joined(separator: ", "))
      return "\(users) at \(ways) (\(group.verdict.words))"
    }
  }

  private struct Facts: Encodable {
    let findings: [FindingFacts]
    let errors, warnings, unseen: Int
    let lockedOut, inWithoutCode: [String]
    @OrNull var access: AccessFactsJSON?
  }
}

extension AccessGroup {
  /// Whether it is what the finding says of who gets in, and no less bad.
  fileprivate func tells(of finding: Finding) -> Bool {
    guard let effect = finding.effect, severity >= finding.severity,
      finding.services.contains(where: services.contains)
    else { return false }
    let isSame =
      switch (verdict, effect.kind) {
      case (.withoutCode, .letsIn), (.refused, .locksOut): true
      case (.withoutCode, .locksOut), (.refused, .letsIn), (.asked, _), (.unseen, _): false
      }
    return isSame && (location == nil || finding.location == nil || location == finding.location)
  }
}

/// A finding in JSON.
private struct FindingFacts: Encodable {
  let id, area, severity, text: String
  let services: [String]
  @OrNull var file: String?
  @OrNull var line: Int?
  let fixes: [Fix]
  @OrNull var effect: Effect?

  init(_ finding: Finding) {
    (id, area) = (finding.id, finding.area.name)
    (severity, text) = ("\(finding.severity)", finding.text)
    (services, fixes, effect) = (finding.services, finding.fixes, finding.effect)
    (file, line) = (finding.location?.file, finding.location?.line)
  }
}
