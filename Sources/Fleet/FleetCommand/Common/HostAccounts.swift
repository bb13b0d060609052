import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// The accounts of this machine, as far as it matters to them that it is a host of a fleet.
struct HostAccounts {
  let store: Store
  /// The policy file; nil for the usual one.
  let conf: String?
  let context: Context

  /// Names that mean one person here, and maybe another one in the fleet: of accounts that are
  /// `known` there, and of those enrolled here; but for those whom the policy keeps here.
  func unclear(_ known: [UserName]) throws(CommandError) -> [FleetName] {
    let enrolled = try enrolled()
    let here = Set(enrolled.map(\.bytes))
    let there = Set(known.map(\.bytes))
    let all = known.filter { !here.contains($0.bytes) } + enrolled
    let sorted = all.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    var found: [FleetName] = []
    for name in sorted where try !staysHere(name) {
      found.append(
        FleetName(
          name: name.typedOrShown, isInFleet: there.contains(name.bytes),
          isEnrolledHere: here.contains(name.bytes)))
    }
    return found
  }

  /// All who are enrolled here.
  func enrolled() throws(CommandError) -> [UserName] {
    try storing { () throws(StoreTrouble) in
      do throws(StoreTrouble) {
        return try store.enrolledNames().compactMap(\.user)
      } catch {
        if case .noStore = error { return [] }
        throw error
      }
    }
  }

  /// Those of these names who log in and become root by this machine's files alone, whatever the
  /// fleet is: enrolled here, and kept here by the policy in all that they need.
  func breakGlass(among names: [String]) throws(CommandError) -> [String] {
    var found: [String] = []
    for name in names {
      let account = try context.account(name)
      guard let uid = account.uid, isEnrolled(account) else { continue }
      let entries: [(service: StaticString, isRemote: Bool)] = [("login", false), ("sshd", true)]
      let isIn = entries.contains { staysHere(account, $0.service, isRemote: $0.isRemote) }
      if isIn, uid == 0 || staysHere(account, "sudo", isRemote: false) { found.append(name) }
    }
    return found
  }

  /// Whose files are on their way to a fleet, or back, and in whose place a command goes on.
  func underWay() throws(CommandError) -> [FleetMove] {
    var marked: [StoredName] = []
    do throws(StoreTrouble) {
      try store.load(all: try store.enrolledNames()) { name, result in
        if case .failure(.malformed(_, let error)) = result, error.problem == .moving {
          marked.append(name)
        }
      }
    } catch {
      if case .noStore = error { return [] }
      throw .store(error)
    }
    return marked.map { name in
      FleetMove(
        name: name.user?.typedOrShown ?? name.directory, mark: name.user.flatMap { mark(of: $0) })
    }
  }

  private func mark(of name: UserName) -> MoveMark? {
    guard let account = try? Accounts.find(name) else { return nil }
    return mark(of: account)
  }

  /// nil: his files are not under way, or cannot be read.
  func mark(of account: Account) -> MoveMark? {
    (try? store.moving(account) { $0.mark }) ?? nil
  }

  /// Those of these names who are enrolled here, and not on their way to the fleet.
  func enrolled(among names: [String]) throws(CommandError) -> [String] {
    var found: [String] = []
    for name in names where isEnrolled(try context.account(name)) { found.append(name) }
    return found
  }

  /// Those enrolled here whom the policy leaves to the fleet in all usual logins, in their order.
  func unasked() throws(CommandError) -> [String] {
    var found: [String] = []
    for name in try enrolled() {
      let account = try storing { () throws(StoreTrouble) in try Accounts.find(name) }
      if isVerified(account, byFleet: true), isEnrolled(account) { found.append(name.typedOrShown) }
    }
    return found.sorted()
  }

  private func isEnrolled(_ account: Account) -> Bool {
    guard let record = try? store.load(account) else { return false }
    return record.decoyOf == nil
  }

  /// Whether the policy has `verification = local` for him in all logins.
  private func staysHere(_ name: UserName) throws(CommandError) -> Bool {
    let account = try storing { () throws(StoreTrouble) in try Accounts.find(name) }
    let services: [(service: StaticString, isRemote: Bool)] = [
      ("login", false), ("sshd", true), ("sudo", false),
    ]
    return services.allSatisfy { staysHere(account, $0.service, isRemote: $0.isRemote) }
  }

  /// Whether the policy has `verification = fleet` for him in all logins: then he is asked of it as
  /// soon as he has no files here. Where a rule keeps him here in any login, it does not.
  func isTheFleets(_ account: Account) throws(CommandError) -> Bool {
    let path = conf ?? context.policyFile ?? "/etc/security/sallyport.conf"
    let text = try storing { () throws(StoreTrouble) in
      try store.policyText(at: Array(path.utf8), optional: true)
    }
    let isMember = { (group: [UInt8]) in Accounts.isMember(account, of: group) != .no }
    if let text, PolicyText(path, text).mayKeepHere(account.name, isMember: isMember) {
      return false
    }
    return isVerified(account, byFleet: true)
  }

  /// Whether the policy has one `verification` for all his usual logins, and which.
  func isVerified(_ account: Account, byFleet isFleet: Bool) -> Bool {
    let services: [(service: StaticString, isRemote: Bool)] = [
      ("login", false), ("sshd", true), ("sudo", false), ("su", false), ("polkit-1", false),
    ]
    return services.allSatisfy {
      reading(account, $0.service, isRemote: $0.isRemote, else: Policy())?.isFleet == isFleet
    }
  }

  /// What the policy does not say counts as the fleet's: that it will be, says the administrator
  /// who joins one.
  private func staysHere(_ account: Account, _ service: StaticString, isRemote: Bool) -> Bool {
    var base = Policy()
    base.isFleet = account.uid != 0
    return reading(account, service, isRemote: isRemote, else: base)?.isFleet == false
  }

  /// nil where the policy cannot be read.
  private func reading(
    _ account: Account, _ service: StaticString, isRemote: Bool, else base: Policy
  ) -> Policy? {
    let login = PolicyRequest(
      service: Label(service).bytes, user: account.name.bytes, isSuperuser: account.uid == 0,
      isRemote: isRemote, address: nil, parse: Addresses.numeric,
      membership: { Accounts.isMember(account, of: $0) })
    let path = (conf ?? context.policyFile).map { Array($0.utf8) }
    let reading = store.policy(at: path, base: base, login)
    return reading.trouble == nil ? reading.policy : nil
  }
}

/// Somebody whose files are marked, and verify no code.
struct FleetMove: Equatable {
  let name: String
  /// nil where it cannot be read.
  let mark: MoveMark?

  /// What to type.
  var hint: String {
    let user = shellQuoted(name)
    return switch mark {
    case .push, .merge: "sallyport fleet push --user \(user)"
    case .take: "sallyport fleet take --user \(user)"
    case nil: "sallyport unenroll \(user) --force  # removes the files here"
    }
  }
}

/// A name that may mean one person here and another one in the fleet.
struct FleetName: Equatable {
  let name: String
  let isInFleet: Bool
  let isEnrolledHere: Bool

  var text: String {
    switch (isInFleet, isEnrolledHere) {
    case (true, true): "\(shown(name))      enrolled here, and in the fleet"
    case (true, false): "\(shown(name))      an account here, and in the fleet"
    case (false, _): "\(shown(name))      enrolled here"
    }
  }
}
