import ArgumentParser
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport pam enable`
struct PamEnable: Verb {
  static let configuration = CommandConfiguration(
    commandName: "enable", abstract: "Ask for a second factor in a service.",
    discussion: """
      Adds three lines to each service's file in /etc/pam.d, after checking the resulting stacks: \
      nothing is written if nobody could pass, or if a wrong password could enroll. \
      pam_sallyport(8) explains the arguments of the lines. In sshd it first sets what sshd asks \
      for, and goes on only once the sshd that runs has taken it.
      """)

  @OptionGroup var options: PamOptions

  @Flag(
    inversion: .prefixedNo,
    help: "Let users enroll at login as the policy says. (default: if the stack allows it)")
  var enroll: Bool?

  @Flag(help: "Also ask users whom a key, a ticket or NOPASSWD let past the password.")
  var demand = false

  @Flag(help: "Let unenrolled users in, where the policy file sets nothing.")
  var nullok = false

  @Option(
    help: ArgumentHelp(
      "What sshd asks for, in sshd alone. "
        + "(default: password+code, or a key as well where sshd asks for one)",
      valueName: "method"))
  var sshd: SSHMethod?

  @Option(
    help: ArgumentHelp(
      "With --sshd match: the group of those who have a key. (default: those who have one now)",
      valueName: "group"))
  var keyGroup: String?

  @Flag(help: "Write it even if nobody could log in afterwards, or nobody with a code.")
  var force = false

  @Option(
    help: ArgumentHelp(
      "Take everything back after this time, such as 10m, unless confirmed by pam confirm.",
      valueName: "time"),
    transform: RevertDelay.init(typed:))
  var revertIn: RevertDelay?

  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if sshd != nil, !options.services.contains("sshd") {
      throw ValidationError("--sshd is for the service sshd")
    }
    if let keyGroup {
      guard sshd == .match else { throw ValidationError("--key-group is for --sshd match") }
      guard SSHPeople.mayName(keyGroup) else {
        throw ValidationError("no Match block can name this group")
      }
    }
  }

  func run(in context: Context) throws(CommandError) {
    try context.needRoot("pam enable \(options.words)")
    if options.services.contains("sshd") { context.machine.makeSSHDirectory() }
    let facts = try context.accessFacts(shared)
    let chosen = options.chosen(by: facts.sudoers, in: context)
    var (asking, accepted): ([String], [String]) = ([], [])
    var plans = try plans(chosen, facts, context, asking: &asking, accepted: &accepted)
    let output = context.output(shared)
    let change = foresee(&plans, facts, context)
    let changing = plans.filter { !$0.changesNothing }
    let quiet = plans.filter(\.changesNothing).map(\.service) + asking
    asking = accepted + quiet.map { "\($0) already asks for a code." }
    let method = plans.lazy.filter(\.changesNothing).compactMap { $0.side?.method }.first
    if sshd == nil, let method, method != .passwordCode {
      asking.append("--sshd \(method.rawValue) stays.")
    }
    if !options.dryRun {
      context.keepMissingRecords(of: quiet)
      // The words were typed that stand there.
      for plan in plans where plan.changesNothing { context.keepNewLines(of: plan.service) }
    }
    guard !changing.isEmpty else {
      let text = (asking + ["Nothing was changed."]).joined(separator: " ")
      return output.answerEach(answers(plans), text)
    }
    for line in asking + chosen.flatMap({ $0.notes(in: context.stacks) }) { output.say(line) }
    if let text = facts.unseenPeople { output.warn(text) }
    if !force {
      for plan in changing {
        if let obstacle = plan.obstacle(facts) { throw obstacle }
        let unit = ServiceUnit(of: plan.service, store: shared.path, on: context.machine)
        if let unit, unit.isShut {
          throw CommandError(.configuration, unit.words, hints: [unit.opening])
        }
      }
    }
    for plan in changing {
      output.say(plan.text(width: output.width, proposes: !options.isUnseen))
    }
    change?.tell(output, isAsked: !options.isUnseen)
    if options.dryRun {
      return output.answerEach(answers(plans), "Nothing was written (--dry-run).")
    }
    if !options.yes { try output.insist(question(changing), or: .nothingChanged) }
    let lock = try context.lockPam()
    if let revertIn { try context.arm(changing, revertIn) }
    let written: [StackWriter.Written?]
    do throws(CommandError) {
      written = try context.recorded(.pamEnable, of: changing.map(\.service)) {
        () throws(CommandError) in try context.writeAll(changing.map { $0.step(in: context) })
      }
    } catch {
      if revertIn != nil { context.disarm(changing) }
      throw error
    }
    lock.end()
    let kept = zip(changing.map(\.service), written)
    let backups = kept.reduce(into: [:]) { $0[$1.0] = $1.1?.backup }
    output.answerEach(answers(plans, backups), advice(changing, backups))
  }

  /// Who gets in otherwise after this; nil if nothing changes.
  private func foresee(_ plans: inout [PamPlan], _ facts: AccessFacts, _ context: Context)
    -> AccessChange?
  {
    if plans.allSatisfy(\.changesNothing) { return nil }
    var changed = facts.assuming(plans.map(\.change).reduce(context.stacks) { $0.assuming($1) })
    if let text = plans.compactMap({ $0.side?.text }).first {
      changed = changed.assuming(sshFile: text)
    }
    let change = context.accessChange(facts, to: changed)
    for index in plans.indices {
      plans[index].loss = plans[index].forecast.map { AccessLoss(change, at: $0.services) }
    }
    return change
  }

  /// Each service as if those before it were written. `asking`: those of the same program that
  /// ask already, in a way of their own. `accepted`: what was agreed to of others.
  private func plans(
    _ chosen: [ChosenServices], _ facts: AccessFacts, _ context: Context,
    asking: inout [String], accepted: inout [String]
  ) throws(CommandError) -> [PamPlan] {
    var directory = context.stacks
    var plans: [PamPlan] = []
    for (word, service) in chosen.flatMap({ one in one.services.map { (one.typed, $0) } }) {
      do throws(CommandError) {
        let plan = try plan(service, in: directory, facts, context)
        if plan.changesNothing, !options.yes, !options.dryRun,
          context.machine.isPassedBy(service)
        {
          accepted.append(try accept(service, context))
          continue
        }
        directory = directory.assuming(plan.change)
        plans.append(plan)
      } catch {
        if case .stack(.enabledElsewhere(let location)) = error.cause,
          plans.contains(where: { $0.change.path == location.file })
        {
          continue  // It includes the file of another one, and is turned on with it.
        }
        if case .stack(.enabledAlready) = error.cause, !options.yes, !options.dryRun,
          !context.machine.loosening(of: service).isEmpty
        {
          accepted.append(try accept(service, context))
          continue
        } else if options.services.contains(service) {
          throw error
        }
        guard error.isOn else {
          let only = sallyportCommand("pam enable", on: [word], ["--only"])
          let hint = "\(only)  # leaves \(printable(service.utf8)) without a code"
          throw CommandError {
            var message = error.message($0)
            message.hints.append(hint)
            return message
          }
        }
        asking.append(service)
      }
    }
    return plans
  }

  /// Records what somebody else has changed, once all of it was shown and agreed to. Returns what
  /// to tell of it.
  private func accept(_ service: String, _ context: Context) throws(CommandError) -> String {
    let output = context.output(shared)
    let known = context.machine.serviceRecord(of: service).value
    let now = (try? context.time()) ?? UnixTime(0)
    let shown = context.machine.newServiceRecord(of: service, at: now)
    for text in context.machine.loosening(of: service) {
      output.say("\(printable(text.utf8, limit: 600)), unlike what was recorded.")
    }
    let disable = sallyportCommand("pam disable", on: [service])
    output.say("As it was: \(disable), then enable it again.")
    try output.insist(
      "Leave it as it is, and expect that from now on?", or: .nothingChanged, unless: [])
    let lock = try context.lockPam()
    guard let shown, shown == context.machine.newServiceRecord(of: service, at: now),
      known == context.machine.serviceRecord(of: service).value
    else { throw .stack(.changedMeanwhile(path: "/etc/pam.d/\(service)")) }
    context.keep(shown, of: service)
    lock.end()
    return "\(service) is left as it is, and recorded so."
  }

  private func plan(
    _ service: String, in directory: StackDirectory, _ facts: AccessFacts, _ context: Context
  ) throws(CommandError) -> PamPlan {
    let side = service == "sshd" ? try sshSide(facts, context) : nil
    let lines = StackOptions(
      enroll: enroll, demand: demand, nullok: nullok, afterKey: side?.method == .keyCode,
      keyOrPassword: side?.method.isMixed == true,
      store: shared.store == nil ? nil : shared.path)
    let change = try stacking { () throws(StackRefusal) in
      try StackPlanner(service, in: directory).enable(lines)
    }
    let isSet = try asSSH { () throws(SSHTrouble) in try side?.changesNothing() ?? true }
    var plan = PamPlan(change: change, side: side, isSet: isSet)
    if !plan.changesNothing {
      plan.forecast = try ForecastReport(
        of: change, side, sudoers: facts.sudoers, nullok: nullok, shared, context)
    }
    return plan
  }

  private func sshSide(_ facts: AccessFacts, _ context: Context)
    throws(CommandError) -> SSHSide?
  {
    let enrolled = try ForecastReport.enrolled(in: context.store(shared))
    return try asSSH { () throws(SSHTrouble) in
      try SSHSide(
        sshd, keyGroup: keyGroup, facts, enrolled: enrolled, isDryRun: options.dryRun, context)
    }
  }

  private func question(_ plans: [PamPlan]) -> String {
    let does = plans.allSatisfy(\.isSet) ? "Write this?" : "Write this and reload sshd?"
    let changes = plans.map(\.change).filter { !$0.changesNothing }
    let new = changes.filter { $0.before == nil }
    if changes.isEmpty { return does }
    if changes.count > 1 {
      return "\(does) The old files are kept beside them, dated."
    }
    return new.first.map { "\(does) \($0.path) is new." }
      ?? "\(does) The old file is kept beside it, dated."
  }

  private struct Answer: Encodable {
    let service, file: String
    let changed: Bool
    @OrNull var backup: String?
    let lines: [LineFacts]
    let findings, lockedOut: [String]
    @OrNull var sshd: SSHSideFacts?
  }

  /// `backups`: by service; nil if nothing was written.
  private func answers(_ plans: [PamPlan], _ backups: [String: String]? = nil) -> [Answer] {
    plans.map { plan in
      Answer(
        service: plan.service, file: plan.change.path,
        changed: backups != nil && !plan.changesNothing, backup: backups?[plan.service],
        lines: plan.change.analysis.lines.map(LineFacts.init),
        findings: plan.change.analysis.findings.map(\.text),
        lockedOut: plan.loss?.lockedOutNames ?? [], sshd: plan.side?.facts)
    }
  }

  private func advice(_ plans: [PamPlan], _ backups: [String: String]) -> String {
    let kept = plans.compactMap { backups[$0.service] }.map { "The old file: \($0)" }
    let trials = plans.map { "      \($0.trial)" }
    let undo = "Undo: sallyport pam disable \(options.words)"
    if let revertIn {
      let time = durationText(UInt64(revertIn.seconds))
      let head = "Done, and taken back in \(time) unless you confirm it from a new login:"
      return (kept + [head] + trials + ["      sudo sallyport pam confirm"]).joined(separator: "\n")
    }
    let head = "Done. Keep this shell open, and try it from another terminal now:"
    return (kept + [head] + trials + [undo]).joined(separator: "\n")
  }
}

extension CommandError {
  /// The service asks already, by other words or another file.
  fileprivate var isOn: Bool {
    if case .stack(.enabledAlready) = cause { return true }
    if case .stack(.enabledElsewhere) = cause { return true }
    return false
  }
}
