/// What sshd asks for before it lets a user in.
package enum SSHMethod: String, CaseIterable, Sendable {
  case passwordCode = "password+code"
  case keyCode = "key+code"
  case keyPasswordCode = "key+password+code"
  /// Of some accounts a key and a code, of the others the password and a code.
  case match
  /// A code, and a key or the password, as each person likes.
  case either
  /// sshd's settings are not changed.
  case none

  /// Whether the PAM lines ask for the password as well as the code, of those with a key too.
  package var needsPassword: Bool {
    switch self {
    case .keyCode, .match, .either: false
    case .passwordCode, .keyPasswordCode, .none: true
    }
  }

  /// Whether a key takes the place of the password for some, and not for all.
  package var isMixed: Bool { self == .match || self == .either }
}

/// The accounts that `match` asks for something else than the others.
package struct SSHPeople: Equatable, Sendable {
  /// The group of those who have a key; nil: `keyUsers` are those.
  package let keyGroup: String?
  package let keyUsers: [String]
  /// Accounts that get in by a key alone, as before.
  package let aloneUsers: [String]

  package init(keyGroup: String? = nil, keyUsers: [String] = [], aloneUsers: [String] = []) {
    (self.keyGroup, self.keyUsers, self.aloneUsers) = (keyGroup, keyUsers, aloneUsers)
  }

  /// Whether a Match block can name it: it has no sign that means something there.
  package static func mayName(_ name: String) -> Bool {
    let first = name.unicodeScalars.first
    return first != nil && first != "-"
      && name.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
          || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "._-@+$".utf8.contains(byte)
      }
  }

  /// The criterion of the block for those who have a key; nil if nobody has one.
  fileprivate var keys: String? {
    keyGroup.map { "Group \($0)" }
      ?? (keyUsers.isEmpty ? nil : "User \(keyUsers.joined(separator: ","))")
  }
}

