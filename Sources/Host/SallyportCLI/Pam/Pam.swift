import ArgumentParser
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport pam`
struct Pam: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show, turn on and turn off the second factor of services.",
    subcommands: [
      PamStatus.self, PamEnable.self, PamDisable.self, PamConfirm.self, PamRevert.self,
    ])
}

/// The options of the verbs that write.
struct PamOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The services: names in /etc/pam.d.", valueName: "service"),
    completion: .custom(Completions.services))
  var services: [String]

  @Flag(help: "Show what would be written, and write nothing.")
  var dryRun = false

  @Flag(help: "Do not ask for confirmation; name only those who are shut out.")
  var yes = false

  @Flag(help: "Only the services named, and not the others of the same program.")
  var only = false

  /// Whether nobody reads it before it is written.
  var isUnseen: Bool { yes && !dryRun }

  /// What is typed, each once, sshd last: it is the one that may turn out not to take the change.
  private var inOrder: [String] {
    let names = services.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
    return names.filter { $0 != "sshd" } + names.filter { $0 == "sshd" }
  }

  /// As they are typed.
  var words: String {
    commandWords(inOrder, only ? ["--only"] : [])
  }
}

// MARK: - The services of one program

/// A word that was typed, and the services that it stands for.
struct ChosenServices {
  let typed: String
  let family: ServiceFamily
  /// In the order in which they are changed.
  let services: [String]
}

extension PamOptions {
  /// Each service once, with those of the same program unless `--only` is given.
  func chosen(by sudoers: Sudoers, in context: Context) -> [ChosenServices] {
    let sudo = only ? [] : sudoers.services
    var seen: Set<String> = []
    return inOrder.map { word in
      let family = ServiceFamily(of: word, sudo: sudo)
      let services = only ? [word] : family.services(typed: word, in: context.stacks)
      return ChosenServices(
        typed: word, family: family, services: services.filter { seen.insert($0).inserted })
    }
  }
}

/// Runs `step` and rethrows its error as a `CommandError`.
func stacking<Value>(_ step: () throws(StackRefusal) -> Value) throws(CommandError) -> Value {
  try rethrow(step) { CommandError.stack($0) }
}

extension Context {
  /// Throws `notRoot` if the caller may not change the PAM configuration.
  func needRoot(_ verb: String) throws(CommandError) {
    guard effectiveUser != 0, stacks.root.isEmpty else { return }
    throw CommandError {
      Message(
        "only root can change the files of PAM", .notPermitted,
        hints: ["sudo \($0.typed.isEmpty ? "sallyport \(verb)" : $0.again())"])
    }
  }

  /// Replaces the file and records it; returns where the old one is kept.
  func write(_ change: StackChange) throws(CommandError) -> StackWriter.Written {
    let day = CalendarDate(try time())?.isoDay ?? "0000-00-00"
    let written = try stacking { () throws(StackRefusal) in
      try StackWriter(directory: stacks, date: day).write(change)
    }
    keepRecord(of: change.service)
    return written
  }

  /// With lines in the log and among the acts, which name the services.
  func recorded<Value>(
    _ verb: Act.Verb, of services: [String], _ body: () throws(CommandError) -> Value
  ) throws(CommandError) -> Value {
    try machineRecorder.record(verb, services.map { Act.Fact("service", $0.utf8) }, body)
  }

  /// Writes several services one after the other. If one fails, takes back those before it.
  func writeAll<Value>(_ steps: [PamStep<Value>]) throws(CommandError) -> [Value] {
    var values: [Value] = []
    for (index, step) in steps.enumerated() {
      do throws(CommandError) {
        values.append(try step.write())
      } catch {
        let changes = steps.prefix(index).compactMap(\.change)
        if changes.isEmpty { throw error }
        let fates = changes.reversed().map { change in
          let service = "  \(printable(change.service.utf8))"
          return takeBack(change).map { "\(service) was changed, and is still: \($0)" }
            ?? "\(service) is as it was before"
        }
        let service = printable(step.service.utf8)
        throw CommandError {
          let message = error.message($0)
          let text = "\(service): \(message.text)"
          return Message(
            ([text] + fates).joined(separator: "\n"), message.status, hints: message.hints)
        }
      }
    }
    return values
  }

  /// Puts the old file back. Returns why it is still changed; nil if it is as before.
  func takeBack(_ change: StackChange) -> String? {
    do throws(CommandError) {
      _ = try write(change.reversed)
      return nil
    } catch {
      return error.message(Invocation(verb: "pam")).text
    }
  }
}

/// One service of several that are written.
struct PamStep<Value> {
  let service: String
  /// nil if its file does not change.
  let change: StackChange?
  let write: () throws(CommandError) -> Value
}

extension ChosenServices {
  /// What of the same program is left as it is, and lets in without a code.
  func notes(in directory: StackDirectory) -> [String] {
    let unattended = family.unattended(in: directory).filter { !services.contains($0) }.map {
      "warning: \($0) logs in without anybody there and asks for no code; it is left as it is"
    }
    let byOther = family.open(in: directory).filter(\.isByOther).map { member, _ in
      "warning: \(member.way) runs the service \(member.service), which has no file, so that "
        + "\"other\" lets in without a code"
    }
    return services.isEmpty ? [] : unattended + byOther
  }
}
