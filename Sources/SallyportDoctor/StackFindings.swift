import PAMStack
import SallyportCore
import SallyportText

/// What the walk through a service's stacks means for its logins. Pure.
struct StackFindings {
  private let service: ServiceFacts
  private let lines: ModuleLines
  private let ssh: SSHSettings?
  private let area: Area
  private var name: String { service.name }

  /// `ssh`: sshd's settings, where the service is sshd's.
  init(_ service: ServiceFacts, ssh: SSHSettings?) {
    self.service = service
    self.ssh = service.name == "sshd" ? ssh : nil
    lines = service.lines
    area = .service(service.name)
  }

  var all: [Finding] {
    let found =
      service.stack.compactMap(finding) + [idleRemember].compactMap { $0 }
      + lines.lines.compactMap(unknownWord)
    let isFine = found.isEmpty && !lines.lines.isEmpty
    return found
      + (isFine ? [.ok("stack", area, "no way through the stacks leaves the code out")] : [])
  }

  private func finding(_ found: StackFinding) -> Finding? {
    switch found {
    case .fault(let fault): self.fault(fault)
    case .moduleMissing(let place, let module): missing(module, place)
    case .nobodyPasses(let phase): nobody(passes: phase)
    case .tooComplex(let phase):
      .unseen("stack-complex", area, "there are too many ways through the \(phase.rawValue) stack")
    case .notAsked: lines.demands ? nil : notAsked
    case .authNeverRuns(let place): authNeverRuns(place)
    case .secondPrompt(let place, let other, let module): secondPrompt(place, other, module)
    case .neverReached(let place):
      lines.demands || isSkipped(place)
        ? nil : around("stack-unreached", "no login reaches this line", place, nil)
    case .skipped(let place, let by, let module, let answer):
      lines.demands ? nil : skipped(place, by, module, answer)
    case .notCounted(let place): notCounted(place)
    case .codeAlone(let place): onlyFactor(place)
    case .unknownAlone(let place, let by, let module): unknownFactor(place, by, module)
    case .nothingToTake(let place):
      made(
        "stack-nothing-to-take", .warning,
        "use_first_pass, and nothing before this line asks for a password: it always fails", place,
        [StackFindings.manual])
    case .jumpPastEnd(let place):
      made(
        "stack-jump", .warning, "its jump leads past the end of the stack, which fails there",
        place, [.advice("pam.d(5)")])
    case .jumpedOver(let place, let by, let module):
      made(
        "stack-jumped-over", .error,
        "the jump of \(module) at \(by.text) counts this line, and leads to a refusal", place,
        [.advice("make that jump one longer, or put this line where no jump counts it")],
        .locksOut("whom \(module) lets pass from \(name)"))
    case .askedTwice(let first, let second): askedTwice(first, second)
    case .wrongPasswordReaches(let place): wrongPassword(reaches: place)
    case .ignoreIsDenied(let phase, let place): ignoreIsDenied(phase, place)
    case .enrollWithoutLine(let place, let phase): enroll(at: place, without: phase)
    case .accountNotFirst(let place, let after, let isSkipped):
      isSkipped ? accountSkipped(place, after) : nil
    case .sessionSkipped(let place): sessionSkipped(place)
    case .enrollWithoutFirstFactor(let place): noFirstFactor(place)
    case .wrongPasswordEnrolls(let place, let by): wrongPasswordEnrolls(place, by)
    case .enrollWithFirstPass(let place, let word): firstPass(place, word)
    case .demandForbidden(let place): demandForbidden(place)
    }
  }

  private func made(
    _ id: String, _ severity: Severity, _ text: String, _ place: StackLocation?, _ fixes: [Fix],
    _ effect: Effect? = nil
  ) -> Finding {
    let place = place.map { FileLocation(file: $0.file, line: $0.line > 0 ? $0.line : nil) }
    return Finding(
      id: id, area: area, severity: severity, text: text, place: place, fixes: fixes, effect: effect
    )
  }

  /// The line at a place, with other words or another control.
  private func line(
    at place: StackLocation, control: String = "required", without word: String? = nil
  )
    -> Fix
  {
    let found = lines.lines.first { $0.place == FileLocation(file: place.file, line: place.line) }
    let words = (found?.words ?? []).filter { $0 != word && !ModuleLines.Line.isUnknown($0) }
    let module = found?.path ?? ModuleFacts.name
    let phase = found?.phase.rawValue ?? "auth"
    return .line(([phase, control, module] + words).joined(separator: " "))
  }

  private static let manual = Fix.advice("pam_sallyport(8), STACKS")

  // MARK: the files

  private func fault(_ fault: StackFault) -> Finding {
    made(
      "stack-fault", fault.problem.isFatal ? .error : .warning, fault.problem.text, fault.place,
      [.advice("pam.d(5)")],
      fault.problem.isFatal ? .locksOut("everybody from \(name)") : nil)
  }

