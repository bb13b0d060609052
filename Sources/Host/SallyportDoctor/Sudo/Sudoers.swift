package import PAMStack
import SallyportCore

/// What sudoers files say about asking. cvtsudoers, which expands aliases, tells what the lines
/// mean; where they stand and how they are written is read from the files. Its JSON has no line
/// numbers either, and is invalid before sudo 1.9.16 if a rule has CWD. `sudo -l` covers only one
/// user.
package struct Sudoers: Equatable {
  enum Exception: Equatable {
    /// NOPASSWD. `all`: for every command as root.
    case noPassword(who: String, all: Bool)
    /// `!authenticate`. `all`: as above.
    case noAuthentication(who: String, all: Bool)
    /// `!pam_session`
    case noSession
    /// The members of this group are never asked.
    case exemptGroup(String)
    /// A ticket that never expires.
    case endlessTicket
    /// `rootpw`, `targetpw` or `runaspw`: sudo asks for the code of another account.
    case otherAccount(String)
    /// `pam_service`, `pam_login_service` or `pam_askpass_service`: sudo runs the stacks of another
    /// service.
    case otherService(option: String, String)
  }

  struct Entry: Equatable {
    let exception: Exception
    let location: FileLocation
    /// The line without the exception.
    var fixed: String
    /// The hosts of the line, if none of them is this machine.
    var elsewhere: [String] = []
    /// Of a rule: who it is for.
    var callers: [String] = []

    /// Whether the line applies to everybody everywhere: plain `Defaults`.
    var isForAll: Bool { fixed.split(whereSeparator: \.isWhitespace).first == "Defaults" }
  }

  private(set) var entries: [Entry] = []
  /// Who has rules: users, `%group`, `ALL`; also aliases that were not expanded.
  private(set) var callers: [String] = []
  /// Files that could not be read, each with the reason.
  private(set) var unread: [String] = []
  /// Files and directories that sudo does not read, since others than root may write them.
  private(set) var ignored: [String] = []
  /// Whether there is a sudoers file.
  private(set) var isThere = true
  /// Why aliases were not expanded, if that may matter.
  private(set) var unexpanded: String?
  /// What decides who may call sudo for what.
  private(set) var policy = SudoersPolicy()
  /// Those that are being read, each included by the one before.
  private var files: [String] = []
  private var hasAliases = false

  /// How people call the program.
  private(set) var name = "sudo"

  init() {}

  /// Of the sudo that people call first.
  package init(of machine: Machine) {
    let first = SudoProgram.installed(on: machine).first
    self.init(of: machine, as: first?.program ?? .sudo, name: first?.name ?? "sudo")
  }

  /// Of the other program, where sudo and sudo-rs are both there.
  static func second(of machine: Machine) -> Sudoers? {
    let all = SudoProgram.installed(on: machine)
    return all.first { $0.program != all[0].program }.map {
      Sudoers(of: machine, as: $0.program, name: $0.name)
    }
  }

  init(of machine: Machine, as program: SudoProgram, name: String = "sudo") {
    (policy.program, self.name) = (program, name)
    let named = program == .sudo ? Sudoers.named(on: machine).map { [$0] } : nil
    guard let file = (named ?? program.files).first(where: { machine.text($0) != .absent }) else {
      isThere = false
      return
    }
    let host = trimmed(machine.text("/proc/sys/kernel/hostname").value ?? "")
    var lines: [Line] = []
    read(file, of: machine, on: host, into: &lines)
    policy.host = host.lowercased()
    policy.root = SudoTarget.root(of: machine)
    policy.gap =
      unread.first.map(RuleGap.file)
      ?? (program == .sudo ? Sudoers.otherSource(of: machine).map(RuleGap.source) : nil)
    // cvtsudoers reads the same files.
    if unread.isEmpty, program == .sudo { expand(&lines, file, of: machine) }
    for line in lines { take(line, on: host) }
    for case .otherService(_, let name) in entries.map(\.exception)
    where ModuleLines(of: ServiceStack(of: machine, name)).isInAuth {
      asking.insert(name)
    }
  }

  /// A rule or a Defaults line.
  private struct Line {
    let location: FileLocation
    let written: SudoersLine
    /// With aliases expanded.
    var meant: SudoersLine
  }

  /// `rootpw`, `targetpw` or `runaspw`, if one of them applies to everybody: sudo then asks for the
  /// code of another account than the caller's.
  package var otherAccountForAll: String? {
    entries.lazy.filter(\.isForAll).compactMap { entry in
      if case .otherAccount(let word) = entry.exception { word } else { nil }
    }.first
  }

  /// The services that `pam_service` and `pam_login_service` name and that ask for a code.
  private(set) var asking: Set<String> = []

  /// The services that sudo runs here because a line says so, each with the command that comes to
  /// it.
  package var services: [ServiceFamily.Member] {
    entries.filter(\.elsewhere.isEmpty).compactMap { entry in
      guard case .otherService(let option, let name) = entry.exception else { return nil }
      return ServiceFamily.Member(name, by: Sudoers.way(option))
    }
  }

  /// The command for which the option names the service.
  static func way(_ option: String) -> String {
    switch option {
    case "pam_login_service": "sudo -i"
    case "pam_askpass_service": "sudo -A"
    case _: "sudo"
    }
  }

  /// Whether a rule applies to everybody.
  var hasRuleForAll: Bool { callers.contains("ALL") }

  private mutating func read(
    _ file: String, of machine: Machine, on host: String, into lines: inout [Line]
  ) {
    guard !files.contains(file) else { return }
    files.append(file)
    defer { files.removeLast() }
    if ignores(file, on: machine) { return }
    switch machine.text(file) {
    case .absent: return
    case .unseen(let reason): unread.append(reason)
    case .seen(let text):
      for (number, line) in Sudoers.joined(text) {
        let location = FileLocation(file: file, line: number)
        for included in included(by: line, location, of: machine, on: host) {
          read(included, of: machine, on: host, into: &lines)
        }
        let line = SudoersLine(line)
        policy.take(line, at: location)
        hasAliases = hasAliases || line.isAlias
        if line.kind != nil { lines.append(Line(location: location, written: line, meant: line)) }
      }
    }
  }

  /// The files that a line includes.
  private mutating func included(
    by line: String, _ location: FileLocation, of machine: Machine, on host: String
  ) -> [String] {
    let words = SudoersLine.parts(line, at: \.isWhitespace).filter { !$0.isEmpty }
    guard words.count > 1, ["@", "#"].contains(words[0].prefix(1)) else { return [] }
    let path = Sudoers.path(SudoersItem(words[1]).name, location.file, host)
    switch words[0].dropFirst() {
    case "include": return [path]
    case "includedir":
      if policy.program == .sudo, ignores(path, on: machine) { return [] }
      return machine.paths("\(path)/*").filter(Sudoers.counts)
    case _: return []
    }
  }

  /// Takes the meaning of the lines from the output of cvtsudoers: all Defaults, then all rules,
  /// each in the order of the files.
  private mutating func expand(_ lines: inout [Line], _ file: String, of machine: Machine) {
    let words = ["cvtsudoers", "-c", "/dev/null", "-e", "-f", "sudoers", machine.root + file]
    let output: String
    switch machine.run(words) {
    case .absent:
      if hasAliases { unexpanded = "there is no cvtsudoers" }
      return
    case .unseen(let reason):
      unexpanded = reason
      return
    case .seen(let done) where done.status != 0:
      unexpanded = "cvtsudoers: \(done.complaint)"
      policy.gap = policy.gap ?? .complaint(done.complaint)
      return
    case .seen(let done): output = done.output
    }
    let expanded = Sudoers.joined(output).map { SudoersLine($0.1) }
    for kind in SudoersLine.Kind.allCases {
      let indices = lines.indices.filter { lines[$0].written.kind == kind }
      let meant = expanded.filter { $0.kind == kind }
      if indices.count != meant.count {
        unexpanded = "cvtsudoers does not write as many lines as the files have"
      } else {
        for (index, line) in zip(indices, meant) { lines[index].meant = line }
      }
    }
  }

  private mutating func take(_ line: Line, on host: String) {
    // A file may be included twice.
    entries.removeAll { $0.location == line.location }
    // The last one counts; those for particular users come after those for all.
    let set = line.meant.setForAll
    entries.removeAll { entry in
      entry.isForAll && entry.exception.option.map(set.contains) == true
    }
    // The last rule for somebody counts as well.
    let asked = line.meant.asked
    entries.removeAll { entry in
      !entry.callers.isEmpty && (asked.contains("ALL") || asked.isSuperset(of: entry.callers))
    }
    let written = line.written.entries(at: line.location, on: host)
    for (index, entry) in line.meant.entries(at: line.location, on: host).enumerated() {
      entries.append(entry)
      if index < written.count { entries[entries.count - 1].fixed = written[index].fixed }
    }
    callers += line.meant.callers
  }

  /// Whether sudo does not read the file or directory, since others than root may write it.
  private mutating func ignores(_ path: String, on machine: Machine) -> Bool {
    guard let facts = machine.file(path).value else { return false }
    // Below another root directory it is not known whose the files are.
    let isForeign = facts.owner != 0 || facts.group != 0 && facts.mode & 0o020 != 0
    guard facts.mode & 0o002 != 0 || machine.root.isEmpty && isForeign else { return false }
    if !ignored.contains(path) { ignored.append(path) }
    return true
  }

  /// Whether sudo reads the file: it skips names with a dot, or with a tilde at the end.
  private static func counts(_ file: String) -> Bool {
    let name = file.split(separator: "/").last ?? ""
    return !name.contains(".") && !name.hasSuffix("~")
  }

  /// The file that sudo.conf(5) names in place of sudoers.
  private static func named(on machine: Machine) -> String? {
    let option = "sudoers_file="
    for line in linesOf(machine.text("/etc/sudo.conf").value ?? "") {
      let words = line.split(whereSeparator: \.isWhitespace)
      guard words.first?.lowercased() == "plugin" else { continue }
      if let word = words.last(where: { $0.hasPrefix(option) }) {
        return String(word.dropFirst(option.count))
      }
    }
    return nil
  }

  /// Replaces `%h` by the host name without its domain.
  private static func path(_ word: String, _ file: String, _ host: String) -> String {
    let name = String(host.prefix { $0 != "." })
    let path = word.split(separator: "%h", omittingEmptySubsequences: false).joined(separator: name)
    guard !path.hasPrefix("/") else { return path }
    return file.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" } + "/" + path
  }

  /// Joins lines that end with a backslash with the next; each with the number of its first line. A
  /// comment ends with its line.
  private static func joined(_ text: String) -> [(Int, String)] {
    var (lines, open): ([(Int, String)], String?) = ([], nil)
    var start = 1
    for (index, line) in linesOf(text).enumerated() {
      if open == nil { start = index + 1 }
      let whole = (open ?? "") + line
      if line.hasSuffix("\\"), SudoersLine.withoutComment(whole) == whole {
        open = whole.dropLast() + " "
      } else {
        lines.append((start, whole))
        open = nil
      }
    }
    return open.map { lines + [(start, $0)] } ?? lines
  }
}

