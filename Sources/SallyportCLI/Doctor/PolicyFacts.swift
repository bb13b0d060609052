import OneTimePassword
import SallyportCore
import SallyportSystem

/// What doctor knows of the policy that a service's line works under.
struct PolicyFacts: Equatable {
  struct Problem: Equatable {
    let place: FilePlace
    let text: String
  }

  var path = "/etc/security/sallyport.conf"
  /// Why it cannot be read.
  var trouble: StoreTrouble?
  /// Every line that is wrong.
  var problems: [Problem] = []
  /// What the policy says of each person without an enrollment.
  var unenrolled: [Person] = []
  /// The module has nothing to say to somebody who is unknown to all rules.
  var isDisabled = false
  /// The file refuses the unenrolled though the line says nullok.
  var overrulesLine = false

  struct Person: Equatable {
    let name: String
    var isRefused = true
    var isDisabled = false
  }
}

extension PolicyFacts {
  /// For one service, by the words of its auth line.
  init(
    of machine: Machine, _ store: Store?, service: String, _ lines: ModuleLines,
    people: [AccountFacts.Account]
  ) {
    let conf = lines.value(of: "conf")
    path = conf ?? path
    var base = Policy()
    if lines.isVoluntary { base.enrollment = .voluntary }
    guard let store else { return }
    var text: Secret?
    do throws(StoreTrouble) {
      let file = Array((machine.root + path).utf8)
      text = try store.policyText(at: file, optional: conf == nil)
    } catch {
      trouble = error
      return
    }
    if let text { problems = PolicyFacts.problems(in: text, path) }
    let policy = { (user: UserName?) in
      text.map { PolicyFacts.policy($0, base, service, user) } ?? base
    }
    let nobody = policy(UserName(Array("nobody".utf8)))
    isDisabled = !nobody.isEnabled
    overrulesLine = lines.isVoluntary && nobody.enrollment == .refuse
    unenrolled = people.map { person in
      let policy = policy(UserName(Array(person.name.utf8)))
      return Person(
        name: person.name, isRefused: policy.enrollment == .refuse, isDisabled: !policy.isEnabled)
    }
  }

  private static func policy(_ text: Secret, _ base: Policy, _ service: String, _ user: UserName?)
    -> Policy
  {
    var account: Account?
    if let user {
      do throws(StoreTrouble) { account = try Accounts.find(user) } catch { account = nil }
    }
    let isLocal = base.isLocal(service: Array(service.utf8))
    let login = Circumstances(
      service: Array(service.utf8), user: user?.bytes, isRemote: !isLocal, address: nil,
      parse: Addresses.numeric,
      membership: { group in account.map { Accounts.isMember($0, of: group) } ?? .unknown })
    return PolicyFile(text, base: base, login).policy(base)
  }

  private static func problems(in text: Secret, _ path: String) -> [Problem] {
    let nobody = Circumstances(
      service: [], user: nil, isRemote: false, address: nil, parse: Addresses.numeric,
      membership: { _ in .no })
    var problems: [Problem] = []
    var line = 0
    while let found = PolicyFile(text, base: Policy(), nobody, ignoringUpTo: line).problem {
      line = found.line
      let place = FilePlace(file: path, line: line)
      problems.append(Problem(place: place, text: found.problem.text))
    }
    return problems
  }
}
