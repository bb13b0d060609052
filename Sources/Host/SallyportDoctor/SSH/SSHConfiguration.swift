import Glibc
import PAMStack

/// sshd's configuration as written, with all included files, to find the line that sets something.
/// The values in effect are those of `sshd -T`.
struct SSHConfiguration: Equatable {
  /// A keyword and its arguments.
  package struct Line: Equatable {
    /// In lower case.
    let keyword: String
    let arguments: [String]
    let location: FileLocation
    /// The index of its Match block; nil outside of any.
    let block: Int?
  }

  /// `Match User alice Address 192.0.2.0/24`
  struct Block: Equatable {
    /// In lower case, with their patterns.
    let criteria: [Criterion]
    let location: FileLocation

    var text: String { criteria.map { "\($0.name) \($0.patterns)" }.joined(separator: " ") }
  }

  struct Criterion: Equatable {
    let name, patterns: String
  }

  /// The file to which new lines are added, so that they come first.
  private(set) var file = SSHConfiguration.usualFile
  private(set) var lines: [Line] = []
  private(set) var blocks: [Block] = []
  /// Files that could not be read, each with the reason.
  private(set) var unread: [String] = []

  private static let usualFile = "/etc/ssh/sshd_config"
  /// openSUSE's sshd reads it if the administrator has none; it includes the drop-ins first. A file
  /// of the administrator's would replace all of it.
  private static let vendorsFile = "/usr/etc/ssh/sshd_config"
  /// sshd's own limit for nested includes.
  static let deepest = 16

  init() {}

  init(of machine: Machine) {
    let first = SSHConfiguration.first(of: machine)
    if first == SSHConfiguration.vendorsFile { file = SSHStage.path }
    var block: Int?
    read(first, of: machine, &block, depth: 0)
  }

  /// The file that sshd reads, with all that it includes.
  static func first(of machine: Machine) -> String {
    let isVendors = machine.file(usualFile) == .absent && machine.file(vendorsFile) != .absent
    return isVendors ? vendorsFile : usualFile
  }

  /// The first line with the keyword in a Match block, or else the first outside of any, since sshd
  /// uses the first value. nil if that line is the vendor's, which is not to be edited.
  func location(of keyword: String, in block: Int? = nil) -> FileLocation? {
    let spellings = SSHConfiguration.spellings(of: keyword.lowercased())
    let all = lines.filter { spellings.contains($0.keyword) }
    let inside = all.first { block != nil && $0.block == block }
    let location = (inside ?? all.first { $0.block == nil })?.location
    return location?.isVendors == true ? nil : location
  }

  /// The port that sshd listens on, or the first of several.
  var port: String {
    lines.first { $0.keyword == "port" && $0.block == nil }?.arguments.first ?? "22"
  }

  var elsewhere: SSHConnection { .elsewhere(port: port) }

  /// The Match block that is about every login, if there is one.
  var blockForAll: Int? { blocks.firstIndex { $0.criteria.map(\.name) == ["all"] } }

  static func spellings(of keyword: String) -> [String] {
    guard keyword == "kbdinteractiveauthentication" else { return [keyword] }
    return [keyword, "challengeresponseauthentication", "skeyauthentication"]
  }

  /// As in sshd, a Match block that an included file opens ends with that file.
  private mutating func read(_ file: String, of machine: Machine, _ block: inout Int?, depth: Int) {
    switch machine.text(file) {
    case .absent: return
    case .unseen(let reason): unread.append(reason)
    case .seen(let text):
      for (index, line) in linesOf(text).enumerated() {
        let location = FileLocation(file: file, line: index + 1)
        take(sshWords(line), at: location, of: machine, &block, depth)
      }
    }
  }

  private mutating func take(
    _ words: [String], at location: FileLocation, of machine: Machine, _ block: inout Int?,
    _ depth: Int
  ) {
    guard let keyword = words.first?.lowercased() else { return }
    let arguments = Array(words.dropFirst())
    switch keyword {
    case "match":
      blocks.append(Block(criteria: SSHConfiguration.criteria(arguments), location: location))
      block = blocks.count - 1
    case "include" where depth < SSHConfiguration.deepest:
      for pattern in arguments {
        for file in machine.paths(SSHConfiguration.path(of: pattern)) {
          var inner = block
          read(file, of: machine, &inner, depth: depth + 1)
        }
      }
    case _:
      lines.append(Line(keyword: keyword, arguments: arguments, location: location, block: block))
    }
  }

  /// Of an Include.
  static func path(of pattern: String) -> String {
    pattern.hasPrefix("/") ? pattern : "/etc/ssh/\(pattern)"
  }

  private static func criteria(_ words: [String]) -> [Criterion] {
    var rest = words[...]
    var criteria: [Criterion] = []
    while let name = rest.popFirst()?.lowercased() {
      let parts = name.split(separator: "=", maxSplits: 1).map(String.init)
      let isAlone = name == "all"
      let patterns = parts.count == 2 ? parts[1] : isAlone ? "" : rest.popFirst() ?? ""
      criteria.append(Criterion(name: parts[0], patterns: patterns))
    }
    return criteria
  }
}

/// The words of a line: separated by spaces, or by one `=` after the first; `"…"` keeps spaces; `#`
/// starts a comment.
func sshWords(_ line: Substring) -> [String] {
  var words: [String] = []
  var word = ""
  var (isQuoted, isWord, sawEqual) = (false, false, false)
  for character in line.unicodeScalars {
    if character == "\"" {
      (isQuoted, isWord) = (!isQuoted, true)
    } else if !isQuoted, character == "#", !isWord {
      break
    } else if !isQuoted, isSSHSeparator(character, words.count + (isWord ? 1 : 0), &sawEqual) {
      if isWord { words.append(word) }
      (word, isWord) = ("", false)
    } else {
      word.unicodeScalars.append(character)
      isWord = true
    }
  }
  return isWord ? words + [word] : words
}

private func isSSHSeparator(_ character: Unicode.Scalar, _ count: Int, _ sawEqual: inout Bool)
  -> Bool
{
  if character == "=", count == 1, !sawEqual {
    sawEqual = true
    return true
  }
  return character == " " || character == "\t" || character == "\r"
}
