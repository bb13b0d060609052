import PAMStack
import SallyportCore
import SallyportLogin
import SallyportSupport

/// What the walk through a service's stacks means for its logins. Pure.
struct StackFindings {
  private let service: ServiceFacts
  private let lines: ModuleLines
  private let ssh: SSHSettings?
  private let area: Area
  private var name: String { service.name }

  /// `ssh` are sshd's settings, if the service is sshd's.
  init(_ service: ServiceFacts, ssh: SSHSettings?) {
    self.service = service
    self.ssh = service.name == "sshd" ? ssh : nil
    lines = service.lines
    area = .service(service.name)
  }

  var all: [Finding] {
    let found =
      service.stack.compactMap(finding) + [idleRemember, afterKey, unit].compactMap { $0 }
      + words
    let isFine = found.isEmpty && !lines.lines.isEmpty
    return found
      + (isFine ? [.ok("stack", area, "no way through the stacks leaves the code out")] : [])
  }

  private var unit: Finding? {
    guard let unit = service.unit, unit.isShut, !lines.lines.isEmpty else { return nil }
    return .error(
      "service-sandbox", area, unit.words, location: FileLocation(file: unit.path),
      fixes: [.command(unit.opening)],
      effect: .locksOut("everybody who is asked for a code by \(name)"))
  }

  private func finding(_ found: StackFinding) -> Finding? {
    switch found {
    case .fault(let fault):
      row(
        "stack-fault", found,
        fixes: isGateMissing(fault.problem) ? gateBack : [.advice("pam.d(5)")],
        effect: fault.problem.isFatal ? nobody : nil)
    // A missing file of our own is reported among the modules.
    case .moduleMissing(_, let module):
      module.hasSuffix(ModuleFacts.name)
        ? nil
        : row(
          "stack-module", found, fixes: [.advice("install its package, or remove the line")])
    case .nobodyPasses:
      row("stack-shut", found, fixes: isGateMissing ? gateBack : [manual], effect: nobody)
    case .tooComplex: .unseen("stack-complex", area, found.fact)
    case .notAsked:
      lines.demands
        ? nil
        : row(
          "service-unasked", found, fixes: [.command(sallyportCommand("pam enable", on: [name]))],
          effect: passwords)
    case .authNeverRuns(let location): authNeverRuns(location, found)
    case .secondPrompt: secondPrompt(found)
    case .neverReached(let location):
      lines.demands || isSkipped(location)
        ? nil : row("stack-unreached", found, fixes: [manual], effect: passwords)
    case .skipped(_, let by, _, _):
      lines.demands
        ? nil
        : row(
          "stack-skipped", found,
          fixes: enabledAgain + [.advice("put it before \(by.text), or make that one required")],
          effect: passwords)
    case .notCounted: row("stack-uncounted", found, fixes: [line(of: found)], effect: passwords)
    case .codeAlone:
      sshdAsksBefore
        ? nil
        : row(
          "stack-only-factor", found, severity: .error,
          fixes: [
            .advice("put it after a line that asks for the password, and fails if that is wrong")
          ])
    case .unknownAlone:
      sshdAsksBefore
        ? nil : row("stack-unknown-factor", found, severity: .unseen, fixes: [manual])
    case .nothingToTake: row("stack-nothing-to-take", found, fixes: [manual])
    case .jumpPastEnd: row("stack-jump", found, fixes: [.advice("pam.d(5)")])
    case .jumpedOver(_, _, let module):
      row(
        "stack-jumped-over", found,
        fixes: [.advice("make that jump one longer, or move this line out of its reach")],
        effect: .locksOut("everybody whom \(module) lets pass, from \(name)"))
    case .askedTwice(let first, _):
      row(
        "stack-twice", found, fixes: [.advice("remove this line, or the one at \(first.text)")])
    case .wrongPasswordReaches:
      row("stack-wrong-password", found, fixes: enabledAgain + [manual])
    case .ignoreIsDenied(let phase, _): ignoreIsDenied(phase, found)
    case .enrollWithoutLine(let location, let phase): enroll(at: location, without: phase, found)
    case .accountNotFirst(_, let after, let isSkipped):
      isSkipped && matters ? accountSkipped(after, found) : nil
    case .sessionSkipped:
      matters
        ? row(
          "session-skipped", found, fixes: [.advice("put it first among the session lines")])
        : nil
    case .enrollWithoutFirstFactor:
      keyComesFirst ? nil : row("enroll-first-factor", found, fixes: [manual])
    case .wrongPasswordEnrolls:
      row(
        "enroll-wrong-password", found, fixes: [line(of: found, without: "enroll"), manual],
        effect: strangers)
    case .enrollWithFirstPass(_, let word):
      row(
        "enroll-first-pass", found,
        fixes: [line(of: found, without: "enroll"), line(of: found, without: word)],
        effect: strangers)
    case .demandForbidden:
      row(
        "demand-forbidden", found, fixes: [line(of: found, without: "demand")],
        effect: .locksOut("whatever runs without a person in \(name)"))
    }
  }

