/// A fact about our lines in a service's stacks: a fault, or something worth knowing. Its severity
/// depends on the machine.
package enum StackFinding: Hashable, Sendable {
  /// Something in a file that libpam cannot handle; if `isFatal`, nobody gets in.
  case fault(StackFault)
  /// The module of this line cannot be loaded.
  case moduleMissing(FileLocation, module: String)
  /// No path through this phase succeeds, whatever is typed.
  case nobodyPasses(PAMPhase)
  /// The phase has too many paths to walk them all, and must be taken for unsafe.
  case tooComplex(PAMPhase)
  /// Nothing in the auth stack asks for a code.
  case notAsked
  /// The program never runs the auth phase, in which our line, if any, stands here.
  case authNeverRuns(FileLocation?)
  /// The program gives one answer to every prompt, and both this line and the one at `other`
  /// prompt.
  case secondPrompt(FileLocation, other: FileLocation, module: String)
  /// No successful login runs our auth line.
  case neverReached(FileLocation)
  /// A login can succeed without our line if the entry at `by` returns `answer`, which ends the
  /// stack or jumps over our line. pam_rootok, which lets only root pass, does not count.
  case skipped(FileLocation, by: FileLocation, module: String, answer: PAMCode)
  /// A login can succeed although our line refuses it, because of its control (optional,
  /// sufficient, …). In the auth stack that is a wrong code; in the account stack, a user whom
  /// `enroll` or `demand` must stop there.
  case notCounted(FileLocation)
  /// A login succeeds without a correct password, fingerprint or the like, if our line accepts the
  /// code or does not ask for one. Unknown modules count as if they checked a password.
  case codeAlone(FileLocation)
  /// As `codeAlone`, but only if the unknown module at `by` succeeds without a correct password.
  case unknownAlone(FileLocation, by: FileLocation, module: String)
  /// The line uses a password that no earlier line has asked for, and so always fails.
  case nothingToTake(FileLocation)
  /// The line jumps past the end of its stack, where libpam fails.
  case jumpPastEnd(FileLocation)
  /// The jump at `by` counts our line, so that a login that its module accepts ends in a refusal.
  case jumpedOver(FileLocation, by: FileLocation, module: String)
  /// One login runs two of our lines, but a code works only once.
  case askedTwice(FileLocation, FileLocation)
  /// A user with a wrong password is still asked for a code, and can use up the budget.
  case wrongPasswordReaches(FileLocation)
  /// If our line returns PAM_IGNORE, no path through this phase succeeds.
  case ignoreIsDenied(PAMPhase, FileLocation)
  /// `enroll` without our line in the account stack or in the session stack.
  case enrollWithoutLine(FileLocation, missing: PAMPhase)
  /// Our line is not the first in its account stack. `isSkipped`: a login can succeed without it.
  case accountNotFirst(FileLocation, after: FileLocation, isSkipped: Bool)
  /// A session can open without our line.
  case sessionSkipped(FileLocation)
  /// `enroll`, but no path to the line asks for a password. Correct only if sshd has asked for a
  /// key.
  case enrollWithoutFirstFactor(FileLocation)
  /// `enroll`, but a login with a wrong password can succeed, so that a stranger could enroll a
  /// device of their own. `by` is the line that makes it succeed.
  case wrongPasswordEnrolls(FileLocation, by: FileLocation?)
  /// `enroll` together with use_first_pass, try_first_pass or forward_pass.
  case enrollWithFirstPass(FileLocation, word: String)
  /// `demand` in a service whose users cannot answer a prompt, or in a file that such services
  /// include.
  case demandForbidden(FileLocation)
}

