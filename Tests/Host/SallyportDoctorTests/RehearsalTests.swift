import OneTimePassword
import PAMStack
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportDoctor

/// One login through sudo or sshd, told in a few words.
struct RehearsalCase: CustomTestStringConvertible {
  let name: String
  let stack: String
  var policy: String?
  var enrollment = KnownEnrollment.enrolled([.totp])
  var traits = AccountTraits(uid: 1000)
  var note: UserNote.Level?
  var accepted: [String]?
  var phases: [PAMPhase] = [.auth, .account, .session]
  var answers = LoginSteps.Answers.each
  var asksInAccount = true
  var isNoLogin = false
  var service = "sudo"
  let wanted: Verdict
  var testDescription: String { name }

  /// sshd's auth phase is a step of its own.
  var steps: [LoginSteps.Step] {
    let own = accepted == nil ? [phases] : [[.auth], [.account, .session]]
    return own.map {
      LoginSteps.Step(
        phases: $0, accepted: accepted, answers: answers, asksInAccount: asksInAccount)
    }
  }

  static let asks = "auth required pam_sallyport.so\n"
  static let password = "auth required pam_unix.so\n"
  static let account = "account required pam_unix.so\nsession required pam_permit.so\n"
  static let enrolls =
    password + "auth required pam_sallyport.so enroll\naccount required pam_sallyport.so\n"
    + account
    + "session required pam_sallyport.so\n"
}

@Suite struct `A login rehearsed` {
  private static let usual = RehearsalCase.password + RehearsalCase.asks + RehearsalCase.account

  static let cases = [
    RehearsalCase(name: "password and code", stack: usual, wanted: .asked(.code)),
    RehearsalCase(
      name: "no line of ours", stack: RehearsalCase.password + RehearsalCase.account,
      wanted: .withoutCode(.noLine)),
    RehearsalCase(
      name: "not enrolled", stack: usual, enrollment: .none, wanted: .refused(.notEnrolled)),
    RehearsalCase(
      name: "nullok", stack: usual.replacing("sallyport.so", with: "sallyport.so nullok"),
      enrollment: .none, wanted: .withoutCode(.nullok)),
    RehearsalCase(
      name: "voluntary", stack: usual, policy: "[default]\nenrollment = voluntary\n",
      enrollment: .none, wanted: .withoutCode(.voluntary)),
    RehearsalCase(
      name: "exempt", stack: usual, enrollment: .none, note: .exempt(until: nil),
      wanted: .withoutCode(.exempt)),
    RehearsalCase(
      name: "nothing counts",
      stack: "auth requisite pam_nologin.so\n" + RehearsalCase.asks + RehearsalCase.account,
      enrollment: .none, note: .exempt(until: nil), wanted: .refused(.stackShut)),
    RehearsalCase(
      name: "nologin counts",
      stack: "auth requisite pam_nologin.so successok\n" + RehearsalCase.asks
        + RehearsalCase.account, enrollment: .none,
      note: .exempt(until: nil), wanted: .withoutCode(.exempt)),
    RehearsalCase(
      name: "disabled for her", stack: usual,
      policy: "[rule a]\nmatch_user = alice\nstate = disabled\n",
      wanted: .withoutCode(.disabled)),
    RehearsalCase(
      name: "disabled for another", stack: usual,
      policy: "[rule a]\nmatch_user = carol\nstate = disabled\n", wanted: .asked(.code)),
    RehearsalCase(
      name: "required, and enrolls", stack: RehearsalCase.enrolls,
      policy: "[default]\nenrollment = required\n", enrollment: .none,
      wanted: .withoutCode(.enrolls)),
    RehearsalCase(
      name: "required, and enrolls over sshd", stack: RehearsalCase.enrolls,
      policy: "[default]\nenrollment = required\n", enrollment: .none, accepted: ["publickey"],
      service: "sshd", wanted: .withoutCode(.enrolls)),
    RehearsalCase(
      name: "required over sshd, and no account line",
      stack: RehearsalCase.enrolls.replacing("account required pam_sallyport.so\n", with: ""),
      policy: "[default]\nenrollment = required\n", enrollment: .none, accepted: ["publickey"],
      service: "sshd", wanted: .refused(.noPrompt)),
    RehearsalCase(
      name: "required without enroll", stack: usual,
      policy: "[default]\nenrollment = required\n", enrollment: .none,
      wanted: .refused(.notEnrolled)),
    RehearsalCase(
      name: "enrolled at a line with enroll", stack: RehearsalCase.enrolls, wanted: .asked(.code)),
    RehearsalCase(
      name: "factors off", stack: usual, policy: "[default]\nfactor_totp = off\n",
      wanted: .refused(.factorsOff)),
    RehearsalCase(
      name: "an enrollment that cannot be read", stack: usual, enrollment: .broken,
      wanted: .refused(.brokenEnrollment)),
    RehearsalCase(
      name: "no password", stack: usual, traits: AccountTraits(uid: 1000, password: .none),
      wanted: .refused(.noPassword)),
    RehearsalCase(
      name: "expired", stack: usual, traits: AccountTraits(uid: 1000, aging: [.expired]),
      wanted: .refused(.expired)),
    RehearsalCase(
      name: "optional",
      stack: usual.replacing("required pam_sallyport", with: "optional pam_sallyport"),
      wanted: .withoutCode(.uncounted)),
    RehearsalCase(
      name: "a sufficient password before it",
      stack: usual.replacing("auth required pam_unix", with: "auth sufficient pam_unix"),
      wanted: .withoutCode(.skipped)),
    RehearsalCase(
      name: "a module that is not there", stack: "auth required pam_gone.so\n" + usual,
      wanted: .refused(.moduleMissing)),
    RehearsalCase(
      name: "ours misspelt", stack: usual.replacing("sallyport.so", with: "sallport.so"),
      wanted: .refused(.moduleMissing)),
    RehearsalCase(
      name: "a module that decides", stack: "auth sufficient pam_u2f.so\n" + usual,
      wanted: .unseen(.moduleDecides)),
    RehearsalCase(
      name: "one field",
      stack: "auth required pam_sallyport.so forward_pass\n"
        + "auth required pam_unix.so use_first_pass\n" + RehearsalCase.account,
      wanted: .asked(.code)),
    RehearsalCase(
      name: "after a key",
      stack: "auth required pam_sallyport.so after-key\n"
        + RehearsalCase.account,
      traits: AccountTraits(uid: 1000, password: .none), accepted: ["publickey"], service: "sshd",
      wanted: .asked(.code)),
    RehearsalCase(
      name: "after-key without a key",
      stack: "auth required pam_sallyport.so after-key\n"
        + RehearsalCase.account,
      accepted: [], service: "sshd", wanted: .refused(.afterKey)),
    RehearsalCase(
      name: "demand where nothing asked before",
      stack: "auth required pam_permit.so\n"
        + "account required pam_sallyport.so demand\n" + RehearsalCase.account,
      wanted: .asked(.code)),
    RehearsalCase(
      name: "account phase alone", stack: usual, phases: [.account, .session],
      wanted: .withoutCode(.noPasswd)),
    RehearsalCase(
      name: "an empty password",
      stack: usual.replacing("pam_unix.so\nauth", with: "pam_unix.so nullok\nauth"),
      traits: AccountTraits(uid: 1000, password: .blank), wanted: .asked(.code)),
    RehearsalCase(
      name: "a group of pam_succeed_if",
      stack: "auth [success=1 default=ignore] pam_succeed_if.so user ingroup robots quiet\n"
        + usual.replacing("auth required pam_unix.so\n", with: "")
        + "auth required pam_permit.so\n",
      wanted: .asked(.code)),
  ]

