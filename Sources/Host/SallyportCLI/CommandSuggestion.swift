import SallyportSupport

/// The command line that the user probably meant, if the given one cannot be parsed.
struct CommandSuggestion: Equatable {
  /// What is wrong, if that can be said better than the parser does.
  var fault: String?
  /// The words after `sallyport`; nil if there is no good guess.
  var words: [String]?

  /// The line to copy, quoted for the shell.
  var text: String? {
    words.map { (["sallyport"] + $0.map(shellQuoted)).joined(separator: " ") }
  }

  /// `problem` is the parser's message.
  init(for arguments: [String], problem: String, among verbs: VerbTree) {
    guard let first = arguments.first, !first.hasPrefix("-") else {
      self.init(option: arguments, problem)
      return
    }
    guard let inner = verbs.inner[first] else {
      self.init(fault: "no command '\(first)'")
      words = CommandSuggestion.words(for: first, Array(arguments.dropFirst()), among: verbs)
      return
    }
    if let help = CommandSuggestion.help(first, arguments, among: inner) {
      self.init(fault: "no command '\(arguments.prefix(2).joined(separator: " "))'")
      words = help
      return
    }
    if !inner.isEmpty, let second = arguments.dropFirst().first, !second.hasPrefix("-"),
      !inner.contains(second)
    {
      self.init(fault: "no command '\(first) \(second)'")
      let known = CommandSuggestion.synonyms(under: first)
      let meant =
        known[second.lowercased()]
        ?? Likeness.nearest(to: second, among: inner + known.keys.sorted())
        .map { known[$0] ?? $0 }
      words = meant.map { [first, $0] + arguments.dropFirst(2) }
      return
    }
    self.init(verb: first, Array(arguments.dropFirst()), problem)
  }

  private init(fault: String?) { self.fault = fault }

  /// The line that was probably meant, if it can be parsed; with the name of what it still lacks.
  /// `parse`: why words cannot be, nil if they can.
  static func parsing(
    _ arguments: [String], problem: String, among verbs: VerbTree, _ parse: ([String]) -> String?
  ) -> CommandSuggestion {
    var line = CommandSuggestion(for: arguments, problem: problem, among: verbs)
    for _ in 0..<3 {
      guard let words = line.words, let problem = parse(words) else { return line }
      if let name = lacking(problem) {
        line.words = words + [name]
      } else if isHopeless(problem) {
        line.words = CommandSuggestion(for: words, problem: problem, among: verbs).words
      } else {
        return line
      }
    }
    return line.words.flatMap(parse).map(isHopeless) == true
      ? CommandSuggestion(fault: line.fault) : line
  }

  /// Whether a line is wrong, rather than not complete.
  private static func isHopeless(_ problem: String) -> Bool {
    let text = problem.lowercased()
    return ["unknown option", "unexpected argument", "missing value"].contains(where: text.contains)
  }

  /// `SERVICE`, where the parser misses an argument of that name.
  private static func lacking(_ problem: String) -> String? {
    guard problem.hasPrefix("Missing expected argument") else { return nil }
    return problem.split(separator: "<").dropFirst().first?.split(separator: ">").first?
      .uppercased()
  }

  /// `pam help enable`
  private static func help(_ verb: String, _ arguments: [String], among inner: [String])
    -> [String]?
  {
    guard !inner.isEmpty, arguments.dropFirst().first == "help" else { return nil }
    return [verb] + arguments.dropFirst(2).prefix(1) + ["--help"]
  }

  /// For a known verb with arguments that it does not take.
  private init(verb: String, _ rest: [String], _ problem: String) {
    self.init(option: [verb] + rest, problem)
    let (user, others) = CommandSuggestion.user(in: rest)
    if let line = CommandSuggestion.withoutCode(verb, rest) {
      fault = "a code is not taken from the command line, which others can read"
      words = [verb] + line
      return
    }
    switch verb {
    case "pam":
      guard ["confirm", "revert", "status"].contains(rest.first),
        CommandSuggestion.unexpected(problem) != nil
      else { break }
      words = [verb] + rest.prefix(1) + rest.dropFirst().filter { $0.hasPrefix("-") }
    case "list":
      guard let name = user ?? CommandSuggestion.unexpected(problem) else { break }
      words = ["status", name] + others.filter { $0 != name }
    case "status" where others.contains("--all"), "status" where others.contains("-a"):
      words = ["list"]
    case "doctor" where user != nil: words = ["status"] + [user].compactMap { $0 }
    case "enroll" where others.contains("--reset"), "enroll" where others.contains("--replace"):
      words =
        [verb] + [user].compactMap { $0 }
        + others.map { ["--reset", "--replace"].contains($0) ? "--force" : $0 }
    case _: break
    }
  }

  /// `verify alice 123456`: the same without the code, if there is one.
  private static func withoutCode(_ verb: String, _ rest: [String]) -> [String]? {
    guard ["verify", "unenroll", "add", "remove", "resync"].contains(verb) else { return nil }
    var kept: [String] = []
    var left = rest[...]
    while let word = left.popFirst() {
      if word == "--code" {
        _ = left.popFirst()
      } else if !word.hasPrefix("--code="), kept.isEmpty || !isCode(word) {
        kept.append(word)
      }
    }
    return kept == rest ? nil : kept
  }

