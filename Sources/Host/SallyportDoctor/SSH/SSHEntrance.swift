import PAMStack

/// One way past sshd for one account: a list of methods, apart from what PAM says.
struct SSHEntrance: Hashable {
  /// In order, such as `publickey`, `keyboard-interactive`; `none` is tried with an empty password.
  let methods: [String]
  let usesPAM: Bool
  /// The service of PAM that sshd runs.
  let service: String
  /// Whether an empty password may be the right one.
  let takesEmptyPassword: Bool
  /// The line that sets the list; nil if it is sshd's default.
  let location: FileLocation?
  /// nil: sshd itself lets the account try the list.
  let refusal: SSHRefusal?
}

/// Why sshd itself refuses an account with a list of methods, and the line that says so.
enum SSHRefusal: Hashable {
  /// AllowUsers, DenyUsers, AllowGroups or DenyGroups.
  case notAllowed(FileLocation?)
  case rootLogin(FileLocation?)
  /// Without PAM, an account with `!` before its password.
  case locked
  /// It does not exist, or cannot be executed.
  case shell
  /// A method of the list is off, or can never succeed.
  case unusable(FileLocation?)
}

/// What sshd says about accounts of one kind on one connection.
struct SSHDoor {
  let settings: SSHSettings
  private let lists: [SSHEntrance]
  private let allowed, denied: SSHNames
  private let allowedGroups, deniedGroups: SSHNames
  private let isClosed: FileLocation??
  private let roots: FileLocation?
  private let lines: SSHLinesInEffect

  /// `blocks` are the indices of the Match blocks that hold.
  init(
    _ settings: SSHSettings, _ configuration: SSHConfiguration, blocks: [Int],
    from connection: SSHConnection, isStarting: Bool = true
  ) {
    let lines = SSHLinesInEffect(configuration, Set(blocks))
    (self.settings, self.lines) = (settings, lines)
    lists = SSHDoor.lists(settings, lines, isStarting)
    allowed = SSHNames(settings.all("allowusers"), from: connection)
    denied = SSHNames(settings.all("denyusers"), from: connection)
    allowedGroups = SSHNames(settings.all("allowgroups"), from: nil)
    deniedGroups = SSHNames(settings.all("denygroups"), from: nil)
    isClosed = settings.isOn("refuseconnection") ? .some(lines.first("refuseconnection")) : nil
    roots = lines.first("permitrootlogin")
  }

  // MARK: lists of methods

  private static func lists(
    _ settings: SSHSettings, _ lines: SSHLinesInEffect, _ isStarting: Bool
  ) -> [SSHEntrance] {
    let service = settings.written("pamservicename")
    let named = settings.namesMethods ? lines.first("authenticationmethods") : nil
    let written =
      settings.namesMethods
      ? settings["authenticationmethods"].split(separator: " ").map {
        $0.split(separator: ",").map(String.init)
      } : settings.methods.map { [$0] }
    return written.map { list in
      let methods = list.map { String($0.prefix { $0 != ":" }) }
      var refusal: SSHRefusal?
      if let dead = list.first(where: { !SSHDoor.works($0, settings) }) {
        let name = String(dead.prefix { $0 != ":" })
        let isOn = settings.methods.contains(name)
        let keyword = isOn ? name == prompts ? "usepam" : "" : SSHDoor.keywords[name] ?? ""
        refusal = .unusable(lines.first(keyword) ?? named)
      } else if !isStarting {
        refusal = .unusable(named)
      }
      let own = SSHDoor.keywords[methods.first ?? ""].flatMap { lines.first($0) }
      return SSHEntrance(
        methods: methods, usesPAM: settings.usesPAM, service: service.isEmpty ? "sshd" : service,
        takesEmptyPassword: settings.isOn("permitemptypasswords"),
        location: settings.namesMethods ? named : own, refusal: refusal)
    }
  }

  private static let prompts = "keyboard-interactive"

  /// Whether a method of a list can succeed. Without PAM nothing is behind the prompts; of the
  /// names of what is behind them, such as `keyboard-interactive:bsdauth`, Linux has PAM alone.
  private static func works(_ method: String, _ settings: SSHSettings) -> Bool {
    let parts = method.split(separator: ":", maxSplits: 1).map(String.init)
    guard let name = parts.first, settings.methods.contains(name) else { return false }
    if name == prompts, !settings.usesPAM { return false }
    return parts.count == 1 || method == "\(prompts):pam"
  }

