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
    let (levels, all) = context.machine.ownLevels(by: store, in: shared.path, at: now)
    let unread = filter.exempt ? all : []
    let blocked = try blocked(by: store, at: now, context)
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
          let user = enrollment.user.text
          if isMeant {
            rows.append(
              ListRow(enrollment, record.state, level: levels[user], blocked: blocked[user]))
          }
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

  /// By name. What cannot be read keeps nobody from being listed, but where it is asked for.
  private func blocked(by store: Store, at now: UnixTime, _ context: Context)
    throws(CommandError) -> [String: Store.Blocked]
  {
    do throws(CommandError) { return try BlockedPeople(by: store, at: now).all } catch {
      if filter.blocked { throw error }
      context.output(shared).warn("who is blocked cannot be read: sallyport list --blocked")
      return [:]
    }
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
  private let tokens: [Facts.Token]
  private let backupCodes: Int
  private let last: Use?
  private let suspended: [Suspension]
  /// As root has set it.
  private let level: UserNote.Level?
  /// nil where it has ended.
  private let blocked: Store.Blocked?

  init(
    _ enrollment: Enrollment, _ state: LoginState, level: UserNote.Level?, blocked: Store.Blocked?
  ) {
    (self.level, self.blocked) = (level, blocked)
    user = enrollment.user
    authenticators = enrollment.authenticators.map(\.name.text)
    tokens = zip(enrollment.authenticators, state.authenticators).compactMap { one, values in
      values.clock.map { Facts.Token(authenticator: one.name.text, clockOffset: $0.offset) }
    }
    backupCodes = backupCodeCount(enrollment, state).left
    last = state.lastUse
    suspended = enrollment.suspended
  }

  /// Has several rows if the names of the authenticators do not fit in `width` columns.
  func text(at now: UnixTime, width: Int) -> [[String]] {
    let names = wrapped(authenticators, width: width)
    let when = last.map { whenText($0.time, seenFrom: now) } ?? "never"
    let marks = stateText(isBlocked: blocked != nil, isExempt: level.isExempt(at: now))
    let first = [user.text, names.first ?? "", "\(backupCodes)", when] + marks
    return [first] + names.dropFirst().map { ["", $0] }
  }

  struct Facts: Encodable {
    let user: String
    let authenticators: [String]
    let backupCodesLeft: Int
    @OrNull var lastLogin: UseFacts?
    @OrNull var level: LevelFacts?
    @OrNull var blocked: BlockFacts?
    /// Left out where nothing is.
    let suspended: [SuspensionFacts]?
    /// The same.
    let tokens: [Token]?

    struct Token: Encodable {
      let authenticator: String
      /// In seconds, as in `status`.
      let clockOffset: Int32
    }
  }

  var facts: Facts {
    Facts(
      user: user.text, authenticators: authenticators, backupCodesLeft: backupCodes,
      lastLogin: UseFacts(last), level: LevelFacts(level), blocked: BlockFacts(blocked),
      suspended: suspended.isEmpty ? nil : suspended.map(SuspensionFacts.init),
      tokens: tokens.isEmpty ? nil : tokens)
  }
}

/// The last cell of somebody who is enrolled; none where nothing is to be said.
func stateText(isBlocked: Bool, isExempt: Bool) -> [String] {
  let marks = [isBlocked ? "blocked" : nil, isExempt ? "exempt" : nil].compactMap { $0 }
  return marks.isEmpty ? [] : [marks.joined(separator: ", ")]
}
