/// What a rule of sudoers allows on some hosts: `web1 = (root) NOPASSWD: /bin/ls, /bin/id`.
struct SudoersPrivilege {
  let hosts: [String]
  /// A command of it is run without asking.
  private(set) var isOpen = false
  /// Every command, as root.
  private(set) var isOpenToRoot = false

  init(_ text: String) {
    let sides = text.split(separator: "=", maxSplits: 1).map(String.init)
    hosts = sides.count > 1 ? SudoersLine.parts(sides[0]) { $0 == "," } : []
    // Both hold for the commands that follow as well.
    var (mayBeRoot, asksNot) = (true, false)
    for var command in SudoersPrivilege.commands(sides.last ?? "") {
      if command.hasPrefix("("), let end = command.firstIndex(of: ")") {
        let users = command[..<end].dropFirst().prefix { $0 != ":" }
        mayBeRoot = SudoersPrivilege.mayBeRoot(SudoersLine.parts(String(users)) { $0 == "," })
        command = trimmed(String(command[end...].dropFirst()))
      }
      let tags = SudoersLine.parts(command, hasQuotes: false) { $0 == ":" }
      if let tag = tags.dropLast().last(where: { $0.hasSuffix("PASSWD") }) {
        asksNot = tag.hasSuffix("NOPASSWD")
      }
      let isAll = tags.last?.split(whereSeparator: \.isWhitespace).first == "ALL"
      isOpen = isOpen || asksNot
      isOpenToRoot = isOpenToRoot || asksNot && isAll && mayBeRoot
    }
  }

  /// Parted by commas, but not by those in the list of users that may stand before a command. In an
  /// argument a quote is a character like others.
  private static func commands(_ text: String) -> [String] {
    SudoersLine.parts(text, hasQuotes: false) { $0 == "," }.reduce(into: []) { commands, part in
      if let last = commands.last, last.hasPrefix("("), !last.contains(")") {
        commands[commands.count - 1] = "\(last),\(part)"
      } else {
        commands.append(part)
      }
    }
  }

  /// Whether one of the users to run as may be root: all but the plain names and numbers of others.
  static func mayBeRoot(_ users: [String]) -> Bool {
    users.contains { name in
      let isOther = name.hasPrefix("#") || name.first?.isLowercase == true
      return !isOther || ["root", "#0"].contains(name)
    }
  }

  /// Whether a list of hosts may mean a machine: all but the plain names of others, and its own
  /// name behind `!`. `host` is empty where its name is not known.
  static func mayMean(_ host: String, _ hosts: [String]) -> Bool {
    let own = [host.lowercased(), label(host)]
    if host.isEmpty || hosts.isEmpty { return true }
    if hosts.contains(where: { $0.hasPrefix("!") && own.contains($0.dropFirst().lowercased()) }) {
      return false
    }
    return hosts.contains { name in
      let isName = name.allSatisfy { $0.isLetter || $0.isNumber || "-._".contains($0) }
      let isPlain = isName && name.contains(where: \.isLowercase)
      return !name.hasPrefix("!") && (!isPlain || label(name) == label(host))
    }
  }

  /// Without the domain: sudo may have one from the DNS.
  private static func label(_ name: String) -> String { name.prefix { $0 != "." }.lowercased() }
}
