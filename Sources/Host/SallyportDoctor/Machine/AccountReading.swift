import Glibc
import SallyportCore
import SallyportSupport
import SallyportSystem

/// What lists accounts and groups beside the machine's own files.
struct AccountDatabase {
  let accounts: () throws(StoreTrouble) -> [HomeAccount]
  let groups: () throws(StoreTrouble) -> [AccountFacts.Group]
  /// Finds one by its name; nil if there is none.
  let find: (UserName) throws(StoreTrouble) -> HomeAccount?
  /// Everything that it lists of shadow(5), or what it finds by a name.
  var shadows: () -> [ShadowEntry] = { [] }
  var shadow: (_ name: String) -> ShadowEntry? = { _ in nil }

  static var none: AccountDatabase {
    AccountDatabase(accounts: { [] }, groups: { [] }, find: { _ in nil })
  }

  static var real: AccountDatabase {
    AccountDatabase(
      accounts: { () throws(StoreTrouble) in try AccountBook.all() },
      groups: { () throws(StoreTrouble) in try AccountBook.groups() },
      find: { name throws(StoreTrouble) in try AccountBook.home(of: try Accounts.find(name)) },
      shadows: AccountBook.shadows, shadow: AccountBook.shadow)
  }

  /// Without what directories of the network list.
  fileprivate static func nearby(of machine: Machine) -> AccountDatabase {
    let isLocal = { database in NameSources(of: database, on: machine).areLocal }
    return AccountDatabase(
      accounts: isLocal("passwd") ? real.accounts : none.accounts,
      groups: isLocal("group") ? real.groups : none.groups,
      find: none.find, shadows: real.shadows)
  }
}

extension AccountFacts {
  /// Below another root directory there are files alone.
  init(of machine: Machine) {
    let silent = machine.leaveSilentSources()
    self.init(of: machine, listing: machine.root.isEmpty ? .real : .none)
    if !silent.isEmpty {
      let reason = "no answer of \(listed(silent)) within \(SilentSources.patience) s"
      add(AccountFacts(gaps: [.unlistable(reason)]))
    }
  }

  /// Enough to tell of one account: of one in the machine's own files no directory is asked for its
  /// lists, for which a server that is away lets the caller wait.
  init(of machine: Machine, about user: UserName) {
    let nearby = AccountFacts(
      of: machine, listing: machine.root.isEmpty ? .nearby(of: machine) : .none)
    let isLocal = user.typed.flatMap { nearby[$0] }?.source == .files
    self = isLocal ? nearby : AccountFacts(of: machine)
  }

  init(of machine: Machine, listing database: AccountDatabase) {
    var reading = AccountReading(of: machine)
    reading.readFiles()
    reading.list(database)
    self = reading.facts()
  }

  /// How many names are looked up at most, since each may read the whole database.
  static let mostNames = 1000

  /// Looks up accounts that no source lists, by names that something else on the machine has.
  mutating func look(for names: [String], of machine: Machine, in database: AccountDatabase) {
    let unlisted = Set(names.filter { self[$0] == nil }).sorted()
    var reading = AccountReading(of: machine)
    if unlisted.count > AccountFacts.mostNames {
      reading.gaps.append(.tooManyNames(AccountFacts.mostNames))
    }
    for name in unlisted.prefix(AccountFacts.mostNames) {
      guard let user = UserName(Array(name.utf8)) else { continue }
      do throws(StoreTrouble) {
        if let found = try database.find(user) {
          reading.take(found, .named) { [database.shadow(name)].compactMap { $0 } }
        }
      } catch {
        reading.gaps.append(.unlistable(AccountReading.text(error)))
        break
      }
    }
    add(reading.facts())
  }
}

/// Reads each source of accounts once.
private struct AccountReading {
  private typealias Row = [ArraySlice<UInt8>]
  private typealias Passwords = (state: PasswordState, isLocked: Bool, aging: PasswordAging?)

  private let machine: Machine
  private var accounts: [AccountFacts.Account] = []
  private var names: Set<String> = []
  private var groups: [AccountFacts.Group] = []
  var gaps: [AccountFacts.Gap] = []
  private var shells: [String: LoginShell] = [:]
  private let listedShells: Set<Substring>
  /// nil if the file cannot be read.
  private var shadow: [String: Passwords]?
  /// What the account database has of shadow(5); nil: not asked yet.
  private var others: [String: ShadowEntry]?
  private static let longest = 64 << 20

  init(of machine: Machine) {
    self.machine = machine
    listedShells = LoginShell.listed(on: machine)
  }

  /// What was read.
  func facts() -> AccountFacts {
    let memberships = AccountFacts.memberships(in: groups)
    let all = accounts.map { one in
      var account = one
      account.groups = memberships[one.name] ?? []
      if one.source == .files {
        account.hasKeys = machine.hasText("\(one.home)/.ssh/authorized_keys", of: account)
      }
      return account
    }
    let isLocal = ["group", "initgroups"].allSatisfy {
      NameSources(of: $0, on: machine).areLocal
    }
    return AccountFacts(
      accounts: all, groups: groups, gaps: gaps, hasAllGroups: isLocal && hasGroups,
      shells: shells)
  }

  private var hasGroups: Bool {
    !gaps.contains { gap in
      switch gap {
      case .unread(let path, _), .cut(let path): path == "/etc/group"
      case .unlistable: true
      case .unlisted, .tooManyNames: false
      }
    }
  }

  // MARK: files

