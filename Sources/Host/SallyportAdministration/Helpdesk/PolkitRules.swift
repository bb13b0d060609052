/// What a file of polkit's rules does, as far as its text has the usual forms.
package struct PolkitRules: Equatable {
  /// Of `addAdminRule`: the identities, in their order.
  package private(set) var administrators: [[String]] = []
  /// Of `addRule`, in their order.
  package private(set) var rules: [Rule] = []

  /// One condition with its result.
  package struct Rule: Equatable {
    /// The actions that it names; empty for every action.
    package fileprivate(set) var actions: [String] = []
    package fileprivate(set) var prefixes: [String] = []
    /// All of these must be true of the caller.
    package fileprivate(set) var users: [String] = []
    package fileprivate(set) var groups: [String] = []
    /// Only in a session that is local or active.
    package fileprivate(set) var needsSession = false
    /// `YES`, `AUTH_ADMIN` and so on.
    package fileprivate(set) var result = ""
  }
}

extension PolkitRules.Rule {
  /// Whether it decides about that action.
  package func isFor(_ action: String) -> Bool {
    actions.isEmpty && prefixes.isEmpty || actions.contains(action)
      || prefixes.contains { action.hasPrefix($0) }
  }
}

extension PolkitRules {
  /// nil: the text has something else.
  package init?(_ text: String) {
    guard let words = PolkitRules.words(text) else { return nil }
    var reader = PolkitReader(words: words[...])
    while !reader.words.isEmpty {
      guard reader.take("polkit"), reader.take(".") else { return nil }
      if reader.take("addAdminRule") {
        guard let names = reader.administrators() else { return nil }
        administrators.append(names)
      } else {
        guard reader.take("addRule"), let found = reader.rules() else { return nil }
        rules += found
      }
    }
  }

  /// Names, strings with a quote before them, and signs; nil if a string or comment has no end.
  private static func words(_ text: String) -> [String]? {
    var (words, rest) = ([String](), Substring(text))
    while let first = rest.first {
      if first.isWhitespace {
        rest.removeFirst()
      } else if rest.hasPrefix("//") {
        rest = rest.drop { !$0.isNewline }
      } else if rest.hasPrefix("/*") {
        guard let end = rest.range(after: "*/") else { return nil }
        rest = rest[end...]
      } else if first == "\"" || first == "'" {
        let inside = rest.dropFirst().prefix { $0 != first && $0 != "\\" && !$0.isNewline }
        rest = rest.dropFirst(inside.count + 1)
        guard rest.first == first else { return nil }
        rest.removeFirst()
        words.append("\"" + inside)
      } else {
        let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" }
        let sign = ["===", "==", "&&", "||"].first { rest.hasPrefix($0) }
        let word = name.isEmpty ? sign ?? String(first) : String(name)
        words.append(word)
        rest = rest.dropFirst(word.count)
      }
    }
    return words
  }
}

extension Substring {
  fileprivate func range(after end: String) -> Index? {
    var at = index(startIndex, offsetBy: 2)
    while at < endIndex {
      if self[at...].hasPrefix(end) { return index(at, offsetBy: end.count) }
      at = index(after: at)
    }
    return nil
  }
}

/// Reads the few forms of rules that are understood. Each function returns nil for anything else.
private struct PolkitReader {
  var words: ArraySlice<String>

  mutating func take(_ word: String) -> Bool {
    guard words.first == word else { return false }
    words.removeFirst()
    return true
  }

  private mutating func take(all expected: [String]) -> Bool { expected.allSatisfy { take($0) } }

  private mutating func string() -> String? {
    guard let word = words.first, word.first == "\"" else { return nil }
    words.removeFirst()
    return String(word.dropFirst())
  }

  /// `(function(action, subject) {`
  private mutating func begin() -> Bool {
    take(all: ["(", "function", "(", "action", ",", "subject", ")", "{"])
  }

  /// `});`
  private mutating func end() -> Bool {
    guard take(all: ["}", ")"]) else { return false }
    _ = take(";")
    return true
  }

  mutating func administrators() -> [String]? {
    guard begin(), take(all: ["return", "["]) else { return nil }
    var names: [String] = []
    while !take("]") {
      guard let name = string() else { return nil }
      names.append(name)
      guard take(",") || words.first == "]" else { return nil }
    }
    _ = take(";")
    return end() ? names : nil
  }

  mutating func rules() -> [PolkitRules.Rule]? {
    guard begin() else { return nil }
    var found: [PolkitRules.Rule] = []
    while words.first != "}" {
      var rule = PolkitRules.Rule()
      if take("if") {
        guard take("("), condition(&rule), take(")") else { return nil }
        let isBlock = take("{")
        guard result(&rule), !isBlock || take("}") else { return nil }
      } else {
        guard result(&rule) else { return nil }
      }
      found.append(rule)
    }
    return end() ? found : nil
  }

  /// `return polkit.Result.YES;`
  private mutating func result(_ rule: inout PolkitRules.Rule) -> Bool {
    guard take(all: ["return", "polkit", ".", "Result", "."]), let word = words.popFirst() else {
      return false
    }
    rule.result = word
    _ = take(";")
    return ["YES", "NO", "AUTH_SELF", "AUTH_SELF_KEEP", "AUTH_ADMIN", "AUTH_ADMIN_KEEP"].contains(
      word)
  }

  /// Terms with `&&` between them, of which one at most is about the action.
  private mutating func condition(_ rule: inout PolkitRules.Rule) -> Bool {
    repeat {
      let isAboutAction = words.first == "action" || words.first == "("
      if isAboutAction {
        guard rule.actions.isEmpty, rule.prefixes.isEmpty, actions(&rule) else { return false }
      } else {
        guard subject(&rule) else { return false }
      }
    } while take("&&")
    return true
  }

  /// One comparison, or several with `||` between them and parentheses around.
  private mutating func actions(_ rule: inout PolkitRules.Rule) -> Bool {
    guard take("(") else { return action(&rule) }
    repeat {
      guard action(&rule) else { return false }
    } while take("||")
    return take(")")
  }

  private mutating func action(_ rule: inout PolkitRules.Rule) -> Bool {
    guard take(all: ["action", ".", "id"]) else { return false }
    if take("==") || take("===") {
      guard let name = string() else { return false }
      rule.actions.append(name)
      return true
    }
    guard take(all: [".", "indexOf", "("]), let name = string(), take(")"),
      take("==") || take("==="), take("0")
    else { return false }
    rule.prefixes.append(name)
    return true
  }

  private mutating func subject(_ rule: inout PolkitRules.Rule) -> Bool {
    guard take(all: ["subject", "."]) else { return false }
    if take("isInGroup") {
      guard take("("), let name = string(), take(")") else { return false }
      rule.groups.append(name)
      return true
    }
    if take("user") {
      guard take("==") || take("==="), let name = string() else { return false }
      rule.users.append(name)
      return true
    }
    guard take("local") || take("active") else { return false }
    rule.needsSession = true
    return take("==") || take("===") ? take("true") : true
  }
}
