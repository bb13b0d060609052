package import PAMStack
package import SallyportCore
package import SallyportSystem

/// Who gets in through a service whose stacks are still planned, by the policy, the store and the
/// accounts of the machine.
package struct LoginForecast {
  /// People who log in here now and will be refused, each with the reason: `bob (not enrolled)`.
  package let lockedOut: [String]
  /// Nobody gets in who is known, and whoever is not known is refused.
  package let locksOutEverybody: Bool

  /// `stack`: as it will be. `shutOut`: accounts that sshd will not let in.
  package init(
    _ stack: ServiceStack, of machine: Machine, _ store: Store, at path: String, _ now: UnixTime,
    shutOut: Set<String>
  ) throws(StoreTrouble) {
    let accounts = AccountFacts(of: machine)
    let service = ServiceFacts(stack, of: machine)
    let isSudo = ["sudo", "sudo-i"].contains(service.name)
    let sudoers = isSudo ? Sudoers(of: machine) : nil
    let ssh = service.name == "sshd" ? SSHFacts(settings: SSHFacts.settings(of: machine, [])) : nil
    let people = accounts.people(of: service.name, sudoers, ssh)
    let users = try LoginForecast.users(in: store, at: path, of: machine, now)
    let directories = Set(users.compactMap(\.name))
    let policy = PolicyFacts(
      of: machine, store, service, people: people.filter { !directories.contains($0.name) }, users,
      GroupCensus(), now)
    let failing = LoginForecast.failing(users, policy)
    let refused = policy.unenrolled.filter(\.isRefused)
    let known = Dictionary(
      failing + refused.map { ($0.name, "not enrolled") }, uniquingKeysWith: { first, _ in first })
    lockedOut = people.compactMap { account in
      known[account.name].map { "\(account.name) (\($0))" }
    }
    let passing = policy.unenrolled.filter { !$0.isRefused }.map(\.name)
    let enrolled = users.filter { user in
      let account = accounts.accounts.first { $0.name == user.name }
      guard let account else { return !user.isForNobody }
      // Whom no rule of sudoers is for gains nothing by a code.
      return !isSudo || sudoers?.callers.isEmpty != false || accounts.mayCall(account, sudoers)
    }.compactMap(\.name).filter { known[$0] == nil }
    let mayBeOthers = people.isEmpty || Facts.hasDirectory(machine)
    let letsOthersIn = policy.isDisabled || policy.stranger != .refuse
    locksOutEverybody =
      (passing + enrolled).allSatisfy(shutOut.contains) && !(mayBeOthers && letsOthersIn)
  }

  private static func users(
    in store: Store, at path: String, of machine: Machine, _ now: UnixTime
  ) throws(StoreTrouble) -> [UserFacts] {
    var facts = StoreFacts()
    facts.path = path
    do throws(StoreTrouble) {
      return try store.enrolledNames().map { UserFacts($0, of: machine, store, facts, now) }
    } catch {
      if case .noStore = error { return [] }
      throw error
    }
  }

  /// Those with an enrollment that lets nobody in, and why.
  private static func failing(_ users: [UserFacts], _ policy: PolicyFacts) -> [(String, String)] {
    let broken = users.filter { $0.error != nil }.compactMap(\.name)
    return broken.map { ($0, "the enrollment cannot be used") }
      + policy.stranded.map { ($0, "the policy turns off every factor of the enrollment") }
  }
}

extension PolicyFacts.Person {
  fileprivate var isRefused: Bool { error != nil || !isDisabled && action == .refuse }
}
