import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

/// Logins of alice, after something happened.
@Suite struct `What an owner is told at a login` {
  private let application = ScriptedHost()
  private let store: TestStore
  /// RFC 6238 appendix B: at 1111111111 s.
  private let right = "050471"
  private var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    application.serviceName = "su"
    (application.remote, application.sshInfo) = (nil, nil)
    try write("[default]\n")
  }

  private func write(_ policy: String) throws {
    try Data(policy.utf8).write(to: URL(fileURLWithPath: path))
  }

  private func amend(_ change: EnrollmentChange) throws {
    let account = try store.account(named: try #require(UserName("alice".utf8)))
    let record = try #require(try store.load(account))
    let changed = try change.applied(to: record.enrollment, record.state)
    let done = try store.rewrite(record, changed) { change.applied(to: $0, of: changed) }
    guard case .committed = done else { throw StoreTrouble.outOfMemory }
  }

  /// Codes from an address that is not known, and no enrollment of today.
  private func happen() throws {
    let made = UnixTime(store.time.seconds - 3 * 86_400)
    try amend(
      .add(
        [
          Authenticator(
            id: 8, name: try #require(Label("pixel".utf8)), parameters: .standard,
            secret: try secret("98765432109876543210"), initialLastAccepted: nil, created: made)
        ], backupCodes: try BackupCodeSet.fresh(count: 4).set))
    let account = try store.account(named: try #require(UserName("alice".utf8)))
    let context = LoginContext(
      policy: Policy(), origin: .address(NetworkAddress(high: 1, low: 0)), service: nil)
    let authority = RecordAuthority(store: store)
    let pending = try #require(try authority.enrolled(account, in: context))
    for _ in 0..<2 {
      _ = try authority.attempt(
        try secret("000000"), knownAs: nil, by: pending, as: .last(givingBack: nil))
    }
  }

  private func codeOfNextStep() throws -> String {
    store.time = UnixTime(store.time.seconds + 30)
    let generator = try CodeGenerator(
      secret: try secret(TestStore.secret), algorithm: .sha1, digits: .six)
    let number = try generator.code(at: UInt64(store.time.seconds / 30))
    return String(String(number + 1_000_000).dropFirst())
  }

  /// All that the application showed so far, after one more login.
  private func texts(after code: String? = nil) -> [String] {
    let arguments = ModuleArguments([Array(("conf=" + path).utf8), Array("nodelay".utf8)])
    application.expect(answer: code ?? right)
    #expect(authenticate(application, arguments, store: store) == .success)
    #expect(manageAccount(application, arguments, store: store) == .ignore)
    #expect(openSession(application) == .ignore)
    return application.shown
  }

  private let told = [
    "Since your last login: 2 wrong codes from elsewhere; \"pixel\" was added to your "
      + "enrollment 3 days ago."
  ]

  @Test func `is one line`() throws {
    try happen()
    #expect(texts() == told)
  }

  /// sudo wants no texts: the login after it tells.
  @Test func `is told once, and not used up where no text is wanted`() throws {
    application.isSilent = true
    try happen()
    #expect(texts() == [])
    application.isSilent = false
    for _ in 0..<2 { #expect(texts(after: try codeOfNextStep()) == told) }
  }

  @Test func `is told again where it could not be shown`() throws {
    try happen()
    application.showFails = .conversation
    #expect(texts() == [])
    application.showFails = nil
    for _ in 0..<2 { #expect(texts(after: try codeOfNextStep()) == told) }
  }

  @Test func `is told by the session phase in sshd`() throws {
    application.serviceName = "sshd"
    (application.remote, application.sshInfo) = ("192.0.2.7", "")
    try happen()
    #expect(texts() == told)
  }

  @Test func `is nothing where the policy says so`() throws {
    try write("[default]\ntell = no\n")
    try happen()
    #expect(texts() == [])
  }

  @Test func `is nothing where no code was typed`() throws {
    try happen()
    let arguments = ModuleArguments([Array(("conf=" + path).utf8)])
    #expect(manageAccount(application, arguments, store: store) == .ignore)
    #expect(openSession(application) == .ignore)
    #expect(application.shown == [])
  }

  @Test(arguments: [
    (59, "0 minutes"), (60, "1 minute"), (7199, "119 minutes"), (7200, "2 hours"),
    (172_799, "47 hours"), (172_800, "2 days"), (-5, "0 minutes"),
  ]) func `tells the time since`(_ seconds: Int64, _ text: String) {
    let now = UnixTime(1_700_000_000)
    let given = OwnerNotice.passGiven(UnixTime(now.seconds - seconds))
    let line = LogLine.notices([given], at: now, in: Sentences())
    #expect(
      String(decoding: line.bytes, as: UTF8.self)
        == "Since your last login: a pass was given \(text) ago.")
  }

  @Test(
    arguments: [
      (NetworkAddress(high: 0, low: 0xffff_c633_6407), " from 198.51.100.7"),
      (NetworkAddress(high: 0x2001_0db8_0000_0000, low: 0), " from 2001:db8::/64"), (nil, ""),
    ] as [(NetworkAddress?, String)]) func `tells the place`(
      _ origin: NetworkAddress?, _ text: String
    )
  {
    let now = UnixTime(1_700_000_000)
    let line = LogLine.notices([.passUsed(now, from: origin)], at: now, in: Sentences())
    #expect(
      String(decoding: line.bytes, as: UTF8.self)
        == "Since your last login: a pass was used 0 minutes ago\(text).")
  }
}
