import OneTimePassword
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// The policy that applies to a service's line.
struct PolicyFacts: Equatable {
  struct Problem: Equatable {
    let location: FileLocation
    let text: String
    /// Whether it may be because a source of names is away.
    var isUnseen = false
  }

  var path = "/etc/security/sallyport.conf"
  /// Why it cannot be read.
  var error: StoreTrouble?
  /// Whether the file cannot be used, and the last good one applies.
  var isLastGood = false
  /// Every invalid line.
  var problems: [Problem] = []
  /// Types of codes that nobody gets in by, where a line is invalid: its value may be `off`.
  var refused: [FactorKind] = []
  /// Mistakes in lines that no login reads.
  var purposes: [Problem] = []
  /// Groups in rules that do not exist or have no members.
  var groups: [Problem] = []
  /// Catalogs of languages that cannot be used.
  var languages: [Problem] = []
  /// What the policy does with each user who has no enrollment.
  var unenrolled: [Person] = []
  /// Whether the policy names the service in `sshd_services`, so that `after-key` accepts anybody.
  var isSSHD = true
  /// What the policy does with an unenrolled user whom no rule matches.
  var stranger = UnenrolledAction.refuse
  /// Whether the module does nothing for a user whom no rule matches.
  var isDisabled = false
  /// Whether the file refuses unenrolled users although the line has `nullok`.
  var overrulesLine = false

  /// Whether origins can be remembered for some enrolled user.
  var remembers = false
  /// Users enrolled only with types of authenticators that the policy disables.
  var stranded: [String] = []

  struct Person: Equatable {
    let name: String
    var action = UnenrolledAction.refuse
    var isDisabled = false
    /// Why the user's note cannot be read.
    var error: StoreTrouble?
  }
}

extension PolicyFacts {
  /// For one service, with the arguments of its auth line.
  init(
    of machine: Machine, in store: Store?, _ service: ServiceFacts,
    people: [AccountFacts.Account], enrolled: [UserFacts], groups: GroupCensus? = nil,
    among accounts: AccountFacts = AccountFacts(), at now: UnixTime
  ) {
    let conf = service.lines.value(of: "conf")
    path = conf ?? path
    guard let store else { return }
    var text: Secret?
    let file = Array((machine.root + path).utf8)
    do throws(StoreTrouble) {
      text = try store.policyText(at: file, optional: conf == nil)
    } catch {
      self.error = error
    }
    if let text {
      problems = PolicyFacts.problems(in: text, path)
      let all = PolicyText(path, text)
      purposes = PolicyFacts.described(all.purposeProblems() + all.helpdesk.problems, path)
      languages = all.languageProblems(in: store, under: machine.root)
      self.groups = (groups.map { all.flaws(of: $0) + all.helpdeskFlaws(of: $0) } ?? []).map {
        Problem(
          location: FileLocation(file: path, line: $1), text: $0.text, isUnseen: $0.doubt != nil)
      }
    }
    if error != nil || !problems.isEmpty {
      // As a login: what could be read of the file counts only where no good one is kept.
      let good = store.lastGoodPolicy(at: file)
        .flatMap { PolicyFacts.problems(in: $0, path).isEmpty ? $0 : nil }
      isLastGood = good != nil
      if error != nil, good == nil { return }
      text = good ?? text
    }
    let policy = ServicePolicy(text, service, accounts)
    unenrolled = people.map { Person($0.name, under: policy, in: store, at: now) }
    let nobody = policy.policy(of: "nobody")
    isSSHD = nobody.isSSHD(service: Array(service.name.utf8))
    stranger = nobody.level(of: nil, at: now).action(
      hasAccount: true, mayEnroll: policy.mayEnroll, after: .password)
    apply(policy, to: enrolled)
  }

