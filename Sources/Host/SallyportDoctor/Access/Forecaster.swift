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
    let isBlocked: Bool
    let truths: PolicyTerms.Truths
    /// Of an account that cannot be enrolled.
    let name: String?
  }

  /// What makes two logins alike.
  private struct LoginClass: Hashable {
    let login: LoginSteps
    /// The number of the class.
    let person: Int
    let mayBeEmpty: Bool
    let around: Decided?
  }

  let facts: AccessFacts
  private var terms: PolicyTerms
  private let day: Int
  private let systemUsers: SystemUsers
  private var stacks: [String: ServiceStack] = [:]
  private var known: [LoginClass: Decided] = [:]
  private var classes: [PersonClass: Int] = [:]
  /// No number is given twice.
  private var count = 0
  /// By the name of the account.
  private var numbers: [String: [Int]] = [:]
  private var noLogins: [String?: Bool] = [:]

  init(_ facts: AccessFacts, services: [String]) {
    self.facts = facts
    day = Int(facts.now.seconds / 86_400)
    systemUsers = SystemUsers(of: facts.machine)
    terms = PolicyTerms(of: [], facts.policies)
    terms.take(numbers: systemUsers.bounds)
    for service in services { _ = stack(of: service) }
  }

  /// Whether the fleet verifies some login.
  var mayMeetFleet: Bool { terms.mayMeetFleet }

  func stack(of service: String) -> ServiceStack {
    if let stack = stacks[service] { return stack }
    let stack = facts.stacks.stack(of: service)
    stacks[service] = stack
    // It may tell accounts apart that were alike before.
    (known, classes, numbers) = ([:], [:], [:])
    terms.take(stack, facts.policies)
    return stack
  }

  /// What becomes of a login of this account. `around`: what is so if no line of ours decides.
  func decided(
    _ steps: LoginSteps, of account: AccountFacts.Account, mayBeEmpty: Bool = true,
    around: Decided? = nil
  ) -> Decided {
    if account.password == .unknown, account.source == .files {
      return Decided(.unseen(.notRoot))
    }
    // It may tell accounts apart.
    let stack = stack(of: steps.service)
    let numbers = numbers(of: account)
    let all = states(of: account).enumerated().map { index, state -> Decided in
      let person = person(account, state)
      let kind = LoginClass(
        login: steps, person: numbers[index], mayBeEmpty: mayBeEmpty, around: around)
      if let decided = known[kind] { return decided }
      let end = { (hasCodes: Bool) in
        self.end(steps, account, person, in: stack, hasCodes: hasCodes, mayBeEmpty: mayBeEmpty)
      }
      let decided = seen(
        PAMForecast.decided(thief: end(false), owner: { end(true) }, stack, around: around),
        in: stack)
      known[kind] = decided
      return decided
    }
    return all.allSatisfy { $0.verdict == all[0].verdict } ? all[0] : facts.fleet.doubt
  }

  /// What hangs on an enrollment that was not looked for is not known.
  private func seen(_ decided: Decided, in stack: ServiceStack) -> Decided {
    guard decided.verdict.hangsOnEnrollment, let line = facts.lineOfOtherStore(in: stack) else {
      return decided
    }
    return Decided(.unseen(.otherStore), at: line.location, line.value(of: "store"))
  }

  private func end(
    _ steps: LoginSteps, _ account: AccountFacts.Account, _ person: KnownPerson,
    in stack: ServiceStack, hasCodes: Bool, mayBeEmpty: Bool
  ) -> Rehearsal.End {
    let login = RehearsedLogin(
      user: Array(account.name.utf8), service: steps.service, remote: steps.remote,
      caller: steps.isRoots ? 0 : steps.isOwn ? account.uid : 65_533,
      person: RehearsedLogin.Person(
        password: password(of: account, isKnown: steps.knowsPassword), hasCodes: hasCodes),
      mayBeEmpty: mayBeEmpty, renewal: steps.renewal)
    let rehearsal = Rehearsal(
      stack: stack, login: login, person: person, answers: answers(for: account),
      policies: facts.policies, now: facts.now)
    return rehearsal.end(of: steps.steps)
  }

  private func password(of account: AccountFacts.Account, isKnown: Bool) -> String? {
    switch account.password {
    case .none: nil
    case .blank: ""
    case .some, .elsewhere, .unknown: isKnown ? "correct horse" : nil
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

  private func person(_ account: AccountFacts.Account, _ state: FleetState) -> KnownPerson {
    KnownPerson(
      account: account.asAccount,
      enrollment: facts.isStoreBroken ? .broken : facts.enrollments[account.name] ?? .none,
      inFleet: state.enrollment,
      note: facts.notes[account.name], isBlocked: facts.blocked.contains(account.name),
      noteInFleet: state.level,
      isMember: { [facts] in
        facts.isMember(account, of: String(decoding: $0, as: UTF8.self))
      })
  }

  /// Of its classes, one for each state of the fleet that may be: accounts with the same numbers
  /// end alike in every login.
  func numbers(of account: AccountFacts.Account) -> [Int] {
    if let numbers = numbers[account.name] { return numbers }
    let found = states(of: account).map { number(of: kind(of: account, person(account, $0))) }
    numbers[account.name] = found
    return found
  }

  private func number(of kind: PersonClass) -> Int {
    if let number = classes[kind] { return number }
    count += 1
    classes[kind] = count
    return count
  }

  private func kind(of account: AccountFacts.Account, _ person: KnownPerson) -> PersonClass {
    let truths = terms.truths(of: Array(account.name.utf8), account.uid) {
      facts.isMember(account, of: $0)
    }
    // The truths have what the uid means.
    var traits = traits(of: account)
    traits.uid = 0
    return PersonClass(
      traits: traits, enrollment: person.enrollment, inFleet: person.inFleet,
      note: String(describing: person.note), noteInFleet: String(describing: person.noteInFleet),
      isBlocked: person.isBlocked, truths: truths, name: person.account == nil ? account.name : nil)
  }

  private func traits(of account: AccountFacts.Account) -> AccountTraits {
    AccountTraits(
      uid: account.uid, password: account.password,
      aging: account.aging?.states(on: day) ?? [.unlisted], isLocal: account.source == .files,
      sources: account.source.names, shell: account.shell,
      hasListedShell: facts.accounts.shell(of: account).isListed)
  }

  /// Whether the account, not its password alone, is over.
  func hasExpired(_ account: AccountFacts.Account) -> Bool {
    account.aging?.state(on: day) == .expired
  }

  /// Whether root alone may log in now; nil: by one of the files that pam_nologin(8) looks for.
  func isNoLogin(by file: String?) -> Bool {
    if let found = noLogins[file] { return found }
    let files = file.map { [$0] } ?? ["/etc/nologin", "/run/nologin", "/var/run/nologin"]
    let isFound = files.contains { facts.machine.file($0).value != nil }
    noLogins[file] = isFound
    return isFound
  }

  private func answers(for account: AccountFacts.Account) -> ModuleAnswers {
    ModuleAnswers(
      traits: traits(of: account), isNoLogin: isNoLogin, systemUsers: systemUsers,
      isMissing: facts.stacks.isMissing,
      isMember: { [facts] group in
        // Nobody is in a group that does not exist.
        guard facts.accounts.knowsGroups(of: account) else {
          return facts.isMember(account, of: group)
        }
        return facts.accounts.groupNames(of: account).contains(group) ? .yes : .no
      })
  }
}

extension AccountFacts.Source {
  /// Those in nsswitch.conf(5) of which one has the account; nil where none is known.
  fileprivate var names: [String]? {
    switch self {
    case .database(let names): names
    case .files, .named: nil
    }
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
    var answers = Answers.each
    var asksInAccount = true
  }

  /// How prompts of the auth phase are answered.
  enum Answers: Hashable {
    /// Each by itself.
    case each
    /// All with what was typed once, as by sshd's method `password`.
    case once
    /// With nothing, as by sshd's method `none`.
    case empty

    /// What the person may type; nil where each prompt is answered by itself.
    func fields(of person: RehearsedLogin.Person) -> [String?] {
      switch self {
      case .each: [nil]
      case .once: [person.answer, (person.password ?? "") + person.code, person.code]
      case .empty: [""]
      }
    }
  }

  let service: String
  var steps: [Step]
  var remote: String?
  /// Of a stranger to the account it is only true where it has an empty one.
  var knowsPassword = true
  /// Whether the process's real uid is root's, or that of the account; else somebody else's.
  var isRoots = false
  var isOwn = false
  var renewal = RehearsedLogin.Renewal.byOwner

  init(_ service: String, _ phases: [PAMPhase] = [.auth, .account, .session]) {
    (self.service, steps) = (service, [Step(phases: phases)])
  }
}
