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
      service.stack.compactMap(finding) + [idleRemember, afterKey].compactMap { $0 }
      + words
    let isFine = found.isEmpty && !lines.lines.isEmpty
    return found
      + (isFine ? [.ok("stack", area, "no way through the stacks leaves the code out")] : [])
  }

  private func finding(_ found: StackFinding) -> Finding? {
    let fact = found.fact
    return switch found {
    case .fault(let fault): self.fault(fault)
    case .moduleMissing(let location, let module): missing(module, location, fact)
    case .nobodyPasses: nobodyPasses(fact)
    case .tooComplex: .unseen("stack-complex", area, fact)
    case .notAsked: lines.demands ? nil : notAsked(fact)
    case .authNeverRuns(let location): authNeverRuns(location, fact)
    case .secondPrompt(let location, _, _): secondPrompt(location, fact)
    case .neverReached(let location):
      lines.demands || isSkipped(location) ? nil : around("stack-unreached", fact, location, nil)
    case .skipped(let location, let by, _, _): lines.demands ? nil : skipped(location, by, fact)
    case .notCounted(let location): notCounted(location, fact)
    case .codeAlone(let location): onlyFactor(location, fact)
    case .unknownAlone(let location, _, _):
      sshdAsksBefore
        ? nil : made("stack-unknown-factor", .unseen, fact, location, [StackFindings.manual])
    case .nothingToTake(let location):
      made("stack-nothing-to-take", .warning, fact, location, [StackFindings.manual])
    case .jumpPastEnd(let location):
      made("stack-jump", .warning, fact, location, [.advice("pam.d(5)")])
    case .jumpedOver(let location, _, let module):
      made(
        "stack-jumped-over", .error, fact, location,
        [.advice("make that jump one longer, or put this line where no jump counts it")],
        .locksOut("whom \(module) lets pass from \(name)"))
    case .askedTwice(let first, let second):
      made(
        "stack-twice", .warning, fact, second,
        [.advice("remove this line, or the one at \(first.text)")])
    case .wrongPasswordReaches(let location):
      made(
        "stack-wrong-password", .warning, fact, location,
        enabledAgain + [StackFindings.manual])
    case .ignoreIsDenied(let phase, let location): ignoreIsDenied(phase, location, fact)
    case .enrollWithoutLine(let location, let phase): enroll(at: location, without: phase, fact)
    case .accountNotFirst(let location, let after, let isSkipped):
      isSkipped ? accountSkipped(location, after, fact) : nil
    case .sessionSkipped(let location): sessionSkipped(location, fact)
    case .enrollWithoutFirstFactor(let location): noFirstFactor(location, fact)
    case .wrongPasswordEnrolls(let location, _): wrongPasswordEnrolls(location, fact)
    case .enrollWithFirstPass(let location, let word): firstPass(location, word, fact)
    case .demandForbidden(let location): demandForbidden(location, fact)
    }
  }

  private func made(
    _ id: String, _ severity: Severity, _ text: String, _ location: StackLocation?, _ fixes: [Fix],
    _ effect: Effect? = nil
  ) -> Finding {
    let location = location.map { FileLocation(file: $0.file, line: $0.line > 0 ? $0.line : nil) }
    return Finding(
      id: id, area: area, severity: severity, text: text, location: location, fixes: fixes,
      effect: effect
    )
  }

  /// The line at a location, with an argument removed or another control.
  private func line(
    at location: StackLocation, control: String = "required", without word: String? = nil
  )
    -> Fix
  {
    let found = lines.lines.first {
      $0.location == FileLocation(file: location.file, line: location.line)
    }
    let words = (found?.words ?? []).compactMap(StackFindings.meant).filter { $0 != word }
    let module = found?.path ?? ModuleFacts.name
    let phase = found?.phase.rawValue ?? "auth"
    return .line(([phase, control, module] + words).joined(separator: " "))
  }

  /// An argument as it was meant; nil if that is not known.
  private static func meant(_ word: String) -> String? {
    guard ModuleLines.Line.isUnknown(word) else { return word }
    guard let meant = ModuleLines.Line.meant(by: word), !meant.hasValue else { return nil }
    return "\(meant.name)"
  }

  private static let manual = Fix.advice("pam_sallyport(8), STACKS")

  // MARK: the files

  private func fault(_ fault: StackFault) -> Finding {
    made(
      "stack-fault", fault.problem.isFatal ? .error : .warning, fault.problem.text, fault.location,
      isGateMissing(fault.problem) ? gateBack : [.advice("pam.d(5)")],
      fault.problem.isFatal ? .locksOut("everybody from \(name)") : nil)
  }

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

  /// A missing file of our own is reported among the modules.
  private func missing(_ module: String, _ location: StackLocation, _ fact: String) -> Finding? {
    if module.hasSuffix(ModuleFacts.name) { return nil }
    return made(
      "stack-module", .warning, fact, location,
      [.advice("install its package, or remove the line")])
  }

  // MARK: who passes

  private func nobodyPasses(_ fact: String) -> Finding {
    made(
      "stack-shut", .error, fact, nil, isGateMissing ? gateBack : [StackFindings.manual],
      .locksOut("everybody from \(name)"))
  }

  private func notAsked(_ fact: String) -> Finding {
    made(
      "service-unasked", .error, fact, nil,
      [.command(sallyportCommand("pam enable", on: [name]))],
      .letsIn("whoever has the password in \(name)"))
  }

  /// If the line comes from a file that the service includes, it is not a mistake.
  private func authNeverRuns(_ location: StackLocation?, _ fact: String) -> Finding {
    if let location, location.file != service.file { return .ok("service-no-auth", area, fact) }
    return made(
      "service-no-auth", .warning, fact, location,
      [
        location.map { _ in .command(sallyportCommand("pam disable", on: [name])) }
          ?? StackFindings.manual
      ])
  }

  /// One write, so that the service is never without our lines; they enroll if they did.
  private var enabledAgain: [Fix] {
    guard service.isBetterEnabledAgain else { return [] }
    let enroll = lines.enrolls ? "--enroll" : "--no-enroll"
    let sshd = name == "sshd" ? " --sshd none" : ""
    return [.command(sallyportCommand("pam enable", on: [name], [enroll + sshd]))]
  }

  /// OpenVPN's plugin answers each prompt separately if its line names the prompts.
  private func secondPrompt(_ location: StackLocation, _ fact: String) -> Finding {
    let isOpenVPN = name == "openvpn"
    return made(
      "stack-one-field", isOpenVPN ? .warning : .error,
      fact + (isOpenVPN ? ": works only if the plugin's line names the prompts" : ""), location,
      enabledAgain + [StackFindings.manual],
      isOpenVPN ? nil : .locksOut("everybody from \(name)"))
  }

  private func around(_ id: String, _ text: String, _ location: StackLocation, _ advice: Fix?)
    -> Finding
  {
    made(
      id, .error, text, location, [advice ?? StackFindings.manual],
      .letsIn("whoever has the password in \(name)"))
  }

  /// Reported with the line that causes it.
  private func isSkipped(_ line: StackLocation) -> Bool {
    service.stack.contains { found in
      if case .skipped(line, _, _, _) = found { return true }
      return false
    }
  }

  private func skipped(_ location: StackLocation, _ by: StackLocation, _ fact: String) -> Finding {
    var found = around(
      "stack-skipped", fact, location,
      .advice("put it before \(by.text), or make that one required"))
    found.fixes = enabledAgain + found.fixes
    return found
  }

  private func notCounted(_ location: StackLocation, _ fact: String) -> Finding {
    made(
      "stack-uncounted", .error, fact, location, [line(at: location)],
      .letsIn("whoever has the password in \(name)"))
  }

  /// Unless sshd has asked for another factor before.
  private func onlyFactor(_ location: StackLocation, _ fact: String) -> Finding? {
    if sshdAsksBefore { return nil }
    return made(
      "stack-only-factor", .error, fact, location,
      [.advice("put it after a line that asks for the password, and fails if that is wrong")])
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
    return made("remember-idle", .warning, idle.text, idle.location, [.advice(rememberPage)])
  }

  /// sshd alone says that a key was accepted, also where the line comes from an included file.
  private var afterKey: Finding? {
    guard let line = lines.of(.auth).first(where: { $0.has("after-key") }), !service.policy.isSSHD
    else { return nil }
    return made(
      "stack-after-key", .error,
      "after-key refuses everybody in \(name), which sshd_services of the policy does not name",
      StackLocation(file: line.location.file, line: line.location.line ?? 0),
      [.advice("give \(name) lines that do not come from this file, without after-key")],
      .locksOut("everybody from \(name)"))
  }

  private let rememberPage = "pam_sallyport(8), Remembered origins"

  private func ignoreIsDenied(_ phase: PAMPhase, _ location: StackLocation, _ fact: String)
    -> Finding?
  {
    if phase == .auth {
      let isRemembering = service.policy.remembers && service.idleRemember == nil
      guard
        lines.isVoluntary || isRemembering
          || service.policy.unenrolled.contains(where: { $0.action == .pass })
      else { return nil }
      return made(
        "stack-ignore", .error, fact, location,
        [.advice("auth required pam_permit.so after it, behind a forced key only")],
        .locksOut(
          isRemembering
            ? "anyone whose origin is remembered, from \(name)" : "the unenrolled from \(name)"))
    }
    return made(
      "stack-ignore", .error, fact, location,
      [.advice("\(phase.rawValue) required pam_permit.so after it")],
      .locksOut("everybody from \(name)"))
  }

  // MARK: enroll and demand

  private func enroll(at location: StackLocation, without phase: PAMPhase, _ fact: String)
    -> Finding
  {
    let isAccount = phase == .account
    let added = Fix.add(
      "\(phase.rawValue) required \(lines.lines.first?.path ?? ModuleFacts.name)")
    var found = made(
      isAccount ? "enroll-account" : "enroll-session", isAccount ? .error : .warning,
      "\(fact) (\(location.text))", nil, [added],
      isAccount ? .letsIn("the unenrolled in \(name)") : nil)
    found.location = FileLocation(file: service.file ?? location.file)
    return found
  }

  private var matters: Bool { lines.saysDemand || lines.enrolls }

  private func accountSkipped(_ location: StackLocation, _ after: StackLocation, _ fact: String)
    -> Finding?
  {
    guard matters else { return nil }
    return made(
      "account-skipped", .error, fact, location, [.advice("put it before \(after.text)")],
      .letsIn(
        lines.saysDemand
          ? "the enrolled who were not asked, and the unenrolled, in \(name)"
          : "the unenrolled in \(name)"))
  }

  private func sessionSkipped(_ location: StackLocation, _ fact: String) -> Finding? {
    guard matters else { return nil }
    return made(
      "session-skipped", .warning, fact, location,
      [.advice("put it first among the session lines")])
  }

  /// After a key that sshd asked for, `enroll` needs no password line.
  private func noFirstFactor(_ location: StackLocation, _ fact: String) -> Finding? {
    let ways = (ssh?.ways ?? []).filter { $0.contains("keyboard-interactive") }
    if !ways.isEmpty, ways.allSatisfy({ $0.first != "keyboard-interactive" }) { return nil }
    return made("enroll-first-factor", .warning, fact, location, [StackFindings.manual])
  }

  private func wrongPasswordEnrolls(_ location: StackLocation, _ fact: String) -> Finding {
    made(
      "enroll-wrong-password", .error, fact, location,
      [line(at: location, without: "enroll"), StackFindings.manual],
      .letsIn("whoever knows the name of an unenrolled user in \(name)"))
  }

  private func firstPass(_ location: StackLocation, _ word: String, _ fact: String) -> Finding {
    made(
      "enroll-first-pass", .error, fact, location,
      [line(at: location, without: "enroll"), line(at: location, without: word)],
      .letsIn("whoever knows the name of an unenrolled user in \(name)"))
  }

  private func demandForbidden(_ location: StackLocation, _ fact: String) -> Finding {
    made(
      "demand-forbidden", .error, fact, location, [line(at: location, without: "demand")],
      .locksOut("whatever runs without a person in \(name)"))
  }

  // MARK: words

  fileprivate var words: [Finding] { lines.lines.compactMap(unknownWord) }

  private func unknownWord(_ line: ModuleLines.Line) -> Finding? {
    guard let unknown = line.refusingWord ?? line.unknownWord else { return nil }
    let location = StackLocation(file: line.location.file, line: line.location.line ?? 0)
    let meant = ModuleLines.Line.meant(by: unknown)
    let word = meant.map { ", meant as \"\($0.name)\"" } ?? ""
    if let meant, line.refusingWord != nil {
      return made(
        "line-word", .error,
        "unknown argument \"\(unknown)\"\(word): this line refuses everybody", location,
        [.advice("write \(meant.name)\(meant.hasValue ? "/PATH" : "")")],
        .locksOut("everybody from \(name)"))
    }
    return made(
      "line-word", .warning,
      "unknown argument \"\(unknown)\"\(word): the strict policy applies", location,
      [self.line(at: location)])
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
