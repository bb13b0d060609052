import OneTimePassword
import SallyportCore

// Lines of rules that an earlier rule leaves without an effect.

extension PolicyText {
  /// A section of a valid file.
  fileprivate struct Rule {
    let name: String
    let line: Int
    var conditions: [PolicyKey: Set<[UInt8]>] = [:]
    var values: [PolicyKey: (text: [UInt8], line: Int)] = [:]
  }

  /// Values that no login goes by, as an earlier rule matches wherever theirs does and says
  /// something else; each with its line number. Only where that is certain: by the words of the
  /// conditions, and not where two rules that may match both tighten.
  func lostValues() -> [(String, Int)] {
    let rules = rules()
    return rules.enumerated().flatMap { index, rule in
      rule.values.compactMap { key, value -> (String, Int)? in
        let winner = rules[..<index].first { $0.decides(key, wherever: rule) }
        guard let winner, winner.values[key]?.text != value.text else { return nil }
        return (
          "\(key.name) has no effect: for these logins [\(winner.name)] in line \(winner.line) "
            + "comes first", value.line
        )
      }
    }
  }

  private func rules() -> [Rule] {
    var (rules, isRule) = ([Rule](), false)
    guard var lines = try? SettingsScanner(content) else { return [] }
    while let line = try? lines.next() {
      switch line {
      case .section(let name):
        isRule = !content.holds("default", in: name)
        let name = printable(content.bytes(in: name), limit: 100)
        if isRule { rules.append(Rule(name: name, line: lines.number)) }
      case .setting(let name, let value):
        let key = PolicyKey.allCases.first { content.holds($0.name, in: name) }
        guard isRule, let key, !rules.isEmpty else { continue }
        if key.isMatch {
          rules[rules.count - 1].conditions[key] = Set(words(in: value))
        } else {
          rules[rules.count - 1].values[key] = (content.bytes(in: value), lines.number)
        }
      }
    }
    return rules
  }
}

extension PolicyText.Rule {
  /// Whether it sets the key, and matches each login that the later one matches.
  func decides(_ key: PolicyKey, wherever later: PolicyText.Rule) -> Bool {
    // What the budget is made of counts wherever it stands; `verification` is none of root's in
    // some rules.
    guard !key.isOfBudget, key != .verification, values[key] != nil else { return false }
    return conditions.allSatisfy { kind, words in
      guard let others = later.conditions[kind], others.isSubset(of: words) else { return false }
      // Where it is not known whether both match, the stricter value counts.
      return !key.isTightenedInDoubt || kind == .matchService
        || kind == .matchOrigin && words.allSatisfy { PolicyText.places.contains($0) }
    }
  }
}

extension PolicyText {
  /// The origins of which it is always known whether a login comes from there.
  fileprivate static var places: [[UInt8]] { [Array("local".utf8), Array("network".utf8)] }
}
