/// What a sudoers rule allows on some hosts: `web1 = (root) NOPASSWD: /bin/ls, /bin/id`.
struct SudoersPrivilege {
  let hosts: [String]
  /// Whether one of its commands is run without asking.
  private(set) var isOpen = false
  /// Whether every command can be run as root without asking.
  private(set) var isOpenToRoot = false

  init(_ text: String) {
    let sides = text.split(separator: "=", maxSplits: 1).map(String.init)
    hosts = sides.count > 1 ? SudoersLine.parts(sides[0]) { $0 == "," } : []
    // Both also apply to the commands that follow.
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

  /// Separated by commas, but not by those in the list of users that may precede a command. In an
  /// argument, a quote is an ordinary character.
  private static func commands(_ text: String) -> [String] {
    SudoersLine.parts(text, hasQuotes: false) { $0 == "," }.reduce(into: []) { commands, part in
      if let last = commands.last, last.hasPrefix("("), !last.contains(")") {
        commands[commands.count - 1] = "\(last),\(part)"
      } else {
        commands.append(part)
      }
    }
  }

  /// Whether one of the users to run as may be root: true unless all are plain names or numbers of
  /// other users.
  static func mayBeRoot(_ users: [String]) -> Bool {
    users.contains { name in
      let isOther = name.hasPrefix("#") || name.first?.isLowercase == true
      return !isOther || ["root", "#0"].contains(name)
    }
  }

  /// Whether a list of hosts may include a machine: true unless all are plain names of other hosts,
  /// or its own name after `!`. `host` is empty if its name is unknown.
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

  /// The name without the domain, as sudo may get a domain from the DNS.
  private static func label(_ name: String) -> String { name.prefix { $0 != "." }.lowercased() }
}
