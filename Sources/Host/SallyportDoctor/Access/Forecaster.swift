import OneTimePassword
import PAMStack
import SallyportCore
import SallyportSystem

/// Rehearses logins, each kind of them once.
final class Forecaster {
  /// What makes two accounts alike.
  private struct PersonClass: Hashable {
    let traits: AccountTraits
    let enrollment, inFleet: KnownEnrollment
    let note, noteInFleet: String
    /// What is true of the names and groups in rules and conditions.
    let truths: [Tristate]
  }

  /// What makes two logins alike.
  private struct LoginClass: Hashable {
    let login: LoginSteps
    let person: PersonClass
    let mayBeEmpty: Bool
  }

  let facts: AccessFacts
  private let terms: PolicyTerms
  private let isNoLogin: Bool
  private let day: Int
  private var stacks: [String: ServiceStack] = [:]
  private var known: [LoginClass: Decided] = [:]

  init(_ facts: AccessFacts, services: [String]) {
    self.facts = facts
    stacks = Dictionary(
      uniqueKeysWithValues: Set(services).map { ($0, facts.stacks.stack(of: $0)) })
    terms = PolicyTerms(of: Array(stacks.values), facts.policies)
    isNoLogin = ["/etc/nologin", "/run/nologin", "/var/run/nologin"].contains {
      facts.machine.file($0).value != nil
    }
    day = Int(facts.now.seconds / 86_400)
  }

  /// Whether the fleet verifies some login.
  var mayMeetFleet: Bool { terms.mayMeetFleet }

  func stack(of service: String) -> ServiceStack {
    if let stack = stacks[service] { return stack }
    let stack = facts.stacks.stack(of: service)
    stacks[service] = stack
    return stack
  }

  /// What becomes of a login of this account. `around`: what is so if no line of ours decides.
  func decided(
    _ steps: LoginSteps, of account: AccountFacts.Account, mayBeEmpty: Bool = true,
    around: Decided? = nil
  ) -> Decided {
    if account.asAccount == nil { return Decided(.refused(.notEnrolled)) }
    if account.password == .unknown, account.source == .files { return Decided(.unseen(.notRoot)) }
    let all = states(of: account).compactMap { person(account, $0) }.map { person in
      decided(steps, of: account, person, mayBeEmpty: mayBeEmpty, around: around)
    }
    if all.allSatisfy({ $0.verdict == all[0].verdict }) { return all[0] }
    return facts.fleet.doubt
  }

  private func decided(
    _ steps: LoginSteps, of account: AccountFacts.Account, _ person: KnownPerson, mayBeEmpty: Bool,
    around: Decided?
  ) -> Decided {
    let kind = LoginClass(
      login: steps, person: kind(of: account, person), mayBeEmpty: mayBeEmpty)
    // What is around hangs on the account, and is not kept.
    if around == nil, let decided = known[kind] { return decided }
    let stack = stack(of: steps.service)
    let end = { (hasCodes: Bool) in
      self.end(steps, account, person, in: stack, hasCodes: hasCodes, mayBeEmpty: mayBeEmpty)
    }
    let decided = PAMForecast.decided(
      thief: end(false), owner: { end(true) }, stack, around: around)
    if around == nil { known[kind] = decided }
    return decided
  }

  private func end(
    _ steps: LoginSteps, _ account: AccountFacts.Account, _ person: KnownPerson,
    in stack: ServiceStack, hasCodes: Bool, mayBeEmpty: Bool
  ) -> Rehearsal.End {
    var login = RehearsedLogin(
      account: person.account, service: steps.service, remote: steps.remote,
      caller: steps.isRoots ? 0 : steps.isOwn ? account.uid : 65_533,
      person: RehearsedLogin.Person(password: password(of: account), hasCodes: hasCodes),
      mayBeEmpty: mayBeEmpty, renewal: steps.renewal)
    var handle = RehearsedHandle()
    for step in steps.steps {
      login.accepted = step.accepted
      login.isMethodPassword = step.isMethodPassword
      login.asksInAccount = step.asksInAccount
      let rehearsal = Rehearsal(
        stack: stack, login: login, person: person, answers: answers(for: account),
        policies: facts.policies, now: facts.now)
      guard case .isIn(let next) = rehearsal.end(of: step.phases, from: handle) else {
        return rehearsal.end(of: step.phases, from: handle)
      }
      handle = next
    }
    return .isIn(handle)
  }

  private func password(of account: AccountFacts.Account) -> String? {
    switch account.password {
    case .none: nil
    case .blank: ""
    case .some, .unknown: "correct horse"
    }
  }

  // MARK: accounts

  /// What the fleet has of the account: one, where that is known or does not matter.
  private func states(of account: AccountFacts.Account) -> [FleetState] {
    guard mayMeetFleet else { return [.none] }
    switch facts.fleet {
    case .told: return [facts.inFleet(account).map(FleetState.init) ?? .none]
    case .unasked, .unknown: return FleetState.all
    }
  }

