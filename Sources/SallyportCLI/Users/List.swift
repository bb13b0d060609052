import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportSystem
import SallyportText

/// `sallyport list`
struct List: Verb {
  static let configuration = CommandConfiguration(abstract: "List all enrolled users.")

  @OptionGroup var shared: StoreOptions

  private struct Answer: Encodable {
    let users: [ListRow.Facts]
    let unreadable: Int
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    let names = try storing { () throws(StoreTrouble) in try store.enrolledNames() }
    var rows: [ListRow] = []
    var worst: Sysexit?
    try storing { () throws(StoreTrouble) in
      try store.load(all: names) { name, result in
        switch result {
        case .success(let record): if let record { rows.append(ListRow(record)) }
        case .failure(let trouble): worst = worst ?? tell(trouble, name, context)
        }
      }
    }
    rows.sort { $0.user.bytes.lexicographicallyPrecedes($1.user.bytes) }
    tell(rows, broken: names.count - rows.count, at: try context.time(), context.output(shared))
    if let worst { throw .listIncomplete(worst) }
  }

  /// Names an enrollment that cannot be read.
  private func tell(_ trouble: StoreTrouble, _ name: StoredName, _ context: Context) -> Sysexit {
    let user = name.user.map { String(decoding: $0.bytes, as: UTF8.self) }
    let message = Message(trouble, at: Invocation(verb: "list", user: user, store: shared.store))
    context.terminal.write(Array(message.written.utf8), to: .aside)
    return message.status
  }

  private func tell(_ rows: [ListRow], broken: Int, at now: UnixTime, _ output: Output) {
    let head = ["USER", "AUTHENTICATORS", "BACKUP CODES", "LAST CODE"]
    let width = output.width - 52
    let cells = rows.flatMap { $0.text(at: now, width: width) }
    let lines = rows.isEmpty ? [] : table([head] + cells)
    let unread = broken > 0 ? ", \(broken) cannot be read" : ""
    output.answer(
      Answer(users: rows.map(\.facts), unreadable: broken),
      (lines + ["\(rows.count) enrolled\(unread)"]).joined(separator: "\n"))
  }
}

/// One enrollment in the list.
struct ListRow {
  let user: UserName
  private let authenticators: [String]
  private let backupCodes: Int
  private let last: Use?

  init(_ record: Record) {
    user = record.enrollment.user
    authenticators = record.enrollment.authenticators.map(\.name.text)
    backupCodes = backupCodeCount(record.enrollment, record.state).left
    last = record.state.lastUse
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
  }

  var facts: Facts {
    Facts(
      user: user.text, authenticators: authenticators, backupCodesLeft: backupCodes,
      lastLogin: UseFacts(last))
  }
}
