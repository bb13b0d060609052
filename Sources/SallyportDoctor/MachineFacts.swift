package import PAMStack
package import SallyportCore
package import SallyportSystem

/// Everything that doctor has looked at. What follows from it are findings.
package struct Facts: Equatable {
  var now: UnixTime
  /// The services that were looked at.
  var services: [ServiceFacts] = []
  /// nil where no service was asked for whose way it is.
  var ssh: SSHFacts?
  var sudoers: Sudoers?
  var store = StoreFacts()
  var clock: ClockFacts
  var modules: [ModuleFacts] = []
  /// Stores that lines name, besides the one that was looked at.
  var otherStores: [String] = []
  /// Accounts of a directory are not in the machine's own files.
  var hasDirectory = false
}

/// What doctor knows of one PAM service.
struct ServiceFacts: Equatable {
  let name: String
  var lines = ModuleLines()
  var policy = PolicyFacts()
  /// Its own file; nil where `other` stands in for it.
  var file: String?
  /// What the walk through its stacks says.
  var stack: [StackFinding] = []
  /// Why `remember` has no effect here, where it has none.
  var idleRemember: IdleRemember?

  /// The store that its lines work with.
  var store: String { lines.value(of: "store") ?? Store.usualRoot }
}

extension Facts {
  /// Looks at the machine. `store`: nil where the caller may not use it.
  package init(
    of machine: Machine, _ stacks: [ServiceStack], _ store: Store?, at path: String, _ now: UnixTime
  ) {
    self.init(now: now, clock: ClockFacts(of: machine, now))
    let accounts = AccountFacts(of: machine)
    services = stacks.map { ServiceFacts($0, of: machine) }
    otherStores = Set(services.filter { !$0.lines.lines.isEmpty }.map(\.store))
      .subtracting([path]).sorted()
    let names = stacks.map(\.service)
    if names.contains("sshd") { ssh = SSHFacts(of: machine, accounts) }
    if names.contains("sudo") || names.contains("sudo-i") { sudoers = Sudoers(of: machine) }
    if let store {
      self.store = StoreFacts(of: machine, store, at: path, now)
    } else {
      self.store.isClosed = true
    }
    ssh?.look(for: self.store.peopleEnrolled, of: machine, accounts)
    let census = GroupCensus()
    for index in services.indices { look(at: index, of: machine, store, accounts, census) }
    modules = Facts.modules(of: machine, services)
    hasDirectory = Facts.hasDirectory(machine)
  }

  /// The policy of one service, for those who are not enrolled.
  private mutating func look(
    at index: Int, of machine: Machine, _ store: Store?, _ accounts: AccountFacts,
    _ census: GroupCensus
  ) {
    let service = services[index]
    let directories = Set(self.store.users.compactMap(\.name))
    let people = accounts.people(of: service.name, sudoers, ssh).filter {
      !directories.contains($0.name)
    }
    services[index].policy = PolicyFacts(
      of: machine, self.store.trouble == nil ? store : nil, service, people: people,
      self.store.users, census, now)
  }

  /// Each file that a line names, once.
  private static func modules(of machine: Machine, _ services: [ServiceFacts]) -> [ModuleFacts] {
    let directory = ModuleFacts.directory(of: machine)
    var modules: [ModuleFacts] = []
    for line in services.flatMap(\.lines.lines) {
      let path = ModuleFacts.path(line.path, in: directory)
      if !modules.contains(where: { $0.path == path }) {
        modules.append(ModuleFacts(of: machine, path, at: line.location))
      }
    }
    if services.isEmpty {
      modules.append(
        ModuleFacts(of: machine, ModuleFacts.path(ModuleFacts.name, in: directory), at: nil))
    }
    return modules
  }

  private static func hasDirectory(_ machine: Machine) -> Bool {
    let lines = (machine.text("/etc/nsswitch.conf").value ?? "").split(separator: "\n")
    let sources = lines.first { $0.hasPrefix("passwd:") }?.split(separator: " ").dropFirst() ?? []
    let local = ["files", "compat", "systemd", "db", "mymachines"]
    return sources.contains { !local.contains(String($0)) && !$0.hasPrefix("[") }
  }
}
