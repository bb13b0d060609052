/// What becomes of some services' ways in when the table changes.
package struct AccessLoss {
  /// Accounts that got in by one of the services and do no longer, each with the verdict that is
  /// the nearest to being let in.
  package private(set) var lockedOut: [(user: String, verdict: Verdict)] = []
  /// The enrolled who got in by none of them before, for want of a rule.
  package private(set) var withoutRule: [String] = []
  /// Nobody in the table gets in by them, as far as can be told.
  package private(set) var isTotal = true
  /// Somebody is asked for a code, or may be once enrolled.
  package private(set) var leavesAsked = false

  package init(_ change: AccessChange, at services: [String]) {
    let old = change.before.narrowed(to: services, nil).rows
    let numbers = Dictionary(
      old.enumerated().map { ($1.user, $0) }, uniquingKeysWith: { a, _ in a })
    for row in change.after.narrowed(to: services, nil).rows {
      if row.cells.contains(where: \.verdict.mayLetIn) {
        let told = row.cells.map(\.verdict).filter { row.isEnrolled || !$0.isUnseenOfUnenrolled }
        isTotal = isTotal && !told.contains(where: \.mayLetIn)
        leavesAsked = leavesAsked || told.contains(where: \.mayAsk)
        continue
      }
      let was = numbers[row.user].map { old[$0].cells } ?? []
      if was.contains(where: \.verdict.mayLetIn) {
        let verdicts = row.cells.map(\.verdict)
        lockedOut.append((row.user, verdicts.first(where: \.isByUs) ?? verdicts[0]))
      } else if change.hasRules, row.isEnrolled,
        row.cells.contains(where: { $0.verdict == .refused(.noRule) })
      {
        withoutRule.append(row.user)
      }
    }
  }
}

extension Verdict {
  /// Not of robots, who get in without a code on purpose.
  fileprivate var mayAsk: Bool {
    switch self {
    case .asked, .unseen: true
    case .withoutCode(let opening): opening != .exempt && hangsOnEnrollment
    case .refused: false
    }
  }

  /// Of somebody who is not enrolled: whether it says nothing about a code. The other gaps leave
  /// open who is enrolled.
  fileprivate var isUnseenOfUnenrolled: Bool {
    guard case .unseen(let gap) = self else { return false }
    return switch gap {
    case .notRoot, .fleetSilent, .fleetKeeps, .otherStore: false
    case .sshdSilent, .sudoSilent, .keysElsewhere, .polkitRules, .moduleDecides, .tooComplex,
      .tooMany, .slowFiles:
      true
    }
  }

  fileprivate var isByUs: Bool {
    if case .refused(let barrier) = self { barrier.isOurs } else { false }
  }
}
