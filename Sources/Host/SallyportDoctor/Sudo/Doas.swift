import PAMStack

/// What /etc/doas.conf of doas says. Of the rules for an account, a target and a command the last
/// counts, and it refuses where none is.
struct Doas: Equatable {
  struct Rule: Equatable {
    let location: FileLocation
    let permits: Bool
    let asksNothing: Bool
    /// A user, `:group`, or the number of either.
    let identity: String
    /// nil: everybody.
    let target: String?
    /// nil: all.
    let command: Command?
  }

  struct Command: Equatable {
    let name: String
    /// nil: any.
    let arguments: [String]?

    func includes(_ other: Command) -> Bool {
      name == other.name && (arguments == nil || arguments == other.arguments)
    }
  }

  static let file = "/etc/doas.conf"
  static let service = "doas"

  private(set) var rules: [Rule] = []
  /// Why doas itself runs nothing: the file is not its own, or it cannot parse it.
  private(set) var fault: FileLocation?
  private var gap: RuleGap?
  /// Whether there is such a file.
  private(set) var isThere = true
  private let uids: [String: UInt32]
  private let gids: [String: UInt32]
  private let accounts: AccountFacts

  init(of machine: Machine, _ accounts: AccountFacts) {
    self.accounts = accounts
    let users = accounts.accounts.map { ($0.name, $0.uid) }
    uids = Dictionary(users) { first, _ in first }
    gids = Dictionary(accounts.groups.map { ($0.name, $0.number) }) { first, _ in first }
    switch machine.text(Doas.file) {
    case .absent: isThere = false
    case .unseen(let reason): gap = .file(reason)
    case .seen(let text):
      let facts = machine.file(Doas.file).value
      let isForeign = machine.root.isEmpty && facts?.owner != 0
      if isForeign || facts?.isOthersToWrite == true { fault = FileLocation(file: Doas.file) }
      for (number, words) in Doas.lines(text) {
        take(words, FileLocation(file: Doas.file, line: number))
      }
      // doas does not take a rule without the end of its line.
      let lines = linesOf(text)
      if let last = lines.last, !Doas.lines(String(last)).isEmpty {
        fault = fault ?? FileLocation(file: Doas.file, line: lines.count)
      }
    }
  }

  /// What doas does when the account becomes the target: root unless another is named.
  func rules(
    for account: AccountFacts.Account, as target: AccountFacts.Account? = nil
  ) -> RootRules {
    var rules = RootRules()
    if let gap { rules.shell = .unseen(gap) }
    guard gap == nil, fault == nil else { return rules }
    let others = self.rules.filter { rule in
      rule.target.map { number($0, uids) == target?.uid ?? 0 } ?? true
    }
    rules.shell = answer(account, others.filter { $0.command == nil })
    for command in others.compactMap(\.command) {
      rules.add(answer(account, others.filter { $0.command?.includes(command) != false }))
    }
    return rules
  }

  /// What the last rule does that is for the account. Where that is not known of a rule, those
  /// before it may count as well.
  private func answer(_ account: AccountFacts.Account, _ rules: [Rule]) -> RootRule {
    var (maybe, gap): ([RootRule], RuleGap?) = ([], nil)
    var last = RootRule.none
    for rule in rules.reversed() {
      let isMeant = includes(account, rule.identity)
      if isMeant == false { continue }
      last = Doas.answer(rule)
      if isMeant == true { break }
      maybe.append(last)
      gap = .group(String(rule.identity.dropFirst()))
      last = .none
    }
    guard let gap, !maybe.allSatisfy({ $0.isLike(last) }) else { return last }
    return .unseen(gap)
  }

  private static func answer(_ rule: Rule) -> RootRule {
    let check = RootCheck(service: service)
    if !rule.permits { return .none }
    return rule.asksNothing
      ? .asksNothing(.nopass, check, rule.location) : .asks(check, rule.location)
  }

  /// As doas, which compares numbers: names stand for those that the accounts have. nil if the
  /// account may be in the group.
  private func includes(_ account: AccountFacts.Account, _ identity: String) -> Bool? {
    guard identity.hasPrefix(":") else { return number(identity, uids) == account.uid }
    let group = number(String(identity.dropFirst()), gids)
    if let group, group == account.group || account.groups.contains(group) { return true }
    return accounts.knowsGroups(of: account) ? false : nil
  }

