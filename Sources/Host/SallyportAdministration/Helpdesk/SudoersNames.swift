/// Whom sudoers(5) names, as the one who calls: of each rule its list of users, whatever the rule
/// allows, and of each alias of users its members, whether it is used or not. A negated name counts
/// like any other.
struct SudoersNames {
  private(set) var found = FoundNames()
  private let files: RuleFiles
  private var seen: Set<String> = []

  private static let mostFiles = 1000

  init(_ files: RuleFiles) { self.files = files }

  /// Of sudo, of sudo-rs, and of the vendor where the administrator has none.
  mutating func read() {
    for path in ["/etc/sudoers", "/usr/etc/sudoers", "/etc/sudoers-rs"] { read(path) }
    readPlugins()
    readSources()
  }

  /// Another plug-in than sudoers, or another file for it.
  private mutating func readPlugins() {
    let path = "/etc/sudo.conf"
    switch files.text(path) {
    case .absent: return
    case .unseen(let why): found.miss(why)
    case .seen(let text):
      for (line, number) in RuleText.lines(text) {
        let words = RuleText.words(RuleText.withoutComment(line)[...])
        guard words.first?.lowercased() == "plugin" else { continue }
        let isUsual = words.count == 3 && words[2].split(separator: "/").last == "sudoers.so"
        if !isUsual { found.miss("\(path):\(number): another plug-in, or with arguments") }
      }
    }
  }

  /// SSSD has no rules without settings.
  private mutating func readSources() {
    let path = "/etc/nsswitch.conf"
    guard let sources = RuleText.sources(of: "sudoers", files) else { return found.miss(path) }
    for source in sources where source != "files" {
      let settings = files.names("/etc/sssd/conf.d")?.contains { $0.hasSuffix(".conf") }
      if source == "sss", files.text("/etc/sssd/sssd.conf") == .absent, settings == false {
        continue
      }
      found.miss("\(path): the rules of sudo in \(source) are not looked up")
    }
  }

  private mutating func read(_ path: String) {
    guard seen.insert(path).inserted else { return }
    // One that includes itself by another path has no end.
    if seen.count > SudoersNames.mostFiles { return found.miss("\(path): too many files") }
    switch files.text(path) {
    case .absent: return
    case .unseen(let why): found.miss(why)
    case .seen(let text):
      for (line, number) in RuleText.lines(text) { take(line, path, "\(path):\(number)") }
    }
  }

  private mutating func take(_ line: String, _ path: String, _ place: String) {
    let first = RuleText.words(line[...]).first ?? ""
    if ["@include", "#include", "@includedir", "#includedir"].contains(first) {
      return include(first.dropFirst(), RuleText.words(line[...]), by: path, place)
    }
    var text = RuleText.withoutComment(line).drop(while: \.isWhitespace)
    if text.isEmpty { return }
    // Where a quote has no end, another line may have become a part of this one.
    if !RuleText.quotesEnd(in: text) { return found.miss("\(place): a quote without its second") }
    switch text.prefix(while: { $0.isLetter || $0 == "_" }) {
    case "Defaults":
      let next = text.dropFirst("Defaults".count).first ?? " "
      let settings = text.split { $0.isWhitespace || $0 == "," }
      if settings.contains(where: { $0.hasPrefix("group_plugin") }) {
        found.miss("\(place): who is in a group of a plug-in")
      }
      if next.isWhitespace || ":>@!".contains(next) { return }
      found.miss("\(place): not understood")
    case "Host_Alias", "Runas_Alias", "Cmnd_Alias", "Cmd_Alias": return
    case "User_Alias":
      text = text.dropFirst("User_Alias".count)
      while let equals = text.firstIndex(of: "=") {
        text = text[text.index(after: equals)...]
        take(list: &text, isAlias: true, place)
        if text.first != ":" { break }
      }
      if !text.isEmpty { found.miss("\(place): not understood") }
    case _:
      take(list: &text, isAlias: false, place)
      if !text.contains("=") { found.miss("\(place): not understood") }
    }
  }

  /// Names of a host in the path are no file that is known here.
  private mutating func include(
    _ kind: Substring, _ words: [String], by path: String, _ place: String
  ) {
    guard words.count > 1, words.count == 2 || words[2].hasPrefix("#"),
      !words[1].contains(where: { "%\"\\".contains($0) })
    else { return found.miss("\(place): not understood") }
    let directory = path.lastIndex(of: "/").map { path[..<$0] } ?? ""
    let target = words[1].hasPrefix("/") ? words[1] : "\(directory)/\(words[1])"
    if kind == "include" { return read(target) }
    guard let names = files.names(target) else {
      return found.miss("\(place): \(target) cannot be read")
    }
    for name in names where !name.contains(".") && !name.hasSuffix("~") {
      read("\(target)/\(name)")
    }
  }

