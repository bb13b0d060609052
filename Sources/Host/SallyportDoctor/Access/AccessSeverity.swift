// What the cells mean for the exit status of doctor.

extension AccessTable {
  /// Puts down how bad each cell is, beside the others of its account.
  mutating func weigh() {
    rows = rows.map { row in
      var weighed = row
      weighed.cells = row.cells.map { cell in
        var weighed = cell
        weighed.severity = severity(of: cell, in: row)
        return weighed
      }
      return weighed
    }
  }

  private func severity(of cell: Cell, in row: Row) -> Severity {
    switch cell.verdict {
    case .asked: .ok
    case .unseen: isOurs(cell.way) ? .unseen : .ok
    case .refused(let barrier):
      isOurs(cell.way) && barrier.locksOut && !row.gets(in: cell.way, despite: barrier)
        ? .error : .ok
    case .withoutCode(let opening):
      if cell.purpose != nil || !isOurs(cell.way) && !isCompanion(cell, in: row) {
        .ok
      } else {
        opening.isAllowed || isNarrow(cell, in: row) ? .warning : .error
      }
    }
  }

  /// Whether the same account is asked for a code on another way of the same kind, or on another
  /// way to root.
  private func isCompanion(_ cell: Cell, in row: Row) -> Bool {
    row.cells.contains { other in
      guard case .asked = other.verdict, other.way != cell.way else { return false }
      return other.way.kind.family == cell.way.kind.family
        || other.way.givesRoot && cell.way.givesRoot
    }
  }

  /// Whether sudo or doas gives the account no more without a code than some commands, or another
  /// account than root.
  private func isNarrow(_ cell: Cell, in row: Row) -> Bool {
    guard [.sudo, .doas].contains(cell.way.kind.family), !cell.way.givesRoot else { return false }
    return !row.cells.contains { other in
      guard case .withoutCode = other.verdict, other.way.givesRoot else { return false }
      return other.way.kind.family == cell.way.kind.family
    }
  }

  /// The worst of all cells.
  package var severity: Severity {
    let worst = rows.flatMap(\.cells).map(\.severity).max() ?? .ok
    return max(worst, gaps.isEmpty ? .ok : .unseen)
  }
}

extension AccessTable.Row {
  /// Whether the account gets in that way, by some list of methods; by a key from somewhere.
  fileprivate func gets(in way: AccessWay, despite barrier: Barrier) -> Bool {
    cells.contains { cell in
      let isMeant = barrier == .keyLeftOut && cell.way.kind == way.kind
      return (isMeant || cell.way == way) && cell.verdict.mayLetIn
    }
  }
}

extension AccessWay.Kind {
  /// The ways of one program are alike.
  var family: AccessWay.Kind {
    switch self {
    case .sudo, .sudoLogin, .sudoAs: .sudo
    case .ssh, .doas, .su, .login, .polkit, .other: self
    }
  }
}

extension Barrier {
  /// Whether it keeps somebody out who has all that others ask for, and was not meant to.
  var locksOut: Bool { self != .blocked && isOurs || self == .moduleMissing || self == .keyLeftOut }
}

extension Opening {
  /// Whether the administrator has let in who is not enrolled, by a setting of Sallyport.
  var isAllowed: Bool {
    switch self {
    case .disabled, .exempt, .nullok, .voluntary, .offered, .enrolls: true
    case .noLine, .otherFile, .skipped, .uncounted, .keyAlone, .hostAlone, .ticketAlone,
      .noPAM, .noPasswd, .notAuthenticated, .exemptGroup, .nopass, .polkitYes:
      false
    }
  }
}