  /// An error if it has an effect, unless another `severity` is given.
  private func row(
    _ id: String, _ found: StackFinding, severity: Severity? = nil, fixes: [Fix],
    effect: Effect? = nil
  ) -> Finding {
    Finding(
      id, area, found.fact, severity: severity ?? (effect == nil ? .warning : .error),
      location: found.location, fixes: fixes, effect: effect)
  }

  private var nobody: Effect { .locksOut("everybody from \(name)") }
  private var passwords: Effect { .letsIn("anybody with the password in \(name)") }
  private var strangers: Effect {
    .letsIn("anybody who knows the name of an unenrolled user in \(name)")
  }

  private func line(of found: StackFinding, without word: String? = nil) -> Fix {
    line(at: found.location, without: word)
  }

  /// The line at a place, without an argument.
  private func line(at place: FileLocation?, without word: String? = nil) -> Fix {
    let found = lines.lines.first { $0.location == place }
    let words = (found?.arguments ?? []).compactMap(StackFindings.meant).filter { $0 != word }
    let module = found?.module ?? ModuleFacts.name
    let phase = found?.phase.rawValue ?? "auth"
    return .line(([phase, "required", module] + words).joined(separator: " "))
  }

  /// An argument as it was meant; nil if that is not known.
  private static func meant(_ word: String) -> String? {
    guard ModuleLines.isUnknown(word) else { return word }
    guard let meant = ModuleLines.meant(by: word), !meant.hasValue else { return nil }
    return "\(meant.name)"
  }

  private let manual = Fix.advice("pam_sallyport(8), STACKS")

  // MARK: the files

  private var isGateMissing: Bool {
    service.stack.contains { found in
      if case .fault(let fault) = found { isGateMissing(fault.problem) } else { false }
    }
  }

  private func isGateMissing(_ problem: StackProblem) -> Bool {
    if case .cannotInclude(let file) = problem { StackGate.isFile(file) } else { false }
  }

  private var gateBack: [Fix] {
    [
      .advice("reinstall pam-sallyport, which brings that file"),
      .command(sallyportCommand("pam disable", on: [name])),
    ]
  }

  /// If the line comes from a file that the service includes, it is not a mistake.
  private func authNeverRuns(_ location: FileLocation?, _ found: StackFinding) -> Finding {
    if let location, location.file != service.file {
      return .ok("service-no-auth", area, found.fact)
    }
    let disable = Fix.command(sallyportCommand("pam disable", on: [name]))
    return row("service-no-auth", found, fixes: [location == nil ? manual : disable])
  }

  /// One write, so that the service is never without our lines; they enroll if they did.
  private var enabledAgain: [Fix] {
    guard service.isBetterEnabledAgain else { return [] }
    let enroll = lines.enrolls ? "--enroll" : "--no-enroll"
    let sshd = name == "sshd" ? " --sshd none" : ""
    return [.command(sallyportCommand("pam enable", on: [name], [enroll + sshd]))]
  }

  /// OpenVPN's plugin answers each prompt separately if its line names the prompts.
  private func secondPrompt(_ found: StackFinding) -> Finding {
    let isOpenVPN = name == "openvpn"
    return Finding(
      "stack-one-field", area,
      found.fact + (isOpenVPN ? ": works only if the plugin's line names the prompts" : ""),
      severity: isOpenVPN ? .warning : .error, location: found.location,
      fixes: enabledAgain + [manual], effect: isOpenVPN ? nil : nobody)
  }

  /// Reported with the line that causes it.
  private func isSkipped(_ line: FileLocation) -> Bool {
    service.stack.contains { found in
      if case .skipped(line, _, _, _) = found { return true }
      return false
    }
  }

  /// In every list with a method that runs the auth stack; sshd has two of them.
  private var sshdAsksBefore: Bool {
    let asking: Set = ["keyboard-interactive", "password"]
    let ways = (ssh?.ways ?? []).filter { !asking.isDisjoint(with: $0) }
    return ssh != nil && ways.allSatisfy { way in way.first.map { !asking.contains($0) } ?? false }
  }