  /// Our own is told of among the modules.
  private func missing(_ module: String, _ place: StackLocation) -> Finding? {
    if module.hasSuffix(ModuleFacts.name) { return nil }
    return made(
      "stack-module", .warning, "\(module) is not there: its line fails", place,
      [.advice("install its package, or take the line out")])
  }

  // MARK: who passes

  private func nobody(passes phase: PAMPhase) -> Finding {
    made(
      "stack-shut", .error, "whatever is typed, the \(phase.rawValue) stack ends with a refusal",
      nil, [StackFindings.manual], .locksOut("everybody from \(name)"))
  }

  private var notAsked: Finding {
    made(
      "service-unasked", .error,
      "no auth line names \(ModuleFacts.name): nobody is asked for a code",
      nil, [.command("sallyport pam enable \(shellQuoted(name))")],
      .letsIn("whoever has the password in \(name)"))
  }

  /// By a file that it includes, that is no mistake of anybody's.
  private func authNeverRuns(_ place: StackLocation?) -> Finding {
    let text = "\(name) never runs the auth phase: nobody can be asked for a code"
    if let place, place.file != service.file { return .ok("service-no-auth", area, text) }
    return made(
      "service-no-auth", .warning, text, place,
      [
        place.map { _ in .command("sallyport pam disable \(shellQuoted(name))") }
          ?? StackFindings.manual
      ])
  }

  private var anew: Fix {
    let quoted = shellQuoted(name)
    return .command("sallyport pam disable \(quoted) && sallyport pam enable \(quoted)")
  }

  /// OpenVPN's plugin answers each prompt by itself where its line names them.
  private func secondPrompt(_ place: StackLocation, _ other: StackLocation, _ module: String)
    -> Finding
  {
    let isOpenVPN = name == "openvpn"
    return made(
      "stack-one-field", isOpenVPN ? .warning : .error,
      "\(name) has one answer for every prompt, and \(module) at \(other.text) asks too"
        + (isOpenVPN ? ": right only where the plugin's line names the prompts" : ""),
      place, place.file == service.file ? [anew, StackFindings.manual] : [StackFindings.manual],
      isOpenVPN ? nil : .locksOut("everybody from \(name)"))
  }

  private func around(_ id: String, _ text: String, _ place: StackLocation, _ advice: Fix?)
    -> Finding
  {
    made(
      id, .error, text, place, [advice ?? StackFindings.manual],
      .letsIn("whoever has the password in \(name)"))
  }

  /// Told with the line that does it.
  private func isSkipped(_ line: StackLocation) -> Bool {
    service.stack.contains { found in
      if case .skipped(line, _, _, _) = found { return true }
      return false
    }
  }

  private func skipped(
    _ place: StackLocation, _ by: StackLocation, _ module: String, _ answer: PAMCode
  ) -> Finding {
    around(
      "stack-skipped",
      "a login succeeds without this line: \(module) ends the stack before it, "
        + "at \(by.text)", place, .advice("put it before \(by.text), or make that one required"))
  }

  private func notCounted(_ place: StackLocation) -> Finding {
    made(
      "stack-uncounted", .error, "a login succeeds with a wrong code: this line does not decide",
      place, [line(at: place)], .letsIn("whoever has the password in \(name)"))
  }

  /// Before sshd asked for anything else, or in any other program.
  private func onlyFactor(_ place: StackLocation) -> Finding? {
    if sshdAsksBefore { return nil }
    return made(
      "stack-only-factor", .error,
      "the code is all that has to be right: whoever holds the phone gets in", place,
      [.advice("put it behind a line that asks for the password, and fails where that is wrong")])
  }

  /// In every way to the auth stack, which sshd runs for two of its methods.
  private var sshdAsksBefore: Bool {
    let asking: Set = ["keyboard-interactive", "password"]
    let ways = (ssh?.ways ?? []).filter { !asking.isDisjoint(with: $0) }
    return ssh != nil && ways.allSatisfy { way in way.first.map { !asking.contains($0) } ?? false }
  }

  private func unknownFactor(_ place: StackLocation, _ by: StackLocation, _ module: String)
    -> Finding?
  {
    if sshdAsksBefore { return nil }
    return made(
      "stack-unknown-factor", .unseen,
      "whether \(module) at \(by.text) checks a password is not known; "
        + "if it does not, the code is all that has to be right", place, [StackFindings.manual])
  }

  /// Where the policy sets it.
  private var idleRemember: Finding? {
    guard let idle = service.idleRemember, service.policy.remembers,
      idle.isOneField || !sshdAsksBefore
    else { return nil }
    return made("remember-idle", .warning, idle.text, idle.place, [.advice(rememberPage)])
  }

  private let rememberPage = "pam_sallyport(8), Remembered origins"

