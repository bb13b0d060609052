import ArgumentParser
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSystem
import SallyportText

/// `sallyport pam`
struct Pam: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show, turn on and turn off the second factor of services.",
    subcommands: [PamStatus.self, PamEnable.self, PamDisable.self])
}

/// The options of the verbs that write.
struct PamOptions: ParsableArguments {
  @Argument(help: ArgumentHelp("The service: a name in /etc/pam.d.", valueName: "service"))
  var service: String

  @Flag(help: "Show what would be written, and write nothing.")
  var dryRun = false

  @Flag(help: "Do not ask for confirmation.")
  var yes = false
}

/// Runs `step` and rethrows its error as a `CommandError`.
func stacking<Value>(_ step: () throws(StackRefusal) -> Value) throws(CommandError) -> Value {
  do throws(StackRefusal) {
    return try step()
  } catch {
    throw .stack(error)
  }
}

extension Context {
  /// Throws `notRoot` if the caller may not change the PAM configuration.
  func needRoot(_ verb: String) throws(CommandError) {
    guard effectiveUser == 0 || !stacks.root.isEmpty else { throw .stack(.notRoot(verb: verb)) }
  }

  /// Replaces the file; returns where the old one is kept.
  func write(_ change: StackChange) throws(CommandError) -> StackWriter.Written {
    let day = CalendarDate(try time())?.isoDay ?? "0000-00-00"
    return try stacking { () throws(StackRefusal) in
      try StackWriter(directory: stacks, date: day).write(change)
    }
  }
}