/// The walked stacks of one service: what `sallyport doctor` and `sallyport pam` examine.
///
///     let machine = StackDirectory()           // this one, or `StackDirectory(root:)`
///     for finding in machine.analysis(of: "sshd").findings { … }
///
/// Every path through a stack is walked, with each return value that a module may give. pam_permit
/// succeeds; pam_deny fails, and so does pam_rootok (the user is not root); password modules
/// succeed or fail as the question assumes, and so do unknown modules when the question is whether
/// a code alone is enough; a module that cannot be loaded returns PAM_MODULE_UNKNOWN; all others
/// return anything. So "can" in a finding means: for some return values of the other modules.
package struct StackAnalysis {
  package let stack: ServiceStack
  /// Our lines in all phases, in order.
  package let lines: [StackEntry]
  package private(set) var findings: [StackFinding] = []
  /// Modules that cannot be loaded, spelled as in the file.
  let missing: Set<String>
  /// Lines that use a password that no earlier line has asked for.
  private let starved: Set<StackEntry>

  package init(
    _ stack: ServiceStack, isMissing: @escaping (StackEntry) -> Bool = { _ in false }
  ) {
    let entries = PAMPhase.allCases.flatMap { stack[$0] }
    self.stack = stack
    missing = Set(entries.filter { $0.kind == .module && isMissing($0) }.map(\.module))
    lines = entries.filter(StackAnalysis.isOurs)
    starved = Set(StackEntry.starved(in: stack[.auth]))
    findings = stack.faults.map { .fault($0) }
    if stack.isAborted {
      findings.append(.nobodyPasses(.auth))
      return
    }
    findMissing()
    findLineFaults()
    lookAtAuth()
    lookAtAccount()
    lookAtSession()
    findings += passwordsJumpedOver
    lookAtWords()
  }

  /// Our first line in a phase for those without a key.
  package func line(_ phase: PAMPhase) -> StackEntry? {
    lines.first { $0.phase == phase && StackAnalysis.asks($0) }
  }

  static func isOurs(_ entry: StackEntry) -> Bool {
    asks(entry) || entry.kind == .module && ModuleKind(entry) == .afterKey
  }

  /// Also without a key.
  private static func asks(_ entry: StackEntry) -> Bool {
    entry.kind == .module && ModuleKind(entry) == .ours
  }

  private mutating func findMissing() {
    var seen: Set<StackFinding> = []
    for entry in PAMPhase.allCases.flatMap({ stack[$0] })
    where entry.kind == .module && !entry.isSilent && missing.contains(entry.module) {
      let finding = StackFinding.moduleMissing(entry.location, module: entry.module)
      if seen.insert(finding).inserted { findings.append(finding) }
    }
  }

  private mutating func findLineFaults() {
    findings += stack[.auth].filter(starved.contains).map { .nothingToTake($0.location) }
    for stack in [PAMPhase.auth, .account, .session].map({ stack[$0] }) {
      for (index, entry) in stack.enumerated()
      where entry.jumps.contains(where: { stack.jump($0, from: index).isPastEnd }) {
        findings.append(.jumpPastEnd(entry.location))
      }
    }
  }

  /// Returns nil, after adding a finding, if there are too many.
  private mutating func paths(_ phase: PAMPhase, _ assumption: Assumption) -> StackPaths? {
    var assumption = assumption
    assumption.missing = missing
    assumption.starved = starved
    let paths = StackPaths(stack[phase], under: assumption)
    if paths.areTooMany, !findings.contains(.tooComplex(phase)) {
      findings.append(.tooComplex(phase))
    }
    return paths.areTooMany ? nil : paths
  }
}

// MARK: - The auth stack

extension StackAnalysis {
  private mutating func lookAtAuth() {
    if KnownServices.withoutAuth.contains(stack.service) {
      return findings.append(.authNeverRuns(line(.auth)?.location))
    }
    let assumption = Assumption(ours: [.success], callerMayBeRoot: true)
    guard let all = paths(.auth, assumption),
      let right = paths(.auth, Assumption(ours: [.success]))
    else { return }
    if !all.contains(where: { $0.verdict == .success }) { findings.append(.nobodyPasses(.auth)) }
    guard let line = line(.auth) else { return findings.append(.notAsked) }
    lookForWaysAround(line, right)
    lookAtIgnore(line)
    lookAtWrongPasswords(line)
    lookForCodeAlone(line)
    if let other = otherPrompt(line) {
      findings.append(.secondPrompt(line.location, other: other.location, module: other.module))
    }
    if line.arguments.contains("enroll") { lookAtEnroll(line) }
    lookAfterKey()
  }