  private func askedTwice(_ first: StackLocation, _ second: StackLocation) -> Finding {
    made(
      "stack-twice", .warning, "two codes are asked for, and each is good once", second,
      [.advice("take this line out, or the one at \(first.text)")])
  }

  private func wrongPassword(reaches place: StackLocation) -> Finding {
    made(
      "stack-wrong-password", .warning,
      "a wrong password still reaches the code's prompt: a stranger can spend the budget", place,
      [StackFindings.manual])
  }

  private func ignoreIsDenied(_ phase: PAMPhase, _ place: StackLocation) -> Finding? {
    if phase == .auth {
      let isRemembering = service.policy.remembers && service.idleRemember == nil
      guard
        lines.isVoluntary || isRemembering
          || service.policy.unenrolled.contains(where: { $0.action == .pass })
      else { return nil }
      return made(
        "stack-ignore", .error, "whoever is not asked is refused: no other line says yes", place,
        [.advice("auth required pam_permit.so after it, behind a forced key only")],
        .locksOut(
          isRemembering
            ? "whose place is remembered from \(name)" : "the unenrolled from \(name)"))
    }
    return made(
      "stack-ignore", .error, "no other line of the \(phase.rawValue) stack says yes", place,
      [.advice("\(phase.rawValue) required pam_permit.so after it")],
      .locksOut("everybody from \(name)"))
  }

  // MARK: enroll and demand

  private func enroll(at place: StackLocation, without phase: PAMPhase) -> Finding {
    let isAccount = phase == .account
    let added = Fix.add(
      "\(phase.rawValue) required \(lines.lines.first?.path ?? ModuleFacts.name)")
    let text =
      isAccount
      ? "enroll without its account line: the unenrolled are let in and never enrolled"
      : "enroll without its session line: nothing guards against a missing account line"
    var found = made(
      isAccount ? "enroll-account" : "enroll-session", isAccount ? .error : .warning,
      "\(text) (\(place.text))", nil, [added],
      isAccount ? .letsIn("the unenrolled in \(name)") : nil)
    found.place = FileLocation(file: service.file ?? place.file)
    return found
  }

  private var matters: Bool { lines.saysDemand || lines.enrolls }

  private func accountSkipped(_ place: StackLocation, _ after: StackLocation) -> Finding? {
    guard matters else { return nil }
    return made(
      "account-skipped", .error, "a login succeeds without this line: it is not first", place,
      [.advice("put it before \(after.text)")],
      .letsIn(
        lines.saysDemand
          ? "the enrolled who were not asked, and the unenrolled, in \(name)"
          : "the unenrolled in \(name)"))
  }

  private func sessionSkipped(_ place: StackLocation) -> Finding? {
    guard matters else { return nil }
    return made(
      "session-skipped", .warning, "a session opens without this line", place,
      [.advice("put it first among the session lines")])
  }

  /// Behind a key that sshd asked for, `enroll` stands alone with right.
  private func noFirstFactor(_ place: StackLocation) -> Finding? {
    let ways = (ssh?.ways ?? []).filter { $0.contains("keyboard-interactive") }
    if !ways.isEmpty, ways.allSatisfy({ $0.first != "keyboard-interactive" }) { return nil }
    return made(
      "enroll-first-factor", .warning,
      "nobody can enroll here: nothing asks for a password before this line", place,
      [StackFindings.manual])
  }

  private func wrongPasswordEnrolls(_ place: StackLocation, _ by: StackLocation?) -> Finding {
    let who = by.map { "; \($0.text) says yes" } ?? ""
    return made(
      "enroll-wrong-password", .error,
      "a stranger with a wrong password can enroll a phone of his own\(who)", place,
      [line(at: place, without: "enroll"), StackFindings.manual],
      .letsIn("whoever knows the name of an unenrolled user in \(name)"))
  }

  private func firstPass(_ place: StackLocation, _ word: String) -> Finding {
    made(
      "enroll-first-pass", .error, "enroll and \(word) do not go together", place,
      [line(at: place, without: "enroll"), line(at: place, without: word)],
      .letsIn("whoever knows the name of an unenrolled user in \(name)"))
  }

  private func demandForbidden(_ place: StackLocation) -> Finding {
    made(
      "demand-forbidden", .error, "demand where nobody sits in front: it is refused", place,
      [line(at: place, without: "demand")], .locksOut("whatever runs without a person in \(name)"))
  }

  // MARK: words

  private func unknownWord(_ line: ModuleLines.Line) -> Finding? {
    guard let unknown = line.unknownWord else { return nil }
    let place = StackLocation(file: line.place.file, line: line.place.line ?? 0)
    return made(
      "line-word", .warning,
      "\"\(unknown)\" means nothing here, so this line works under the strict policy", place,
      [self.line(at: place, without: unknown)])
  }
}
