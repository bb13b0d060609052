import ArgumentParser
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport doctor`
struct Doctor: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Report who would be locked out, and who would get in without a code.")

  @Argument(
    help: ArgumentHelp(
      "The PAM services to check. (default: all that use the module)", valueName: "service"),
    completion: .custom(Completions.services))
  var services: [String] = []

  @Option(
    help: ArgumentHelp("The same, as an option; may be repeated.", valueName: "service"),
    completion: .custom(Completions.services))
  var service: [String] = []

  @Option(
    help: ArgumentHelp("Tell of each way in of this account.", valueName: "user"),
    completion: .custom(Completions.users))
  var user: String?

  @OptionGroup var shared: StoreOptions

  func run(in context: Context) throws(CommandError) { _ = try status(in: context) }

  func status(in context: Context) throws(CommandError) -> Int32 {
    let (machine, named) = (context.machine, services + service)
    let stacks =
      named.isEmpty ? ServiceStack.ours(of: machine) : try stacks(of: named, in: context)
    var options = shared
    options.store = shared.store ?? storeOfAll(stacks)
    // What is nil here is reported as not checked.
    let store = try orNilUnlessRoot { () throws(CommandError) in try context.store(options) }
    var facts = Facts(of: machine, stacks, store, at: options.path, try context.time())
    if !named.isEmpty { facts.keepLost(of: named) }
    if context.fleet == nil { facts.lackFleet() }
    if let store { facts.add(try context.fleet?.doctorFacts(store, in: context)) }
    var diagnosis = Diagnosis(facts, option: options.store, version: Context.version)
    let whole = try access(store, facts, in: context)
    if let whole { diagnosis.settle(by: whole) }
    let access = try whole.map { table throws(CommandError) in
      try narrowed(table, named, in: context)
    }
    let output = context.output(shared)
    let screen = context.terminal.screen(of: output.stream)
    let report = Report(
      diagnosis: diagnosis, access: access, user: user, store: store,
      hasMarks: screen?.isUTF8 == true && !context.isPlain, width: output.width)
    output.answer(report.facts, report.text)
    return report.status
  }

  /// Who gets in; nil if the caller may not read the store.
  private func access(_ store: Store?, _ facts: Facts, in context: Context) throws(CommandError)
    -> AccessTable?
  {
    guard let store else {
      guard user != nil else { return nil }
      throw .notRoot
    }
    var known = facts.access(of: context.machine, store)
    known.ask(context.roster)
    return AccessTable(known)
  }

  /// `named`: the services that were named.
  private func narrowed(_ table: AccessTable, _ named: [String], in context: Context)
    throws(CommandError) -> AccessTable
  {
    let narrow = table.narrowed(to: named.isEmpty ? nil : named, user)
    if let user, narrow.rows.isEmpty {
      // Throws where that is not known.
      _ = try context.account(user)
      let name = printable(user.utf8, limit: 100)
      throw CommandError(
        .noUser, "\(name) has no way in: no account, password, key or rule")
    }
    return narrow
  }

  /// Throws if one has no file.
  private func stacks(of names: [String], in context: Context) throws(CommandError)
    -> [ServiceStack]
  {
    var stacks: [ServiceStack] = []
    for name in names {
      let stack = ServiceStack(of: context.machine, name)
      guard stack.file != nil else { throw missing(name, context) }
      stacks.append(stack)
    }
    return stacks
  }

  private func missing(_ name: String, _ context: Context) -> CommandError {
    guard let account = try? context.account(name), account.uid != nil else {
      return .stack(.noSuchService(name, known: context.stacks.services()))
    }
    let status = printable(sallyportCommand("status", on: [name]).utf8, limit: 300)
    return CommandError(
      .noInput,
      "there is no service \(printable(name.utf8)), but a user. Did you mean: \(status)")
  }

  /// The `store=` that all lines have in common; nil for the usual store.
  private func storeOfAll(_ stacks: [ServiceStack]) -> String? {
    let lines = stacks.map { ModuleLines(of: $0) }.filter { !$0.lines.isEmpty }
    let stores = Set(lines.map { $0.value(of: "store") })
    return stores.count == 1 ? stores.first ?? nil : nil
  }
}