  /// Only if the policy sets it.
  private var idleRemember: Finding? {
    guard let idle = service.idleRemember, service.policy.remembers,
      idle.isOneField || !sshdAsksBefore
    else { return nil }
    return .warning(
      "remember-idle", area, idle.text, location: idle.location,
      fixes: [.advice("pam_sallyport(8), Remembered origins")])
  }

  /// sshd alone says that a key was accepted, also where the line comes from an included file.
  private var afterKey: Finding? {
    guard let line = lines.of(.auth).first(where: { $0.has("after-key") }), !service.policy.isSSHD
    else { return nil }
    let what = line.goesOnWithoutKey ? "takes no key" : "refuses everybody"
    return .error(
      "stack-after-key", area,
      "after-key \(what) in \(name): sshd_services of the policy does not name \(name)",
      location: line.location,
      fixes: [.advice("give \(name) lines that do not come from this file, without after-key")],
      effect: line.goesOnWithoutKey ? .locksOut("those without a password from \(name)") : nobody)
  }

  private func ignoreIsDenied(_ phase: PAMPhase, _ found: StackFinding) -> Finding? {
    guard phase == .auth else {
      return row(
        "stack-ignore", found,
        fixes: [.advice("\(phase.rawValue) required pam_permit.so after it")], effect: nobody)
    }
    let isRemembering = service.policy.remembers && service.idleRemember == nil
    guard
      lines.isVoluntary || isRemembering
        || service.policy.unenrolled.contains(where: { $0.action == .pass })
    else { return nil }
    return row(
      "stack-ignore", found,
      fixes: [
        .advice("only where sshd asks for a key first: auth required pam_permit.so after this line")
      ],
      effect: .locksOut(
        isRemembering
          ? "anyone whose origin is remembered, from \(name)" : "the unenrolled from \(name)"))
  }

  // MARK: enroll and demand

  private func enroll(
    at location: FileLocation, without phase: PAMPhase, _ found: StackFinding
  ) -> Finding {
    let isAccount = phase == .account
    let added = "\(phase.rawValue) required \(lines.lines.first?.module ?? ModuleFacts.name)"
    let file = FileLocation(file: service.file ?? location.file)
    let text = "\(found.fact) (\(location.text))"
    return isAccount
      ? .error(
        "enroll-account", area, text, location: file, fixes: [.add(added)],
        effect: .letsIn("the unenrolled in \(name)"))
      : .warning("enroll-session", area, text, location: file, fixes: [.add(added)])
  }

  private var matters: Bool { lines.saysDemand || lines.enrolls }

  private func accountSkipped(_ after: FileLocation, _ found: StackFinding) -> Finding {
    row(
      "account-skipped", found, fixes: [.advice("put it before \(after.text)")],
      effect: .letsIn(
        lines.saysDemand
          ? "the enrolled who were not asked, and the unenrolled, in \(name)"
          : "the unenrolled in \(name)"))
  }

  /// After a key that sshd asked for, `enroll` needs no password line.
  private var keyComesFirst: Bool {
    let ways = (ssh?.ways ?? []).filter { $0.contains("keyboard-interactive") }
    return !ways.isEmpty && ways.allSatisfy { $0.first != "keyboard-interactive" }
  }

  // MARK: words

  fileprivate var words: [Finding] { lines.lines.compactMap(unknownWord) }

  private func unknownWord(_ line: StackEntry) -> Finding? {
    guard let unknown = line.refusingWord ?? line.unknownWord else { return nil }
    let meant = ModuleLines.meant(by: unknown)
    let word = meant.map { ", meant as \"\($0.name)\"" } ?? ""
    let text = "unknown argument \"\(unknown)\"\(word)"
    if let meant, line.refusingWord != nil {
      return .error(
        "line-word", area, "\(text): this line refuses everybody", location: line.location,
        fixes: [.advice("write \(meant.name)\(meant.hasValue ? "/PATH" : "")")], effect: nobody)
    }
    return .warning(
      "line-word", area, "\(text): the strict policy applies", location: line.location,
      fixes: [self.line(at: line.location)])
  }
}

extension ModuleLines {
  /// What is wrong with the words of the lines, in the words of doctor.
  package func wordFaults(in service: String) -> [String] {
    StackFindings(ServiceFacts(name: service, lines: self), ssh: nil).words.map { found in
      "\(found.text)\(found.location.map { " (\($0.text))" } ?? "")"
    }
  }
}
