package import PAMStack

/// One result of doctor.
package struct Finding: Equatable {
  /// A stable name, for programs.
  package let id: String
  /// The service or the part of the machine that it is about.
  package let area: Area
  package let severity: Severity
  /// What was found and what it means, in one sentence.
  package let text: String
  /// The file and line that it is about.
  package var location: FileLocation?
  /// Each of them alone fixes it.
  package var fixes: [Fix] = []
  /// What it does to logins now; nil unless it is an error.
  package var effect: Effect?
  /// nil where it is no single user's.
  var ofUser: OfUser?
  /// Other services that have the same finding.
  package var alsoIn: [String] = []

  /// The sentence for many users who have the same: `before`, how many, `after`, their names.
  struct OfUser: Equatable {
    let name, before, after: String
  }
}

// Each `id` is a literal where a finding is made, and stands in the manual (Tests/Checks/findings).
extension Finding {
  init(
    _ id: String, _ area: Area, _ text: String, severity: Severity, location: FileLocation? = nil,
    fixes: [Fix] = [], effect: Effect? = nil, ofUser: OfUser? = nil
  ) {
    (self.id, self.area, self.severity, self.text) = (id, area, severity, text)
    (self.location, self.fixes, self.effect, self.ofUser) = (location, fixes, effect, ofUser)
  }

  static func error(
    _ id: String, _ area: Area, _ text: String, location: FileLocation? = nil, fixes: [Fix] = [],
    effect: Effect? = nil, ofUser: OfUser? = nil
  ) -> Finding {
    Finding(
      id, area, text, severity: .error, location: location, fixes: fixes, effect: effect,
      ofUser: ofUser)
  }

  static func warning(
    _ id: String, _ area: Area, _ text: String, location: FileLocation? = nil, fixes: [Fix] = [],
    effect: Effect? = nil, ofUser: OfUser? = nil
  ) -> Finding {
    Finding(
      id, area, text, severity: .warning, location: location, fixes: fixes, effect: effect,
      ofUser: ofUser)
  }

  /// Something that could not be examined, and is never taken for good.
  static func unseen(
    _ id: String, _ area: Area, _ text: String, fixes: [Fix] = [], ofUser: OfUser? = nil
  ) -> Finding {
    Finding(id, area, text, severity: .unseen, fixes: fixes, ofUser: ofUser)
  }

  /// Something that is as it should be.
  static func ok(_ id: String, _ area: Area, _ text: String, fixes: [Fix] = []) -> Finding {
    Finding(id, area, text, severity: .ok, fixes: fixes)
  }
}

extension Finding {
  /// Whether a report may tell of both at once.
  package func isShared(with other: Finding) -> Bool {
    guard let ofUser, let others = other.ofUser else { return false }
    return id == other.id && severity == other.severity && area == other.area
      && ofUser.before == others.before && ofUser.after == others.after
  }

  /// One that stands for this one and for `others`, which share it.
  package func together(with others: some Collection<Finding>) -> Finding {
    guard !others.isEmpty, let ofUser else { return self }
    let names = [ofUser.name] + others.compactMap(\.ofUser?.name)
    let text = "\(ofUser.before)\(names.count) users \(ofUser.after): \(listed(names, 2))"
    let more = Fix.advice("the same for the others: sallyport doctor --json has each command")
    return Finding(
      id, area, text, severity: severity, location: location,
      fixes: fixes.isEmpty ? [] : fixes + [more])
  }
}

extension Finding {
  /// The services that have it; empty if it is about none.
  package var services: [String] {
    if case .service(let name) = area { [name] + alsoIn } else { [] }
  }
}

/// What a finding is about, in the order of the report.
package enum Area: Hashable, Comparable {
  case service(String)
  case policy, people, store, clock, module, daemon, machine

  package var name: String {
    switch self {
    case .service(let name): name
    case .policy: "policy"
    case .people: "people"
    case .store: "store"
    case .clock: "clock"
    case .module: "module"
    case .daemon: "sallyportd"
    case .machine: "machine"
    }
  }
}

/// How bad a finding is. The worst one decides the exit status.
package enum Severity: Comparable, CaseIterable, Sendable {
  case ok
  /// It could not be examined.
  case unseen
  case warning
  /// It locks somebody out, or lets somebody in without a code.
  case error
}

extension Severity {
  /// The exit status of doctor for it.
  package var status: Int32 {
    switch self {
    case .ok: 0
    case .unseen, .warning: 1
    case .error: 2
    }
  }
}

/// What an error does to logins.
package struct Effect: Equatable, Encodable {
  /// Whether too few get in, or too many.
  package enum Kind: String, Encodable {
    case locksOut, letsIn
  }

  package let kind: Kind
  let who: String

  /// Who cannot log in.
  static func locksOut(_ who: String) -> Effect { Effect(kind: .locksOut, who: who) }
  /// Who gets in without a code.
  static func letsIn(_ who: String) -> Effect { Effect(kind: .letsIn, who: who) }
}

/// Joins names for a sentence, at most the first `count`.
package func listed(_ names: [String], _ count: Int = 5) -> String {
  let shown = names.prefix(count).joined(separator: ", ")
  return names.count > count ? "\(shown) and \(names.count - count) more" : shown
}

/// Something that makes a finding go away.
package struct Fix: Equatable, Encodable {
  /// How it is shown.
  package enum Kind: String, Encodable {
    case command, line, add, advice
  }

  package let kind: Kind
  package let text: String
  /// Those of a sentence between which a line may end: words, and commands.
  package let parts: [String]

  private enum CodingKeys: CodingKey { case kind, text }

  private init(kind: Kind, text: String) { self.init(kind: kind, parts: [text]) }

  private init(kind: Kind, parts: [String]) {
    (self.kind, text, self.parts) = (kind, parts.joined(separator: " "), parts)
  }

  /// A command to run as root.
  static func command(_ text: String) -> Fix { Fix(kind: .command, text: text) }
  /// A line to write in place of the one that the finding is about.
  static func line(_ text: String) -> Fix { Fix(kind: .line, text: text) }
  /// A line to add at the top of the file that the finding is about.
  static func add(_ text: String) -> Fix { Fix(kind: .add, text: text) }
  /// Something that a command cannot do.
  static func advice(_ text: String) -> Fix {
    advice(parts: text.split(separator: " ").map(String.init))
  }
  /// As above; a command among the parts stays on one line.
  static func advice(parts: [String]) -> Fix { Fix(kind: .advice, parts: parts) }
  /// `words`: of `without_code`.
  static func meant(_ words: [String]) -> Fix {
    .advice(parts: [
      "to allow it:", "without_code = \(words.joined(separator: ", "))", "in [default],",
      "by sallyport config edit",
    ])
  }
}
