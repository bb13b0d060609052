import ArgumentParser
import Glibc
import OneTimePassword
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport config`
struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check, show, edit and install the policy file.",
    subcommands: [ConfigCheck.self, ConfigShow.self, ConfigEdit.self, ConfigInstall.self])
}

/// The login to show the policy for.
struct LoginOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The PAM service.", valueName: "name"))
  var service = "sshd"

  @Option(help: ArgumentHelp("The user who logs in.", valueName: "name"))
  var user: String?

  @Option(help: ArgumentHelp("An address, a host name, or local.", valueName: "origin"))
  var origin: String?

  @Option(help: ArgumentHelp("The policy file.", valueName: "file"))
  var conf = "\(Store.usualPolicy)"
}

/// `sallyport config check`
struct ConfigCheck: Verb {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Check a policy file, and show what it sets.")

  @Argument(help: "The file, instead of --conf.")
  var file: String?

  @OptionGroup var login: LoginOptions
  @OptionGroup var shared: StoreOptions

  func run(in context: Context) throws(CommandError) {
    let path = file ?? login.conf
    let text = try PolicyText(path, isOptional: file == nil)
    let output = context.output(shared)
    let check = PolicyCheck(text, context)
    if output.isJSON, !check.errors.isEmpty { output.answer(check, "") }
    try check.tell(output.isJSON ? nil : context.terminal)
    let report = try PolicyReport(text, for: login, shared, context)
    output.answer(
      Joined(report.facts, check), "\(report.text(width: output.width))\nno errors")
  }
}

/// `sallyport config show`
struct ConfigShow: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the policy that applies to a login.")

  @OptionGroup var login: LoginOptions
  @OptionGroup var shared: StoreOptions

  func run(in context: Context) throws(CommandError) {
    let text = try PolicyText(login.conf, isOptional: true)
    try PolicyCheck(text, context).tell(context.terminal)
    let report = try PolicyReport(text, for: login, shared, context)
    let output = context.output(shared)
    output.answer(report.facts, report.text(width: output.width))
  }
}

/// `sallyport config install`
struct ConfigInstall: Verb {
  static let configuration = CommandConfiguration(
    commandName: "install", abstract: "Check a policy file and install it.")

  @Argument(help: "The new file.")
  var file: String

  @Option(help: ArgumentHelp("The file to install it as.", valueName: "file"))
  var conf = "\(Store.usualPolicy)"

  @Flag(help: "Do not ask for confirmation; name only those who are shut out.")
  var yes = false

  @OptionGroup var shared: StoreOptions

  private struct Answer: Encodable {
    let installed: String
  }

  func run(in context: Context) throws(CommandError) {
    let text = try PolicyText(file, isOptional: false)
    try PolicyCheck(text, context).tell(context.terminal)
    let output = context.output(shared)
    guard try text.isAgreed(as: conf, yes: yes, shared, context) else {
      throw .declined(.nothingChanged)
    }
    try context.install(text, as: conf, by: .configInstall)
    output.answer(
      Answer(installed: conf), "Installed as \(printable(conf.utf8, limit: 255)).")
  }
}

extension Context {
  /// Installs a policy file, which leaves lines in the log and among the acts.
  func install(_ text: PolicyText, as file: String, by verb: Act.Verb) throws(CommandError) {
    try machineRecorder.record(verb, [Act.Fact("file", file.utf8)]) { () throws(CommandError) in
      try text.install(as: file)
    }
  }
}

extension PolicyText {
  /// Reads a policy file; if it is optional and missing, it is empty. `name`: the name in messages,
  /// if `path` is a copy.
  init(_ path: String, isOptional: Bool, namedAs name: String? = nil) throws(CommandError) {
    let text: Secret
    do throws(SystemError) {
      text = try OpenFile.regular(path, following: false).secret(atMost: Limits.file)
    } catch {
      guard isOptional, error.number == ENOENT else {
        throw .policyFile(path: path, errno: error.number)
      }
      text = inMemory(Secret(count: 0))
    }
    self.init(name ?? path, text)
  }

  /// Shows who gets in otherwise where it is installed as `file`. A person is asked where somebody
  /// would get in without a code, or no longer at all; programs are not, nor with `yes`.
  func isAgreed(as file: String, yes: Bool, _ options: StoreOptions, _ context: Context)
    throws(CommandError) -> Bool
  {
    let root = context.stacks.root
    let path = file.hasPrefix(root) ? String(file.dropFirst(root.count)) : file
    let change = try context.accessChange(options) { $0.assuming(content, at: path) }
    let output = context.output(options)
    change?.tell(output, isAsked: !yes)
    guard !yes, change?.loosensOrShuts == true, context.terminal.isInteractive else {
      return true
    }
    return try output.agrees("Install this?", or: .nothingChanged)
  }

  /// Replaces `file` atomically and durably. Keeps its owner and mode, but removes write permission
  /// for group and others.
  fileprivate func install(as file: String) throws(CommandError) {
    do throws(SystemError) {
      let old = (try? facts(of: file)).flatMap { $0.isRegular ? $0 : nil }
      let ownership =
        old.map { Ownership(like: $0, mode: $0.st_mode & 0o755) } ?? Ownership(mode: 0o644)
      try putFile(file, through: "\(file).new-\(getpid())", isNew: false, ownership, content)
      try syncParent(of: file)
    } catch {
      throw .policyFile(path: file, errno: error.number)
    }
  }
}

extension CommandError {
  /// A policy file cannot be read or replaced. The number is an errno, or one that `SystemError`
  /// defines.
  static func policyFile(path: String, errno number: Int32) -> CommandError {
    let file = shownPath(path)
    switch number {
    case SystemError.notRegular.number, ELOOP:
      return CommandError(.configuration, "\(file): is not a regular file")
    case SystemError.tooLong.number:
      return CommandError(.configuration, "\(file): longer than 64 KiB")
    case _: return CommandError(Sysexit(errno: number), "\(file): \(errnoText(number))")
    }
  }
}
