package import OneTimePassword
package import SallyportAdministration
package import SallyportCore
import SallyportSystem

/// The text of a policy file, and its path for messages.
package struct PolicyText {
  package let path: String
  package let content: Secret

  package init(_ path: String, _ content: Secret) { (self.path, self.content) = (path, content) }
}

extension PolicyText {
  /// What becomes of codes of these types; begins with a comma, or is empty.
  package static func refused(_ kinds: [FactorKind]) -> String {
    let names = kinds.map { "factor_\($0.name)" }.joined(separator: ", ")
    return kinds.isEmpty ? "" : ", without a last good file as if \(names) were off"
  }

  /// What is wrong with the groups in rules, so that a rule matches nobody, rules whose name stands
  /// before, values behind others, and the section that slows others; each with its line number.
  package func warnings(_ census: GroupCensus) -> [(String, Int)] {
    flaws(of: census).map { ($0.text, $1) } + repeatedRules() + lostValues() + slowing()
  }

  /// A section with a `guess_budget`.
  private struct BudgetSection {
    var name = "the built-in value"
    var percent: String?
    var line = 0
    /// Whether it has a condition on the service or the origin, so that the same person meets
    /// another budget elsewhere.
    var hasPlace = false
    var isDisabled = false

    var budget: Double { percent.flatMap { Double($0.dropLast()) } ?? 1 }
  }

  /// The least budget, where the same person meets it in one login and a greater one in another:
  /// the throttle goes by the least of them everywhere.
  private func slowing() -> [(String, Int)] {
    let all = budgets().filter { !$0.isDisabled }
    guard let least = all.min(by: { $0.budget < $1.budget }) else { return [] }
    let slowed = all.filter { $0.budget > least.budget && ($0.hasPlace || least.hasPlace) }
    guard let first = slowed.first else { return [] }
    let text = "guess_budget: \(least.name), \(least.percent ?? "1%"), also limits wrong codes"
    let others = slowed.map(\.name).joined(separator: ", ")
    return [("\(text) under \(others)", least.line > 0 ? least.line : first.line)]
  }

  private func budgets() -> [BudgetSection] {
    var (all, section) = ([BudgetSection](), BudgetSection())
    let lines = read { line in
      switch line {
      case .section(let name):
        if section.percent != nil { all.append(section) }
        section = BudgetSection(name: "[\(printable(content.bytes(in: name), limit: 100))]")
      case .setting(let key, let value):
        if content.holds(PolicyKey.guessBudget.name, in: key) {
          let text = String(decoding: content.bytes(in: value), as: UTF8.self)
          section.percent = text.filter { $0 != " " }
          return ""
        }
        section.isDisabled =
          section.isDisabled
          || content.holds(PolicyKey.state.name, in: key) && content.holds("disabled", in: value)
        section.hasPlace =
          section.hasPlace || content.holds(PolicyKey.matchService.name, in: key)
          || content.holds(PolicyKey.matchOrigin.name, in: key)
      }
      return nil
    }
    if section.percent != nil { all.append(section) }
    // Each section has at most one.
    for (index, line) in lines.enumerated() where index < all.count { all[index].line = line.1 }
    return all.contains { $0.name == "[default]" } ? all : [BudgetSection()] + all
  }

  /// The services in rules, each with its line number.
  package func ruleServices() -> [(String, Int)] { words(of: .matchService) }

  /// The users in rules, each with its line number.
  package func ruleUsers() -> [(String, Int)] { words(of: .matchUser) }

  private func repeatedRules() -> [(String, Int)] {
    var first: [String: Int] = [:]
    return sections().compactMap { name, line in
      guard let before = first[name] else {
        first[name] = line
        return nil
      }
      return ("\(printable(name.utf8, limit: 100)) stands in line \(before) too", line)
    }
  }

