import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let right = "050471"  // RFC 6238, appendix B, SHA-1, at 1111111111
private let backup = "7KMF-2X9Q-D4TW-0HZA"

/// What a fleet answers: by a store of its own, or nothing, or as it does while it is away.
private final class ScriptedFleet: CodeAuthority {
  let store: TestStore
  let isForRoot = true
  var isThereNow = true
  func canBeAsked() -> Bool { isThereNow }
  var trouble: StoreTrouble?
  /// The only question that comes to `trouble`; nil: all do.
  var failing: String?
  var isAway = false
  private(set) var verbs: [String] = []
  private let authority: RecordAuthority<TestStore>

  init() throws {
    store = try TestStore()
    authority = RecordAuthority(store: store)
  }

  private func meet(_ verb: String) throws(StoreTrouble) {
    verbs.append(verb)
    if let trouble, failing == nil || failing == verb { throw trouble }
  }

  private func shown(_ pending: PendingLogin) -> PendingLogin {
    guard isAway else { return pending }
    return PendingLogin(pending.claimant, .away(as: pending.enrollmentID), pending.context)
  }

  func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep {
    try meet("prepare")
    let step = try authority.prepare(
      typed, account, in: context, mayEnroll: mayEnroll, after: first)
    guard case .prompt(let pending) = step else { return step }
    return .prompt(shown(pending))
  }
  func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(StoreTrouble) -> Outcome {
    try meet(pending.isAway ? "attempt-away" : "attempt")
    let account = try store.account(typed: pending.name)
    let mine = try authority.claimant(pending.name, account, in: pending.context)
    return try authority.attempt(typed, knownAs: malformation, by: mine, as: role)
  }
  func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble)
    -> PendingLogin?
  {
    try meet("enrolled")
    return try authority.enrolled(account, in: context).map { shown($0) }
  }
  func level(of account: Account, in context: LoginContext) throws(StoreTrouble)
    -> EnrollmentLevel
  {
    try meet("level")
    return try authority.level(of: account, in: context)
  }
  func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble) {
    try meet("remember")
  }
  func rehearse(for account: Account, in context: LoginContext) throws(StoreTrouble) {
    try meet("rehearse")
  }
  func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment {
    try meet("amend")
    return .done
  }
  func countLogin(of account: Account, in context: LoginContext) throws(StoreTrouble) -> UInt32 {
    try meet("count")
    return 1
  }
}

