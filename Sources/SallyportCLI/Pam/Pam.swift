import ArgumentParser
import PAMStack
import SallyportCore
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
  /// Throws if the caller may not change PAM's configuration.
  func needRoot(_ verb: String) throws(CommandError) {
    guard effectiveUser == 0 || !stacks.root.isEmpty else { throw .stack(.notRoot(verb: verb)) }
  }

  /// Replaces the file, and returns what became of the old one.
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
      pam_sallyport(8) explains the arguments of the lines.
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

  @OptionGroup var shared: StoreOptions

  func run(in context: Context) throws(CommandError) {
    let wishes = StackWishes(
      enroll: enroll, demand: demand, nullok: nullok,
      store: shared.store == nil ? nil : shared.path)
    try context.needRoot("pam enable \(options.service)")
    let change = try stacking { () throws(StackRefusal) in
      try StackPlanner(options.service, in: context.stacks).enable(wishes)
    }
    let output = context.output(shared)
    if change.changesNothing {
      let text = "\(options.service) already asks for a code. Nothing was changed."
      return output.answer(report(change, nil), text)
    }
    let impact = try LoginImpact(of: change, nullok: nullok, shared, context)
    if let obstacle = impact.obstacle(to: options.service) { throw .stack(obstacle) }
    output.say(StackDiff(change).text)
    output.say(impact.text)
    if options.dryRun { return finish(output, change, nil, "Nothing was written (--dry-run).") }
    if !options.yes { try output.insist("Write this? \(keeping(change))", or: .nothingChanged) }
    let written = try context.write(change)
    finish(output, change, written, advice(written))
  }

  private func keeping(_ change: StackChange) -> String {
    change.before == nil
      ? "\(change.path) is new." : "The old file is kept beside it, with the date in its name."
  }

  private func finish(
    _ output: Output, _ change: StackChange, _ written: StackWriter.Written?, _ text: String
  ) {
    output.answer(report(change, written), text)
  }

  private struct Answer: Encodable {
    let service, file: String
    let changed: Bool
    @OrNull var backup: String?
    let lines: [LineFacts]
    let findings: [String]
  }

  private func report(_ change: StackChange, _ written: StackWriter.Written?) -> Answer {
    Answer(
      service: change.service, file: change.path, changed: written != nil,
      backup: written?.backup, lines: change.analysis.lines.map(LineFacts.init),
      findings: change.analysis.findings.map(\.text))
  }

  private func advice(_ written: StackWriter.Written) -> String {
    let service = options.service
    let kept = written.backup.map { ["The old file: \($0)"] } ?? []
    return
      (kept + [
        "Done. Keep this shell open, and try it from another terminal now:",
        "      \(trial(service))",
        "Undo: sallyport pam disable \(service)",
      ]).joined(separator: "\n")
  }

  /// How to try whether it works.
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
    let change = try stacking { () throws(StackRefusal) in
      try StackPlanner(options.service, in: context.stacks).disable()
    }
    let output = context.output(shared)
    output.say(StackDiff(change).text)
    if !options.dryRun, !options.yes { try output.insist("Write this?", or: .nothingChanged) }
    let written = options.dryRun ? nil : try context.write(change)
    let answer = Answer(
      service: change.service, file: change.path, changed: written != nil,
      removedBackups: written?.removed ?? [], findings: change.analysis.findings.map(\.text))
    output.answer(answer, result(change, written))
  }

  private struct Answer: Encodable {
    let service, file: String
    let changed: Bool
    let removedBackups, findings: [String]
  }

  private func result(_ change: StackChange, _ written: StackWriter.Written?) -> String {
    guard let written else { return "Nothing was written (--dry-run)." }
    let gone =
      change.after == nil ? "\(change.path) was removed; the vendor's file applies again. " : ""
    let backups = written.removed.map { "\($0) is identical to the file again, and was removed." }
    let text = "\(gone)\(options.service) no longer asks for a code."
    return ([text] + backups).joined(separator: "\n")
  }
}