  private func number(_ name: String, _ known: [String: UInt32]) -> UInt32? {
    known[name] ?? UInt32(name)
  }

  // MARK: the file

  /// A word, or the end of a line.
  private struct Word {
    var text = ""
    /// Whether a part is quoted: it is then no keyword.
    var isQuoted = false

    func isKeyword(_ word: String) -> Bool { !isQuoted && text == word }
    var isOption: Bool {
      !isQuoted && ["nopass", "nolog", "persist", "keepenv", "setenv"].contains(text)
    }
    /// Whether it is no name.
    var isReserved: Bool {
      isOption || !isQuoted && ["permit", "deny", "as", "cmd", "args", "{", "}"].contains(text)
    }
  }

  /// The words of each line, continued lines as one; with the number of the first.
  private static func lines(_ text: String) -> [(Int, [Word])] {
    var (lines, words, word): ([(Int, [Word])], [Word], Word?) = ([], [], nil)
    var (number, start) = (1, 1)
    var (isQuoted, isEscaped, isComment) = (false, false, false)
    // doas takes the word after a continued line for no keyword.
    var isContinued = false
    func endWord() {
      if let done = word { words.append(done) }
      word = nil
    }
    for character in text + "\n" {
      if character == "\n" {
        if isEscaped, !isComment {
          (isEscaped, isContinued, number) = (false, true, number + 1)
          continue
        }
        endWord()
        lines.append((start, words))
        (words, number, isComment, isQuoted) = ([], number + 1, false, false)
        start = number
      } else if isComment {
        continue
      } else if isEscaped {
        word = Word(
          text: (word?.text ?? "") + String(character), isQuoted: word?.isQuoted ?? isContinued)
        (isEscaped, isContinued) = (false, false)
      } else if character == "\\" {
        isEscaped = true
      } else if character == "\"" {
        isQuoted.toggle()
        word = Word(text: word?.text ?? "", isQuoted: true)
      } else if isQuoted {
        word?.text.append(character)
      } else if character == "#" {
        endWord()
        isComment = true
      } else if character == " " || character == "\t" {
        endWord()
      } else if character == "{" || character == "}" {
        endWord()
        words.append(Word(text: String(character)))
      } else {
        word = Word(
          text: (word?.text ?? "") + String(character), isQuoted: word?.isQuoted ?? isContinued)
        isContinued = false
      }
    }
    return lines.filter { !$0.1.isEmpty }
  }

  /// `permit|deny [OPTION..] IDENTITY [as TARGET] [cmd COMMAND [args ..]]`; doas runs nothing if it
  /// cannot parse a line.
  private mutating func take(_ words: [Word], _ location: FileLocation) {
    var rest = words[...]
    func next(_ keyword: String) -> Bool {
      guard rest.first?.isKeyword(keyword) == true else { return false }
      rest = rest.dropFirst()
      return true
    }
    func name() -> String? {
      guard let word = rest.first, !word.isReserved else { return nil }
      return rest.popFirst()?.text
    }
    let permits = next("permit")
    guard permits || next("deny") else {
      fault = fault ?? location
      return
    }
    var options: Set<String> = []
    while permits, let option = rest.first, option.isOption {
      rest = rest.dropFirst()
      options.insert(option.text)
      if option.text == "setenv", next("{") {
        while name() != nil { continue }
        if !next("}") { fault = fault ?? location }
      }
    }
    let identity = name()
    let target = next("as") ? name() ?? "" : nil
    let command = next("cmd") ? name() ?? "" : nil
    var arguments: [String]?
    if command != nil, next("args") {
      arguments = []
      while let argument = name() { arguments?.append(argument) }
    }
    guard rest.isEmpty, target != "", command != "",
      !options.isSuperset(of: ["nopass", "persist"]), let identity
    else {
      fault = fault ?? location
      return
    }
    rules.append(
      Rule(
        location: location, permits: permits, asksNothing: options.contains("nopass"),
        identity: identity, target: target,
        command: command.map { Command(name: $0, arguments: arguments) }))
  }
}
