import ArgumentParser
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport pam status`
struct PamStatus: Verb {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "List the services that ask for a code, and how.")

  @Flag(
    help: "Print nothing if everything that was turned on still asks; otherwise fail and log it.")
  var check = false

  @Option(help: ArgumentHelp("Seconds without a change to wait for.", visibility: .hidden))
  var settle: Int64 = 3

  @OptionGroup var shared: StoreOptions

  func status(in context: Context) throws(CommandError) -> Int32 {
    if check {
      try context.needRoot("pam status --check")
      return try PamCheck(context: context, settle: settle, shared: shared).status()
    }
    try run(in: context)
    return Sysexit.done.rawValue
  }

  func run(in context: Context) throws(CommandError) {
    let all = context.stacks.services().map(context.stacks.analysis)
    let ours = all.filter { !$0.lines.isEmpty && !$0.stack.isOther(.auth) }
    let others = all.filter { $0.lines.isEmpty && !$0.stack.isOther(.auth) }
      .map { printable($0.stack.service.utf8) }
    let names = ours.map(\.stack.service)
    let access = try access(names, context)
    let services = try services(ours, access, context)
    let pending = context.machine.pendingRevert().value
    let lost = context.machine.lostServices()
    let output = context.output(shared)
    let answer = Answer(
      services: services.map(PamStatus.facts), others: others, unconfirmed: pending?.names ?? [],
      lost: lost.map(PamStatus.facts), access: access.map(AccessFactsJSON.init))
    let unseen = "Who gets in: only root can tell (sudo sallyport pam status)"
    let ways =
      access.map { AccessText(table: $0, width: output.width).lines }
      ?? (names.isEmpty ? [] : [unseen])
    let text =
      lost.map(PamStatus.text) + [PamStatus.text(services, others, width: output.width)] + ways
      + [pending.map(PamStatus.text)].compactMap { $0 }
    output.answer(answer, text.joined(separator: "\n"))
  }

  /// Who gets in by these services; nil if there is none, or if the caller may not read the store.
  private func access(_ services: [String], _ context: Context) throws(CommandError)
    -> AccessTable?
  {
    if services.isEmpty { return nil }
    return try orNilUnlessRoot { () throws(CommandError) in
      AccessTable(try context.accessFacts(shared)).narrowed(to: services, nil)
    }
  }

  private struct Asking {
    let analysis: StackAnalysis
    let asks: String
    /// What is wrong with it.
    var findings: [String] {
      let stack = analysis.stack
      return analysis.findings.map(\.text)
        + ModuleLines(of: stack).wordFaults(in: stack.service)
    }
  }

  /// Each with the users whom it asks: by the policy, which everybody can read, and by the table.
  private func services(
    _ ours: [StackAnalysis], _ access: AccessTable?, _ context: Context
  ) throws(CommandError) -> [Asking] {
    let store = (try? context.store(shared)) ?? Store()
    let now = try context.time()
    return ours.map { analysis in
      let isRun = !KnownServices.withoutAuth.contains(analysis.stack.service)
      if !isRun || analysis.line(.auth) == nil { return Asking(analysis: analysis, asks: "nobody") }
      let asked = AskedUsers(of: analysis.stack, of: context.machine, store, now)
      let open = access?.withoutCode(at: analysis.stack.service) ?? []
      let isAll =
        analysis.asksEverybody && !open.contains { $0.isEnrolled || asked == .everybody }
      return Asking(
        analysis: analysis, asks: isAll || asked == .nobody ? asked.rawValue : "not all")
    }
  }

  private static func text(_ ours: [Asking], _ others: [String], width: Int) -> String {
    let rows = ours.flatMap { one in
      one.analysis.lines.enumerated().map { index, line in
        [
          index == 0 ? printable(one.analysis.stack.service.utf8) : "",
          index == 0 ? one.asks : "",
          "\(line.phase)", "\(line.location.text)  \(line.arguments.joined(separator: " "))",
        ]
      }
    }
    let head = rows.isEmpty ? [] : table([["SERVICE", "ASKS", "PHASE", "LINE"]] + rows)
    let warnings = ours.flatMap { one in
      one.findings.map { "\(printable(one.analysis.stack.service.utf8)): \($0)" }
    }
    let rest =
      others.isEmpty
      ? [] : wrapped(["Without a second factor: \(others[0])"] + others.dropFirst(), width: width)
    return (head + warnings + rest).joined(separator: "\n")
  }

  private static func text(_ pending: PendingRevert) -> String {
    let names = printable(pending.names.joined(separator: ", ").utf8, limit: 300)
    let time = CalendarDate(pending.due).map { " at \($0.clock)" } ?? ""
    return "The change of \(names) is taken back\(time) unless confirmed: sallyport pam confirm"
  }

  private static func text(_ lost: LostService) -> String {
    "\(lost.text): \(lost.commands.joined(separator: ", or "))"
  }

  private struct Lost: Encodable {
    let service, text: String
    let fixes: [String]
  }

  private static func facts(_ lost: LostService) -> Lost {
    Lost(service: lost.service, text: lost.text, fixes: lost.commands)
  }

  private struct Answer: Encodable {
    let services: [Service]
    let others: [String]
    /// Services whose change is taken back unless it is confirmed.
    let unconfirmed: [String]
    /// Services that were turned on and no longer ask.
    let lost: [Lost]
    @OrNull var access: AccessFactsJSON?
  }

  private struct Service: Encodable {
    let service: String
    @OrNull var file: String?
    let asks: String
    let lines: [LineFacts]
    let findings: [String]
  }

  private static func facts(_ one: Asking) -> Service {
    Service(
      service: one.analysis.stack.service, file: one.analysis.stack.file, asks: one.asks,
      lines: one.analysis.lines.map(LineFacts.init), findings: one.findings)
  }
}

extension AccessTable {
  /// Who gets in there without a code.
  fileprivate func withoutCode(at service: String) -> [Row] {
    rows.filter { row in
      row.cells.contains { cell in
        guard case .withoutCode = cell.verdict else { return false }
        return cell.way.service == service
      }
    }
  }
}

/// One of our lines in a stack, in JSON.
struct LineFacts: Encodable {
  let phase, file: String
  let line: Int?
  let words: [String]

  init(_ entry: StackEntry) {
    (phase, file) = ("\(entry.phase)", entry.location.file)
    (line, words) = (entry.location.line, entry.arguments)
  }
}
