import PAMStack

/// One line of a sudoers file, with its continuation lines.
struct SudoersLine: Equatable {
  enum Kind: CaseIterable { case rule, defaults }

  private let text: String
  private let words: [String]

  init(_ text: String) {
    self.text = SudoersLine.withoutComment(text)
    words = SudoersLine.parts(self.text, at: \.isWhitespace)
  }

  /// nil if it is an alias, an include, or empty.
  var kind: Kind? {
    guard let first = words.first, !isAlias, !first.hasPrefix("@include") else { return nil }
    if first.hasPrefix("Defaults") { return .defaults }
    return text.contains("=") ? .rule : nil
  }

  var isAlias: Bool { words.first?.hasSuffix("_Alias") == true }

  /// Removes a comment: from `#` outside of quotes, without a backslash before it or a user ID
  /// after it.
  static func withoutComment(_ text: String) -> String {
    var (isQuoted, isEscaped) = (false, false)
    var end = text.startIndex
    while end < text.endIndex {
      let next = text.index(after: end)
      let isUID = next < text.endIndex && text[next].isNumber
      if text[end] == "\"", !isEscaped { isQuoted.toggle() }
      if text[end] == "#", !isUID, !isQuoted, !isEscaped { break }
      isEscaped = text[end] == "\\" && !isEscaped
      end = next
    }
    return String(text[..<end])
  }

  /// The exceptions from asking in this line. `host` is the name of this machine; empty if unknown.
  func entries(at location: FileLocation, on host: String) -> [Sudoers.Entry] {
    switch kind {
    case .rule: rule(at: location, on: host)
    case .defaults: defaults(at: location, on: host)
    case nil: []
    }
  }

  // MARK: parts

  /// The parts between separators. A separator has no backslash before it, and is not in quotes if
  /// `hasQuotes`.
  static func parts(
    _ text: String, hasQuotes: Bool = true, at isEnd: (Character) -> Bool
  ) -> [String] {
    var (isQuoted, isEscaped) = (false, false)
    return text.split { character in
      defer { isEscaped = character == "\\" && !isEscaped }
      if character == "\"", hasQuotes, !isEscaped { isQuoted.toggle() }
      return !isQuoted && !isEscaped && isEnd(character)
    }.map { trimmed(String($0)) }
  }

  /// The list at the start of the words, and the words after it.
  private static func list(_ words: [String]) -> (items: [String], rest: ArraySlice<String>) {
    let last = words.indices.first { index in
      ![",", "!"].contains(words[index].suffix(1)) && !words[index].isEmpty
        && (index + 1 == words.count || !words[index + 1].hasPrefix(","))
    }
    let count = (last ?? -1) + 1
    return (parts(words[..<count].joined(separator: " ")) { $0 == "," }, words[count...])
  }

  // MARK: rules

  /// The callers of a rule; empty if the line is not a rule.
  var callers: [String] { kind == .rule ? SudoersLine.list(words).items : [] }

  private func rule(at location: FileLocation, on host: String) -> [Sudoers.Entry] {
    let open = privileges.filter(\.isOpen)
    guard !open.isEmpty else { return [] }
    let here = open.filter { SudoersPrivilege.mayMean(host, $0.hosts) }
    let all = (here.isEmpty ? open : here).contains(where: \.isOpenToRoot)
    return [
      Sudoers.Entry(
        exception: .noPassword(who: listed(callers), all: all), location: location,
        fixed: withoutTag,
        elsewhere: here.isEmpty ? open.flatMap(\.hosts) : [], callers: callers)
    ]
  }

  /// Who may do everything everywhere by the line, and is asked: no rule before it counts for them.
  var asked: Set<String> {
    guard kind == .rule, callers.allSatisfy({ !$0.hasPrefix("!") }),
      let last = privileges.last, last.hosts == ["ALL"], last.commands.last?.isAllAsked == true
    else { return [] }
    return Set(callers)
  }

  var privileges: [SudoersPrivilege] {
    let text = SudoersLine.list(words).rest.joined(separator: " ")
    return SudoersLine.separated(text).map(SudoersPrivilege.init)
  }

  /// What a colon may follow within a privilege: tags, and kinds of checksums.
  private static let tags: Set<String> = Set(
    ["PASSWD", "EXEC", "SETENV", "LOG_INPUT", "LOG_OUTPUT", "FOLLOW", "INTERCEPT", "MAIL"]
      .flatMap { [$0, "NO\($0)"] }
  ).union(["sha224", "sha256", "sha384", "sha512"])

  /// The parts between colons, except those in `(users : groups)`, in addresses of hosts, after a
  /// tag or after the kind of a checksum.
  private static func separated(_ text: String) -> [String] {
    var (parts, word) = ([""], "")
    var (isRunas, isEscaped, hasHosts) = (false, false, false)
    for character in text {
      let isTag = SudoersLine.tags.contains(word)
      if character == ":", !isRunas, !isEscaped, hasHosts, !isTag {
        (parts, word, hasHosts) = (parts + [""], "", false)
        continue
      }
      isRunas = character == "(" || isRunas && character != ")"
      hasHosts = hasHosts || character == "=" && !isEscaped
      isEscaped = character == "\\" && !isEscaped
      if !character.isWhitespace {
        let isNew = parts[parts.count - 1].last?.isWhitespace == true
        let isPart = character.isLetter || character.isNumber || character == "_"
        word = (isNew || !isPart ? "" : word) + (isPart ? String(character) : "")
      }
      parts[parts.count - 1].append(character)
    }
    return parts
  }