@Suite struct `A login that the fleet verifies` {
  private let host = ScriptedHost()
  /// The files of this machine.
  private let store: TestStore
  private let fleet: ScriptedFleet
  private var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    (store, fleet) = (try TestStore(), try ScriptedFleet())
    try write("[default]\nverification = fleet\n")
  }

  private func write(_ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
  }

  private func arguments(_ words: [String]) -> ModuleArguments {
    ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) })
  }

  private func auth(_ user: String = "alice", _ words: String...) -> ReturnCode {
    host.userName = .success(Array(user.utf8))
    let answer = authenticate(host, arguments(words), store: store, service: fleet)
    #expect(host.isUsedUp)
    return answer
  }

  private func account(_ words: String...) -> ReturnCode {
    manageAccount(host, arguments(words), store: store, service: fleet)
  }

  @Test func `goes by the fleet's enrollment, and asks for no file of this machine`() throws {
    try fleet.store.enrollAlice()
    host.expect(answer: right)
    #expect(auth() == .success)
    #expect(account() == .ignore)
    #expect(fleet.verbs == ["prepare", "attempt", "enrolled"])
    #expect(!store.calls.contains { $0 == .load || $0 == .loadDecoy || $0 == .transact })
  }

  @Test func `is refused though this machine has the user enrolled`() throws {
    try store.enrollAlice()
    host.expect(answer: right)
    #expect(auth() == .refused)
    #expect(!store.calls.contains { $0 == .load || $0 == .transact })
  }

  @Test func `falls back to nothing`() throws {
    try store.enrollAlice()
    for fault in [StoreTrouble.ServiceFault.absent, .trouble(mayBeTheCallers: true), .notServed] {
      fleet.trouble = .service(path: "/run/sallyport/root", fault)
      #expect(auth() == .unavailable)
      #expect(auth("nobody-here") == .unavailable)
    }
    #expect(!store.calls.contains { $0 == .load || $0 == .loadDecoy })
  }

  @Test func `is not one where the policy says local, or nothing`() throws {
    try store.enrollAlice()
    let rule = "[rule a]\nmatch_user = alice\nverification = local\n"
    for text in ["", "[default]\nverification = fleet\n" + rule] {
      try write(text)
      host.expect(answer: text.isEmpty ? right : backup)
      #expect(auth() == .success)
      #expect(account() == .ignore)
    }
    #expect(fleet.verbs.isEmpty)
  }

  @Test func `is none of uid 0 but by name`() throws {
    store.accounts[Array("root".utf8)] = 0
    host.expect(answer: right)
    #expect(auth("root") == .refused)
    #expect(fleet.verbs.isEmpty && store.calls.contains(.loadDecoy))
    try write("[rule a]\nmatch_user = root\nverification = fleet\n")
    host.expect(answer: right)
    #expect(auth("root") == .refused)
    #expect(fleet.verbs == ["prepare", "attempt"])
  }

  @Test(arguments: [true, false])
  func `is each of a machine of the fleet whose policy cannot be read`(_ isInFleet: Bool) throws {
    store.isInFleet = isInFleet
    store.accounts[Array("root".utf8)] = 0
    for (text, words) in [("verification = flet", []), ("", ["bogus"])] {
      try write(text)
      for user in ["alice", "nobody", "alice ", "root"] {
        let before = fleet.verbs.count
        host.expect(answer: right)
        host.userName = .success(Array(user.utf8))
        #expect(
          authenticate(host, arguments(words), store: store, service: fleet) == .refused)
        let isAsked = fleet.verbs.count > before
        // A word that means nothing changes nothing of who verifies codes.
        #expect(isAsked == (isInFleet && user != "root" && words == []), "\(user)")
      }
    }
  }

  @Test func `asks for a backup code while the fleet is away`() throws {
    try fleet.store.enrollAlice()
    fleet.isAway = true
    try write(
      "[default]\nverification = fleet\nhints = yes\nremember = 12 h\nminimum_factors = 3\n")
    host.expect("Backup code: ", answer: backup)
    #expect(auth("alice", "enroll", "prompt=Token: ") == .success)
    // Nothing is remembered, completed or counted of it.
    #expect(account("enroll") == .ignore)
    #expect(fleet.verbs == ["prepare", "attempt-away", "enrolled"])
    #expect(host.shown.isEmpty)
    host.expect("Backup code: ", answer: backup)
    #expect(auth("nobody-here") == .refused)
  }

  @Test func `asks for a password and a backup code in one field while the fleet is away`() throws {
    try fleet.store.enrollAlice()
    fleet.isAway = true
    host.expect("Password & backup code: ", answer: "hunter2" + backup)
    #expect(auth("alice", "forward_pass") == .success)
    #expect(host.token == "hunter2")
  }

  @Test func `is tried in the account phase where demand asks there`() throws {
    try fleet.store.enrollAlice()
    fleet.isAway = true
    host.userName = .success(Array("alice".utf8))
    host.expect("Backup code: ", answer: backup)
    #expect(account("demand") == .success)
    #expect(fleet.verbs == ["enrolled", "attempt-away", "enrolled"])
  }

  /// A host without that right; a verifier that lets it prepare one does not let it be made.
  @Test func `enrolls nobody from a machine that may not, and says so`() throws {
    try write("[default]\nverification = fleet\nenrollment = required\n")
    host.token = "any"
    #expect(auth("bob", "enroll") == .ignore)
    (fleet.trouble, fleet.failing) = (.service(path: "/run/sallyport/root", .notServed), "rehearse")
    host.expect("Set it up now? [y/n]: ", echo: true, answer: "y")
    #expect(account("enroll") == .denied)
    #expect(host.isUsedUp && !fleet.verbs.contains("amend"))
    let last = host.shown.last { $0.hasPrefix("Not set up") }
    #expect(last == "Not set up: this machine may not enroll users of its fleet.")
  }
}

@Suite struct `A login of a program of root that another user has started` {
  @Test(arguments: [true, false])
  func `goes by the service, and by the files where that is not there`(isThere: Bool) throws {
    let (host, store, service) = (ScriptedHost(), try TestStore(), try ScriptedFleet())
    service.isThereNow = isThere
    try (isThere ? service.store : store).enrollAlice()
    host.expect(answer: right)
    let answer = authenticate(
      host, ModuleArguments([]), store: store, service: service, isServed: true)
    #expect(answer == .success)
    #expect(host.isUsedUp)
    #expect(service.verbs == (isThere ? ["prepare", "attempt"] : []))
  }
}
