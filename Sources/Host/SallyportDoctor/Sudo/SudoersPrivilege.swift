/// What a sudoers rule allows on some hosts: `web1 = (root) NOPASSWD: /bin/ls, /bin/id`.
struct SudoersPrivilege: Equatable {
  let hosts: [String]
  let hostItems: [SudoersItem]
  let commands: [SudoersCommand]

  init(_ text: String) {
    let sides = text.split(separator: "=", maxSplits: 1).map(String.init)
    hosts = sides.count > 1 ? SudoersLine.parts(sides[0]) { $0 == "," } : []
    hostItems = hosts.map { SudoersItem($0) }
    commands = SudoersPrivilege.texts(sides.last ?? "").reduce(into: []) { commands, text in
      commands.append(SudoersCommand(text, after: commands.last))
    }
  }

  /// Whether one of its commands is run without asking.
  var isOpen: Bool { commands.contains { $0.asksNothing == true } }
  /// Whether every command can be run as root without asking.
  var isOpenToRoot: Bool {
    commands.contains { command in
      let mayBeRoot = command.runas.map { SudoersPrivilege.mayBeRoot($0.users) } != false
      return command.asksNothing == true && command.item.name == "ALL"
        && !command.item.isNegated && mayBeRoot
    }
  }

  /// Separated by commas, but not by those in the list of users that may precede a command, or
  /// between checksums. In an argument, a quote is an ordinary character.
  private static func texts(_ text: String) -> [String] {
    SudoersLine.parts(text, hasQuotes: false) { $0 == "," }.reduce(into: []) { commands, part in
      let last = commands.last ?? ""
      if last.hasPrefix("(") && !last.contains(")") || SudoersCommand.isChecksum(last) {
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
