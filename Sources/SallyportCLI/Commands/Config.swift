import ArgumentParser
import CSystem
import OneTimePassword
import SallyportCore
import SallyportSystem

/// `sallyport config`
struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check, show, edit and install the policy file.",
    subcommands: [ConfigCheck.self, ConfigShow.self, ConfigEdit.self, ConfigInstall.self])
}

/// Whose login the policy is looked at for.
struct LoginOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The PAM service.", valueName: "name"))
  var service = "sshd"

  @Option(help: ArgumentHelp("Who logs in.", valueName: "name"))
  var user: String?

  @Option(help: ArgumentHelp("An address, a host's name, or local.", valueName: "origin"))
  var origin: String?

  @Option(help: ArgumentHelp("The policy file.", valueName: "file"))
  var conf = text(Store.usualPolicy)
}

/// `sallyport config check`
struct ConfigCheck: Verb {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Tell what is wrong in a policy file, or what it says.")

  @Argument(help: "The file, in place of --conf.")
  var file: String?

  @OptionGroup var login: LoginOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { nil }

  func run(in context: Context) throws(Complaint) {
    let path = file ?? login.conf
    let text = try PolicyText(path, isOptional: file == nil)
    try text.check(context.terminal)
    let report = try PolicyReport(text, login, context)
    context.voice(store).answer(report.json, report.text)
  }
}

/// `sallyport config show`
struct ConfigShow: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the policy that holds for a login.")

  @OptionGroup var login: LoginOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { nil }

  func run(in context: Context) throws(Complaint) {
    let text = try PolicyText(login.conf, isOptional: true)
    try text.check(context.terminal)
    let report = try PolicyReport(text, login, context)
    context.voice(store).answer(report.json, report.text)
  }
}

/// `sallyport config install`
struct ConfigInstall: Verb {
  static let configuration = CommandConfiguration(
    commandName: "install", abstract: "Check a policy file and put it in its place.")

  @Argument(help: "The new file.")
  var file: String

  @Option(help: ArgumentHelp("Where it goes.", valueName: "file"))
  var conf = text(Store.usualPolicy)

  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { nil }

  func run(in context: Context) throws(Complaint) {
    let text = try PolicyText(file, isOptional: false)
    try text.check(context.terminal)
    try text.install(as: conf)
    context.voice(store).answer(
      .object([("installed", .text(conf))]), "Installed as \(printable(conf.utf8, limit: 255)).")
  }
}

/// A policy file as people name it.
struct PolicyText {
  let path: String
  let content: Secret

  /// An optional one that is missing is empty. `name`: what messages call it, where it is a copy.
  init(_ path: String, isOptional: Bool, namedAs name: String? = nil) throws(Complaint) {
    self.path = name ?? path
    guard let buffer = Secret(count: Limits.file) else { throw .store(.outOfMemory) }
    var count = 0
    // SAFETY: the buffer has as many bytes as are said; all pointers live for the call.
    let problem = unsafe buffer.withMutableBytes { bytes in
      guard let base = bytes.baseAddress else { return ENOMEM }
      return unsafe path.withCString { unsafe file_read($0, base, bytes.count, &count) }
    }
    if problem != 0, problem != ENOENT || !isOptional {
      throw .policyFile(path: path, errno: problem)
    }
    content = inMemory(buffer.slice(0..<count))
  }

  /// Puts it in the place of `file`, in one step and for good.
  func install(as file: String) throws(Complaint) {
    // SAFETY: all pointers live for the call.
    let problem = unsafe file.withCString { path in
      unsafe content.withBytes { bytes in
        guard let base = bytes.baseAddress else { return ENOMEM }
        return unsafe file_replace(path, base, bytes.count)
      }
    }
    if problem != 0 { throw .policyFile(path: file, errno: problem) }
  }

  /// Names every problem on standard error; throws where there is one.
  func check(_ terminal: any Terminal) throws(Complaint) {
    let nobody = Circumstances(
      service: [], user: nil, isRemote: false, address: nil, parse: Addresses.numeric,
      membership: { _ in .no })
    var (line, count) = (0, 0)
    while let problem = PolicyFile(content, base: Policy(), nobody, ignoringUpTo: line).problem {
      let file = printable(path.utf8, limit: 255)
      let found = problem.found.isEmpty ? "" : ", found \"\(printable(problem.found))\""
      let text = "\(file):\(problem.line): \(problem.problem.text)\(found)\n"
      terminal.write(Array(text.utf8), to: .aside)
      (line, count) = (problem.line, count + 1)
    }
    if count > 0 { throw .policyBroken(path: path, problems: count) }
  }
}