  /// Each with its line number; empty if the text is not valid.
  private func sections() -> [(String, Int)] {
    read { line in
      guard case .section(let name) = line else { return nil }
      return String(decoding: content.bytes(in: name), as: UTF8.self)
    }
  }

  /// Groups that do not exist or have no members, each with its line number.
  func flaws(of census: GroupCensus) -> [(RuleName.Flaw, Int)] {
    let all = words(of: .matchGroup)
    return Dictionary(grouping: all, by: \.1).flatMap { line, words in
      let flaws = words.compactMap { name, _ in census.flaw(of: name) }
      let whole = flaws.isEmpty ? nil : RuleName.whole(of: words.map(\.0), .group)
      return (whole.map { [$0] } ?? flaws).map { ($0, line) }
    }
  }

  /// The words of all conditions of one kind; of lines that can be read, also where others cannot,
  /// as a login reads them.
  func conditions(_ key: PolicyKey) -> [[UInt8]] {
    guard var lines = try? SettingsScanner(content) else { return [] }
    var found: [[UInt8]] = []
    while true {
      do throws(SettingsError) {
        guard let line = try lines.next() else { return found }
        guard case .setting(let name, let value) = line, content.holds(key.name, in: name) else {
          continue
        }
        found += words(in: value)
      } catch {}
    }
  }

  func words(of key: PolicyKey) -> [(String, Int)] {
    let lines = read { line -> [[UInt8]]? in
      guard case .setting(let name, let value) = line, content.holds(key.name, in: name) else {
        return nil
      }
      return words(in: value)
    }
    return lines.flatMap { words, line in words.map { (String(decoding: $0, as: UTF8.self), line) }
    }
  }

  /// The words of a value, as a login reads them.
  func words(in value: Range<Int>) -> [[UInt8]] {
    Array(sequence(state: Words(content, value)) { $0.next() })
  }

  /// The value of local_services and its line; line 0 for the built-in default.
  package func localServices() -> (services: String, line: Int) {
    if let (words, line) = values(of: .localServices).last { return (words, line) }
    let usual = Policy.usualLocalServices.map { String(decoding: $0, as: UTF8.self) }
    return (usual.joined(separator: ", "), 0)
  }

  /// The value of sshd_services and its line; line 0 for the built-in default.
  package func sshdServices() -> (services: String, line: Int) {
    values(of: .sshdServices).last.map { ($0.0, $0.1) } ?? ("sshd", 0)
  }

  /// The value of without_code and its line; "-" and line 0 for the built-in default.
  package func withoutCode() -> (words: String, line: Int) {
    values(of: PolicyFile.withoutCode).last.map { ($0.0, $0.1) } ?? ("-", 0)
  }

  /// The keys of the helpdesk that are set, each with its value and its line.
  package func helpdeskLines() -> [(key: String, words: String, line: Int)] {
    HelpdeskSettings.keys.compactMap { key in
      values(of: key).last.map { ("\(key)", $0.0, $0.1) }
    }
  }

  /// What is said of the helpdesk, also where another line has an error.
  package var helpdesk: HelpdeskSettings { HelpdeskSettings(content) }

  /// The same of the usual policy file.
  static func helpdesk(on machine: Machine) -> HelpdeskSettings {
    usual(on: machine)?.helpdesk ?? HelpdeskSettings()
  }

  /// Groups of the helpdesk that are not there, or that have nobody; each with its line.
  func helpdeskFlaws(of census: GroupCensus) -> [(RuleName.Flaw, Int)] {
    let helpdesk = helpdesk
    return [helpdesk.group, helpdesk.helped, helpdesk.never].compactMap { $0 }.flatMap { line in
      line.words.compactMap { word in
        census.flaw(of: String(decoding: word, as: UTF8.self)).map { ($0, line.number) }
      }
    }
  }