  private static let keywords = [
    "publickey": "pubkeyauthentication", prompts: "kbdinteractiveauthentication",
    "password": "passwordauthentication", "hostbased": "hostbasedauthentication",
    "gssapi-with-mic": "gssapiauthentication", "none": "permitemptypasswords",
  ]

  // MARK: one account

  var asksForKey: Bool { lists.contains { $0.methods.contains("publickey") } }

  func entrances(for login: SSHLogin) -> [SSHEntrance] {
    let whole = refusal(of: login)
    return lists.map { list in
      let refusal = whole ?? list.refusal ?? (login.isRoot ? rootRefusal(list.methods) : nil)
      return SSHEntrance(
        methods: list.methods, usesPAM: list.usesPAM, service: list.service,
        takesEmptyPassword: list.takesEmptyPassword, location: list.location, refusal: refusal)
    }
  }

  /// By whatever list. In sshd's order.
  func refusal(of login: SSHLogin) -> SSHRefusal? {
    if let isClosed { return .notAllowed(isClosed) }
    if !settings.usesPAM, login.isLocked { return .locked }
    if ["", "none"].contains(settings["chrootdirectory"]), !login.hasShell { return .shell }
    if let word = denied.word(for: login.name) {
      return .notAllowed(lines.line("denyusers", with: word))
    }
    if !allowed.isEmpty, allowed.word(for: login.name) == nil {
      return .notAllowed(lines.first("allowusers"))
    }
    for group in login.groups {
      guard let word = deniedGroups.word(for: group) else { continue }
      return .notAllowed(lines.line("denygroups", with: word))
    }
    if !allowedGroups.isEmpty, !login.groups.contains(where: { allowedGroups.word(for: $0) != nil })
    {
      return .notAllowed(lines.first("allowgroups"))
    }
    return nil
  }

  /// PermitRootLogin lets root in by each method of the list, one after the other.
  private func rootRefusal(_ methods: [String]) -> SSHRefusal? {
    let isPermitted =
      switch settings["permitrootlogin"] {
      case "yes": true
      case "no": false
      case "forced-commands-only":
        methods.first == "publickey" && methods.allSatisfy(SSHDoor.isWithoutPassword)
      case _: methods.allSatisfy(SSHDoor.isWithoutPassword)
      }
    return isPermitted ? nil : .rootLogin(roots)
  }

  private static func isWithoutPassword(_ method: String) -> Bool {
    ["publickey", "hostbased", "gssapi-with-mic"].contains(method)
  }
}

/// The words of AllowUsers and its like that can be about somebody on a connection.
private struct SSHNames {
  private var literal: [[UInt8]: String] = [:]
  private var patterns: [(pattern: SSHPattern, word: String)] = []
  /// Whether there is no word at all.
  let isEmpty: Bool

  /// Names of users may be USER@HOST, of groups not. `!` is a letter like others here.
  init(_ words: [String], from connection: SSHConnection?) {
    isEmpty = words.isEmpty
    for word in words {
      var name = word[...]
      if let connection, let at = word.lastIndex(of: "@") {
        name = word[..<at]
        guard SSHHostList(String(word[word.index(after: at)...])).holds(connection) else {
          continue
        }
      }
      let pattern = SSHPattern(name)
      if pattern.isLiteral {
        literal[Array(name.utf8)] = literal[Array(name.utf8)] ?? word
      } else {
        patterns.append((pattern, word))
      }
    }
  }

  func word(for name: [UInt8]) -> String? {
    literal[name] ?? patterns.first { $0.pattern.matches(name) }?.word
  }
}

/// The lines of a configuration that count where some Match blocks hold: of two, the first; a block
/// before what is outside of any.
struct SSHLinesInEffect {
  private var lines: [String: [SSHConfiguration.Line]] = [:]

  init(_ configuration: SSHConfiguration, _ blocks: Set<Int>) {
    for isInside in [true, false] {
      for line in configuration.lines {
        let counts = line.block.map { isInside && blocks.contains($0) } ?? !isInside
        if counts { lines[line.keyword, default: []].append(line) }
      }
    }
  }

  private func all(_ keyword: String) -> [SSHConfiguration.Line] {
    SSHConfiguration.spellings(of: keyword).flatMap { lines[$0] ?? [] }
  }

  func first(_ keyword: String) -> FileLocation? { all(keyword).first?.location }

  /// The line with a word, of a keyword whose lines are added up.
  func line(_ keyword: String, with word: String) -> FileLocation? {
    (all(keyword).first { $0.arguments.contains(word) } ?? all(keyword).first)?.location
  }
}
