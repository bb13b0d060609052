import OneTimePassword
import SallyportCore
import SallyportImport
import SallyportText

/// What an import has come to, user by user.
struct ImportReport {
  private let all: [Imported]
  private let source: String
  private let dryRun: Bool
  private let store: String?

  /// Of more users than these, people are told only of those who need something.
  static let mostLines = 200

  init(_ all: [Imported], source: String, dryRun: Bool, store: String?) {
    (self.all, self.source, self.dryRun, self.store) = (all, source, dryRun, store)
  }

  var failed: Int { all.count { $0.obstacles != nil } }
  var hasBackupCodes: Bool { all.contains { !$0.backupCodes.isEmpty } }
  private var taken: Int { all.count { $0.isNew } }
  private var already: Int { all.count - taken - failed }

  // MARK: for people

  var text: String {
    if all.isEmpty { return "Nothing to import." }
    let isLong = all.count > ImportReport.mostLines
    let shown = isLong ? all.filter { $0.obstacles != nil || !$0.backupCodes.isEmpty } : all
    let width = min(shown.map { $0.name.unicodeScalars.count }.max() ?? 0, 32) + 3
    let rows = shown.flatMap { lines(of: $0, width) }
    return (rows + (isLong ? remarkCounts : []) + [summary]).joined(separator: "\n")
  }

  private func lines(of one: Imported, _ width: Int) -> [String] {
    let rows = rows(of: one, 80 - width)
    return rows.enumerated().map { index, row in
      index == 0 ? padded(one.name, width - 3) + "   " + row : padded("", width) + row
    }
  }

  private func rows(of one: Imported, _ width: Int) -> [String] {
    if let obstacles = one.obstacles {
      return obstacles.flatMap { obstacle in
        ["not imported: \(obstacle.text)"] + one.fixes(of: obstacle, store: store)
      }
    }
    let already = one.isNew ? [] : [one.isCaughtUp ? "brought up to date" : "imported already"]
    let remarks = one.isNew ? one.person.remarks.map(\.text) : []
    let codes = columns(ofBackupCodes: one.backupCodes)
    return wrapped(already + one.authenticatorTexts + remarks, width: width) + codes
  }

  /// Each kind of remark once, with how many users it is about.
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
      already > 0 ? "\(already) imported already" : nil, failed > 0 ? "\(failed) not" : nil,
    ]
    let text = parts.compactMap { $0 }.joined(separator: ", ")
    return taken > 0 ? "\(text). No second scan needed: the apps keep working." : "\(text)."
  }

  // MARK: for programs

  var json: JSON {
    .object([
      ("source", .text(source)), ("dryRun", .flag(dryRun)), ("imported", .number(Int64(taken))),
      ("alreadyImported", .number(Int64(already))), ("notImported", .number(Int64(failed))),
      ("users", .list(all.map { $0.json(store: store) })),
    ])
  }
}

extension Imported {
  var name: String { printable(person.name, limit: 255) }

  var isNew: Bool {
    switch result {
    case .imported: true
    case .already, .not: false
    }
  }

  var isCaughtUp: Bool {
    switch result {
    case .already(let caughtUp): caughtUp
    case .imported, .not: false
    }
  }

  var obstacles: [Obstacle]? {
    switch result {
    case .imported, .already: nil
    case .not(let obstacles): obstacles
    }
  }

  /// `phone, TOTP 6 digits 30 s`
  var authenticatorTexts: [String] {
    zip(person.names, person.authenticators).map { name, one in
      "\(name.text), "
        + description(of: one.parameters).split(separator: ",").joined()
    }
  }

  /// Commands to type next, or lines to look at.
  func fixes(of obstacle: Obstacle, store: String?) -> [String] {
    let name = String(decoding: person.name, as: UTF8.self)
    return obstacle.fixes(Invocation(verb: "import", user: name, store: store))
  }

  fileprivate func json(store: String?) -> JSON {
    let result: String
    switch self.result {
    case .imported: result = "imported"
    case .already(let caughtUp): result = caughtUp ? "brought-up-to-date" : "already-imported"
    case .not: result = "not-imported"
    }
    return .object([
      ("user", .text(name)), ("line", person.line.map { .number(Int64($0)) } ?? .null),
      ("file", .maybe(person.path)), ("result", .text(result)),
      ("authenticators", .list(person.authenticators.indices.map(authenticator))),
      ("scratchCodes", .number(Int64(person.scratchCodes.count))),
      ("backupCodes", .list(backupCodes.map { .text($0) })),
      ("remarks", .list(person.remarks.map(\.json))),
      (
        "reasons",
        .list(
          (obstacles ?? []).map { obstacle in
            .object([
              ("code", .text(obstacle.code)), ("text", .text(obstacle.text)),
              ("fix", .list(fixes(of: obstacle, store: store).map { .text($0) })),
            ])
          })
      ),
    ])
  }

  private func authenticator(_ index: Int) -> JSON {
    let one = person.authenticators[index]
    let next = one.lastAccepted.map { $0 &+ 1 } ?? 0
    return .object(
      facts(of: one.parameters, name: person.names[index], counter: next) + [
        ("lastAccepted", one.lastAccepted.map { .counter($0) } ?? .null)
      ])
  }
}