  /// As far as can be told: a code, a part of one, or a backup code.
  private static func isCode(_ word: String) -> Bool {
    let bare = word.filter { $0 != "-" }
    let isBackupCode = bare.count == 16 && bare.allSatisfy { $0.isLetter || $0.isNumber }
    return isBackupCode && bare != word || word.count >= 3 && word.allSatisfy(\.isNumber)
  }

  /// The first argument that the parser says it did not expect.
  private static func unexpected(_ problem: String) -> String? {
    guard problem.lowercased().contains("unexpected argument") else { return nil }
    return problem.split(separator: "'", omittingEmptySubsequences: false).dropFirst().first
      .map(String.init)
  }

  /// The whole line with the option that the parser suggests.
  private init(option arguments: [String], _ problem: String) {
    let quoted = problem.split(separator: "'", omittingEmptySubsequences: false).map(String.init)
    guard problem.hasPrefix("Unknown option"), quoted.count > 3,
      let at = arguments.firstIndex(where: { $0 == quoted[1] || $0.hasPrefix("\(quoted[1])=") })
    else { return }
    fault = "unknown option '\(quoted[1])'"
    let bare = quoted.map { $0.drop { $0 == "-" } }
    guard Likeness.nearest(to: String(bare[1]), among: [String(bare[3])]) != nil else { return }
    var line = arguments
    line[at] = quoted[3] + line[at].dropFirst(quoted[1].count)
    words = line
  }
}

/// The verbs by name, with their subcommands.
struct VerbTree {
  let inner: [String: [String]]
}

// MARK: - Words for verbs

extension CommandSuggestion {
  /// For an unknown verb: the line with the verb that was probably meant.
  private static func words(for unknown: String, _ rest: [String], among verbs: VerbTree)
    -> [String]?
  {
    let typed = unknown.lowercased()
    if typed == "help" || typed == "?" { return ["--help"] }
    if typed == "version" { return ["--version"] }
    if typed == "completion" || typed == "completions" {
      return ["--generate-completion-script"] + (rest.isEmpty ? ["bash"] : rest)
    }
    let (user, others) = user(in: rest)
    let about = [user].compactMap { $0 } + others
    let plain = about.filter { !$0.hasPrefix("-") }
    if ["delete", "del", "rm", "revoke", "drop"].contains(typed) {
      return [plain.count > 1 ? "remove" : "unenroll"] + about
    }
    if ["test", "check", "validate"].contains(typed) {
      return (plain.isEmpty ? ["doctor"] : ["verify"]) + about
    }
    let synonyms = synonyms()
    if let meant = synonyms[typed] { return line(meant, about) }
    for (verb, inner) in verbs.inner.sorted(by: { $0.key < $1.key }) where inner.contains(typed) {
      return [verb, typed] + rest
    }
    let names = verbs.inner.keys.sorted()
    let near = Likeness.nearest(to: typed, among: names + synonyms.keys.sorted())
    guard let near else { return nil }
    return synonyms[near].map { line($0, about) } ?? [near] + (near == "import" ? rest : about)
  }

  /// Puts the options of `meant` after the user and the other words.
  private static func line(_ meant: String, _ about: [String]) -> [String] {
    let meant = meant.split(separator: " ").map(String.init)
    return meant.filter { !$0.hasPrefix("-") } + about + meant.filter { $0.hasPrefix("-") }
  }

  /// The value of `--user`, and the other words.
  private static func user(in words: [String]) -> (String?, [String]) {
    var (user, others): (String?, [String]) = (nil, [])
    var left = words[...]
    while let word = left.popFirst() {
      if word == "--user" || word == "-u" {
        user = left.popFirst()
      } else if word.hasPrefix("--user=") {
        user = String(word.dropFirst("--user=".count))
      } else {
        others.append(word)
      }
    }
    return (user, others)
  }

  /// What other words mean, by the verb that they follow; "" for none.
  private static func synonyms(under verb: String = "") -> [String: String] {
    var meanings: [String: String] = [:]
    for (meant, words) in words[verb] ?? [:] {
      for word in words.split(separator: " ") { meanings[String(word)] = meant }
    }
    return meanings
  }

  /// Verbs of other programs, and other likely words.
  private static let words: [String: KeyValuePairs<String, String>] = [
    "": [
      "enroll": "new create register setup init generate enrollment",
      "enroll --force": "lost reset replace renew",
      "status": "show info get",
      // A secret is shown only once, so another device gets its own.
      "add": "export qr qrcode uri",
      "fleet status": "verifiers cluster",
      "list": "ls users who",
      "backup-codes": "codes backup recovery recovery-codes scratch",
      "backup-codes --regenerate": "regenerate",
      "resync": "sync resynchronize resynchronise",
      "unlock": "unblock unban clear",
      "require": "mandatory enforce", "exempt": "skip optional bypass",
      "pam enable": "on activate", "pam disable": "off deactivate",
      "config show": "policy conf settings",
      "import": "migrate", "doctor": "diagnose health",
      "import google-authenticator": "ga", "import pam-oath": "oath",
    ],
    "import": [
      "google-authenticator": "ga google google_authenticator pam_google_authenticator",
      "pam-oath": "oath pam_oath users.oath", "uri": "otpauth url uris",
    ],
    "pam": ["enable": "on add install", "disable": "off remove", "status": "list show"],
    "fleet": [
      "join": "enter add enroll register", "leave": "remove part exit", "status": "list show ping",
    ],
    "config": [
      "show": "view get print", "check": "test validate verify", "edit": "set change open",
    ],
  ]
}
