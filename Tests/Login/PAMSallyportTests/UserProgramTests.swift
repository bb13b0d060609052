import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

/// As in a program that is not root: the answers are the same, but nothing else is done for it.
private final class UserAuthority: CodeAuthority {
  private let files: RecordAuthority<TestStore>
  let isForRoot = false
  func canBeAsked() -> Bool { true }

  init(_ store: TestStore) { files = RecordAuthority(store: store) }

  func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep {
    #expect(!mayEnroll)
    return try files.prepare(typed, account, in: context, mayEnroll: mayEnroll, after: first)
  }
  func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(StoreTrouble) -> Outcome {
    #expect(role == .last(givingBack: nil))
    return try files.attempt(typed, knownAs: malformation, by: pending, as: role)
  }
  func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble)
    -> PendingLogin?
  {
    try files.enrolled(account, in: context)
  }
  func level(of account: Account, in context: LoginContext) throws(StoreTrouble)
    -> EnrollmentLevel
  {
    try files.level(of: account, in: context)
  }
  func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble) {
    Issue.record("remembered")
  }
  func rehearse(for account: Account, in context: LoginContext) throws(StoreTrouble) {
    Issue.record("rehearsed")
  }
  func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment {
    Issue.record("changed")
    return .changed
  }
  func countLogin(of account: Account, in context: LoginContext) throws(StoreTrouble) -> UInt32 {
    Issue.record("counted")
    return 1
  }
}

@Suite struct `A program that is not root` {
  private let store: TestStore
  private let host = ScriptedHost()
  private let right: String

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    right = "050471"  // RFC 6238, appendix B, SHA-1, at 1111111111
    (host.serviceName, host.remote, host.sshInfo, host.uid) = ("locker", nil, nil, 1000)
  }

  private func answer(_ words: String...) -> ReturnCode {
    let arguments = ModuleArguments(words.map { Array($0.utf8) })
    return authenticate(
      host, arguments, store: store, service: UserAuthority(store), isServed: true)
  }

  /// It would cost a wrong code at each login, and nothing would be given back of it.
  @Test func `asks for a code though the password has the form of one`() {
    host.token = "123456"
    host.expect(answer: right)
    #expect(answer("try_first_pass") == .success)
    #expect(host.isUsedUp && host.token == "123456")
  }

  /// It could show a secret, and not store it.
  @Test func `enrolls nobody, nor completes an enrollment`() {
    host.token = "any"
    host.expect(answer: right)
    #expect(answer("enroll") == .success)
    let arguments = ModuleArguments([Array("enroll".utf8)])
    let answer = manageAccount(
      host, arguments, store: store, service: UserAuthority(store), isServed: true)
    #expect(answer == .ignore)
    #expect(host.isUsedUp)
  }
}
