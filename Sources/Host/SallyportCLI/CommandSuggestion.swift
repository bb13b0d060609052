import SallyportSupport

/// The command line that the user probably meant, where the parser of arguments has no guess: for a
/// word that is no command, and for a code, which is taken from no command line. For an option, the
/// whole line with the parser's own guess.
struct CommandSuggestion: Equatable {
  /// What is wrong, if that can be said better than the parser does.
  private(set) var fault: String?
  /// The words after `sallyport`; nil if there is no good guess.
  private var words: [String]?

  /// The line to copy, quoted for the shell.
  var text: String? {
    words.map { (["sallyport"] + $0.map(shellQuoted)).joined(separator: " ") }
  }

  /// `problem` is the parser's message. `verbs`: the commands by name, with their subcommands.
  /// `parse`: why words cannot be parsed, nil if they can. A line that lacks something is proposed,
  /// one that is wrong itself is not.
  init(
    for arguments: [String], problem: String, among verbs: [String: [String]],
    _ parse: ([String]) -> String?
  ) {
    let typed = Array(arguments.prefix { !$0.hasPrefix("-") }.prefix(2))
    if let line = CommandSuggestion.withoutCode(arguments) {
      (fault, words) = ("a code is not taken from the command line, which others can read", line)
    } else if let first = typed.first, verbs[first] == nil {
      fault = "no command '\(first)'"
      words = CommandSuggestion.line(arguments, replacing: 1, among: verbs)
    } else if typed.count == 2, let inner = verbs[typed[0]], !inner.isEmpty,
      !inner.contains(typed[1])
    {
      fault = "no command '\(typed.joined(separator: " "))'"
      words = CommandSuggestion.line(arguments, replacing: 2, among: verbs)
    } else {
      suggestOption(arguments, problem)
    }
    let next = words.flatMap(parse)?.lowercased() ?? ""
    let isWrong = ["unknown option", "unexpected argument", "missing value"].contains {
      next.contains($0)
    }
    if isWrong { words = nil }
  }

  /// The whole line with the option that the parser suggests, if it is one of those like it.
  private mutating func suggestOption(_ arguments: [String], _ problem: String) {
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

  /// `verify alice 123456`: the same without the code, if there is one.
  private static func withoutCode(_ arguments: [String]) -> [String]? {
    let verbs = ["verify", "unenroll", "add", "remove", "resync"]
    guard let verb = arguments.first, verbs.contains(verb) else { return nil }
    var kept = [verb]
    var left = arguments.dropFirst()
    while let word = left.popFirst() {
      if word == "--code" {
        _ = left.popFirst()
      } else if !word.hasPrefix("--code="), kept.count < 2 || !isCode(word) {
        kept.append(word)
      }
    }
    return kept == arguments ? nil : kept
  }

  /// As far as can be told: a code, a part of one, or a backup code.
  private static func isCode(_ word: String) -> Bool {
    let bare = word.filter { $0 != "-" }
    let isBackupCode = bare.count == 16 && bare.allSatisfy { $0.isLetter || $0.isNumber }
    return isBackupCode && bare != word || word.count >= 3 && word.allSatisfy(\.isNumber)
  }
}

// MARK: - Words for verbs

extension CommandSuggestion {
  /// The line with the command that its first `count` words were probably meant as.
  private static func line(
    _ arguments: [String], replacing count: Int, among verbs: [String: [String]]
  ) -> [String]? {
    let group = Array(arguments.prefix(count - 1))
    let typed = arguments[count - 1].lowercased()
    let known = group.first.flatMap { verbs[$0] } ?? verbs.keys.sorted()
    let synonyms = synonyms(below: group.first, among: verbs)
    let near = Likeness.nearest(to: typed, among: known + synonyms.keys.sorted())
    guard let near = synonyms[typed] == nil ? near : typed else { return nil }
    // The options of the command come after the user and the other words.
    let words = (synonyms[near] ?? near).split(separator: " ").map(String.init)
    let (verb, rest) = (words.prefix { !$0.hasPrefix("-") }, arguments.dropFirst(count))
    let line = verb.isEmpty ? words + rest : verb + Array(rest) + words.dropFirst(verb.count)
    return group + line
  }

  /// What other words mean, by the verb that they follow; nil for none: then the commands of groups
  /// too.
  private static func synonyms(below group: String?, among verbs: [String: [String]])
    -> [String: String]
  {
    var meanings: [String: String] = [:]
    for (verb, inner) in verbs.sorted(by: { $0.key > $1.key }) where group == nil {
      for word in inner where verbs[word] == nil { meanings[word] = "\(verb) \(word)" }
    }
    for (meant, words) in words[group ?? ""] ?? [:] {
      for word in words.split(separator: " ") { meanings[String(word)] = meant }
    }
    return meanings
  }

  /// Verbs of other programs, and other likely words.
  private static let words: [String: KeyValuePairs<String, String>] = [
    "": [
      "enroll": "new create register setup init generate enrollment",
      "enroll --force": "lost reset replace renew",
      "status": "show info get", "verify": "test validate",
      "unenroll": "delete del", "remove": "rm drop",
      // Whether an authenticator is meant is not known; passes are what is given and revoked.
      "pass --revoke": "revoke", "block --undo": "unblock",
      // A secret is shown only once, so another device gets its own.
      "add": "export qr qrcode uri",
      "fleet status": "verifiers cluster",
      "list": "ls users who",
      "backup-codes": "codes backup recovery recovery-codes scratch",
      "backup-codes --regenerate": "regenerate",
      "resync": "sync resynchronize resynchronise",
      "unlock": "unban clear",
      "require": "mandatory enforce", "exempt": "skip optional bypass",
      "pam enable": "on activate", "pam disable": "off deactivate",
      "config show": "policy conf settings",
      "import": "migrate", "doctor": "check diagnose health",
      "import google-authenticator": "ga", "import pam-oath": "oath",
      "--help": "help ?", "--version": "version",
      "--generate-completion-script": "completion completions",
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
