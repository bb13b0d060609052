/// What sudoers files say about asking: read as text, because `sudo -l` tells of one user only.
package struct Sudoers: Equatable {
  enum Exception: Equatable {
    /// NOPASSWD for these commands.
    case noPassword(who: String, all: Bool)
    /// `!authenticate`
    case noAuthentication(who: String)
    /// `!pam_session`
    case noSession
    /// A group whose members are never asked.
    case exemptGroup(String)
    /// A ticket that never ends.
    case endlessTicket
    /// `rootpw`, `targetpw` or `runaspw`: the code of another account is asked for.
    case otherAccount(String)
  }

  struct Entry: Equatable {
    let exception: Exception
    let place: FileLocation
    /// The line without the exception.
    let fixed: String

    /// Of a line that is for everybody everywhere: `Defaults` and nothing behind it.
    var isForAll: Bool { fixed.split(whereSeparator: \.isWhitespace).first == "Defaults" }
  }

  private(set) var entries: [Entry] = []
  /// The first words of all rules: users, `%group`, `ALL`, aliases.
  private(set) var callers: [String] = []
  /// Why a file could not be read.
  private(set) var unread: [String] = []
  /// There is a sudoers file.
  private(set) var isThere = true
  private var files: Set<String> = []

  /// The vendor's (openSUSE) counts where the administrator has none.
  private static let files = ["/etc/sudoers", "/usr/etc/sudoers"]

  init() {}

  package init(of machine: Machine) {
    let file = Sudoers.files.first { machine.text($0) != .absent }
    if let file { read(file, of: machine) } else { isThere = false }
  }

  /// `rootpw`, `targetpw` or `runaspw` where one of them holds for everybody: sudo asks for the
  /// code of another account than the caller's.
  package var otherAccountForAll: String? {
    entries.lazy.filter(\.isForAll).compactMap { entry in
      if case .otherAccount(let word) = entry.exception { word } else { nil }
    }.first
  }

  /// Whether a rule is for everybody.
  var hasRuleForAll: Bool { callers.contains("ALL") }

  private mutating func read(_ file: String, of machine: Machine) {
    guard files.insert(file).inserted else { return }
    switch machine.text(file) {
    case .absent: return
    case .unseen(let reason): unread.append(reason)
    case .seen(let text):
      for (number, line) in Sudoers.joined(text) {
        take(line, FileLocation(file: file, line: number), of: machine)
      }
    }
  }

  private mutating func take(_ line: String, _ place: FileLocation, of machine: Machine) {
    let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
    guard let first = words.first else { return }
    switch first {
    case "@include", "#include":
      if words.count > 1 { read(Sudoers.path(words[1], place.file), of: machine) }
    case "@includedir", "#includedir":
      guard words.count > 1 else { return }
      let directory = Sudoers.path(words[1], place.file)
      for file in machine.paths("\(directory)/*") where Sudoers.counts(file) {
        read(file, of: machine)
      }
    case _:
      if first.hasPrefix("#"), !first.dropFirst().allSatisfy(\.isNumber) || first == "#" { return }
      let line = SudoersLine(line)
      // The last one counts; those for somebody come after those for all.
      let set = line.setForAll
      entries.removeAll { entry in
        entry.isForAll && entry.exception.option.map(set.contains) == true
      }
      entries += line.entries(at: place)
      if let caller = line.caller { callers += caller.split(separator: ",").map(String.init) }
    }
  }

  /// sudo passes over names with a dot or a tilde at the end.
  private static func counts(_ file: String) -> Bool {
    let name = file.split(separator: "/").last ?? ""
    return !name.contains(".") && !name.hasSuffix("~")
  }

  private static func path(_ word: String, _ file: String) -> String {
    let path = word.filter { $0 != "\"" }
    guard !path.hasPrefix("/") else { return path }
    return file.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" } + "/" + path
  }

  /// Lines with those that a backslash continues, and the number of the first. A comment ends with
  /// its line.
  private static func joined(_ text: String) -> [(Int, String)] {
    var (lines, open): ([(Int, String)], String?) = ([], nil)
    var start = 1
    for (index, line) in linesOf(text).enumerated() {
      if open == nil { start = index + 1 }
      let whole = (open ?? "") + line
      if line.hasSuffix("\\"), SudoersLine.withoutComment(whole) == whole {
        open = whole.dropLast() + " "
      } else {
        lines.append((start, whole))
        open = nil
      }
    }
    return open.map { lines + [(start, $0)] } ?? lines
  }
}

extension Sudoers.Exception {
  /// The option of a Defaults line that makes it.
  fileprivate var option: String? {
    switch self {
    case .noPassword: nil
    case .noAuthentication: "authenticate"
    case .noSession: "pam_session"
    case .exemptGroup: "exempt_group"
    case .endlessTicket: "timestamp_timeout"
    case .otherAccount(let word): word
    }
  }
}