  private func person(_ account: AccountFacts.Account, _ state: FleetState) -> KnownPerson? {
    guard let known = account.asAccount else { return nil }
    return KnownPerson(
      account: known,
      enrollment: facts.isStoreBroken ? .broken : facts.enrollments[account.name] ?? .none,
      inFleet: state.enrollment,
      note: facts.notes[account.name], noteInFleet: state.level,
      isMember: { [facts] in
        facts.isMember(account, of: String(decoding: $0, as: UTF8.self))
      })
  }

  private func kind(of account: AccountFacts.Account, _ person: KnownPerson) -> PersonClass {
    PersonClass(
      traits: traits(of: account), enrollment: person.enrollment, inFleet: person.inFleet,
      note: String(describing: person.note), noteInFleet: String(describing: person.noteInFleet),
      truths: terms.users.map { $0 == account.name ? .yes : .no }
        + terms.groups.map { facts.isMember(account, of: $0) })
  }

  private func traits(of account: AccountFacts.Account) -> AccountTraits {
    AccountTraits(
      uid: account.uid == 0 ? 0 : account.uid, password: account.password,
      aging: account.aging?.state(on: day) ?? .valid, isLocal: account.source == .files,
      hasListedShell: facts.accounts.shell(of: account).isListed)
  }

  /// Whether the account, not its password alone, is over.
  func hasExpired(_ account: AccountFacts.Account) -> Bool {
    account.aging?.state(on: day) == .expired
  }

  private func answers(for account: AccountFacts.Account) -> ModuleAnswers {
    ModuleAnswers(
      traits: traits(of: account), isNoLogin: isNoLogin, isMissing: facts.stacks.isMissing,
      isMember: { [facts] in facts.isMember(account, of: $0) })
  }
}

extension AccessFacts {
  /// As the module asks.
  func isMember(_ account: AccountFacts.Account, of group: String) -> Tristate {
    if let answer = accounts.isMember(account, of: group) { return answer }
    return account.asAccount.map { Accounts.isMember($0, of: Array(group.utf8)) } ?? .unknown
  }
}

/// What a program does with PAM for one login.
struct LoginSteps: Hashable {
  /// Phases that are run one after the other. sshd's methods are steps of their own.
  struct Step: Hashable {
    var phases: [PAMPhase]
    var accepted: [String]?
    var isMethodPassword = false
    var asksInAccount = true
  }

  let service: String
  var steps: [Step]
  var remote: String?
  /// Whether the process's real uid is root's, or that of the account; else somebody else's.
  var isRoots = false
  var isOwn = false
  var renewal = RehearsedLogin.Renewal.byOwner

  init(_ service: String, _ phases: [PAMPhase] = [.auth, .account, .session]) {
    (self.service, steps) = (service, [Step(phases: phases)])
  }
}

/// The names, groups and addresses that rules of the policy and conditions of the stacks ask about.
struct PolicyTerms {
  private(set) var users: [String] = []
  private(set) var groups: [String] = []
  /// Without `local` and `network`.
  private(set) var origins: [String] = []
  /// Whether a policy file says that the fleet verifies codes, or may be taken to say so.
  private(set) var mayMeetFleet = false

  init(of stacks: [ServiceStack], _ policies: PolicySources) {
    let entries = stacks.flatMap { stack in [PAMPhase.auth, .account].flatMap { stack[$0] } }
    let ours = entries.filter { $0.moduleName == "pam_sallyport" }
    let named = ours.flatMap(\.arguments).filter { $0.hasPrefix("conf=") }.map {
      String($0.dropFirst(5))
    }
    let files =
      Set(named).map { policies.source(at: $0, isOptional: false) }
      + [policies.source(at: PolicySources.usual, isOptional: true)]
    mayMeetFleet = policies.isInFleet && files.contains { $0.trouble != nil }
    for text in files.flatMap({ [$0.text, $0.lastGood] }).compactMap({ $0 }) {
      let text = PolicyText("", text)
      users += text.words(of: .matchUser).map(\.0)
      groups += text.words(of: .matchGroup).map(\.0)
      origins += text.words(of: .matchOrigin).map(\.0)
        .filter { $0.contains(".") || $0.contains(":") }
      if text.fleetLines()?.isEmpty != true { mayMeetFleet = true }
    }
    for entry in entries where entry.moduleName == "pam_succeed_if" {
      for (index, word) in entry.arguments.enumerated()
      where ["ingroup", "notingroup"].contains(word) && index + 1 < entry.arguments.count {
        groups += entry.arguments[index + 1].split(separator: ":").map(String.init)
      }
    }
    (users, groups) = (Set(users).sorted(), Set(groups).sorted())
  }
}