/// One of the contents of our file in sshd's configuration.
package struct SSHStage: Equatable, Sendable {
  /// What sshd accepts on the way to a method with a key. It offers other methods then than before,
  /// which shows that it has read the file.
  package enum Passing: CaseIterable, Sendable {
    /// A key alone, as before, so that users with a key are not locked out before the PAM lines are
    /// written. Only if a key alone is enough for everybody now.
    case keyAlone
    /// A key and what the PAM lines ask for, in either order.
    case eitherOrder
  }

  package let method: SSHMethod
  /// nil for the final settings.
  package let passing: Passing?
  /// With `match`.
  package let people: SSHPeople

  /// sshd uses the first value of a setting, and reads these files in the order of their names.
  package static let path = "/etc/ssh/sshd_config.d/00-sallyport.conf"

  /// The lists of methods for whom no Match block is about.
  private var lists: String {
    // Nobody needs it; what sshd offers shows that it was read.
    let sign = "password,publickey,keyboard-interactive"
    switch (method, passing) {
    case (.passwordCode, _), (.match, _): return "keyboard-interactive"
    case (.either, .keyAlone): return "publickey keyboard-interactive \(sign)"
    case (.either, .eitherOrder):
      return "publickey,keyboard-interactive keyboard-interactive \(sign)"
    case (.either, nil): return "publickey,keyboard-interactive keyboard-interactive"
    case (.keyCode, _), (.keyPasswordCode, _), (.none, _): return keyLists
    }
  }

  private var keyLists: String {
    switch passing {
    case .keyAlone: "publickey keyboard-interactive,publickey"
    case .eitherOrder: "publickey,keyboard-interactive keyboard-interactive,publickey"
    case nil: "publickey,keyboard-interactive"
    }
  }

  /// Each keyword with its value, outside of Match blocks.
  private var settings: [SSHSetting] {
    let needsKeys = method != .passwordCode
    let isSigned = method == .either && passing != nil
    return [SSHSetting("UsePAM", "yes")]
      + (needsKeys ? [SSHSetting("PubkeyAuthentication", "yes")] : []) + [
        SSHSetting("KbdInteractiveAuthentication", "yes"),
        SSHSetting("PasswordAuthentication", isSigned ? "yes" : "no"),
        SSHSetting("AuthenticationMethods", lists),
      ]
  }

  private var blocks: [(criterion: String, lists: String)] {
    guard method == .match else { return [] }
    let alone = people.aloneUsers
    return (alone.isEmpty ? [] : [("User \(alone.joined(separator: ","))", "publickey")])
      + (people.keys.map { [($0, keyLists)] } ?? [])
  }

  /// The Match blocks, to be pasted where no other block comes before.
  package var blockLines: [String] {
    blocks.flatMap { ["Match \($0.criterion)", "    AuthenticationMethods \($0.lists)"] }
  }

  /// The lines of the file below its head.
  package var lines: [String] { settings.map(\.text) + blockLines }

  /// The settings that must be in effect for an account, or for whom no Match block is about. If
  /// AuthenticationMethods is, the method `password` does not matter. `keyed`: who is in the block
  /// for those with a key.
  func needed(for user: String? = nil, keyed: Set<String> = []) -> [SSHSetting] {
    let others = settings.filter { $0.keyword != "PasswordAuthentication" }
    guard method == .match, let user else { return others }
    let isAlone = people.aloneUsers.contains(user)
    guard isAlone || keyed.contains(user) else { return others }
    return others.dropLast() + [
      SSHSetting("AuthenticationMethods", isAlone ? "publickey" : keyLists)
    ]
  }

  /// The file's text, which identifies the stage: a file with any other text is not ours.
  package var text: String {
    let step = passing == nil ? "" : ", first step"
    return """
      # Written by sallyport pam enable sshd --sshd \(method.rawValue)\(step)
      # Undo: sallyport pam disable sshd
      \(lines.joined(separator: "\n"))

      """
  }

  /// The stage with this text; nil if it is not ours.
  package init?(text: String) {
    let people = SSHPeople(text: text)
    let all = SSHMethod.allCases.filter { $0 != .none }.flatMap { method in
      let people = method == .match ? people : SSHPeople()
      return [SSHStage(method: method, people: people)]
        + Passing.allCases.map { SSHStage(method: method, passing: $0, people: people) }
    }
    guard let stage = all.first(where: { $0.text == text }) else { return nil }
    self = stage
  }

  package init(method: SSHMethod, passing: Passing? = nil, people: SSHPeople = SSHPeople()) {
    (self.method, self.passing, self.people) = (method, passing, people)
  }
}

extension SSHPeople {
  /// Of a file of ours.
  fileprivate init(text: String) {
    let lines = linesOf(text).map { $0.split(separator: " ").map(String.init) }
    var (group, users, alone): (String?, [String], [String]) = (nil, [], [])
    for (block, next) in zip(lines, lines.dropFirst()) where block.first == "Match" {
      guard block.count == 3 else { continue }
      let names = block[2].split(separator: ",").map(String.init)
      if block[1] == "Group" {
        group = block[2]
      } else if next.dropFirst() == ["publickey"] {
        alone = names
      } else {
        users = names
      }
    }
    self.init(keyGroup: group, keyUsers: users, aloneUsers: alone)
  }
}

// MARK: - The steps to the final settings

extension SSHStage {
  package func via(_ passing: Passing) -> SSHStage {
    SSHStage(method: method, passing: passing, people: people)
  }

  /// The settings to write before the PAM lines, so that nobody is locked out or let in too early
  /// meanwhile.
  package func steps(before changesPAM: Bool, _ passing: Passing) -> [SSHStage] {
    switch method {
    case .none: []
    case .passwordCode: [self]
    case .keyPasswordCode: [via(passing), self]
    case .keyCode: [changesPAM ? via(passing) : self]
    case .match, .either: [via(passing)] + (changesPAM ? [] : [self])
    }
  }

  /// The settings to write after the PAM lines.
  package func steps(after changesPAM: Bool) -> [SSHStage] {
    !method.needsPassword && changesPAM ? [self] : []
  }
}

/// A keyword of sshd_config(5) and its value.
package struct SSHSetting: Equatable, Sendable {
  let keyword, value: String

  init(_ keyword: String, _ value: String) { (self.keyword, self.value) = (keyword, value) }

  /// The line in a configuration file.
  package var text: String { "\(keyword) \(value)" }
}
