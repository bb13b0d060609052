import ArgumentParser
import CCommand
import Glibc
import SallyportCore
import SallyportSystem
import SallyportText

/// The command `sallyport`.
struct Sallyport: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Manage second factors for Linux logins.",
    version: "0.1.0",
    subcommands: [
      Enroll.self, Add.self, Remove.self, Rename.self, Status.self, List.self, Verify.self,
      BackupCodes.self, Resynchronize.self, Unlock.self, Forget.self, Require.self, Exempt.self,
      Unenroll.self, Import.self, Config.self, Pam.self, Doctor.self, Prepare.self,
    ])
}

/// The way from the arguments to the exit status.
package enum Command {
  /// Runs the command with this process's arguments and environment. The result is the exit status.
  package static func start() -> Int32 {
    guard openStandardDescriptors() else { return Sysexit.inputOutput.rawValue }
    let problem = process_harden()
    let terminal = SystemTerminal()
    guard problem == 0 else {
      let message = Message("cannot protect this process: \(errnoText(problem))", .inputOutput)
      terminal.write(Array(message.written.utf8), to: .aside)
      return message.status.rawValue
    }
    let user = geteuid()
    let context = Context(
      terminal: terminal, effectiveUser: user, sudoUser: user == 0 ? sudoUser() : nil,
      hostName: HostName.label.text, now: { () throws(StoreTrouble) in try Clock.now() },
      isPlain: isPlain())
    return run(Array(CommandLine.arguments.dropFirst()), in: context)
  }

  /// The names of all verbs.
  static var verbs: [String] { Sallyport.configuration.subcommands.map { $0._commandName } }

  /// Runs the command with these arguments, the name of the command not among them.
  static func run(_ arguments: [String], in context: Context) -> Int32 {
    do {
      var command = try Sallyport.parseAsRoot(arguments)
      guard let verb = command as? any Verb else {
        try command.run()
        return Sysexit.done.rawValue
      }
      return run(verb, in: context)
    } catch {
      return tell(error, arguments, context.terminal)
    }
  }

  private static func run(_ verb: some Verb, in context: Context) -> Int32 {
    do throws(CommandError) {
      let status = try verb.status(in: context)
      if let number = context.terminal.failure { throw .output(errno: number) }
      return status
    } catch {
      let message = Message(error, at: verb.invocation(in: context))
      context.terminal.write(Array(message.written.utf8), to: .aside)
      // As a shell says it of a command that a signal ended.
      if case .stopped(.signal(let number), _) = error { return 128 + number }
      if case .importStopped(.signal(let number), _, _) = error { return 128 + number }
      return message.status.rawValue
    }
  }

  /// Help and version on standard output; else what is wrong with the arguments.
  private static func tell(_ error: any Error, _ arguments: [String], _ terminal: any Terminal)
    -> Int32
  {
    if Sallyport.exitCode(for: error).isSuccess {
      terminal.write(Array((Sallyport.fullMessage(for: error) + "\n").utf8), to: .answer)
      return terminal.failure == nil ? 0 : Sysexit.inputOutput.rawValue
    }
    let verb = arguments.first.flatMap { verbs.contains($0) ? "\($0) " : nil } ?? ""
    let message = Message(
      sentence(Sallyport.message(for: error)), .usage, hints: ["sallyport \(verb)--help"])
    terminal.write(Array(message.written.utf8), to: .aside)
    return message.status.rawValue
  }

  /// The parser's message in our form: one line, lower case, no full stop, no control characters.
  private static func sentence(_ message: String) -> String {
    let line = message.split(separator: "\n").joined(separator: " ")
    let stopped = line.hasSuffix(".") ? String(line.dropLast()) : line
    let text = stopped.prefix(1).lowercased() + stopped.dropFirst()
    return printable(text.utf8, limit: 300)
  }

  /// Closed standard descriptors lead to /dev/null, in the direction in which they are not used: so
  /// no file that is opened later gets their numbers and what is said to people, and what is said
  /// to nobody is still trouble.
  private static func openStandardDescriptors() -> Bool {
    for number: Int32 in 0...2 where fcntl(number, F_GETFD) < 0 && errno == EBADF {
      // SAFETY: the C string lives for the call.
      if unsafe open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY) != number { return false }
    }
    return true
  }

  private static func sudoUser() -> String? {
    // SAFETY: the environment is not changed by anybody while it is read; the text is copied.
    unsafe getenv("SUDO_USER").map { unsafe String(cString: $0) }
  }

  /// NO_COLOR, or a terminal that shows nothing but plain text.
  private static func isPlain() -> Bool {
    // SAFETY: as above.
    let name = unsafe getenv("TERM").map { unsafe String(cString: $0) }
    return unsafe getenv("NO_COLOR") != nil || name == nil || name == "dumb"
  }
}
