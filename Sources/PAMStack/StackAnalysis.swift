/// What is wrong with, or worth knowing of, our lines in a service's stacks. Facts only; how grave
/// each is depends on the host.
package enum StackFinding: Hashable, Sendable {
  /// Something of a file that libpam stumbles over; `isFatal` ones keep everybody out.
  case fault(StackFault)
  /// The module of this line cannot be loaded.
  case moduleMissing(StackLocation, module: String)
  /// No way through this phase ends well, whatever is typed.
  case nobodyPasses(PAMPhase)
  /// There are too many ways through this phase to walk them all: take it for unsafe.
  case tooComplex(PAMPhase)
  /// Nothing in the auth stack asks for a code.
  case notAsked
  /// The program never runs the auth stack, in which this line stands, if any does.
  case authNeverRuns(StackLocation?)
  /// The program gives one answer to every prompt, and this line and the one at `other` both ask.
  case secondPrompt(StackLocation, other: StackLocation, module: String)
  /// No login that succeeds calls this line of ours in the auth stack.
  case neverReached(StackLocation)
  /// A login can succeed without calling our line, when the line `by` answers `answer`: it ends the
  /// stack, or jumps over ours. Root's own (pam_rootok) are not counted.
  case skipped(StackLocation, by: StackLocation, module: String, answer: PAMCode)
  /// A login can succeed though our line refuses (optional, sufficient, …): the code in the auth
  /// stack, or whom `enroll` or `demand` leave to it in the account stack.
  case notCounted(StackLocation)
  /// A login succeeds in which no password, fingerprint or the like was right, with this line's yes
  /// or where it asks nobody. Modules that are not known are taken for checkers of passwords.
  case codeAlone(StackLocation)
  /// The same, if the module at `by`, which is not known, says yes without a password.
  case unknownAlone(StackLocation, by: StackLocation, module: String)
  /// The line takes what an earlier one has asked for, and none has: it always fails.
  case nothingToTake(StackLocation)
  /// The line's jump leads past the end of its stack, where libpam fails.
  case jumpPastEnd(StackLocation)
  /// The jump of the line `by` counts ours, and leads whom its module lets pass to a refusal.
  case jumpedOver(StackLocation, by: StackLocation, module: String)
  /// More than one of our lines runs in one login; a code is good once.
  case askedTwice(StackLocation, StackLocation)
  /// Somebody whose password is wrong is asked for a code all the same, and can spend the budget.
  case wrongPasswordReaches(StackLocation)
  /// Where our line answers PAM_IGNORE, no way through this phase ends well.
  case ignoreIsDenied(PAMPhase, StackLocation)
  /// `enroll` without a line of ours in the account stack, or the session stack.
  case enrollWithoutLine(StackLocation, missing: PAMPhase)
  /// Our line does not stand first in its account stack. `isSkipped`: a login can succeed without
  /// calling it.
  case accountNotFirst(StackLocation, after: StackLocation, isSkipped: Bool)
  /// Our session line can be left out.
  case sessionSkipped(StackLocation)
  /// `enroll`, and on no way to it anything asks for a password. Right only where sshd has asked
  /// for a key.
  case enrollWithoutFirstFactor(StackLocation)
  /// `enroll`, and a login in which the password was wrong can succeed: a stranger would enroll a
  /// phone of his own. `by` is what says yes.
  case wrongPasswordEnrolls(StackLocation, by: StackLocation?)
  /// `enroll` together with use_first_pass, try_first_pass or forward_pass.
  case enrollWithFirstPass(StackLocation, word: String)
  /// `demand` where nobody can be asked, or in what such services include.
  case demandForbidden(StackLocation)
}

/// The stacks of one service, walked. This is what `sallyport doctor` and `sallyport pam` judge by.
///
///     let files = StackDirectory().files           // this machine's, or `StackDirectory(root:)`
///     let stack = StackParser.parse(service: "sshd", files)
///     let analysis = StackAnalysis(stack, isMissing: StackDirectory().isMissing)
///     for finding in analysis.findings { … }
///
/// Every way through a stack is walked, with the modules answering as they may: pam_permit yes,
/// pam_deny and pam_rootok no (nobody here is root), password modules as the question wants it (and
/// where a code alone must not do, those that are not known too), a module that cannot be loaded
/// PAM_MODULE_UNKNOWN, and all others anything. So "can" in a finding
/// means: some answers of the other modules lead there.
package struct StackAnalysis {
  package let stack: ServiceStack
  /// Our lines of all phases, in their order.
  package let lines: [StackEntry]
  package private(set) var findings: [StackFinding] = []
  /// Modules that cannot be loaded, as they are written.
  let missing: Set<String>
  /// Lines that take a password which nobody has asked for.
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

  /// Whether every login here that succeeds has been asked for a code by us, as far as the stack
  /// decides it.
  package var asksEverybody: Bool {
    !findings.contains { finding in
      switch finding {
      case .notAsked, .authNeverRuns, .neverReached, .skipped, .notCounted, .tooComplex: true
      case .fault, .moduleMissing, .nobodyPasses, .secondPrompt, .codeAlone,
        .unknownAlone, .nothingToTake, .jumpPastEnd, .jumpedOver, .askedTwice,
        .wrongPasswordReaches, .ignoreIsDenied, .enrollWithoutLine, .accountNotFirst,
        .sessionSkipped,
        .enrollWithoutFirstFactor, .wrongPasswordEnrolls, .enrollWithFirstPass, .demandForbidden:
        false
      }
    }
  }

  /// Our first line in a phase.
  package func line(_ phase: PAMPhase) -> StackEntry? { lines.first { $0.phase == phase } }

  static func isOurs(_ entry: StackEntry) -> Bool {
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

  /// nil, with a finding, where there are too many.
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
  }

  private mutating func lookForWaysAround(_ line: StackEntry, _ right: StackPaths) {
    let passes = right.contains { $0.verdict == .success }
    if passes, !right.contains(where: { $0.verdict == .success && $0.ours }) {
      findings.append(.neverReached(line.location))
    }
    if let twice = right.first(where: { path in
      path.verdict == .success && path.steps.count { StackAnalysis.isOurs($0.entry) } > 1
    }) {
      let locations = twice.steps.map(\.entry).filter(StackAnalysis.isOurs).map(\.location)
      findings.append(.askedTwice(locations[0], locations[1]))
    }
    for passwords in [Assumption.Passwords.right, .anything] {
      let assumption = Assumption(ours: [.authenticationError], passwords: passwords)
      guard let refused = paths(.auth, assumption) else { return }
      let skipped = refused.first { $0.verdict == .success && !$0.ours }
      // The last that ran before our line would have.
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
    // After a key it answers yes itself.
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
      let before = path.steps.prefix { !StackAnalysis.isOurs($0.entry) }
      return path.ours && before.contains { ModuleKind($0.entry) == .password }
    }
    if isReached { findings.append(.wrongPasswordReaches(line.location)) }
  }

  /// Who needs no code, and who comes from a remembered place, is answered PAM_IGNORE.
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
    // An unenrolled user who is let through is answered PAM_IGNORE: the yes comes from another.
    guard let wrong = paths(.auth, Assumption(ours: [.ignore], passwords: .wrong)) else { return }
    let way = wrong.first { $0.verdict == .success && $0.ours && $0.asked }
    if let way {
      let by = way.steps.last { $0.answer == .success && !StackAnalysis.isOurs($0.entry) }
      findings.append(.wrongPasswordEnrolls(line.location, by: by?.entry.location))
    }
  }
}

// MARK: - The account and session stacks, and the words

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
    // Not every application calls these phases, and not every service has lines for them.
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
