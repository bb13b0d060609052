import OneTimePassword
package import SallyportCore

/// Whether somebody may become another account without that one's password, by the rules of this
/// machine, as far as that needs no more than their names: any rule of sudo or doas for him is
/// enough, whatever it is for. So nobody has to be followed from account to account.
package enum RootPower: Equatable, Sendable {
  case none
  /// By this rule or group.
  case some(String)
  /// It cannot be found out, because of this.
  case unknown(String)
}

extension RootPower {
  /// Groups whose members are root by another name: what the group may write, mount or start makes
  /// them root.
  package static let groups = [
    "root", "wheel", "sudo", "admin", "docker", "lxd", "incus", "incus-admin", "microk8s",
    "libvirt", "libvirtd", "disk", "shadow", "kmem",
  ]

  /// `isMember`: of the account; yes and no are certain.
  package init(
    of account: Account, by names: RootNames, isMember: (_ group: String) -> Tristate
  ) {
    if account.uid == 0 || account.group == 0 {
      self = .some(account.uid == 0 ? "uid 0" : "group 0")
      return
    }
    var doubt = names.gaps.first
    let groups = RootPower.groups.map { RootNames.Entry(.group($0), at: "group \($0)") }
    for entry in groups + names.entries {
      switch RootPower.includes(account, entry.name, isMember) {
      case .yes:
        self = .some(entry.place)
        return
      case .unknown: doubt = doubt ?? "\(entry.place): who is in the group"
      case .no: break
      }
    }
    self = doubt.map { .unknown($0) } ?? .none
  }

  private static func includes(
    _ account: Account, _ name: RootNames.Name, _ isMember: (_ group: String) -> Tristate
  ) -> Tristate {
    switch name {
    case .everybody: .yes
    case .group(let group): isMember(group)
    case .number(let uid): account.uid == uid ? .yes : .no
    // sudo does not tell capitals apart.
    case .user(let user):
      user.lowercased() == String(decoding: account.name.bytes, as: UTF8.self).lowercased()
        ? .yes : .no
    }
  }
}

/// The files of rules of a machine.
package struct RuleFiles {
  /// A file.
  package enum Text: Equatable {
    case absent
    case seen(String)
    /// Why it is not.
    case unseen(String)
  }

  /// Of a regular file.
  package let text: (_ path: String) -> Text
  /// Of what is in a directory, in the order of the names; empty where there is none, and nil where
  /// that cannot be seen.
  package let names: (_ directory: String) -> [String]?

  package init(
    text: @escaping (_ path: String) -> Text, names: @escaping (_ directory: String) -> [String]?
  ) {
    (self.text, self.names) = (text, names)
  }

  /// Whether groups are in files of this machine alone.
  package var areGroupsLocal: Bool {
    let local = ["files", "compat", "systemd", "db", "mymachines", "altfiles", "extrausers"]
    return ["group", "initgroups"].allSatisfy { database in
      RuleText.sources(of: database, self)?.allSatisfy(local.contains) == true
    }
  }
}

/// Whom the rules of sudo, doas and polkit name.
package struct RootNames: Equatable {
  /// Somebody, as rules name him.
  package enum Name: Hashable {
    case everybody
    case user(String)
    case group(String)
    /// A uid.
    case number(UInt32)
  }

  /// A name, and where it stands.
  package struct Entry: Equatable {
    package let name: Name
    package let place: String

    init(_ name: Name, at place: String) { (self.name, self.place) = (name, place) }
  }

  package private(set) var entries: [Entry] = []
  /// What names somebody, and is not understood or not to be read: each says where, and why.
  package private(set) var gaps: [String] = []
  /// Whether groups are in files of this machine alone, so that one that is not found is not there.
  package private(set) var areGroupsLocal = false

  package init(of files: RuleFiles) {
    var sudo = SudoersNames(files)
    sudo.read()
    var polkit = PolkitNames(files)
    polkit.read()
    var doas = DoasNames(files)
    doas.read()
    (entries, gaps) = (
      sudo.found.entries + doas.found.entries + polkit.found.entries,
      sudo.found.gaps + doas.found.gaps + polkit.found.gaps
    )
    // Where Debian has this file, the group may write what is in root's PATH.
    let staff = "/etc/staff-group-for-usr-local"
    if files.text(staff) != .absent { entries.append(Entry(.group("staff"), at: staff)) }
    areGroupsLocal = files.areGroupsLocal
  }
}

/// What one kind of rules gives.
struct FoundNames {
  private(set) var entries: [RootNames.Entry] = []
  private(set) var gaps: [String] = []

  mutating func add(_ name: RootNames.Name, at place: String) {
    entries.append(RootNames.Entry(name, at: place))
  }

  mutating func miss(_ why: String) { gaps.append(why) }
}

/// What all kinds of rules have in common.
enum RuleText {
  /// The lines with their numbers. A backslash at the end of a line joins it with the next.
  static func lines(_ text: String) -> [(text: String, number: Int)] {
    var (found, open): ([(String, Int)], (String, Int)?) = ([], nil)
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .enumerated()
    {
      let whole = ((open?.0 ?? "") + line, open?.1 ?? index + 1)
      // A comment ends with its line.
      if line.hasSuffix("\\"), withoutComment(whole.0) == whole.0 {
        open = (whole.0.dropLast() + " ", whole.1)
      } else {
        found.append(whole)
        open = nil
      }
    }
    return open.map { found + [$0] } ?? found
  }

  /// Removes a comment: from `#` outside of quotes, without a backslash before it or a digit, as of
  /// a uid, after it.
  static func withoutComment(_ text: String) -> String {
    var (kept, isQuoted, isEscaped) = ("", false, false)
    for (index, character) in zip(text.indices, text) {
      let next = text[text.index(after: index)...].first
      if character == "\"", !isEscaped { isQuoted.toggle() }
      if character == "#", !isQuoted, !isEscaped, next?.isNumber != true { break }
      isEscaped = character == "\\" && !isEscaped
      kept.append(character)
    }
    return kept
  }

  /// Whether each quote without a backslash before it has its second.
  static func quotesEnd(in text: some StringProtocol) -> Bool {
    var (isQuoted, isEscaped) = (false, false)
    for character in text {
      if character == "\"", !isEscaped { isQuoted.toggle() }
      isEscaped = character == "\\" && !isEscaped
    }
    return !isQuoted
  }

  static func words(_ text: Substring) -> [String] {
    text.split(whereSeparator: \.isWhitespace).map(String.init)
  }

  /// Of a database in nsswitch.conf(5); nil if that cannot be read.
  static func sources(of database: String, _ files: RuleFiles) -> [String]? {
    switch files.text("/etc/nsswitch.conf") {
    case .unseen: return nil
    case .absent: return ["files"]
    case .seen(let text):
      var found = ["files"]
      for line in text.split(whereSeparator: \.isNewline) {
        let parts = line.prefix { $0 != "#" }.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, words(parts[0]) == [database] else { continue }
        found = words(parts[1]).filter { !$0.hasPrefix("[") && !$0.hasSuffix("]") }
      }
      return found
    }
  }
}
