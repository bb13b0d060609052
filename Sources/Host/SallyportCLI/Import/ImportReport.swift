import OneTimePassword
import SallyportCore
import SallyportImport
import SallyportSupport
import SallyportSystem

/// The result of an import, user by user.
struct ImportReport {
  let all: [Imported]
  let source: String
  let dryRun: Bool
  /// With the words that were typed.
  let invocation: Invocation

  /// With more users than this, the text names only those who failed or got backup codes.
  static let mostLines = 200

  var failed: Int { all.count { $0.obstacles != nil } }
  var hasBackupCodes: Bool { all.contains { !$0.backupCodes.isEmpty } }
  private var taken: Int { all.count { $0.isNew } }
  private var already: Int { all.count - taken - failed }

  // MARK: text

  /// In lines of at most `width` columns, but for what is to be copied.
  func text(width: Int) -> String {
    if all.isEmpty { return "Nothing to import." }
    let isLong = all.count > ImportReport.mostLines
    let shown = isLong ? all.filter { $0.obstacles != nil || !$0.backupCodes.isEmpty } : all
    let names = min(shown.map { $0.name.unicodeScalars.count }.max() ?? 0, 32) + 3
    let rows = shown.flatMap { lines(of: $0, names, width) }
    return (rows + (isLong ? remarkCounts : []) + [summary]).joined(separator: "\n")
  }

  private func lines(of one: Imported, _ names: Int, _ width: Int) -> [String] {
    let rows = rows(of: one, width - names)
    return rows.enumerated().map { index, row in
      index == 0 ? padded(one.name, names - 3) + "   " + row : padded("", names) + row
    }
  }

  private func rows(of one: Imported, _ width: Int) -> [String] {
    if let obstacles = one.obstacles {
      return obstacles.flatMap { obstacle in
        ["not imported: \(obstacle.text)"] + one.fixes(of: obstacle, invocation)
      }
    }
    let already = one.isNew ? [] : [one.isCaughtUp ? "brought up to date" : "already imported"]
    let remarks = one.isNew ? one.person.remarks.map(\.text) : []
    let codes = columns(ofBackupCodes: one.backupCodes)
    return wrapped(already + one.authenticatorTexts + remarks, width: width) + codes
  }

  /// Each kind of remark once, with the number of users that it applies to.
  private var remarkCounts: [String] {
    var counts: [Remark: Int] = [:]
    for one in all where one.isNew {
      for remark in one.person.remarks { counts[remark, default: 0] += 1 }
    }
    let sorted = counts.sorted { ($1.value, $0.key.text) < ($0.value, $1.key.text) }
    return sorted.map { "\(counted($0.value, "user")): \($0.key.text)" }
  }

  private var summary: String {
    let parts = [
      dryRun ? "\(taken) would be imported" : "\(taken) imported",
      already > 0 ? "\(already) already imported" : nil, failed > 0 ? "\(failed) not" : nil,
    ]
    let text = parts.compactMap { $0 }.joined(separator: ", ")
    return taken > 0 ? "\(text). No second scan needed: the apps keep working." : "\(text)."
  }

  // MARK: JSON

  var facts: some Encodable {
    Facts(
      source: source, dryRun: dryRun, imported: taken, alreadyImported: already,
      notImported: failed, users: all.map { $0.facts(invocation) })
  }

  private struct Facts: Encodable {
    let source: String
    let dryRun: Bool
    let imported, alreadyImported, notImported: Int
    let users: [Imported.Facts]
  }
}

extension Imported {
  /// nil where no account has the name, and it may be a secret in the wrong place.
  var shownUser: String? {
    let isAccount = person.account?.uid != nil
    return isAccount ? printable(person.name, limit: 255) : shownName(person.name)
  }

  var name: String { shownUser ?? person.line.map { "line \($0)" } ?? "a user" }

  var isNew: Bool { if case .imported = result { true } else { false } }

  var isCaughtUp: Bool { if case .already(caughtUp: true) = result { true } else { false } }

  var obstacles: [Obstacle]? { if case .not(let obstacles) = result { obstacles } else { nil } }

  /// `phone, TOTP 6 digits 30 s`; of an app's export with the number of its entry.
  var authenticatorTexts: [String] {
    zip(person.names, person.authenticators).map { name, one in
      (one.entry.map { "entry \($0): " } ?? "") + "\(name.text), "
        + description(of: one.parameters).split(separator: ",").joined()
        + (one.isToken ? " (token)" : "")
    }
  }

  /// What to run next, or which lines to look at.
  func fixes(of obstacle: Obstacle, _ invocation: Invocation) -> [String] {
    guard shownUser != nil else { return [] }
    var own = invocation
    own.user = String(decoding: person.name, as: UTF8.self)
    return obstacle.fixes(own)
  }

  fileprivate struct Facts: Encodable {
    struct Source: Encodable {
      @OrNull var lastAccepted: UInt64?
      @OrNull var entry: Int?
      /// As in `status`: of a token alone.
      var device: String?
    }
    struct Remark: Encodable {
      let code, text: String
    }
    struct Reason: Encodable {
      let code, text: String
      let fix: [String]
    }
    @OrNull var user: String?
    @OrNull var line: Int?
    @OrNull var file: String?
    let result: String
    let authenticators: [Joined<AuthenticatorFacts, Source>]
    let scratchCodes: Int
    let backupCodes: [String]
    let remarks: [Remark]
    let reasons: [Reason]
  }

  fileprivate func facts(_ invocation: Invocation) -> Facts {
    Facts(
      user: shownUser, line: person.line, file: person.path, result: word,
      authenticators: zip(person.names, person.authenticators).map(Imported.facts),
      scratchCodes: person.scratchCodes.count, backupCodes: backupCodes,
      remarks: person.remarks.map { Facts.Remark(code: $0.code, text: $0.text) },
      reasons: (obstacles ?? []).map {
        Facts.Reason(code: $0.code, text: $0.text, fix: fixes(of: $0, invocation))
      })
  }

  private var word: String {
    switch result {
    case .imported: "imported"
    case .already(let caughtUp): caughtUp ? "brought-up-to-date" : "already-imported"
    case .not: "not-imported"
    }
  }

  private static func facts(_ name: Label, _ one: ImportedAuthenticator)
    -> Joined<AuthenticatorFacts, Facts.Source>
  {
    Joined(
      AuthenticatorFacts(one.parameters, name: name, after: one.lastAccepted),
      Facts.Source(
        lastAccepted: one.lastAccepted, entry: one.entry,
        device: one.isToken ? DeviceOption.token.rawValue : nil))
  }
}
