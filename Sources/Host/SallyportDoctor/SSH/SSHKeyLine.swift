import SallyportCore
import SallyportSupport

/// A line of a file of authorized keys: options, the type of the key, the key.
struct SSHKeyLine: Equatable {
  let type: String
  /// As they are written, without the commas between them.
  let options: [String]

  /// nil for a comment, an empty line, and what is no key.
  init?(_ line: Substring) {
    let line = line.drop { $0 == " " || $0 == "\t" }
    guard line.first != "#" else { return nil }
    let words = line.split { $0 == " " || $0 == "\t" || $0 == "\r" }
    if let type = SSHKeyLine.type(of: words) {
      (self.type, options) = (type, [])
      return
    }
    let (options, rest) = SSHKeyLine.options(line)
    let more = rest.split { $0 == " " || $0 == "\t" || $0 == "\r" }
    guard let type = SSHKeyLine.type(of: more) else { return nil }
    (self.type, self.options) = (type, options)
  }

  /// Every key begins with the length of its type, in base64.
  private static func type(of words: [Substring]) -> String? {
    guard words.count > 1, words[1].hasPrefix("AAAA"),
      ["ssh-", "ecdsa-", "sk-"].contains(where: { words[0].hasPrefix($0) })
    else { return nil }
    return String(words[0])
  }

  /// Up to the first space outside of quotes.
  private static func options(_ line: Substring) -> ([String], Substring) {
    var (options, option) = ([String](), "")
    var (isQuoted, isEscaped) = (false, false)
    var index = line.startIndex
    while index < line.endIndex {
      let character = line[index]
      if !isQuoted, character == " " || character == "\t" { break }
      if character == "\"", !isEscaped { isQuoted.toggle() }
      isEscaped = character == "\\" && !isEscaped
      if character == ",", !isQuoted {
        options.append(option)
        option = ""
      } else {
        option.append(character)
      }
      index = line.index(after: index)
    }
    return (options + [option], line[index...])
  }

  /// What is in the quotes of an option; nil if the line does not have it.
  func value(of name: String) -> String? {
    let option = options.first { $0.lowercased().hasPrefix("\(name)=") }
    return option.map { String($0.dropFirst(name.count + 1).filter { $0 != "\"" }) }
  }

  /// Whether its `expiry-time` is over: `20261127`, `202611271200` or with seconds, in local time,
  /// or in UTC with a Z behind it.
  func isOver(at now: UnixTime) -> Bool {
    guard let text = value(of: "expiry-time"),
      let date = CalendarDate(now, inUTC: text.hasSuffix("Z"))
    else { return false }
    let digits = text.filter(\.isNumber)
    return String(date.internetText.filter(\.isNumber).prefix(digits.count)) >= digits
  }

  /// From where it is taken; nil for anywhere.
  var hosts: String? { value(of: "from") }

  /// The first option that sshd(8) does not name, to the `=`: sshd refuses the key for one that it
  /// does not know.
  var unknownOption: String? {
    let names = options.map { String($0.lowercased().prefix { $0 != "=" }) }
    return names.first { name in
      let isOn = name.hasPrefix("no-") ? String(name.dropFirst(3)) : name
      return !SSHKeyLine.switches.contains(isOn) && !SSHKeyLine.values.contains(name)
    }
  }

  private static let switches = [
    "agent-forwarding", "port-forwarding", "pty", "touch-required", "user-rc", "verify-required",
    "x11-forwarding",
  ]
  private static let values = [
    "cert-authority", "command", "environment", "expiry-time", "from", "permitlisten",
    "permitopen", "principals", "restrict", "tunnel",
  ]

  /// Whether it is a key that signs the keys of others.
  var isAuthority: Bool { options.contains { $0.lowercased() == "cert-authority" } }
}

extension SSHSettings {
  /// Whether sshd would take the key of a line on a connection; nil is one from where the line
  /// says.
  func takes(_ line: SSHKeyLine, from connection: SSHConnection?) -> Bool {
    if line.isAuthority { return false }
    if let connection, let hosts = line.hosts, !SSHHostList(hosts).holds(connection) {
      return false
    }
    if self["permitrootlogin"] == "forced-commands-only", line.value(of: "command") == nil {
      return false
    }
    let names = ["pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes"].flatMap(all)
    let accepted = names.flatMap { $0.split(separator: ",").map(String.init) }
    let types = line.type == "ssh-rsa" ? ["rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"] : [line.type]
    return accepted.isEmpty || accepted.contains(where: types.contains)
  }
}
