/// The output of `sshd -T`: the settings for one kind of connection.
struct SSHSettings: Equatable {
  private let values: [String: String]
  /// The values of ListenAddress.
  let addresses: [String]

  /// One setting on each line. If one is repeated, the first counts.
  init(_ text: String) {
    var (values, addresses) = ([String: String](), [String]())
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 1)
      guard let keyword = parts.first?.lowercased() else { continue }
      let value = parts.count > 1 ? String(parts[1]) : ""
      if keyword == "listenaddress" { addresses.append(value) }
      if values[keyword] == nil { values[keyword] = value }
    }
    (self.values, self.addresses) = (values, addresses)
  }

  subscript(keyword: String) -> String { written(keyword).lowercased() }

  /// As sshd prints it, since the case of paths matters.
  func written(_ keyword: String) -> String { values[keyword] ?? "" }

  func isOn(_ keyword: String) -> Bool { self[keyword] == "yes" }

  var usesPAM: Bool { isOn("usepam") }

  /// Before OpenSSH 8.7 the setting is called ChallengeResponseAuthentication.
  var takesPrompts: Bool {
    isOn("kbdinteractiveauthentication") || isOn("challengeresponseauthentication")
  }

  /// The methods that a connection may use.
  var methods: [String] {
    let all = [
      ("publickey", isOn("pubkeyauthentication")), ("keyboard-interactive", takesPrompts),
      ("password", isOn("passwordauthentication")), ("hostbased", isOn("hostbasedauthentication")),
      ("gssapi-with-mic", isOn("gssapiauthentication")),
    ]
    return all.filter(\.1).map(\.0)
  }

  /// Whether AuthenticationMethods lists methods.
  var namesMethods: Bool { !["", "any"].contains(self["authenticationmethods"]) }

  /// AuthenticationMethods as written; if it lists none, each enabled method by itself.
  var writtenWays: [[String]] {
    guard namesMethods else { return methods.map { [$0] } }
    return self["authenticationmethods"].split(separator: " ").map { list in
      list.split(separator: ",").map { method in
        String(method.split(separator: ":").first ?? "")
      }
    }
  }

  /// The lists that sshd uses: those whose methods are all enabled.
  var ways: [[String]] {
    let enabled = methods
    return writtenWays.filter { $0.allSatisfy(enabled.contains) }
  }
}

/// sshd's settings and configuration, and its enrolled users.
struct SSHFacts: Equatable {
  var settings: Probe<SSHSettings>
  var variants: [SSHVariant] = []
  var configuration = SSHConfiguration()
  /// The enrolled users, without accounts that nobody logs in as.
  var people: [SSHPerson] = []
}

/// The settings in effect in one Match block.
struct SSHVariant: Equatable {
  /// The index of the block in the configuration.
  let block: Int
  let settings: Probe<SSHSettings>
  /// The users that it matches, if it names users or groups.
  var users: [String] = []
}

extension SSHFacts {
  /// A limit, as each needs a run of sshd.
  static let mostBlocks = 100

  init(of machine: Machine, _ accounts: AccountFacts) {
    self.init(settings: SSHFacts.settings(of: machine, []))
    configuration = SSHConfiguration(of: machine)
    switch settings {
    case .unseen(let reason) where reason == SSHFacts.unsatisfiable:
      settings = unsatisfied(of: machine)
    case .absent, .unseen: return
    case .seen:
      variants = configuration.blocks.indices.prefix(SSHFacts.mostBlocks).map {
        variant($0, of: machine, accounts)
      }
    }
  }

  static func settings(of machine: Machine, _ more: [String]) -> Probe<SSHSettings> {
    switch machine.run(["sshd", "-T"] + more) {
    case .absent: return .absent
    case .unseen(let reason): return .unseen(reason)
    case .seen(let done):
      if done.status == 0 { return .seen(SSHSettings(done.output)) }
      // In a line after that on the method which is disabled.
      return .unseen(done.errors.contains(unsatisfiable) ? unsatisfiable : done.complaint)
    }
  }

  private static let unsatisfiable = "AuthenticationMethods cannot be satisfied"

  /// sshd does not start, and prints no settings, if no list of methods can be completed. Then asks
  /// for the settings without the lists.
  private func unsatisfied(of machine: Machine) -> Probe<SSHSettings> {
    let line = configuration.lines.first {
      $0.keyword == "authenticationmethods" && $0.block == nil
    }
    let answer = machine.run(["sshd", "-T", "-o", "AuthenticationMethods=any"]).value
    guard let line, let answer, answer.status == 0 else { return settings }
    let methods = "authenticationmethods \(line.arguments.joined(separator: " "))"
    return .seen(SSHSettings("\(methods)\n\(answer.output)"))
  }

  private func variant(_ index: Int, of machine: Machine, _ accounts: AccountFacts) -> SSHVariant {
    let block = configuration.blocks[index]
    guard let probe = SSHProbe(block, accounts) else {
      return SSHVariant(block: index, settings: .absent)
    }
    let settings = SSHFacts.settings(of: machine, ["-C", probe.text])
    return SSHVariant(block: index, settings: settings, users: probe.users)
  }
}

/// A connection that a Match block matches.
struct SSHProbe: Equatable {
  /// The argument of `sshd -C`.
  let text: String
  /// The users that the block names.
  let users: [String]

  /// Returns nil if the block matches no user here: a group without members.
  init?(_ block: SSHConfiguration.Block, _ accounts: AccountFacts) {
    var values = ["user": "nobody", "host": "localhost", "addr": "127.0.0.1"]
    var named: [String] = []
    for criterion in block.criteria {
      let plain = SSHProbe.plain(criterion.patterns)
      switch criterion.name {
      case "user":
        named = criterion.patterns.split(separator: ",").map(String.init)
        values["user"] = plain ?? values["user"]
      case "group":
        guard let group = plain, let member = accounts.members(of: group).first else { return nil }
        named = accounts.members(of: group)
        values["user"] = member
      case "host": values["host"] = plain ?? values["host"]
      case "address": values["addr"] = SSHProbe.address(criterion.patterns)
      case "localaddress": values["laddr"] = SSHProbe.address(criterion.patterns)
      case "localport": values["lport"] = plain
      case "rdomain": values["rdomain"] = plain
      case _: break
      }
    }
    text = values.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ",")
    users = named
  }

  /// A text that the first pattern without `!` matches; nil if it matches everything.
  private static func plain(_ patterns: String) -> String? {
    let first = patterns.split(separator: ",").first { !$0.hasPrefix("!") }
    guard let first, first != "*" else { return nil }
    return String(first.filter { $0 != "*" }.map { $0 == "?" ? "x" : $0 })
  }

  private static func address(_ patterns: String) -> String {
    let first = patterns.split(separator: ",").first { !$0.hasPrefix("!") } ?? "127.0.0.1"
    let address = first.split(separator: "/").first.map(String.init) ?? "127.0.0.1"
    guard address.contains("*") else { return address }
    let parts = address.split(separator: ".").map { $0.contains("*") ? "1" : String($0) }
    return (parts + ["1", "1", "1"]).prefix(4).joined(separator: ".")
  }
}
