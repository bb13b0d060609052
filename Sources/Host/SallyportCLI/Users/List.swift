import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport list`
struct List: Verb {
  static let configuration = CommandConfiguration(abstract: "List all enrolled users.")

  @Flag(help: "Instead, the people of this machine's fleet.")
  var fleet = false

  @OptionGroup var filter: ListFilter

  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if fleet, shared.store != nil { throw ValidationError("--fleet takes no --store") }
  }

  private struct Answer: Encodable {
    let users: [ListRow.Facts]
    let unreadable: Int
    /// Names whose account is not found.
    let exemptWithoutAccount: [String]
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    if fleet { return try listFleet(store, context) }
    if filter.listsNames { return try listNames(store, context) }
    let now = try context.time()
    let (levels, unread) =
      filter.exempt ? context.machine.ownLevels(by: store, in: shared.path, at: now) : ([:], [])
    let blocked = filter.blocked ? try BlockedPeople(by: store, at: now).all : [:]
    let names = try storing { () throws(StoreTrouble) in try store.enrolledNames() }
    var (rows, broken): ([ListRow], Int) = ([], 0)
    var worst: Sysexit? = unread.isEmpty ? nil : .badData
    for path in unread {
      context.output(shared).warn("\(printable(path.utf8, limit: 255)): unread")
    }
    try storing { () throws(StoreTrouble) in
      try store.load(all: names) { name, result in
        switch result {
        case .success(let record):
          guard let record else { return }
          let enrollment = record.enrollment
          if filter.exempt, !levels[enrollment.user.text].isExempt { return }
          if filter.blocked, blocked[enrollment.user.text] == nil { return }
          let account = Account(name: enrollment.user, uid: enrollment.uid)
          let isMeant = filter.takes(enrollment, record.state, at: now) {
            context.policy(at: nil, for: account, in: store, warns: false)
          }
          if isMeant { rows.append(ListRow(enrollment, record.state)) }
        case .failure(let trouble):
          broken += 1
          worst = worst ?? tell(trouble, name, context)
        }
      }
    }
    rows.sort { $0.user.bytes.lexicographicallyPrecedes($1.user.bytes) }
    tell(
      rows, of: names.count - broken, broken: broken, at: now, context.output(shared),
      exempt: context.machine.exemptWithoutAccount(by: store, in: shared.path, at: now))
    if shared.store == nil, context.fleet?.isHost == true, !context.output(shared).isJSON {
      let hint = invocation(in: context).again("--fleet", remark: "who is enrolled in the fleet")
      context.terminal.write(Array("hint: \(hint)\n".utf8), to: .aside)
    }
    if let worst { throw CommandError(worst, "the list is incomplete") }
  }

  /// Names an enrollment that cannot be read.
  private func tell(_ trouble: StoreTrouble, _ name: StoredName, _ context: Context) -> Sysexit {
    let user = name.user.map { String(decoding: $0.bytes, as: UTF8.self) }
    let message = Message(trouble, at: Invocation(verb: "list", user: user, store: shared.store))
    context.terminal.write(Array(message.written.utf8), to: .aside)
    return message.status
  }

  private func tell(
    _ rows: [ListRow], of all: Int, broken: Int = 0, at now: UnixTime, _ output: Output,
    exempt: [String] = []
  ) {
    let head = ["USER", "AUTHENTICATORS", "BACKUP CODES", "LAST CODE"]
    let width = output.width - 52
    let cells = rows.flatMap { $0.text(at: now, width: width) }
    let lines = rows.isEmpty ? [] : table([head] + cells)
    let unread = broken > 0 ? ", \(broken) cannot be read" : ""
    let shown = exempt.map { printable($0.utf8, limit: 255) }
    let idle =
      exempt.isEmpty
      ? []
      : wrapped(["exempt, and not found: \(shown[0])"] + shown.dropFirst(), width: output.width)
    output.answer(
      Answer(users: rows.map(\.facts), unreadable: broken, exemptWithoutAccount: exempt),
      (lines + ["\(filter.count(rows.count, of: all))\(unread)"] + idle).joined(separator: "\n"))
  }
}

/// One enrollment in the list.
struct ListRow {
  let user: UserName
  private let authenticators: [String]
  private let backupCodes: Int
  private let last: Use?
  private let suspended: [Suspension]

  init(_ enrollment: Enrollment, _ state: LoginState) {
    user = enrollment.user
    authenticators = enrollment.authenticators.map(\.name.text)
    backupCodes = backupCodeCount(enrollment, state).left
    last = state.lastUse
    suspended = enrollment.suspended
  }

  /// Has several rows if the names of the authenticators do not fit in `width` columns.
  func text(at now: UnixTime, width: Int) -> [[String]] {
    let names = wrapped(authenticators, width: width)
    let when = last.map { whenText($0.time, seenFrom: now) } ?? "never"
    let first = [user.text, names.first ?? "", "\(backupCodes)", when]
    return [first] + names.dropFirst().map { ["", $0] }
  }

  struct Facts: Encodable {
    let user: String
    let authenticators: [String]
    let backupCodesLeft: Int
    @OrNull var lastLogin: UseFacts?
    /// Left out where nothing is.
    let suspended: [SuspensionFacts]?
  }

  var facts: Facts {
    Facts(
      user: user.text, authenticators: authenticators, backupCodesLeft: backupCodes,
      lastLogin: UseFacts(last),
      suspended: suspended.isEmpty ? nil : suspended.map(SuspensionFacts.init))
  }
}