/// `sallyport pam enable`
struct PamEnable: Verb {
  static let configuration = CommandConfiguration(
    commandName: "enable", abstract: "Ask for a second factor in a service.",
    discussion: """
      Adds three lines to the service's file in /etc/pam.d, after checking the resulting stacks: \
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

  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if sshd != nil, options.service != "sshd" {
      throw ValidationError("--sshd is for the service sshd")
    }
  }

  func run(in context: Context) throws(CommandError) {
    try context.needRoot("pam enable \(options.service)")
    let side = try sshSide(context)
    let wishes = StackWishes(
      enroll: enroll, demand: demand, nullok: nullok, afterKey: side?.method == .keyCode,
      store: shared.store == nil ? nil : shared.path)
    let change = try stacking { () throws(StackRefusal) in
      try StackPlanner(options.service, in: context.stacks).enable(wishes)
    }
    let isSet = try asSSH { () throws(SSHTrouble) in try side?.changesNothing() ?? true }
    let output = context.output(shared)
    if change.changesNothing, isSet {
      let text = "\(options.service) already asks for a code. Nothing was changed."
      return output.answer(report(change, side, nil, false), text)
    }
    let impact = try LoginImpact(of: change, nullok: nullok, shared, context)
    if let obstacle = impact.obstacle(to: options.service) { throw .stack(obstacle) }
    show(change, side, impact, output)
    if options.dryRun {
      let text = "Nothing was written (--dry-run)."
      return output.answer(report(change, side, nil, false), text)
    }
    if !options.yes { try output.insist(question(change, side, isSet), or: .nothingChanged) }
    let lock = try context.lockPam()
    let written = try write(change, side, context)
    lock.end()
    output.answer(report(change, side, written, true), advice(written))
  }

  private func sshSide(_ context: Context) throws(CommandError) -> SSHSide? {
    guard options.service == "sshd" else { return nil }
    let enrolled = try LoginImpact.enrolled(in: context.store(shared))
    return try asSSH { () throws(SSHTrouble) in
      try SSHSide(sshd, enrolled: enrolled, context)
    }
  }

  private func show(
    _ change: StackChange, _ side: SSHSide?, _ impact: LoginImpact, _ output: Output
  ) {
    if let diff = side?.diff { output.say(diff) }
    if !change.changesNothing { output.say(StackDiff(change).text) }
    output.say(impact.text)
    for line in side?.text ?? [] { output.say(line) }
  }

  private func question(_ change: StackChange, _ side: SSHSide?, _ isSet: Bool) -> String {
    let does = isSet ? "Write this?" : "Write this and reload sshd?"
    if change.changesNothing { return does }
    return change.before == nil
      ? "\(does) \(change.path) is new."
      : "\(does) The old file is kept beside it, with the date in its name."
  }

  /// Returns nil if the lines are in the file already.
  private func write(_ change: StackChange, _ side: SSHSide?, _ context: Context)
    throws(CommandError) -> StackWriter.Written?
  {
    let put = { () throws(CommandError) in
      change.changesNothing ? nil : try context.write(change)
    }
    guard let side else { return try put() }
    return try side.turnOn(changesPAM: !change.changesNothing, put) {
      guard !change.changesNothing, change.isWritten(in: context.stacks) else { return true }
      do throws(CommandError) {
        let back = try stacking { () throws(StackRefusal) in
          try StackPlanner(options.service, in: context.stacks).disable()
        }
        _ = try context.write(back)
        return true
      } catch {
        let message = Message(error, at: invocation(in: context))
        context.terminal.write(Array(message.written.utf8), to: .aside)
        return false
      }
    }
  }

  private struct Answer: Encodable {
    let service, file: String
    let changed: Bool
    @OrNull var backup: String?
    let lines: [LineFacts]
    let findings: [String]
    @OrNull var sshd: SSHSideFacts?
  }

  private func report(
    _ change: StackChange, _ side: SSHSide?, _ written: StackWriter.Written?, _ changed: Bool
  ) -> Answer {
    Answer(
      service: change.service, file: change.path, changed: changed,
      backup: written?.backup, lines: change.analysis.lines.map(LineFacts.init),
      findings: change.analysis.findings.map(\.text), sshd: side?.facts)
  }

  private func advice(_ written: StackWriter.Written?) -> String {
    let service = options.service
    let kept = written?.backup.map { ["The old file: \($0)"] } ?? []
    return
      (kept + [
        "Done. Keep this shell open, and try it from another terminal now:",
        "      \(trial(service))",
        "Undo: sallyport pam disable \(service)",
      ]).joined(separator: "\n")
  }

  /// The command or login that tries out the service.
  private func trial(_ service: String) -> String {
    switch service {
    case "sshd": "ssh NAME@HOST      (sallyport doctor sshd checks sshd's own settings)"
    case "sudo": "sudo -k true"
    case "sudo-i": "sudo -k -i true"
    case "su", "su-l": "su - NAME"
    case "login": "a login on the console"
    case _ where KnownServices.hasOneField(service):
      "a login with PASSWORD123456 as the password, where 123456 is the code"
    case _: "pamtester \(service) NAME authenticate acct_mgmt"
    }
  }
}

/// `sallyport pam disable`
struct PamDisable: Verb {
  static let configuration = CommandConfiguration(
    commandName: "disable", abstract: "No longer ask for a second factor in a service.",
    discussion: """
      Removes our lines from the service's file in /etc/pam.d and nothing else: what enable wrote \
      is undone byte for byte.
      """)

  @OptionGroup var options: PamOptions
  @OptionGroup var shared: StoreOptions

  func run(in context: Context) throws(CommandError) {
    try context.needRoot("pam disable \(options.service)")
    let output = context.output(shared)
    let removal = try options.service == "sshd" ? SSHRemoval(context, output) : nil
    let change = try change(context, removal)
    if let diff = removal?.diff { output.say(diff) }
    if let change { output.say(StackDiff(change).text) }
    if options.dryRun { return answer(output, change, nil, "Nothing was written (--dry-run).") }
    if !options.yes { try output.insist("Write this?", or: .nothingChanged) }
    let lock = try context.lockPam()
    let write = { () throws(CommandError) in try change.map(context.write) }
    let written: StackWriter.Written?
    if let removal {
      written = try removal.turnOff(changesPAM: change != nil, write) {
        change?.isWritten(in: context.stacks) == true
      }
    } else {
      written = try write()
    }
    lock.end()
    answer(output, change, written, result(change, written), changed: true)
  }

  /// Returns nil if the lines are gone but our file is still in sshd's configuration.
  private func change(_ context: Context, _ removal: SSHRemoval?) throws(CommandError)
    -> StackChange?
  {
    do throws(StackRefusal) {
      return try StackPlanner(options.service, in: context.stacks).disable()
    } catch {
      if case .notEnabled = error, removal?.stage != nil { return nil }
      throw .stack(error)
    }
  }

  private func answer(
    _ output: Output, _ change: StackChange?, _ written: StackWriter.Written?, _ text: String,
    changed: Bool = false
  ) {
    let answer = Answer(
      service: options.service, file: change?.path ?? "/etc/pam.d/\(options.service)",
      changed: changed, removedBackups: written?.removed ?? [],
      findings: change?.analysis.findings.map(\.text) ?? [])
    output.answer(answer, text)
  }

  private struct Answer: Encodable {
    let service, file: String
    let changed: Bool
    let removedBackups, findings: [String]
  }

  private func result(_ change: StackChange?, _ written: StackWriter.Written?) -> String {
    let vendors = change.flatMap { $0.after == nil ? $0.path : nil }
    let gone = vendors.map { "\($0) was removed; the vendor's file applies again. " } ?? ""
    let backups = (written?.removed ?? []).map {
      "\($0) is identical to the file again, and was removed."
    }
    let text = "\(gone)\(options.service) no longer asks for a code."
    return ([text] + backups).joined(separator: "\n")
  }
}
