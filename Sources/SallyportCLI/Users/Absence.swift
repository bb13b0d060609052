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
    if logins > 0 { rows.append(["logins", "\(logins) without an enrollment"]) }
    let heading = "\(account.name.text), not enrolled"
    return rows.isEmpty
      ? heading : ([heading, ""] + table(rows).map { "  \($0)" }).joined(separator: "\n")
  }

  /// The members of `StatusReport` that have a value, with `enrolled` null.
  var facts: some Encodable {
    Facts(
      user: account.name.text, uid: account.uid, level: LevelFacts(note.level), logins: logins)
  }

  private struct Facts: Encodable {
    let user: String
    @OrNull var uid: UInt32?
    @OrNull var enrolled: String?
    @OrNull var level: LevelFacts?
    let logins: UInt32
  }
}