  private mutating func apply(_ policy: ServicePolicy, to enrolled: [UserFacts]) {
    let nobody = policy.policy(of: "nobody")
    isDisabled = !nobody.isEnabled
    let isStrict = !problems.isEmpty && !isLastGood
    refused = isStrict ? FactorKind.allCases.filter { nobody.use(of: $0) == .off } : []
    remembers =
      nobody.remember > 0 || enrolled.contains { policy.policy(of: $0)?.remember ?? 0 > 0 }
    overrulesLine = policy.service.lines.isVoluntary && nobody.enrollment == .refuse
    stranded = enrolled.filter { user in
      guard user.error == nil, let policy = policy.policy(of: user) else { return false }
      return !FactorKind.allCases.contains {
        user.factors.contains($0) && policy.use(of: $0) != .off
      }
    }.compactMap(\.name)
  }

  private static func problems(in text: Secret, _ path: String) -> [Problem] {
    described(PolicyText(path, text).problems(), path)
  }

  private static func described(_ all: [SettingsError], _ path: String) -> [Problem] {
    all.map { found in
      Problem(location: FileLocation(file: path, line: found.line), text: found.problem.text)
    }
  }
}

extension PolicyFacts.Person {
  fileprivate init(
    _ name: String, under policy: ServicePolicy, in store: Store, at now: UnixTime
  ) {
    self.init(name: name)
    let found = policy.policy(of: name)
    isDisabled = !found.isEnabled
    guard let user = UserName(Array(name.utf8)) else { return }
    var level: UserNote.Level?
    do throws(StoreTrouble) {
      level = try store.level(of: try Accounts.find(user))
    } catch {
      // Without a store there are no notes.
      if case .noStore = error {} else { self.error = error }
    }
    // As after a password. If nothing asks for one, the walk through the stack reports that.
    action = found.level(of: level, at: now).action(
      hasAccount: true, mayEnroll: policy.mayEnroll, after: .password)
  }
}

/// The policy of one service, from the file and the arguments of its line; evaluated once for those
/// whom the file treats alike.
private final class ServicePolicy {
  private let text: Secret?
  let service: ServiceFacts
  private let accounts: AccountFacts
  private var terms = PolicyTerms()
  private var known: [PolicyTerms.Truths: Policy] = [:]

  init(_ text: Secret?, _ service: ServiceFacts, _ accounts: AccountFacts) {
    (self.text, self.service, self.accounts) = (text, service, accounts)
    if let text { terms.take(PolicyText("", text)) }
  }

  var mayEnroll: Bool { service.lines.enrolls }

  /// What applies if the file sets nothing.
  private var base: Policy {
    var policy = Policy()
    if service.lines.isVoluntary { policy.enrollment = .voluntary }
    return policy
  }

  /// For a login from an unknown origin; nil if the name is not known.
  func policy(of user: UserFacts) -> Policy? {
    user.name.map { policy(of: $0, user.account ?? account($0)) }
  }

  func policy(of name: String) -> Policy { policy(of: name, account(name)) }

  private func policy(of name: String, _ account: Account?) -> Policy {
    guard let account else { return read(name, nil) }
    let truths = terms.truths(of: account) { accounts.isMember(account, of: $0) }
    if let policy = known[truths] { return policy }
    let policy = read(name, account)
    known[truths] = policy
    return policy
  }

  private func read(_ name: String, _ account: Account?) -> Policy {
    var policy = file(name, account) ?? base
    if service.lines.hasUnknownWord { policy.tighten() }
    return policy
  }

  /// What the file says; nil without one.
  private func file(_ name: String, _ account: Account?) -> Policy? {
    guard let text else { return nil }
    let bytes = Array(service.name.utf8)
    let login = PolicyRequest(
      service: bytes, user: account?.name.bytes ?? Array(name.utf8),
      isRemote: !base.isLocal(service: bytes), address: nil, parse: Addresses.numeric,
      membership: { [accounts] group in
        account.map { accounts.isMember($0, of: String(decoding: group, as: UTF8.self)) }
          ?? .unknown
      })
    return PolicyFile(text, base: base, login).policy(base)
  }

  private func account(_ name: String) -> Account? {
    guard let user = UserName(Array(name.utf8)) else { return nil }
    do throws(StoreTrouble) { return try Accounts.find(user) } catch { return nil }
  }
}
