package import ArgumentParser
import CCommand
import CService
import Glibc
import SallyportCore
import SallyportSupport
import SallyportSystem

/// The command `sallyport`, of a machine that can be in no fleet.
package struct Sallyport: ParsableCommand {
  // With an inferred type the requirement would silently keep its default.
  package static let configuration: CommandConfiguration = configuration(with: [])

  package init() {}

  /// `verbs`: of another part, after those of the system.
  package static func configuration(with verbs: [any ParsableCommand.Type])
    -> CommandConfiguration
  {
    CommandConfiguration(
      commandName: "sallyport",
      abstract: "Manage second factors for Linux logins.",
      discussion: """
        Ask for a code in ssh     sallyport pam enable sshd
        Enroll alice              sallyport enroll alice
        A phone is lost           sallyport enroll alice --force
        A new phone               sallyport add alice
        Who is locked out         sallyport doctor
        """,
      version: Context.version,
      subcommands: [Prepare.self],
      groupedSubcommands: [
        CommandGroup(
          name: "User",
          subcommands: [
            Enroll.self, Status.self, List.self, Verify.self, BackupCodes.self, GivePass.self,
            Restore.self, Unlock.self, Forget.self, Adopt.self, Unenroll.self, Import.self,
            Log.self,
          ]),
        CommandGroup(
          name: "Authenticator",
          subcommands: [
            Add.self, Remove.self, Rename.self, Resynchronize.self, TokenVerbs.self,
          ]),
        CommandGroup(
          name: "Policy",
          subcommands: [Require.self, Exempt.self, BlockUser.self, Config.self]),
        CommandGroup(name: "System", subcommands: [Pam.self, Doctor.self] + verbs),
      ])
  }
}

/// Runs the command: from the arguments to the exit status.
package enum Command {
  /// Runs the command with the arguments and the environment of this process. Returns the exit
  /// status. `fleet`: nil where it is built without.
  package static func start(with fleet: (any FleetAccess)? = nil) -> Int32 {
    guard openStandardDescriptors() else { return Sysexit.inputOutput.rawValue }
    let problem = -process_harden()
    let terminal = SystemTerminal()
    guard problem == 0 else {
      let message = Message("cannot protect this process: \(errnoText(problem))", .inputOutput)
      terminal.write(Array(message.written.utf8), to: .aside)
      return message.status.rawValue
    }
    let user = geteuid()
    let context = Context(
      terminal: terminal, effectiveUser: user, caller: user == 0 ? caller() : nil,
      hostName: HostName.label.text, now: { () throws(StoreTrouble) in try Clock.now() },
      isPlain: isPlain(), fleet: fleet)
    return run(arguments, in: context)
  }

  /// What the process was started with, without its own name.
  private static var arguments: [String] {
    (0..<process_argument_count()).dropFirst().compactMap { index in
      // SAFETY: the kernel's copy of the argument, which nobody changes; the text is copied.
      unsafe process_argument(index).map { unsafe String(cString: $0) }
    }
  }

  /// Runs the command with these arguments, without the command's own name.
  static func run(_ arguments: [String], in context: Context) -> Int32 {
    let root = context.fleet?.command ?? Sallyport.self
    do {
      var command = try root.parseAsRoot(arguments)
      guard let verb = command as? any Verb else {
        try command.run()
        return Sysexit.done.rawValue
      }
      return run(verb, typed: arguments, in: context)
    } catch {
      return tell(error, arguments, of: root, context.terminal)
    }
  }

  private static func run(_ verb: some Verb, typed: [String], in context: Context) -> Int32 {
    var context = context
    context.typed = typed
    do throws(CommandError) {
      let status = try verb.status(in: context)
      if let number = context.terminal.failure { throw .output(errno: number) }
      return status
    } catch {
      var invocation = verb.invocation(in: context)
      invocation.typed = typed
      let message = error.message(invocation)
      context.terminal.write(Array(message.written.utf8), to: .aside)
      // The exit status that a shell reports for a command ended by a signal.
      if case .signal(let number) = error.cause { return 128 + number }
      return message.status.rawValue
    }
  }

  /// Prints help or the version on standard output, or a usage error on standard error.
  private static func tell(
    _ error: any Error, _ arguments: [String], of root: any ParsableCommand.Type,
    _ terminal: any Terminal
  ) -> Int32 {
    if root.exitCode(for: error).isSuccess {
      terminal.write(Array((root.fullMessage(for: error) + "\n").utf8), to: .answer)
      return terminal.failure == nil ? 0 : Sysexit.inputOutput.rawValue
    }
    let problem = root.message(for: error)
    let verbs = verbs(of: root)
    let meant = CommandSuggestion(for: arguments, problem: problem, among: verbs) {
      Command.problem($0, of: root)
    }
    let fault = meant.fault.map { printable($0.utf8, limit: 300) } ?? sentence(problem)
    let message: Message
    if let line = meant.text {
      message = Message("\(fault). Did you mean: \(line)", .usage)
    } else {
      message = Message(
        fault, .usage, hints: ["sallyport \(verb(of: arguments, among: verbs))--help"])
    }
    terminal.write(Array(message.written.utf8), to: .aside)
    return message.status.rawValue
  }

  /// The names of all verbs, each with those of its subcommands.
  static func verbs(of root: any ParsableCommand.Type) -> [String: [String]] {
    Dictionary(
      root.configuration.subcommands.map {
        ($0._commandName, $0.configuration.subcommands.map { $0._commandName })
      }, uniquingKeysWith: { first, _ in first })
  }

  /// `pam enable `; empty if there is no such verb.
  private static func verb(of arguments: [String], among verbs: [String: [String]]) -> String {
    guard let first = arguments.first, let inner = verbs[first] else { return "" }
    let second = arguments.dropFirst().first.flatMap { inner.contains($0) ? $0 : nil }
    return ([first] + [second].compactMap { $0 }).joined(separator: " ") + " "
  }

  /// Why these words cannot be parsed; nil if they can.
  private static func problem(_ words: [String], of root: any ParsableCommand.Type) -> String? {
    do {
      _ = try root.parseAsRoot(words)
      return nil
    } catch {
      return root.exitCode(for: error).isSuccess ? nil : root.message(for: error)
    }
  }

  /// The parser's message in our style: one line, lower case, no full stop, no control characters.
  private static func sentence(_ message: String) -> String {
    let line = message.split(separator: "\n").joined(separator: " ")
    let stopped = line.hasSuffix(".") ? String(line.dropLast()) : line
    let text = stopped.prefix(1).lowercased() + stopped.dropFirst()
    return printable(text.utf8, limit: 300)
  }

  /// Opens closed standard descriptors on /dev/null, so that no file opened later gets their
  /// numbers and our output. They are opened for the opposite direction, so that using them still
  /// fails.
  private static func openStandardDescriptors() -> Bool {
    for number: Int32 in 0...2 where fcntl(number, F_GETFD) < 0 && errno == EBADF {
      // SAFETY: the C string lives for the call.
      if unsafe open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY) != number { return false }
    }
    return true
  }

  /// SUDO_USER or DOAS_USER, which are only trusted if the caller is root.
  private static func caller() -> String? {
    environment("SUDO_USER") ?? environment("DOAS_USER")
  }

  /// NO_COLOR is set, or the terminal is dumb or unknown.
  private static func isPlain() -> Bool {
    environment("NO_COLOR") != nil || ["dumb", nil].contains(environment("TERM"))
  }
}
