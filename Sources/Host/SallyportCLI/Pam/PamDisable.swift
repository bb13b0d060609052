import ArgumentParser
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

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
    try context.needRoot("pam disable \(options.words)")
    let output = context.output(shared)
    let plans = try plans(context)
    for plan in plans { output.say(plan.text) }
    // With --yes nothing may keep it waiting: nobody is looked for.
    if !options.isUnseen { try change(plans, context)?.tell(output, isAsked: true) }
    if options.dryRun {
      return output.answerEach(answers(plans), "Nothing was written (--dry-run).")
    }
    if !options.yes { try output.insist("Write this?", or: .nothingChanged) }
    let lock = try context.lockPam()
    let removed = try context.recorded(.pamDisable, of: plans.map(\.service)) {
      () throws(CommandError) in try context.writeAll(plans.map { $0.step(in: context) })
    }
    let left = removed.compactMap(\.left).first
    if left == nil { try context.forgetRevert(of: plans.map(\.service)) }
    lock.end()
    let written = removed.map(\.written)
    let text = zip(plans, written).map { $0.result($1) }.joined(separator: "\n")
    output.answerEach(answers(plans, written), text)
    if let left { throw left }
  }

  /// Who gets in otherwise after this.
  private func change(_ plans: [PamRemoval], _ context: Context)
    throws(CommandError) -> AccessChange?
  {
    let stacks = plans.compactMap(\.change).reduce(context.stacks) { $0.assuming($1) }
    return try context.accessChange(shared) { facts in
      let changed = facts.assuming(stacks)
      return plans.contains(where: \.removesSSHFile) ? changed.assuming(sshFile: nil) : changed
    }
  }

  /// Each service as if those before it were written. Of one program, those that are off stay so
  /// if another one is on.
  private func plans(_ context: Context) throws(CommandError) -> [PamRemoval] {
    var directory = context.stacks
    var plans: [PamRemoval] = []
    for one in options.chosen(by: Sudoers(of: context.machine), in: context) {
      var off: CommandError?
      let before = plans.count
      for service in one.services {
        do throws(CommandError) {
          let plan = try PamRemoval(service, in: directory, context)
          if let change = plan.change { directory = directory.assuming(change) }
          plans.append(plan)
        } catch {
          switch error.cause {
          case .stack(.notEnabled), .stack(.enabledElsewhere): off = off ?? error
          case _: throw error
          }
        }
      }
      if plans.count == before, let off { throw off }
    }
    return plans
  }

  private struct Answer: Encodable {
    let service, file: String
    let changed: Bool
    let removedBackups, findings: [String]
    /// The file and line by which the service asks all the same.
    @OrNull var stillAsksBy: String?
  }

  /// `written`: nil if nothing was.
  private func answers(_ plans: [PamRemoval], _ written: [StackWriter.Written?]? = nil) -> [Answer]
  {
    plans.enumerated().map { index, plan in
      Answer(
        service: plan.service, file: plan.change?.path ?? "/etc/pam.d/\(plan.service)",
        changed: written != nil, removedBackups: written?[index]?.removed ?? [],
        findings: plan.change?.analysis.findings.map(\.text) ?? [],
        stillAsksBy: plan.otherLine?.text)
    }
  }
}

/// What turning off one service changes, before anything is written.
struct PamRemoval {
  let service: String
  /// nil if the lines are gone but our file is still in sshd's configuration, or the service is
  /// still recorded as turned on.
  let change: StackChange?
  private let ssh: SSHRemoval?

  init(_ service: String, in directory: StackDirectory, _ context: Context) throws(CommandError) {
    self.service = service
    ssh = service == "sshd" ? try SSHRemoval(context) : nil
    do throws(StackRefusal) {
      change = try StackPlanner(service, in: directory).disable()
    } catch {
      let isGone = [.notEnabled, .noSuchService].contains(error.cause)
      guard isGone, ssh?.isThere == true || context.isStillRecorded(service) else {
        throw .stack(error)
      }
      change = nil
    }
  }

  /// Whether our file is removed from sshd's configuration.
  var removesSSHFile: Bool { ssh?.stage != nil }

  /// What is shown before the question.
  var text: String {
    let diffs = [ssh?.diff, change.map { StackDiff($0).text }].compactMap { $0 }
    return diffs.isEmpty
      ? "\(service) no longer asks for a code, and doctor no longer expects it to."
      : diffs.joined(separator: "\n")
  }

  /// What was removed. `left`: why sshd's settings are still there all the same.
  typealias Removed = (written: StackWriter.Written?, left: CommandError?)

  func step(in context: Context) -> PamStep<Removed> {
    let write = { () throws(CommandError) in try change.map(context.write) }
    return PamStep(service: service, change: change) { () throws(CommandError) in
      var removed: Removed = (nil, nil)
      if let ssh {
        (removed.written, removed.left) = try ssh.turnOff(changesPAM: change != nil, write) {
          change?.isWritten(in: context.stacks) == true
        }
      } else {
        removed.written = try write()
      }
      context.keepRecord(of: service)
      return removed
    }
  }

  /// A file that the service includes, which asks on.
  var otherLine: FileLocation? { change?.analysis.line(.auth)?.location }

  private var stillAsking: String? {
    guard let otherLine else { return nil }
    let file = otherLine.file.split(separator: "/").last.map(String.init) ?? ""
    return "\(service) still asks for a code, by \(otherLine.text).\n"
      + "For every service that includes it: " + sallyportCommand("pam disable", on: [file])
  }

  func result(_ written: StackWriter.Written?) -> String {
    let vendors = change.flatMap { $0.after == nil ? $0.path : nil }
    let gone = vendors.map { "\($0) was removed; the vendor's file applies again.\n" } ?? ""
    let backups = (written?.removed ?? []).map {
      "The file is as before, and this was removed: \($0)"
    }
    let text = "\(gone)\(stillAsking ?? "\(service) no longer asks for a code.")"
    return ([text] + backups).joined(separator: "\n")
  }
}