  /// The list of users at the start, which is taken away: it ends with a word without a comma after
  /// it.
  private mutating func take(list text: inout Substring, isAlias: Bool, _ place: String) {
    repeat {
      text = text.drop { $0.isWhitespace || $0 == "!" }
      guard let item = SudoersNames.item(&text, isAlias: isAlias), !item.isEmpty else {
        text = ""
        return found.miss("\(place): not understood")
      }
      take(item, place)
      text = text.drop(while: \.isWhitespace)
      if text.first != "," { return }
      text = text.dropFirst()
    } while true
  }

  /// A name without its quotes and backslashes; nil if a quote or a backslash has no end.
  private static func item(_ text: inout Substring, isAlias: Bool) -> String? {
    var (item, isQuoted) = ("", false)
    while let character = text.first {
      let isEnd = character.isWhitespace || ",=!".contains(character)
      if !isQuoted, isEnd || character == ":" && isAlias && item != "%" { break }
      text = text.dropFirst()
      switch character {
      case "\"": isQuoted.toggle()
      case "\\":
        // `\x20` is a character by its number.
        guard let next = text.popFirst(), next != "x" else { return nil }
        item.append(next)
      case _: item.append(character)
      }
    }
    return isQuoted ? nil : item
  }

  private mutating func take(_ item: String, _ place: String) {
    let rest = String(item.dropFirst())
    switch item.first {
    case _ where item == "ALL": found.add(.everybody, at: place)
    case "+": found.miss("\(place): who is in a netgroup")
    case "%" where rest.hasPrefix(":") || rest.hasPrefix("#") || rest.isEmpty:
      found.miss("\(place): who is in a group of another kind")
    case "%": found.add(.group(rest), at: place)
    case "#":
      guard let uid = UInt32(rest) else { return found.miss("\(place): not understood") }
      found.add(.number(uid), at: place)
    case _: found.add(.user(item), at: place)
    }
  }
}

/// Whom doas.conf(5) permits something.
struct DoasNames {
  private(set) var found = FoundNames()
  private let files: RuleFiles

  init(_ files: RuleFiles) { self.files = files }

  mutating func read() {
    read("/etc/doas.conf")
    guard let more = files.names("/etc/doas.d") else { return found.miss("/etc/doas.d") }
    for name in more where name.hasSuffix(".conf") { read("/etc/doas.d/\(name)") }
  }

  private mutating func read(_ path: String) {
    switch files.text(path) {
    case .absent: return
    case .unseen(let why): found.miss(why)
    case .seen(let text):
      let lines = text.split(whereSeparator: \.isNewline)
      // There a comment may end otherwise than in sudo's files.
      if lines.contains(where: { $0.contains("#") && $0.hasSuffix("\\") }) {
        found.miss("\(path): a comment with a backslash at its end")
      }
      for (line, number) in RuleText.lines(text) { take(line, "\(path):\(number)") }
    }
  }

  private mutating func take(_ line: String, _ place: String) {
    let spaced = line.prefix { $0 != "#" }.map { "{}".contains($0) ? " \($0) " : "\($0)" }
    var words = RuleText.words(spaced.joined()[...])[...]
    if words.first == nil || words.first == "deny" { return }
    guard words.popFirst() == "permit", !line.contains("\""), !line.contains("\\") else {
      return found.miss("\(place): not understood")
    }
    while let option = words.first, ["nopass", "nolog", "persist", "keepenv"].contains(option) {
      words.removeFirst()
    }
    if words.first == "setenv" {
      guard let end = words.firstIndex(of: "}") else {
        return found.miss("\(place): not understood")
      }
      words = words[(end + 1)...]
      while let option = words.first, ["nopass", "nolog", "persist", "keepenv"].contains(option) {
        words.removeFirst()
      }
    }
    guard let identity = words.first, identity != "setenv" else {
      return found.miss("\(place): not understood")
    }
    let name = String(identity.dropFirst())
    if identity.hasPrefix(":") {
      if UInt32(name) != nil { return found.miss("\(place): who is in a group by number") }
      found.add(.group(name), at: place)
    } else {
      found.add(UInt32(identity).map { .number($0) } ?? .user(identity), at: place)
    }
  }
}