  /// The line for those with a key decides alone: what it refuses gets in by no other line, and
  /// what it accepts is asked for no other code.
  private mutating func lookAfterKey() {
    guard let line = lines.first(where: { ModuleKind($0) == .afterKey }) else { return }
    let no = Assumption(ours: [.authenticationError], passwords: .anything, hasKey: true)
    guard let refused = paths(.auth, no),
      let right = paths(.auth, Assumption(ours: [.success], hasKey: true))
    else { return }
    if refused.contains(where: { $0.verdict == .success && $0.ours }) {
      findings.append(.notCounted(line.location))
    }
    let twice = right.first { path in
      path.verdict == .success && path.steps.count { StackAnalysis.isOurs($0.entry) } > 1
    }
    if let other = twice?.steps.last(where: { StackAnalysis.isOurs($0.entry) })?.entry {
      findings.append(.askedTwice(line.location, other.location))
    }
  }

  private mutating func lookForWaysAround(_ line: StackEntry, _ right: StackPaths) {
    let passes = right.contains { $0.verdict == .success }
    if passes, !right.contains(where: { $0.verdict == .success && $0.ours }) {
      findings.append(.neverReached(line.location))
    }
    if let twice = right.first(where: { path in
      path.verdict == .success && path.steps.count { StackAnalysis.asks($0.entry) } > 1
    }) {
      let locations = twice.steps.map(\.entry).filter(StackAnalysis.asks).map(\.location)
      // No program is called `other`: where the file stands in for another one, it is read once.
      if stack.service != "other" || locations[0] != locations[1] {
        findings.append(.askedTwice(locations[0], locations[1]))
      }
    }
    for passwords in [Assumption.Passwords.right, .anything] {
      let assumption = Assumption(ours: [.authenticationError], passwords: passwords)
      guard let refused = paths(.auth, assumption) else { return }
      let skipped = refused.first { $0.verdict == .success && !$0.ours }
      // The last entry that ran before the place of our line.
      let place = stack[.auth].firstIndex(of: line) ?? 0
      if let last = skipped?.steps.last(where: { $0.index < place }) {
        findings.append(
          .skipped(
            line.location, by: last.entry.location, module: last.entry.module, answer: last.answer))
      }
      let counts = !refused.contains { $0.verdict == .success && $0.ours }
      if !counts { findings.append(.notCounted(line.location)) }
      if skipped != nil || !counts { return }
    }
  }

  private mutating func lookAtIgnore(_ line: StackEntry) {
    // After a key our line returns PAM_SUCCESS even where it asks for nothing.
    guard !line.isAfterKey, let ignored = paths(.auth, Assumption(ours: [.ignore])) else { return }
    if !ignored.contains(where: { $0.verdict == .success }) {
      findings.append(.ignoreIsDenied(.auth, line.location))
    }
  }

  private mutating func lookAtWrongPasswords(_ line: StackEntry) {
    let assumption = Assumption(
      ours: [.success, .authenticationError, .ignore], passwords: .wrong, factorsFail: true)
    guard let wrong = paths(.auth, assumption) else { return }
    let isReached = wrong.contains { path in
      let before = path.steps.prefix { !StackAnalysis.asks($0.entry) }
      return path.ours && before.contains { ModuleKind($0.entry) == .password }
    }
    if isReached { findings.append(.wrongPasswordReaches(line.location)) }
  }

  /// Our line returns PAM_IGNORE for users who need no code and for remembered origins.
  private mutating func lookForCodeAlone(_ line: StackEntry) {
    if line.isAfterKey { return }
    var assumption = Assumption(
      ours: [.success, .ignore], passwords: .wrong, factorsFail: true, unknownsFail: true)
    guard let failing = paths(.auth, assumption) else { return }
    let isIn: (StackPath) -> Bool = { $0.verdict == .success && $0.ours }
    if failing.contains(where: isIn) { return findings.append(.codeAlone(line.location)) }
    assumption.unknownsFail = false
    let by = paths(.auth, assumption)?.first(where: isIn)?.steps
      .last { ModuleKind($0.entry) == .unknown }?.entry
    if let by { findings.append(.unknownAlone(line.location, by: by.location, module: by.module)) }
  }

