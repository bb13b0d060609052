import SallyportSupport

/// An enrolled user, and where sshd looks for their keys.
struct SSHPerson: Equatable {
  let name: String
  /// The settings for their logins from this machine.
  let settings: Probe<SSHSettings>
  /// Whether a file that sshd reads has a key for them; unseen if keys can also come from
  /// elsewhere.
  let hasKey: Probe<Bool>
  /// The first file that sshd reads for them; nil if AuthorizedKeysFile names none.
  var file: String?
  /// nil if unknown.
  var hasPassword: Bool?
}

extension SSHFacts {
  /// A limit, as each needs a run of sshd if Match blocks name users or groups.
  static let mostPeople = 100

  /// Looks for the keys of enrolled users.
  mutating func look(for names: [String], of machine: Machine, _ accounts: AccountFacts) {
    let differ = configuration.blocks.contains { block in
      block.criteria.contains { ["user", "group"].contains($0.name) }
    }
    let (base, blocks) = (settings, SSHBlocks(configuration))
    var known: [[Bool]: Probe<SSHSettings>] = [:]
    people = names.compactMap { name in
      guard let account = accounts[name] else {
        let reason = "the account of \(name) is not in /etc/passwd"
        return SSHPerson(name: name, settings: base, hasKey: .unseen(reason))
      }
      guard account.isPerson else { return nil }
      var own = base
      if differ {
        let kind = blocks.about(SSHLogin(account, accounts))
        own =
          known[kind]
          ?? (known.count < SSHFacts.mostPeople
            ? SSHFacts.settings(of: machine, user: name, from: .here(port: configuration.port))
            : .unseen("only the first \(SSHFacts.mostPeople) kinds of users were checked"))
        known[kind] = own
      }
      // Another finding reports that root is let in by a key alone, or not at all.
      if account.uid == 0, own.value?["permitrootlogin"] != "yes" { return nil }
      return SSHPerson(account, own, configuration, of: machine)
    }
  }
}

extension SSHPerson {
  fileprivate init(
    _ account: AccountFacts.Account, _ settings: Probe<SSHSettings>,
    _ configuration: SSHConfiguration, of machine: Machine
  ) {
    let files = settings.value?.keyFiles(of: account, configuration) ?? []
    let hasKey: Probe<Bool> =
      switch settings {
      case .seen(let settings): SSHPerson.hasKey(in: files, account, settings, of: machine)
      case .absent: .unseen("sshd did not answer")
      case .unseen(let reason): .unseen(reason)
      }
    self.init(
      name: account.name, settings: settings, hasKey: hasKey, file: files.first,
      hasPassword: account.hasPassword)
  }

  private static func hasKey(
    in files: [String], _ account: AccountFacts.Account, _ settings: SSHSettings,
    of machine: Machine
  ) -> Probe<Bool> {
    let texts = files.map { machine.text($0, of: account) }
    let lines = texts.flatMap { linesOf($0.value ?? "") }.compactMap { SSHKeyLine($0) }
    if lines.contains(where: { !$0.isAuthority }) { return .seen(true) }
    let others = ["AuthorizedKeysCommand", "TrustedUserCAKeys"].filter { keyword in
      !["", "none"].contains(settings[keyword.lowercased()])
    }
    if let other = others.first { return .unseen("\(other) may know a key") }
    for case .unseen(let reason) in texts { return .unseen(reason) }
    for (file, text) in zip(files, texts) where text.value?.utf8.count ?? 0 >= Machine.longestText {
      return .unseen("\(file): only its beginning was read")
    }
    return .seen(false)
  }
}

extension SSHSettings {
  /// AuthorizedKeysFile for one user: `%h`, `%u`, `%U` and `%%` are replaced, and relative paths
  /// are relative to the home. sshd prints a path with spaces as it prints two paths: which it is
  /// stands in the configuration.
  func keyFiles(of account: AccountFacts.Account, _ configuration: SSHConfiguration) -> [String] {
    let printed = written("authorizedkeysfile")
    let line = configuration.lines.first {
      $0.keyword == "authorizedkeysfile" && $0.arguments.joined(separator: " ") == printed
    }
    let words = line?.arguments ?? printed.split(separator: " ").map(String.init)
    return words.filter { $0.lowercased() != "none" }.map { word in
      let path = SSHSettings.expanded(word, account)
      return path.hasPrefix("/") ? path : "\(account.home)/\(path)"
    }
  }

  private static func expanded(_ word: String, _ account: AccountFacts.Account) -> String {
    var (path, isToken) = ("", false)
    for character in word {
      switch (isToken, character) {
      case (false, "%"):
        isToken = true
        continue
      case (true, "h"): path += account.home
      case (true, "u"): path += account.name
      case (true, "U"): path += "\(account.uid)"
      case (true, "%"): path += "%"
      case (true, _): path += "%\(character)"
      case (false, _): path.append(character)
      }
      isToken = false
    }
    return path
  }
}

/// Enrolled users without a key, or without a password, if sshd lets nobody in without one. Pure.
struct SSHKeyFindings {
  private let ssh: SSHFacts
  private let needing: [SSHPerson]
  private let passwordless: [SSHPerson]
  private let area = Area.service("sshd")

  /// `lines` are ours in sshd's stacks.
  init(_ ssh: SSHFacts, _ lines: ModuleLines) {
    self.ssh = ssh
    needing = ssh.people.filter { person in
      guard let settings = person.settings.value else { return true }
      return SSHWays(settings, lines, ssh.configuration, block: nil).needsKey
    }
    passwordless = ssh.people.filter { person in
      guard person.hasPassword == false, let settings = person.settings.value else { return false }
      return SSHWays(settings, lines, ssh.configuration, block: nil).needsPassword
    }
  }

  var all: [Finding] {
    let password = shut("ssh-passwords", out: passwordless, for: "password") { person in
      .command("passwd \(shellQuoted(person.name))")
    }
    return keys + [password].compactMap { $0 }
  }

  private var keys: [Finding] {
    guard !needing.isEmpty else { return [] }
    let keyless = shut("ssh-keys", out: needing.filter { $0.hasKey == .seen(false) }, for: "key") {
      person in
      let file = person.file ?? "a file that AuthorizedKeysFile names"
      return .advice("put a public key of \(person.name) into \(file)")
    }
    let found = [keyless, unseen].compactMap { $0 }
    return found.isEmpty
      ? [.ok("ssh-keys", area, "everybody who is enrolled has a key, which sshd asks for")] : found
  }

  /// An error only if all of them are shut out, since some may be enrolled for sudo or the console
  /// alone.
  private func shut(
    _ id: String, out people: [SSHPerson], for thing: String, _ fix: (SSHPerson) -> Fix
  ) -> Finding? {
    guard let first = people.first else { return nil }
    let isAll = people.count == ssh.people.count
    let names = listed(people.map(\.name))
    return Finding(
      id, area,
      "sshd asks for a \(thing), and "
        + (isAll ? "nobody who is enrolled has one: \(names)" : "\(names) has none"),
      severity: isAll ? .error : .warning,
      location: ssh.configuration.location(of: "AuthenticationMethods"), fixes: [fix(first)],
      effect: .locksOut(isAll ? "everybody who is enrolled from sshd" : "\(names) from sshd"))
  }

  private var unseen: Finding? {
    let unseen = needing.compactMap { person -> (String, String)? in
      guard case .unseen(let reason) = person.hasKey else { return nil }
      return (person.name, reason)
    }
    guard let first = unseen.first else { return nil }
    return .unseen(
      "ssh-keys", area, "whether \(listed(unseen.map(\.0))) has a key is not known: \(first.1)")
  }
}