extension Sudoers {
  /// What sudo does when the account calls it. `groups`: the names of all groups of the account,
  /// nil if they are not known.
  func rules(
    for account: AccountFacts.Account, groups: [String]?, _ way: SudoWay, at now: UnixTime
  ) -> RootRules {
    caller(account, groups: groups, at: now).rules(way)
  }

  /// As above, for several ways.
  func caller(_ account: AccountFacts.Account, groups: [String]?, at now: UnixTime) -> SudoCaller {
    SudoCaller(SudoersUser(account, groups: groups), policy, at: now)
  }

  func caller(
    _ account: AccountFacts.Account, in accounts: AccountFacts, at now: UnixTime
  ) -> SudoCaller {
    SudoCaller(SudoersUser(account, in: accounts), policy, at: now)
  }

  /// A source of rules beyond the files, which is not looked up. SSSD has none without settings.
  private static func otherSource(of machine: Machine) -> String? {
    let sources = NameSources(of: "sudoers", on: machine).sources
    guard let other = sources?.first(where: { $0 != "files" }) else {
      return sources == nil ? "/etc/nsswitch.conf" : nil
    }
    let settings = ["/etc/sssd/sssd.conf", "/etc/sssd/conf.d/*.conf"].flatMap(machine.paths)
    return other == "sss" && settings.isEmpty ? nil : other
  }

  /// Whether sudo runs the service: by its own name, or because a line says so.
  package func runs(_ service: String) -> Bool {
    ["sudo", "sudo-i"].contains(service) || services.contains { $0.service == service }
  }
}

extension Sudoers.Exception {
  /// The option of a Defaults line that makes the exception.
  fileprivate var option: String? {
    switch self {
    case .noPassword: nil
    case .noAuthentication: "authenticate"
    case .noSession: "pam_session"
    case .exemptGroup: "exempt_group"
    case .endlessTicket: "timestamp_timeout"
    case .otherAccount(let word): word
    case .otherService(let option, _): option
    }
  }
}