  @Test(arguments: cases) func `ends as it will`(_ one: RehearsalCase) throws {
    #expect(try one.verdict() == one.wanted)
  }
}

extension RehearsalCase {
  func verdict() throws -> Verdict {
    let fake = FakeMachine()
    try fake.write("/etc/pam.d/\(service)", stack)
    if let policy { try fake.write("/etc/security/sallyport.conf", policy) }
    let stack = ServiceStack(of: fake.machine, service)
    let end = { hasCodes in rehearsal(stack, fake, hasCodes: hasCodes).end(of: steps) }
    let around = steps[0].phases.first == .auth ? nil : Decided(.withoutCode(.noPasswd))
    return PAMForecast.decided(
      thief: end(false), owner: { end(true) }, stack, around: around
    ).verdict
  }

  private func rehearsal(_ stack: ServiceStack, _ fake: FakeMachine, hasCodes: Bool) -> Rehearsal {
    guard let name = UserName("alice".utf8) else { preconditionFailure("no name") }
    let account = Account(name: name, uid: traits.uid, group: traits.uid)
    let person = KnownPerson(
      account: account, enrollment: enrollment, inFleet: .none, note: note,
      isMember: { _ in .no })
    let answers = ModuleAnswers(
      traits: traits, isNoLogin: { [isNoLogin] in isNoLogin && $0 == nil },
      isMissing: { ["pam_gone.so", "pam_sallport.so"].contains($0.module) }, isMember: { _ in .no })
    let password: String? =
      switch traits.password {
      case .none: nil
      case .blank: ""
      case .some, .elsewhere, .unknown: "correct horse"
      }
    let login = RehearsedLogin(
      user: account.name.bytes, service: service, caller: 1000,
      person: RehearsedLogin.Person(password: password, hasCodes: hasCodes))
    return Rehearsal(
      stack: stack, login: login, person: person, answers: answers,
      policies: PolicySources(
        Store(root: Array(fake.machine.root.utf8), owner: .effectiveUser), of: fake.machine),
      now: UnixTime(1_800_000_000))
  }
}