/// One line of a sudoers file.
struct SudoersLine {
  private let text: String
  private let words: [String]

  init(_ text: String) {
    self.text = SudoersLine.withoutComment(text)
    words = self.text.split(whereSeparator: \.isWhitespace).map(String.init)
  }

  /// Up to a comment: `#` outside of quotes where no uid follows.
  static func withoutComment(_ text: String) -> String {
    var isQuoted = false
    var end = text.startIndex
    while end < text.endIndex {
      let next = text.index(after: end)
      let isUID = next < text.endIndex && text[next].isNumber
      if text[end] == "\"" { isQuoted.toggle() }
      if text[end] == "#", !isUID, !isQuoted { break }
      end = next
    }
    return String(text[..<end])
  }

  func entries(at place: FileLocation) -> [Sudoers.Entry] {
    guard let first = words.first, !first.hasSuffix("_Alias") else { return [] }
    let found = first.hasPrefix("Defaults") ? defaults : rules
    return found.map { Sudoers.Entry(exception: $0, place: place, fixed: $1) }
  }

  // MARK: rules

  /// Whom a rule is for; nil where the line is none.
  var caller: String? {
    guard let first = words.first, text.contains("=") else { return nil }
    return first.hasSuffix("_Alias") || first.hasPrefix("Defaults") ? nil : first
  }

  private var rules: [(Sudoers.Exception, String)] {
    let parts = text.split(separator: "NOPASSWD", omittingEmptySubsequences: false)
    guard parts.count > 1, let who = words.first else { return [] }
    let tails = parts.dropFirst().map { $0.drop { $0.isWhitespace } }
    guard tails.allSatisfy({ $0.hasPrefix(":") }) else { return [] }
    let commands = tails.flatMap { tail in
      tail.dropFirst().split(separator: "PASSWD:").first?.split(separator: ",") ?? []
    }
    let all = commands.contains { SudoersLine.command($0) == "ALL" }
    let fixed =
      parts[0] + tails.map { $0.dropFirst().drop { $0.isWhitespace } }.joined()
    return [(.noPassword(who: who, all: all), trimmed(String(fixed)))]
  }

  /// Without tags such as `SETENV:`.
  private static func command(_ text: Substring) -> Substring {
    let last = text.split(separator: ":").last ?? ""
    return last.drop { $0.isWhitespace }.prefix { !$0.isWhitespace }
  }

  // MARK: defaults

  /// `env_reset`, `!authenticate`, `timestamp_timeout = 5`, …; of those with one name the last.
  private var options: [String] {
    var isQuoted = false
    let parts = words.dropFirst().joined(separator: " ").split { character in
      if character == "\"" { isQuoted.toggle() }
      return character == "," && !isQuoted
    }
    let all = parts.map { trimmed(String($0)) }
    return all.enumerated().filter { index, option in
      let name = SudoersLine.name(of: option)
      return !all[(index + 1)...].contains { SudoersLine.name(of: $0) == name }
    }.map(\.element)
  }

  private static func name(of option: String) -> String {
    trimmed(String(option.drop { $0 == "!" }.prefix { $0 != "=" }))
  }

  /// The options that the line sets, one way or the other, for everybody.
  var setForAll: Set<String> {
    words.first == "Defaults" ? Set(options.map(SudoersLine.name)) : []
  }

  private var defaults: [(Sudoers.Exception, String)] {
    let head = words[0]
    let who = head.count > 8 ? String(head.dropFirst(9)) : "everybody"
    return options.compactMap { option in
      let parts = option.split(separator: "=", maxSplits: 1).map { trimmed(String($0)) }
      let value = parts.count > 1 ? parts[1].filter { $0 != "\"" } : ""
      switch parts.first ?? "" {
      case "!authenticate": return (.noAuthentication(who: who), replacing(option, "authenticate"))
      case "!pam_session": return (.noSession, replacing(option, "pam_session"))
      case "exempt_group": return (.exemptGroup(value), replacing(option, "!exempt_group"))
      case "rootpw", "targetpw", "runaspw":
        return (.otherAccount(parts[0]), replacing(option, "!\(parts[0])"))
      case "timestamp_timeout" where value.hasPrefix("-"):
        return (.endlessTicket, replacing(option, "timestamp_timeout=15"))
      case _: return nil
      }
    }
  }

  private func replacing(_ option: String, _ other: String) -> String {
    let parts = text.split(separator: option, maxSplits: 1, omittingEmptySubsequences: false)
    return trimmed(parts.joined(separator: other))
  }
}

/// Without spaces at both ends.
private func trimmed(_ text: String) -> String {
  let rest = text.drop { $0.isWhitespace }
  return String(rest.reversed().drop { $0.isWhitespace }.reversed())
}
