import PAMStack
import SallyportSupport

/// What sudoers says about asking, if sudo's PAM service asks for a code. Pure.
struct SudoFindings {
  let sudoers: Sudoers
  /// Our lines in sudo's stacks.
  let lines: ModuleLines
  let enrolled: Set<String>
  private let area = Area.service("sudo")

  var all: [Finding] {
    let unread = sudoers.unread.map {
      Finding.unseen("sudo-files", area, $0, fixes: [.command("sudo sallyport doctor")])
    }
    let ignored = sudoers.ignored.map { file in
      Finding(
        "sudo-files", area, "sudo does not read \(file): others than root may write it",
        severity: .warning, location: FileLocation(file: file),
        fixes: ["chown root:", "chmod go-w"].map { .command("\($0) \(shellQuoted(file))") })
    }
    guard sudoers.isThere || !unread.isEmpty else { return [] }
    let unexpanded = sudoers.unexpanded.map {
      Finding.unseen(
        "sudo-aliases", area, "aliases in sudoers were not expanded: \($0)",
        fixes: [.command("visudo -c")])
    }
    let found =
      unread + ignored + [unexpanded].compactMap { $0 } + sudoers.entries.compactMap(finding)
    let none = Finding.ok("sudo-rules", area, "no line of sudoers keeps sudo from asking")
    return found.isEmpty ? [none] : found
  }

  private func finding(_ entry: Sudoers.Entry) -> Finding? {
    switch entry.exception {
    case .noPassword(let who, let all):
      if lines.demands { return nil }
      var found = made(
        "sudo-nopasswd", all ? .error : .warning,
        all
          ? "\(who) can become root without a code: NOPASSWD"
          : "\(who) can run some commands without a code: NOPASSWD",
        at: entry, effect: .letsIn("\(who) through sudo\(all ? "" : " for some commands")"))
      // A robot has no password that it could be asked for.
      if entry.callers.allSatisfy({ $0.first?.isLowercase == true }) {
        let isOfRobots = !entry.callers.contains { enrolled.contains($0) }
        let meant = Fix.meant(entry.callers.map { Purpose.word($0, "sudo") })
        found.fixes.insert(meant, at: isOfRobots ? 0 : found.fixes.count)
      }
      return found
    case .noAuthentication(let who, let all):
      if lines.demands { return nil }
      return made(
        "sudo-authenticate", all ? .error : .warning,
        "sudo asks nothing of \(who): !authenticate", at: entry,
        effect: .letsIn("\(who) through sudo\(all ? "" : " for some commands")"))
    case .exemptGroup(let group):
      if lines.demands { return nil }
      return made(
        "sudo-exempt-group", .error, "sudo asks nothing of the group \(group)", at: entry,
        effect: .letsIn("the group \(group) through sudo"))
    case .noSession:
      guard lines.enrolls else { return nil }
      return made(
        "sudo-session", .warning,
        "sudo opens no session, so no session line notices that an account line is missing",
        at: entry)
    case .endlessTicket:
      return made("sudo-ticket", .warning, "sudo asks once and then never again", at: entry)
    case .otherAccount(let word): return otherAccount(word, entry)
    case .otherService(let option, let name): return otherService(option, name, entry)
    }
  }

  /// The lines in sudo's own stacks are not run then.
  private func otherService(_ option: String, _ name: String, _ entry: Sudoers.Entry) -> Finding? {
    if sudoers.asking.contains(name) { return nil }
    let path = Sudoers.way(option)
    var found = made(
      "sudo-service", .error, "\(path) runs the service \(name), which asks for no code: \(option)",
      at: entry, effect: .letsIn("anyone with the password through \(path)"))
    found.fixes.append(.command(sallyportCommand("pam enable", on: [name])))
    return found
  }

  /// openSUSE ships `targetpw` with a rule for ALL: without `targetpw`, the rule would make every
  /// user root by their own password.
  private func otherAccount(_ word: String, _ entry: Sudoers.Entry) -> Finding {
    let root = enrolled.contains("root")
    let isLockout = !root && !lines.isVoluntary
    var found = made(
      "sudo-other-account", isLockout ? .error : .warning,
      "\(word): sudo asks for the code of the target account"
        + (root ? "" : ", and root is not enrolled"), at: entry,
      effect: isLockout ? .locksOut("everybody from root through sudo") : nil)
    if sudoers.hasRuleForAll {
      found.fixes = [.advice("remove \(word) and the rule for ALL together, never \(word) alone")]
    }
    if !root { found.fixes.insert(.command("sallyport enroll root"), at: 0) }
    return found
  }

  /// Lines for other hosts do not affect logins here, as far as host names tell.
  private func made(
    _ id: String, _ severity: Severity, _ text: String, at entry: Sudoers.Entry,
    effect: Effect? = nil
  ) -> Finding {
    let hosts = listed(entry.elsewhere)
    return Finding(
      id, area, hosts.isEmpty ? text : "on \(hosts): \(text)",
      severity: hosts.isEmpty ? severity : .warning, location: entry.location, fixes: fixes(entry),
      effect: hosts.isEmpty ? effect : nil)
  }

  /// The vendor's file is not edited; a later line overrides it.
  private func fixes(_ entry: Sudoers.Entry) -> [Fix] {
    entry.location.isVendors
      ? [
        .advice(parts: [
          "visudo -f /etc/sudoers.d/sallyport,", "with the line:", entry.fixed,
        ])
      ]
      : [.line(entry.fixed), .advice(parts: ["visudo -f \(entry.location.file)"])]
  }
}