  /// As above, and that nobody is named to be helped.
  package func helpdeskWarnings(_ census: GroupCensus) -> [(String, Int)] {
    let found = helpdeskFlaws(of: census).map { ($0.text, $1) }
    guard let group = helpdesk.group, helpdesk.helped == nil else { return found }
    return found + [("without helpdesk_for the helpdesk may help nobody", group.number)]
  }

  /// Whether the usual policy file has `self_service = yes`, by default or in a rule.
  static func allowsSelfService(on machine: Machine) -> Bool {
    says(.selfService, "yes", on: machine)
  }

  /// Whether it has `verification = fleet`, by default or in a rule.
  static func namesFleet(on machine: Machine) -> Bool { says(.verification, "fleet", on: machine) }

  private static func says(_ key: PolicyKey, _ value: String, on machine: Machine) -> Bool {
    usual(on: machine)?.values(of: key).contains { $0.0 == value } ?? false
  }

  private static func usual(on machine: Machine) -> PolicyText? {
    let path = "\(Store.usualPolicy)"
    return machine.bytes(path).value.flatMap { Secret($0) }.map { PolicyText(path, $0) }
  }

  /// What to tell of each group whose rule tightens for all accounts of SSSD. Asks no name service.
  package static func unsureGroups(on machine: Machine) -> [String] {
    guard let text = usual(on: machine) else { return [] }
    let census = GroupCensus(of: machine)
    return text.words(of: .matchGroup).compactMap { name, line in
      census.unsureness(of: name).map { "\(text.path):\(line): \($0)" }
    }
  }

  /// Every line that is not valid.
  package func problems() -> [SettingsError] {
    let nobody = PolicyRequest(
      service: [], user: nil, isRemote: false, address: nil, parse: Addresses.numeric,
      membership: { _ in .no })
    var problems: [SettingsError] = []
    while let found = PolicyFile(
      content, base: Policy(), nobody, ignoringUpTo: problems.last?.line ?? 0
    ).problem {
      problems.append(found)
    }
    return problems
  }

  /// The lines with `verification = fleet`; nil where the text is not valid.
  package func fleetLines() -> [Int]? {
    guard problems().isEmpty else { return nil }
    return values(of: .verification).filter { $0.0 == "fleet" }.map(\.1)
  }

  /// Whether a rule has `verification = local` for this user in some login, of whatever service and
  /// from wherever.
  package func mayKeepHere(_ name: UserName, isMember: ([UInt8]) -> Bool) -> Bool {
    var (isKept, isLocal, fits) = (false, false, false)
    _ = read { line -> Never? in
      switch line {
      case .section(let section):
        isKept = isKept || isLocal && fits
        (isLocal, fits) = (false, !content.holds("default", in: section))
      case .setting(let key, let value):
        let words = words(in: value)
        if content.holds(PolicyKey.verification.name, in: key) {
          isLocal = content.holds("local", in: value)
        } else if content.holds(PolicyKey.matchUser.name, in: key) {
          fits = fits && words.contains(name.bytes)
        } else if content.holds(PolicyKey.matchGroup.name, in: key) {
          fits = fits && words.contains(where: isMember)
        }
      }
      return nil
    }
    return isKept || isLocal && fits
  }

  /// All values of a key, each with its line; empty if the text is not valid.
  func values(of key: PolicyKey) -> [(String, Int)] { values(of: key.name) }

  private func values(of key: StaticString) -> [(String, Int)] {
    read { line in
      guard case .setting(let name, let value) = line, content.holds(key, in: name) else {
        return nil
      }
      return String(decoding: content.bytes(in: value), as: UTF8.self)
    }
  }

  private func read<Found>(_ wanted: (SettingsLine) -> Found?) -> [(Found, Int)] {
    var found: [(Found, Int)] = []
    do throws(SettingsError) {
      var lines = try SettingsScanner(content)
      while let line = try lines.next() {
        if let text = wanted(line) { found.append((text, lines.number)) }
      }
    } catch {
      return []
    }
    return found
  }
}
