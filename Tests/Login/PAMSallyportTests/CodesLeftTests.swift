import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

/// RFC 6238 appendix B: at 1111111111 s.
private let right = "050471"
private let host = HostName.label.text
private let add = "0 backup codes left. Lost your phone? "
private let renew = "1 backup code left. New ones: "

/// Logins of alice, who has one backup code, through all phases.
@Suite struct `How many backup codes are left` {
  let application = ScriptedHost()
  let store: TestStore

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    login("su")
  }

  private func login(_ service: String) {
    application.serviceName = service
    (application.remote, application.sshInfo) = service == "sshd" ? ("192.0.2.7", "") : (nil, nil)
  }

  private func selfService(_ isOn: Bool) {
    var policy = Policy()
    policy.isSelfService = isOn
    store.usualPolicy = policy
  }

  /// The texts of a whole login: those of the account phase, and those of the session phase.
  private func texts(after code: String, _ words: String...) -> ([String], [String]) {
    let arguments = ModuleArguments(words.map { Array($0.utf8) })
    application.expect(answer: code)
    #expect(authenticate(application, arguments, store: store) == .success)
    #expect(manageAccount(application, arguments, store: store) == .ignore)
    let before = application.shown
    #expect(openSession(application) == .ignore)
    #expect(application.leftText == nil)
    return (before, Array(application.shown.dropFirst(before.count)))
  }

  /// Whether the policy has self_service, whether sallyport-session is there, and words of the
  /// line.
  @Test(arguments: [
    (true, true, "nodelay", "sallyport add"), (true, false, "nodelay", nil),
    (false, true, "nodelay", nil), (true, true, "store=/another", nil),
  ])
  func `is told with what this user can do`(
    _ isOn: Bool, _ hasSessions: Bool, _ word: String, _ own: String?
  ) {
    selfService(isOn)
    store.hasSessions = hasSessions
    let command = own ?? "sudo sallyport add alice, or ask the administrator of \(host)"
    #expect(texts(after: TestStore.backup, word) == ([add + command], []))
  }

  @Test func `is told after a code where they are few`() {
    let command = "sudo sallyport backup-codes alice --regenerate"
    #expect(
      texts(after: right) == ([renew + command + ", or ask the administrator of \(host)"], []))
  }

  @Test func `is told after a code with what needs no root`() {
    selfService(true)
    store.hasSessions = true
    #expect(texts(after: right) == ([renew + "sallyport backup-codes --regenerate"], []))
  }

  /// Up to 10.2, sshd shows twice what the account phase says.
  @Test func `is told by the session phase in sshd, and once`() {
    login("sshd")
    let command = "sudo sallyport add alice, or ask the administrator of \(host)"
    #expect(texts(after: TestStore.backup) == ([], [add + command]))
    #expect(openSession(application) == .ignore)
    #expect(application.shown.count == 1)
  }

  @Test func `is told to nobody who gets no session, or where no text is wanted`() throws {
    for refuses in [true, false] {
      try application.leaveText(LogLine("a text"))
      (application.hasEnvironmentMark, application.isSilent) = (refuses, !refuses)
      #expect(openSession(application) == (refuses ? .denied : .ignore))
      #expect(application.shown == [] && application.leftText == nil)
    }
  }

  @Test func `is told in no text that deceives a terminal`() throws {
    try application.leaveText(LogLine("left\u{1b}[2J"))
    #expect(openSession(application) == .ignore)
    #expect(application.shown == [] && application.leftText == nil)
  }
}
