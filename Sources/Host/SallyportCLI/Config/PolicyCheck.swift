import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// What is wrong in a policy file. With errors it is not installed; they hide the warnings.
struct PolicyCheck: Encodable {
  struct Flaw: Encodable {
    let file: String
    let line: Int
    let text: String
  }

  private(set) var errors: [Flaw] = []
  private(set) var warnings: [Flaw] = []
  /// Whether logins go by the file in spite of its errors.
  private let isUsed: Bool

  private enum CodingKeys: String, CodingKey { case errors, warnings }

  init(_ text: PolicyText, _ context: Context) {
    let problems = text.problems()
    isUsed = problems.isEmpty
    let own = text.purposeProblems() + text.helpdesk.problems
    let all = (problems + own).sorted { $0.line < $1.line }
    errors = all.map { Flaw(file: text.path, line: $0.line, text: $0.sentence) }
    if !errors.isEmpty { return }
    let census = GroupCensus(of: context.machine, context.usualStore)
    let found =
      text.warnings(census) + text.helpdeskWarnings(census)
      + PolicyCheck.strangeServices(in: text, context.stacks)
      + PolicyCheck.idlePurposes(in: text, context) + PolicyCheck.strangeUsers(in: text, context)
    let catalogs = text.languageWarnings(in: context.usualStore, under: context.stacks.root)
    warnings =
      found.sorted { $0.1 < $1.1 }.map { Flaw(file: text.path, line: $1, text: $0) }
      + catalogs.map { Flaw(file: $0.file, line: $0.line, text: $0.text) }
  }

  /// Services in rules and in `without_code` that have no file, where PAM has any at all.
  private static func strangeServices(in text: PolicyText, _ stacks: StackDirectory)
    -> [(String, Int)]
  {
    // The policy of the command, and of sallyportd for programs that are not root.
    let own = ["sallyport", "sallyport-user"]
    let known = stacks.services()
    let ways = text.purposes().map { ($0.way, $0.location.line ?? 0) }
    return (text.ruleServices() + ways).compactMap { name, line in
      if known.isEmpty || (known + own).contains(name) { return nil }
      let meant = Likeness.service(name, among: known).map { ". Did you mean: \($0)" } ?? ""
      return ("there is no service \(shown(name))\(meant)", line)
    }
  }

  /// Words of `without_code` without an effect: their account is not there, or hosts go by their
  /// own files.
  private static func idlePurposes(in text: PolicyText, _ context: Context) -> [(String, Int)] {
    if isVerifiers(text) {
      let lines = Set(text.purposes().compactMap(\.location.line))
      return lines.map { ("without_code has no effect on a verifier", $0) }
    }
    return text.purposes().filter { isAbsent($0.account, context) }.map { purpose in
      ("there is no account \(shown(purpose.account))", purpose.location.line ?? 0)
    }
  }

  private static func isVerifiers(_ text: PolicyText) -> Bool {
    let directory = text.path.lastIndex(of: "/").map { text.path[...$0] } ?? ""
    return (try? facts(of: directory + "identity.key")) != nil
  }

  private static func shown(_ name: String) -> String {
    mayHoldSecret(name.utf8) ? "of this name" : printable(name.utf8, limit: 100)
  }

  /// Words of `match_user` that are no account's own name, so that no login matches them. A
  /// verifier's are accounts of its hosts.
  private static func strangeUsers(in text: PolicyText, _ context: Context) -> [(String, Int)] {
    var found: [(word: String, text: String, line: Int)] = []
    // A source that does not answer is not asked again: each time it may take long.
    var isAnswered = !isVerifiers(text)
    for (word, line) in text.ruleUsers() where isAnswered {
      guard let flaw = RuleName.flaw(ofAccount: word, on: context.machine) else { continue }
      isAnswered = flaw.doubt != .unanswered
      let more = isAnswered ? "" : "; the names after it are not looked up"
      found.append((word, "match_user: \(flaw.text)\(more)", line))
    }
    return Dictionary(grouping: found, by: \.line).flatMap { line, flaws in
      let words = text.ruleUsers().filter { $0.1 == line }.map(\.0)
      let whole = RuleName.whole(of: words, .account)
      return whole.map { [("match_user: \($0.text)", line)] } ?? flaws.map { ($0.text, line) }
    }
  }

  /// Not if that cannot be known.
  private static func isAbsent(_ account: String, _ context: Context) -> Bool {
    do throws(CommandError) { return try context.account(account).uid == nil } catch {
      return false
    }
  }

  /// Prints each on standard error, where there is a terminal for that. Throws if there are errors.
  func tell(_ terminal: (any Terminal)?) throws(CommandError) {
    let lines =
      errors.map { (($0, "")) } + warnings.map { (($0, "warning: ")) }
    for (flaw, kind) in lines {
      let file = printable(flaw.file.utf8, limit: 255)
      terminal?.write(Array("\(file):\(flaw.line): \(kind)\(flaw.text)\n".utf8), to: .aside)
    }
    guard let file = errors.first?.file else { return }
    let shown = printable(file.utf8, limit: 255)
    let count = counted(errors.count, "error")
    throw CommandError(
      .configuration, "\(shown) \(isUsed ? "has \(count)" : "cannot be used: \(count)")")
  }
}

extension SettingsError {
  fileprivate var sentence: String {
    // Of a file that is no policy at all, it may be anything.
    if found.isEmpty || mayHoldSecret(found) { return problem.text }
    return
      "\(problem.text), found \"\(printable(found))\"\(meant.map { ". Did you mean: \($0)" } ?? "")"
  }

  /// The key or the section of a policy file that an unknown one was probably meant to be.
  private var meant: String? {
    let typed = String(decoding: found, as: UTF8.self)
    if case .unknownKey = problem {
      let keys =
        PolicyKey.allCases.map { "\($0.name)" } + ["\(PolicyFile.withoutCode)"]
        + HelpdeskSettings.keys.map { "\($0)" }
      return Likeness.nearest(to: typed, among: keys)
    }
    guard case .unknownSection = problem else { return nil }
    let words = typed.split(separator: " ", maxSplits: 1).map(String.init)
    if words.count > 1, Likeness.nearest(to: words[0], among: ["rule"]) != nil {
      return "[rule \(printable(words[1].utf8, limit: 64))]"
    }
    return Likeness.nearest(to: typed, among: ["default"]).map { "[\($0)]" }
  }
}
