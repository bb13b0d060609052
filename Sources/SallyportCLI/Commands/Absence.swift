import SallyportCore
import SallyportSystem
import SallyportText

/// What there is to say about a user who is not enrolled.
struct AbsenceReport {
  private let account: Account
  private let note: UserNote
  /// Counted without an enrollment.
  private let logins: UInt32

  init(_ account: Account, _ note: UserNote, logins: UInt32) {
    (self.account, self.note, self.logins) = (account, note, logins)
  }

  var text: String {
    var rows: [[String]] = []
    if let level = note.level { rows.append(["level", levelText(level)]) }
    if logins > 0 { rows.append(["logins", "\(logins) counted, none enrolled"]) }
    let heading = "\(account.name.text), not enrolled"
    return rows.isEmpty
      ? heading : ([heading, ""] + table(rows).map { "  \($0)" }).joined(separator: "\n")
  }

  /// The members of `StatusReport` that have a value, with `enrolled` null.
  var json: JSON {
    .object([
      ("user", .text(account.name.text)),
      ("uid", account.uid.map { .number(Int64($0)) } ?? .null), ("enrolled", .null),
      ("level", fact(note.level)), ("logins", .number(Int64(logins))),
    ])
  }
}