  private mutating func lookAtEnroll(_ line: StackEntry) {
    let assumption = Assumption(ours: [.ignore], passwords: .anything)
    guard let all = paths(.auth, assumption) else { return }
    if !line.isAfterKey, !all.contains(where: { $0.ours && $0.asked }) {
      findings.append(.enrollWithoutFirstFactor(line.location))
    }
    // An unenrolled user who is let through gets PAM_IGNORE, so another entry must succeed.
    guard let wrong = paths(.auth, Assumption(ours: [.ignore], passwords: .wrong)) else { return }
    let way = wrong.first { $0.verdict == .success && $0.ours && $0.asked }
    if let way {
      let by = way.steps.last { $0.answer == .success && !StackAnalysis.isOurs($0.entry) }
      findings.append(.wrongPasswordEnrolls(line.location, by: by?.entry.location))
    }
  }
}

// MARK: - The account and session stacks, and the arguments

extension StackAnalysis {
  private mutating func lookAtAccount() {
    let wantsEnroll = lines.first { $0.phase == .auth && $0.arguments.contains("enroll") }
    guard let line = line(.account) else {
      if let wantsEnroll {
        findings.append(.enrollWithoutLine(wantsEnroll.location, missing: .account))
      }
      return lookWhetherAnybodyPasses(.account)
    }
    guard let ways = paths(.account, Assumption(ours: [.ignore])) else { return }
    let ends: (StackPath) -> Bool = { $0.verdict == .success || $0.verdict == .newPasswordRequired }
    if !ways.contains(where: ends) { findings.append(.ignoreIsDenied(.account, line.location)) }
    let decides = wantsEnroll != nil || line.arguments.contains("demand")
    if decides, let refused = self.paths(.account, Assumption(ours: [.permissionDenied])),
      refused.contains(where: { ends($0) && $0.ours })
    {
      findings.append(.notCounted(line.location))
    }
    if let first = stack[.account].first, first != line {
      let isSkipped = ways.contains { ends($0) && !$0.ours }
      findings.append(.accountNotFirst(line.location, after: first.location, isSkipped: isSkipped))
    }
  }

  private mutating func lookAtSession() {
    let wantsEnroll = lines.first { $0.phase == .auth && $0.arguments.contains("enroll") }
    guard let line = line(.session) else {
      if let wantsEnroll {
        findings.append(.enrollWithoutLine(wantsEnroll.location, missing: .session))
      }
      return lookWhetherAnybodyPasses(.session)
    }
    guard let ways = paths(.session, Assumption(ours: [.ignore])) else { return }
    if !ways.contains(where: { $0.verdict == .success }) {
      findings.append(.ignoreIsDenied(.session, line.location))
    }
    if ways.contains(where: { $0.verdict == .success && !$0.ours }) {
      findings.append(.sessionSkipped(line.location))
    }
  }

  private mutating func lookWhetherAnybodyPasses(_ phase: PAMPhase) {
    // Not every application runs these phases, and not every service has lines for them.
    guard !stack[phase].isEmpty, let ways = paths(phase, Assumption(ours: [.ignore])) else {
      return
    }
    if !ways.contains(where: { $0.verdict == .success || $0.verdict == .newPasswordRequired }) {
      findings.append(.nobodyPasses(phase))
    }
  }

  private mutating func lookAtWords() {
    for line in lines {
      if line.phase == .account, line.arguments.contains("demand") {
        let file = line.location.file.split(separator: "/").last.map(String.init) ?? ""
        if KnownServices.forbidsDemand(stack.service) || KnownServices.forbidsDemand(file) {
          findings.append(.demandForbidden(line.location))
        }
      }
      let taking = ["use_first_pass", "try_first_pass", "forward_pass"]
      if line.phase == .auth, line.arguments.contains("enroll"),
        let word = line.arguments.first(where: { taking.contains($0) })
      {
        findings.append(.enrollWithFirstPass(line.location, word: word))
      }
    }
  }
}