  /// What the line gives names to: `User_Alias ADMINS = alice, bob : OPS = carol`.
  var aliases: [(SudoersAliases.Kind, name: String, [SudoersItem])] {
    guard let first = words.first, let kind = SudoersLine.aliasKinds[first] else { return [] }
    var pieces = SudoersLine.parts(words.dropFirst().joined(separator: " "), hasQuotes: false) {
      $0 == ":"
    }
    // Colons of addresses and checksums come before no `NAME =`.
    pieces = pieces.reduce(into: []) { pieces, piece in
      if SudoersLine.aliasName(piece) == nil, let last = pieces.popLast() {
        pieces.append("\(last):\(piece)")
      } else {
        pieces.append(piece)
      }
    }
    return pieces.compactMap { piece in
      guard let name = SudoersLine.aliasName(piece) else { return nil }
      let members = String(piece.drop { $0 != "=" }.dropFirst())
      let items = SudoersLine.parts(members, hasQuotes: kind != .command) { $0 == "," }
      return (kind, name, items.map { SudoersItem($0, isCommand: kind == .command) })
    }
  }

  private static let aliasKinds: [String: SudoersAliases.Kind] = [
    "User_Alias": .user, "Host_Alias": .host, "Runas_Alias": .runas, "Cmnd_Alias": .command,
    "Cmd_Alias": .command,
  ]

  private static func aliasName(_ text: String) -> String? {
    guard let sign = text.firstIndex(of: "=") else { return nil }
    let name = trimmed(String(text[..<sign]))
    let isName =
      name.first?.isUppercase == true
      && name.allSatisfy { $0.isUppercase || $0.isNumber || $0 == "_" }
    return isName ? name : nil
  }

  private var withoutTag: String {
    let parts = text.split(separator: "NOPASSWD", omittingEmptySubsequences: false)
    return trimmed(
      parts.dropFirst().reduce(String(parts.first ?? "")) { line, part in
        let tail = part.drop(while: \.isWhitespace)
        return line
          + (tail.hasPrefix(":") ? tail.dropFirst().drop(while: \.isWhitespace) : "NOPASSWD" + part)
      })
  }

  // MARK: defaults

  /// What a Defaults line applies to (`:users`, `>users to run as`, `@hosts`, `!commands`), and its
  /// options.
  var binding: (sign: Character?, items: [String], options: String) {
    let bound = words[0].dropFirst("Defaults".count)
    guard let sign = bound.first else { return (nil, [], words.dropFirst().joined(separator: " ")) }
    let (items, rest) = SudoersLine.list([String(bound.dropFirst())] + words.dropFirst())
    return (sign, items, rest.joined(separator: " "))
  }

  /// `env_reset`, `!authenticate`, `timestamp_timeout = 5`, …; if one is repeated, the last.
  var options: [String] {
    let all = SudoersLine.parts(binding.options) { $0 == "," }
    return all.enumerated().filter { index, option in
      let name = SudoersLine.name(of: option)
      return !all[(index + 1)...].contains { SudoersLine.name(of: $0) == name }
    }.map(\.element)
  }

  private static func name(of option: String) -> String {
    trimmed(String(option.drop { $0 == "!" }.prefix { $0 != "=" }))
  }

  /// The names of the options that the line sets or clears for everybody.
  var setForAll: Set<String> {
    words.first == "Defaults" ? Set(options.map(SudoersLine.name)) : []
  }

  private func defaults(at location: FileLocation, on host: String) -> [Sudoers.Entry] {
    let (sign, items, _) = binding
    let elsewhere = sign == "@" && !SudoersPrivilege.mayMean(host, items) ? items : []
    return options.compactMap { option in
      exception(of: option).map { exception, other in
        Sudoers.Entry(
          exception: exception, location: location, fixed: replacing(option, other),
          elsewhere: elsewhere)
      }
    }
  }

  /// The exception that an option makes, and the option to use instead.
  private func exception(of option: String) -> (Sudoers.Exception, String)? {
    let parts = option.split(separator: "=", maxSplits: 1).map { trimmed(String($0)) }
    let value = parts.count > 1 ? parts[1].filter { $0 != "\"" } : ""
    switch parts.first ?? "" {
    case "!authenticate": return (unasked, "authenticate")
    case "!pam_session": return (.noSession, "pam_session")
    case "exempt_group": return (.exemptGroup(value), "!exempt_group")
    case "rootpw", "targetpw", "runaspw": return (.otherAccount(parts[0]), "!\(parts[0])")
    case "pam_service", "pam_login_service", "pam_askpass_service":
      let usual = parts[0] == "pam_login_service" ? "sudo-i" : "sudo"
      if value == usual || parts.count < 2 { return nil }
      return (.otherService(option: parts[0], value), "\(parts[0])=\(usual)")
    case "timestamp_timeout" where value.hasPrefix("-"):
      return (.endlessTicket, "timestamp_timeout=15")
    case _: return nil
    }
  }

  private var unasked: Sudoers.Exception {
    let (sign, items, _) = binding
    let names = listed(items)
    switch sign {
    case ":": return .noAuthentication(who: names, all: true)
    case ">":
      let all = SudoersPrivilege.mayBeRoot(items)
      return .noAuthentication(who: "anybody who runs a command as \(names)", all: all)
    case "!":
      return .noAuthentication(who: "anybody who runs \(names)", all: items.contains("ALL"))
    case _: return .noAuthentication(who: "everybody", all: true)
    }
  }

  private func replacing(_ option: String, _ other: String) -> String {
    let parts = text.split(separator: option, maxSplits: 1, omittingEmptySubsequences: false)
    return trimmed(parts.joined(separator: other))
  }
}

/// Without whitespace at either end.
package func trimmed(_ text: String) -> String {
  let rest = text.drop { $0.isWhitespace }
  return String(rest.reversed().drop { $0.isWhitespace }.reversed())
}