/// What a policy file says of one login.
struct PolicyReport {
  private let file: PolicyFile
  private let policy: Policy
  private let path: String
  private let hasUser: Bool

  init(_ text: PolicyText, _ login: LoginOptions, _ context: Context) throws(Complaint) {
    let account: Account? = if let user = login.user { try context.account(user) } else { nil }
    let host = login.origin == "local" ? nil : login.origin
    let circumstances = Circumstances(
      service: Array(login.service.utf8), user: account?.name.bytes,
      isRemote: host != nil,
      address: host.flatMap { Addresses.withoutZone(Array($0.utf8)) }, parse: Addresses.numeric,
      membership: { group in account.map { Accounts.isMember($0, of: group) } ?? .unknown })
    file = PolicyFile(text.content, base: Policy(), circumstances)
    policy = file.policy(Policy())
    (path, hasUser) = (printable(text.path.utf8, limit: 255), login.user != nil)
  }

  private var keys: [PolicyKey] { PolicyKey.allCases.filter(\.isScalar) }

  var text: String {
    let rows = keys.map { key in
      let line = file.line(of: key)
      return ["\(key.name)", value(key), line > 0 ? "\(path):\(line)" : "built in"]
    }
    let doubt =
      hasUser ? [] : ["no --user: rules on users and groups count where they are stricter"]
    return (doubt + table(rows) + [pace]).joined(separator: "\n")
  }

  var json: JSON {
    .object(
      keys.map { key in
        let line = file.line(of: key)
        return (
          "\(key.name)",
          .object([
            ("value", .text(value(key))), ("file", line > 0 ? .text(path) : .null),
            ("line", line > 0 ? .number(Int64(line)) : .null),
          ])
        )
      })
  }

  private func value(_ key: PolicyKey) -> String {
    let number = policy[key]
    if let word = key.word(number) { return "\(word)" }
    switch key {
    case .guessBudget:
      let hundredths = number / (Luck.percent.units / 100)
      let (whole, rest) = hundredths.quotientAndRemainder(dividingBy: 100)
      return rest == 0 ? "\(whole) %" : "\(whole).\(rest < 10 ? "0" : "")\(rest) %"
    case .requiredFrom:
      guard number > 0 else { return "-" }
      return CalendarDate(policy.requiredFrom, inUTC: true)?.day10 ?? "\(number)"
    case .remember: return number == 0 ? "0" : exactDuration(number)
    case .factorOrder:
      let order = policy.factorOrder
      return "\(order.first.name), \(order.second.name), \(order.third.name)"
    case .state, .enrollment, .factorTOTP, .factorHOTP, .factorBackupCode, .hints,
      .adjacentIntervals, .lookAhead, .remindEvery, .minimumFactors, .localServices, .matchService,
      .matchUser, .matchGroup, .matchOrigin:
      return "\(number)"
    }
  }

  /// Of one authenticator with six digits, as most users have it.
  private var pace: String {
    let one = Authenticator(
      id: 1, name: Label("one"), parameters: .standard, secret: inMemory(Secret(count: 20)),
      initialLastAccepted: nil, created: UnixTime(0))
    let throttle = Throttle(for: [one], under: policy)
    let cost = throttle.cost(of: .six).units
    guard cost > 0 else { return "no codes by time are accepted" }
    let hundredths = throttle.refillPerYear.units * 10_000 / cost / 36_525
    let day = "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    let narrowed =
      throttle.adjacentIntervals < policy.adjacentIntervals
      ? "; the budget narrows adjacent_intervals to \(throttle.adjacentIntervals)" : ""
    return "with one TOTP of six digits \(throttle.capacity.units / cost) wrong codes at once, "
      + "then \(day) a day, from known places, and as many from others\(narrowed)"
  }
}

/// A text of the source.
private func text(_ literal: StaticString) -> String { "\(literal)" }
