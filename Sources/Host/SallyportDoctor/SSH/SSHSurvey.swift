import PAMStack

/// sshd's settings for everybody for whom they may differ: the default, users by name, and a
/// connection for each Match block.
struct SSHSurvey: Equatable {
  struct Part: Equatable {
    /// nil for the default.
    var who: String?
    /// The index of the Match block.
    var block: Int?
    /// The users that it matches, if it names users or groups.
    var users: [String] = []
    let settings: SSHSettings
  }

  private(set) var parts: [Part]

  /// The settings for everybody whom no other part is about.
  var base: SSHSettings { parts[0].settings }

  /// Whether a key alone is enough in every part.
  var letsKeysAlone: Bool { parts.allSatisfy(\.settings.letsKeysAlone) }

  init(parts: [Part]) { self.parts = parts }

  /// Asks sshd.
  init(
    of machine: Machine, _ configuration: SSHConfiguration, _ accounts: AccountFacts,
    people: [String]
  ) throws(SSHTrouble) {
    let (port, elsewhere) = (configuration.port, configuration.elsewhere)
    parts = [Part(settings: try machine.sshSettings(from: elsewhere))]
    let blocks = configuration.blocks.prefix(SSHFacts.mostBlocks)
    for (index, block) in blocks.enumerated() {
      guard let probe = SSHProbe(block, accounts, port: port) else { continue }
      let settings = try machine.sshSettings(user: probe.user, from: probe.connection)
      parts.append(
        Part(who: "Match \(block.text)", block: index, users: probe.users, settings: settings))
    }
    let names = blocks.contains { $0.criteria.contains { ["user", "group"].contains($0.name) } }
    guard names else { return }
    for name in people.prefix(SSHFacts.mostPeople) {
      let settings = try machine.sshSettings(user: name, from: .here(port: port))
      parts.append(Part(who: name, users: [name], settings: settings))
    }
  }

  /// The settings for a user.
  func settings(of name: String) -> SSHSettings {
    parts.last { $0.who == name }?.settings ?? base
  }

  /// Where the values in effect are not those of the stage. Unenrolled users may have been excepted
  /// on purpose, if they need a key. `keyed`: who is in the stage's block for those with a key.
  func mismatches(
    with stage: SSHStage, _ configuration: SSHConfiguration, enrolled: [String],
    keyed: Set<String>
  ) -> [SSHMismatch] {
    var found: [SSHMismatch] = []
    for part in parts where !part.isExcepted(enrolled) {
      for wanted in stage.needed(for: part.users.first, keyed: keyed)
      where !part.settings.has(wanted) {
        let value = part.settings.written(wanted.keyword.lowercased())
        let block = part.block ?? configuration.blockForAll
        let location = configuration.location(of: wanted.keyword, in: block)
        let mismatch = SSHMismatch(
          who: part.who, found: SSHSetting(wanted.keyword, value), wanted: wanted,
          location: location ?? FileLocation(file: configuration.file))
        // A user's settings are those of the block that names the user.
        let isTold = found.contains {
          $0.found == mismatch.found && ($0.location == mismatch.location || part.block == nil)
        }
        if !isTold { found.append(mismatch) }
      }
    }
    return found
  }

  /// The parts that are exceptions, one for each Match block.
  func exceptions(_ enrolled: [String]) -> [Part] {
    parts.filter { $0.block != nil && $0.isExcepted(enrolled) }
  }
}

extension SSHSurvey.Part {
  /// Whether it names only users who are not enrolled, and lets them in only by a key alone.
  fileprivate func isExcepted(_ enrolled: [String]) -> Bool {
    !users.isEmpty && !settings.ways.isEmpty && settings.ways.allSatisfy(\.isWithoutPrompt)
      && users.allSatisfy { !$0.contains("*") && !$0.contains("?") && !enrolled.contains($0) }
  }
}

extension [String] {
  /// Whether it asks for nothing that PAM checks.
  var isWithoutPrompt: Bool {
    allSatisfy { !["keyboard-interactive", "password", "none"].contains($0) }
  }
}

extension SSHSettings {
  func has(_ setting: SSHSetting) -> Bool {
    let keyword = setting.keyword.lowercased()
    if keyword == "kbdinteractiveauthentication" { return takesPrompts }
    return self[keyword] == setting.value
  }

  var letsKeysAlone: Bool { ways.contains(["publickey"]) }

  /// The methods that sshd offers before anything is proven.
  var offered: Set<String> { Set(ways.compactMap(\.first)).subtracting(["none"]) }
}

extension Machine {
  /// The output of `sshd -T`. If no list of AuthenticationMethods can be completed, the settings
  /// without the lists.
  func sshSettings(
    user: String = "nobody", from connection: SSHConnection? = nil
  ) throws(SSHTrouble) -> SSHSettings {
    switch SSHFacts.settings(of: self, user: user, from: connection) {
    case .absent: throw .sshd("there is no sshd on this machine")
    case .seen(let settings): return settings
    case .unseen(let reason):
      let isUnfinished = ["cannot be satisfied", "AuthenticationMethods list"].contains {
        reason.contains($0)
      }
      // The first value counts.
      let without = ["-o", "AuthenticationMethods=any"]
      let found = SSHFacts.settings(of: self, without, user: user, from: connection)
      guard isUnfinished, let settings = found.value else { throw .sshd(reason) }
      return settings
    }
  }
}
