import PAMStack
import SallyportSupport

/// Which ways in without a code are meant, by `without_code` in the policy files.
struct AccessPurposes {
  /// By the path of the file.
  private let purposes: [String: [Purpose]]
  private let forecaster: Forecaster

  init(_ facts: AccessFacts, _ forecaster: Forecaster, services: [String]) {
    self.forecaster = forecaster
    let paths = services.map { AccessPurposes.file(of: $0, forecaster) } + [PolicySources.usual]
    purposes = Dictionary(
      uniqueKeysWithValues: Set(paths).map { path in
        let source = facts.policies.source(at: path, isOptional: path == PolicySources.usual)
        return (path, source.text.map { PolicyText(path, $0).purposes() } ?? [])
      })
  }

  /// The policy file that the service's line names.
  private static func file(of service: String, _ forecaster: Forecaster) -> String {
    ModuleLines(of: forecaster.stack(of: service)).value(of: "conf") ?? PolicySources.usual
  }

  /// The line that says that it is meant so.
  func line(for cell: Cell, of user: String) -> FileLocation? {
    guard case .withoutCode = cell.verdict else { return nil }
    let file = AccessPurposes.file(of: cell.way.service, forecaster)
    return purposes[file]?.first { $0.account == user && $0.names(cell.way) }?.location
  }

  /// Those that no way in without a code has. `isWhole`: whether each account has its row.
  func idle(in rows: [AccessTable.Row], isWhole: Bool) -> [Finding] {
    purposes.sorted { $0.key < $1.key }.flatMap { path, all in
      all.compactMap { purpose in
        why(purpose, at: path, rows, isWhole: isWhole).map { reason in
          Finding.warning(
            "purpose-idle", .policy,
            "without_code: \(purpose.account):\(purpose.way) has no effect: \(reason)",
            location: purpose.location, fixes: [.advice("correct or remove the word")])
        }
      }
    }
  }

  private func why(
    _ purpose: Purpose, at path: String, _ rows: [AccessTable.Row], isWhole: Bool
  ) -> String? {
    guard let row = rows.first(where: { $0.user == purpose.account }) else {
      return isWhole ? "there is no such account, or it has no way in" : nil
    }
    let cells = row.cells.filter { purpose.names($0.way) }
    if cells.isEmpty { return "the account has no such way in" }
    let own = cells.filter { AccessPurposes.file(of: $0.way.service, forecaster) == path }
    if own.isEmpty { return "the service uses another policy file" }
    if !own.contains(where: \.verdict.mayLetIn) { return "the account is refused there" }
    let mayBeOpen = own.contains { cell in
      switch cell.verdict {
      case .withoutCode, .unseen: true
      case .asked, .refused: false
      }
    }
    return mayBeOpen ? nil : "the account does not get in there without a code"
  }
}

extension Purpose {
  /// Whether it is about this way. The first service of a program stands for all of them.
  func names(_ way: AccessWay) -> Bool {
    switch self.way {
    case way.service: true
    case "sudo": way.kind.family == .sudo
    case "su": way.kind == .su
    case _: false
    }
  }
}

// MARK: - findings about the same

extension AccessTable {
  /// Whether a finding tells of a line by which nobody gets in without a code but on purpose. In
  /// doubt it is not.
  func settles(_ finding: Finding) -> Bool {
    guard gaps.isEmpty, finding.effect?.kind == .letsIn else { return false }
    switch finding.id {
    case "sudo-nopasswd", "sudo-authenticate", "sudo-exempt-group":
      return isMeant(.sudo) { $0.location == finding.location }
        || finding.location.map(opensNothing) == true
    // A key can be added at any time.
    case "ssh-no-code": return isMeant(.ssh) { _ in true } && !takesNewKeys
    case _: return false
    }
  }

  private func isMeant(_ family: AccessWay.Kind, where isAbout: (Cell) -> Bool) -> Bool {
    let cells = rows.flatMap(\.cells).filter { $0.way.kind.family == family }
    // An exception for an account that is not there yet is none of these.
    guard cells.contains(where: { $0.purpose != nil && isAbout($0) }) else { return false }
    return cells.allSatisfy { cell in
      switch cell.verdict {
      case .asked, .refused: true
      case .unseen: false
      case .withoutCode(let opening): cell.purpose != nil || opening.isAllowed || !isAbout(cell)
      }
    }
  }

  /// Whether the line of sudoers lets in none of those whom it names: a later line counts, or the
  /// account phase keeps them out.
  private func opensNothing(_ line: FileLocation) -> Bool {
    guard let names = unasked[line], !names.isEmpty else { return false }
    return rows.filter { names.contains($0.user) }.flatMap(\.cells).allSatisfy { cell in
      switch cell.verdict {
      case _ where cell.way.kind.family != .sudo: true
      case .asked, .refused: true
      case .unseen: false
      case .withoutCode:
        cell.purpose != nil || cell.location.map { $0 != line && unasked[$0] != nil } == true
      }
    }
  }

  /// Whether sshd would let somebody in by a key alone who has none yet.
  private var takesNewKeys: Bool {
    rows.flatMap(\.cells).contains { cell in
      cell.verdict == .refused(.noKey)
        && !cell.methods.contains { ["keyboard-interactive", "password"].contains($0) }
    }
  }
}