  mutating func readFiles() {
    readShadow()
    for row in rows(of: "/etc/group") where row.count > 3 {
      guard let number = UInt32(text(row[2])) else { continue }
      groups.append(
        AccountFacts.Group(
          name: text(row[0]), number: number,
          members: row[3].split(separator: UInt8(ascii: ",")).map { text($0) }))
    }
    for row in rows(of: "/etc/passwd") where row.count > 6 {
      guard let uid = UInt32(text(row[2])), let group = UInt32(text(row[3])) else { continue }
      let passwords = passwords(of: text(row[0]), field: row[1])
      take(
        AccountFacts.Account(
          name: text(row[0]), uid: uid, group: group, shell: text(row[6]), home: text(row[5]),
          password: passwords?.state ?? .unknown, isLocked: passwords?.isLocked ?? false,
          aging: passwords.map(\.aging) ?? PasswordAging()))
    }
  }

  private mutating func readShadow() {
    let gapsBefore = gaps.count
    let rows = rows(of: "/etc/shadow")
    if gaps.count > gapsBefore || machine.file("/etc/shadow").value == nil { return }
    var found: [String: Passwords] = [:]
    for row in rows where row.count > 1 && found[text(row[0])] == nil {
      let days = row.dropFirst(2).prefix(6).map { Int(text($0)) }
      // The C library skips such a line.
      if zip(row.dropFirst(2), days).contains(where: { !$0.isEmpty && $1 == nil }) { continue }
      let day = { (field: Int) in days.count > field ? days[field] : nil }
      found[text(row[0])] = (
        PasswordState(hash: row[1]), row[1].first == UInt8(ascii: "!"),
        PasswordAging(changed: day(0), maximum: day(2), inactive: day(4), expires: day(5))
      )
    }
    shadow = found
  }

  /// nil: unknown. A field of passwd(5) other than `x` is the password itself.
  private func passwords(of name: String, field: ArraySlice<UInt8>) -> Passwords? {
    guard isShadowed(field) else {
      return (PasswordState(hash: field), field.first == UInt8(ascii: "!"), PasswordAging())
    }
    return shadow.map { $0[name] ?? (.none, false, nil) }
  }

  private func isShadowed(_ field: some Collection<UInt8>) -> Bool {
    field.elementsEqual("x".utf8) || field.starts(with: "##".utf8)
  }

  /// As the C library reads such files. Lines that begin with a sign ask another source.
  private mutating func rows(of path: String) -> [Row] {
    let bytes: [UInt8]
    switch machine.bytes(path, limit: AccountReading.longest) {
    case .seen(let found): bytes = found
    case .absent: return []
    case .unseen(let reason):
      gaps.append(.unread(path, reason))
      return []
    }
    if bytes.count == AccountReading.longest { gaps.append(.cut(path)) }
    return bytes.split(separator: UInt8(ascii: "\n")).compactMap { whole in
      let line = whole.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      guard let first = line.first, !"#+-".utf8.contains(first) else { return nil }
      return line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    }
  }

  private func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

  // MARK: the account database

  mutating func list(_ database: AccountDatabase) {
    let sources = NameSources(of: "passwd", on: machine)
    let others = sources.sources?.filter { $0 != "files" }
    if others == nil { gaps.append(.unread("/etc/nsswitch.conf", "")) }
    do throws(StoreTrouble) {
      let listed = try database.accounts()
      for one in listed { take(one, .database(others ?? []), database.shadows) }
      if AccountBook.mayLackPeople(listed, on: machine) {
        gaps.append(.unlisted(sources.directoryNames ?? []))
      }
      try take(database.groups())
    } catch {
      gaps.append(.unlistable(AccountReading.text(error)))
    }
  }

  /// Members that another source adds to a group of the file are its members too.
  private mutating func take(_ listed: [AccountFacts.Group]) {
    var positions = Dictionary(
      groups.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    for group in listed {
      guard let index = positions[group.name] else {
        positions[group.name] = groups.count
        groups.append(group)
        continue
      }
      let known = groups[index]
      let members = Set(known.members)
      let new = group.members.filter { !members.contains($0) }
      guard known.number == group.number, !new.isEmpty else { continue }
      groups[index] = AccountFacts.Group(
        name: known.name, number: known.number, members: known.members + new,
        isInFile: known.isInFile)
    }
  }

  mutating func take(
    _ one: HomeAccount, _ source: AccountFacts.Source, _ shadows: () -> [ShadowEntry]
  ) {
    guard let name = one.account.name.typed, !names.contains(name) else { return }
    var (hash, aging) = (one.password, PasswordAging?.some(PasswordAging()))
    if isShadowed(Array(hash.utf8)) {
      // Each may be a question to a server.
      if others == nil || source == .named {
        others = Dictionary(
          shadows().map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
      }
      hash = others?[name]?.hash ?? "*"
      // Root alone sees such lines.
      if machine.bytes("/etc/shadow", limit: 1).value != nil { aging = others?[name]?.aging }
    }
    let state = PasswordState(hash: Array(hash.utf8))
    take(
      AccountFacts.Account(
        name: name, uid: one.user, group: one.group, shell: one.shell, home: one.home,
        password: state == .none ? .elsewhere : state, aging: aging, hasKeys: nil, source: source))
  }

  private mutating func take(_ account: AccountFacts.Account) {
    guard names.insert(account.name).inserted else { return }
    accounts.append(account)
    let path = LoginShell.path(account.shell)
    if shells[path] == nil {
      shells[path] = LoginShell(at: path, of: machine, listed: listedShells)
    }
  }

  static func text(_ error: StoreTrouble) -> String {
    Message(error, at: Invocation(verb: "doctor")).text
  }
}
