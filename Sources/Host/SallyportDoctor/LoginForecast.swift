package import PAMStack
import SallyportAdministration
package import SallyportCore
package import SallyportSystem

/// Who gets in through a service whose stacks are still planned, by the policy, the store and the
/// accounts of the machine.
package struct LoginForecast {
  /// People who log in here now and will be refused, each with the reason: `bob (not enrolled)`.
  package let lockedOut: [String]
  /// No known user gets in, and unknown users are refused.
  package let locksOutEverybody: Bool
  /// The enrolled for whom sudoers has no rule, if the service is sudo's.
  package let idle: [String]

  /// `stack`: as it will be. `shutOut`: accounts that sshd will not let in.
  package init(
    _ stack: ServiceStack, of machine: Machine, _ store: Store, at path: String, _ now: UnixTime,
    shutOut: Set<String>
  ) throws(StoreTrouble) {
    let accounts = AccountFacts(of: machine)
    let service = ServiceFacts(stack, of: machine)
    let rules = Sudoers(of: machine)
    let isSudo = rules.runs(service.name)
    let sudoers = isSudo ? rules : nil
    let ssh = service.name == "sshd" ? SSHFacts(settings: SSHFacts.settings(of: machine)) : nil
    let people = accounts.people(of: service.name, sudoers, ssh)
    let users = try LoginForecast.users(in: store, at: path, of: machine, now)
    let directories = Set(users.compactMap(\.name))
    let policy = PolicyFacts(
      of: machine, in: store, service,
      people: people.filter { !directories.contains($0.name) }, enrolled: users, at: now)
    let failing = LoginForecast.failing(users, policy)
    let refused = policy.unenrolled.filter(\.isRefused)
    let known = Dictionary(
      failing + refused.map { ($0.name, "not enrolled") }, uniquingKeysWith: { first, _ in first })
    lockedOut = people.compactMap { account in
      known[account.name].map { "\(account.name) (\($0))" }
    }
    let passing = policy.unenrolled.filter { !$0.isRefused }.map(\.name)
    // Whom no rule of sudoers is for gains nothing by a code.
    idle = users.compactMap(\.name).filter { name in
      guard isSudo, sudoers?.callers.isEmpty == false else { return false }
      let account = accounts.accounts.first { $0.name == name }
      return account.map { !accounts.mayCall($0, sudoers) } ?? false
    }
    let enrolled = users.filter { user in
      accounts.accounts.contains { $0.name == user.name } || !user.isForNobody
    }.compactMap(\.name).filter { [idle] in known[$0] == nil && !idle.contains($0) }
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
      let policy = CommandPolicy(of: machine, store)
      return try facts.users(in: store, of: machine, under: policy, now)
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

/// Whom a service asks for a code, where its stack lets nobody around our line.
package enum AskedUsers: String, Sendable {
  case nobody
  /// Users without an enrollment are let in, by `nullok` or by the policy.
  case enrolled = "the enrolled"
  case everybody

  /// For users whom no rule of the policy names.
  package init(of stack: ServiceStack, of machine: Machine, _ store: Store, _ now: UnixTime) {
    let service = ServiceFacts(stack, of: machine)
    let policy = PolicyFacts(
      of: machine, in: store, service, people: [], enrolled: [], at: now)
    let isDenied = service.stack.contains { found in
      if case .ignoreIsDenied(.auth, _) = found { true } else { false }
    }
    if policy.isDisabled {
      self = .nobody
    } else {
      self = isDenied || policy.stranger.isRefusal ? .everybody : .enrolled
    }
  }
}

extension UnenrolledAction {
  /// Nobody gets in without an enrollment.
  fileprivate var isRefusal: Bool {
    switch self {
    case .refuse, .enroll(.required): true
    case .pass, .enroll(.refuse), .enroll(.offer), .enroll(.remind), .enroll(.voluntary): false
    }
  }
}
