/// The output of `sshd -T`: the settings for one kind of connection.
struct SSHSettings: Equatable {
  private var values: [String: [String]] = [:]

  /// One setting on each line; one with several values may have a line for each.
  init(_ text: String) {
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 1)
      guard let keyword = parts.first?.lowercased() else { continue }
      values[keyword, default: []].append(parts.count > 1 ? String(parts[1]) : "")
    }
  }

  /// The values of a keyword that may have several, such as AllowUsers, as sshd prints them.
  func all(_ keyword: String) -> [String] { values[keyword] ?? [] }

  /// With another value of a keyword.
  func replacing(_ keyword: String, with words: [String]) -> SSHSettings {
    var changed = self
    changed.values[keyword] = [words.joined(separator: " ")]
    return changed
  }

  subscript(keyword: String) -> String { written(keyword).lowercased() }

  /// The first value, as sshd prints it, since the case of paths matters.
  func written(_ keyword: String) -> String { values[keyword]?.first ?? "" }

  func isOn(_ keyword: String) -> Bool { self[keyword] == "yes" }

  var usesPAM: Bool { isOn("usepam") }

  /// Before OpenSSH 8.7 the setting is called ChallengeResponseAuthentication.
  var takesPrompts: Bool {
    isOn("kbdinteractiveauthentication") || isOn("challengeresponseauthentication")
  }

  /// The methods that a connection may use. `none` is tried with an empty password.
  var methods: [String] {
    let all = [
      ("publickey", isOn("pubkeyauthentication")), ("keyboard-interactive", takesPrompts),
      ("password", isOn("passwordauthentication")), ("hostbased", isOn("hostbasedauthentication")),
      ("gssapi-with-mic", isOn("gssapiauthentication")),
      ("none", isOn("permitemptypasswords") && isOn("passwordauthentication")),
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
    let configuration = SSHConfiguration(of: machine)
    let connection = configuration.elsewhere
    self.init(settings: SSHFacts.settings(of: machine, from: connection))
    self.configuration = configuration
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

  /// The settings for one login, or if none is given for those that no Match block is about.
  static func settings(
    of machine: Machine, _ options: [String] = [], user: String = "nobody",
    from connection: SSHConnection? = nil
  ) -> Probe<SSHSettings> {
    let connection = connection ?? SSHConfiguration(of: machine).elsewhere
    switch machine.run(["sshd", "-T"] + options + connection.options(for: user)) {
    case .absent: return .absent
    case .unseen(let reason): return .unseen(reason)
    case .seen(let done):
      if done.status == 0 { return .seen(SSHSettings(done.output)) }
      // In a line after that on the method which is disabled.
      return .unseen(done.errors.contains(unsatisfiable) ? unsatisfiable : done.complaint)
    }
  }

  static let unsatisfiable = "AuthenticationMethods cannot be satisfied"

  /// sshd does not start, and prints no settings, if no list of methods can be completed. Then asks
  /// for the settings without the lists.
  func unsatisfied(of machine: Machine) -> Probe<SSHSettings> {
    let line = configuration.lines.first {
      $0.keyword == "authenticationmethods" && $0.block == nil
    }
    let without = ["-o", "AuthenticationMethods=any"]
    let answer = SSHFacts.settings(of: machine, without, from: configuration.elsewhere)
    guard let line, let found = answer.value else { return settings }
    return .seen(found.replacing("authenticationmethods", with: line.arguments))
  }

  private func variant(_ index: Int, of machine: Machine, _ accounts: AccountFacts) -> SSHVariant {
    let block = configuration.blocks[index]
    guard let probe = SSHProbe(block, accounts, port: configuration.port) else {
      return SSHVariant(block: index, settings: .absent)
    }
    let settings = SSHFacts.settings(of: machine, user: probe.user, from: probe.connection)
    return SSHVariant(block: index, settings: settings, users: probe.users)
  }
}
