package import PAMStack
package import SallyportCore
package import SallyportSystem

/// Everything that doctor has examined. The findings follow from it.
package struct Facts {
  var now: UnixTime
  /// The services that were examined.
  var services: [ServiceFacts] = []
  /// nil if no service depends on it.
  var ssh: SSHFacts?
  var sudoers: Sudoers?
  /// Services without a code, of programs that ask for one elsewhere.
  var openWays: [OpenWay] = []
  var store = StoreFacts()
  var clock: ClockFacts
  var modules: [ModuleFacts] = []
  /// What installs packages here; nil if unknown.
  var packages: PackageTool?
  /// What `pam enable --revert-in` has changed.
  var revert: Probe<PendingRevert> = .absent
  /// What `pam enable` turned on and is gone.
  var lost: [LostService] = []
  /// The records of services that cannot be read, with the reason.
  var damagedRecords: [String: String] = [:]
  /// Identifies the boot of the machine.
  var boot = ""
  var daemon = DaemonFacts()
  /// Other stores that our lines name.
  var otherStores: [String] = []
  /// What the findings are made of, for others who need it.
  private(set) var accounts: AccountFacts?
  private(set) var rules: Sudoers?
}

extension Facts {
  /// Examines the machine. `store` is nil if the caller may not use it.
  package init(
    of machine: Machine, _ stacks: [ServiceStack], _ store: Store?, at path: String, _ now: UnixTime
  ) {
    self.init(now: now, clock: ClockFacts(of: machine, now))
    (revert, boot) = (machine.pendingRevert(), machine.boot)
    look(atRecordsOf: machine)
    let accounts = AccountFacts(of: machine)
    self.accounts = accounts
    services = stacks.map { ServiceFacts($0, of: machine) }
    otherStores = Set(services.filter { !$0.lines.lines.isEmpty }.map(\.store))
      .subtracting([path]).sorted()
    let names = stacks.map(\.service)
    if names.contains("sshd") { ssh = SSHFacts(of: machine, accounts) }
    let rules = Sudoers(of: machine)
    self.rules = rules
    if names.contains(where: rules.runs) { sudoers = rules }
    if let store {
      self.store = StoreFacts(of: machine, store, at: path, among: accounts, now)
    } else {
      self.store.isClosed = true
    }
    ssh?.look(for: self.store.peopleEnrolled, of: machine, accounts)
    let census = GroupCensus(of: machine, store)
    for index in services.indices { look(at: index, of: machine, store, accounts, census) }
    openWays = OpenWay.all(of: machine, services, sudoers, ssh)
    packages = PackageTool(of: machine)
    modules = Facts.modules(of: machine, services, packages)
    daemon = DaemonFacts(of: machine)
  }

  private mutating func look(atRecordsOf machine: Machine) {
    lost = machine.lostServices()
    for service in machine.recordedServices {
      if case .unseen(let reason) = machine.serviceRecord(of: service) {
        damagedRecords[service] = reason
      }
    }
  }

  /// Leaves out what is lost of other services.
  package mutating func keepLost(of services: [String]) {
    lost = lost.filter { services.contains($0.service) }
    damagedRecords = damagedRecords.filter { services.contains($0.key) }
  }

  /// Reads the policy of one service, and what it says about users who are not enrolled.
  private mutating func look(
    at index: Int, of machine: Machine, _ store: Store?, _ accounts: AccountFacts,
    _ census: GroupCensus
  ) {
    let service = services[index]
    services[index].policy = PolicyFacts(
      of: machine, in: self.store.error == nil ? store : nil, service, people: [],
      enrolled: self.store.users, groups: census, among: accounts, at: now)
  }

  /// Every module file that our lines name, each once.
  private static func modules(
    of machine: Machine, _ services: [ServiceFacts], _ packages: PackageTool?
  ) -> [ModuleFacts] {
    let directory = ModuleFacts.directory(of: machine)
    var modules: [ModuleFacts] = []
    for line in services.flatMap(\.lines.lines) {
      let path = ModuleFacts.path(line.module, in: directory)
      if !modules.contains(where: { $0.path == path }) {
        modules.append(ModuleFacts(of: machine, path, at: line.location, packages))
      }
    }
    if services.isEmpty {
      modules.append(
        ModuleFacts(
          of: machine, ModuleFacts.path(ModuleFacts.name, in: directory), at: nil, packages))
    }
    return modules
  }

  /// What tells who gets in, made of what was examined.
  package func access(of machine: Machine, _ store: Store) -> AccessFacts {
    AccessFacts(of: machine, store, at: now, accounts: accounts, sudoers: rules)
  }

  /// What was asked of the fleet of this machine.
  package mutating func add(_ fleet: FleetFacts?) { daemon.fleet = fleet }

  /// This sallyport is built without the fleet.
  package mutating func lackFleet() { daemon.isBuiltWithFleet = false }
}
