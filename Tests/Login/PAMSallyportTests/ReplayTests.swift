import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

/// RFC 6238 appendix B: at 1111111111 s, 29 s before the end of the step.
private let right = "050471"
private let told = "That code was used already. Wait about 29 s for the next."

/// Logins of alice at this machine, with a code that she has used.
@Suite struct `A code that was used` {
  let host = ScriptedHost()
  let store: TestStore

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    (host.serviceName, host.remote, host.uid, host.isSilent) = ("sudo", nil, 1000, true)
  }

  func log(in answer: String, at prompt: String = "Verification code: ", _ words: String...)
    -> ReturnCode
  {
    host.expect(prompt, answer: answer)
    let arguments = ModuleArguments(words.map { Array($0.utf8) })
    let code = authenticate(host, arguments, store: store)
    #expect(host.isUsedUp)
    return code
  }

  @Test func `is named at the next prompt of a program that wants no texts, and only there`() {
    #expect(log(in: right) == .success)
    #expect(log(in: right) == .refused)
    #expect(log(in: right, at: "\(told)\nVerification code: ") == .refused)
    #expect(log(in: "050472", at: "\(told)\nCode? ", "prompt=Code? ") == .refused)
    #expect(log(in: right) == .refused)
    host.userName = .success(Array("bob".utf8))
    #expect(log(in: right) == .refused)
    #expect(host.complaints == [] && host.shown == [])
  }

  @Test func `is named at once where texts are wanted, as an error`() {
    (host.serviceName, host.isSilent) = ("su", false)
    #expect(log(in: right) == .success)
    #expect(host.complaints == [])
    #expect(log(in: right) == .refused)
    #expect(host.complaints == [told])
    #expect(log(in: "050472") == .refused)
    #expect(host.complaints == [told] && host.shown == [])
    host.showFails = .conversation
    #expect(log(in: right) == .refused)
  }

  // shows: told-used
  @Test(
    arguments: [
      ("sudo", nil, 1001), ("su", nil, 0), ("login", nil, 0), ("polkit-1", nil, 0),
      ("sshd", "192.0.2.7", 1000), ("sshd", nil, 1000),
    ] as [(String, String?, UInt32)], [true, false])
  func `is named to no other user, nor to root, nor from afar`(
    login: (service: String, remote: String?, uid: UInt32), isSilent: Bool
  ) {
    #expect(log(in: right) == .success)
    (host.serviceName, host.remote) = (login.service, login.remote)
    (host.uid, host.isSilent) = (login.uid, isSilent)
    for _ in 0..<2 { #expect(log(in: right) == .refused) }
    #expect(host.log.last?.line.hasPrefix("refused: reason=replayed") == true)
    #expect(host.complaints == [] && host.kept == nil)
  }

  // shows: told-used
  @Test func `is told from a wrong one, a throttled one and a used backup code`() {
    host.isSilent = false
    #expect(log(in: "7KMF-2X9Q-D4TW-0HZA") == .success)
    #expect(log(in: "7KMF-2X9Q-D4TW-0HZA") == .refused)
    #expect(log(in: right) == .success)
    for _ in 0..<20 { #expect(log(in: "050472") == .refused) }
    let prompt = "Too many wrong codes. Next try in 21 h, or a backup code: "
    #expect(log(in: right, at: prompt) == .refused)
    #expect(host.log.last?.line.hasPrefix("refused: reason=throttled") == true)
    #expect(host.complaints == [])
  }

  @Test func `is no matter of another line's password`() {
    #expect(log(in: right) == .success)
    host.token = right
    #expect(log(in: "050472", "try_first_pass") == .refused)
    #expect(host.kept == nil)
  }

  @Test func `leaves no mark that the other phases would see`() {
    #expect(log(in: right) == .success)
    #expect(log(in: right) == .refused)
    #expect(host.kept != nil)
    let mark = host.kept
    #expect(openSession(host) == .ignore)
    #expect(manageAccount(host, ModuleArguments([]), store: store) == .ignore)
    host.kept = mark
    host.expect(answer: "7KMF-2X9Q-D4TW-0HZA")
    let demand = ModuleArguments([Array("demand".utf8)])
    #expect(manageAccount(host, demand, store: store) == .success)
    (host.kept, host.hasEnvironmentMark) = (mark, true)
    #expect(openSession(host) == .denied)
    #expect(host.isUsedUp)
  }

  @Test func `is good for nothing until its step ends, and then no wait is named`() {
    host.isSilent = false
    // A second before the step begins, by an app that is ahead.
    store.time = UnixTime(1_111_111_109)
    #expect(log(in: right) == .success)
    #expect(log(in: right) == .refused)
    store.time = UnixTime(1_111_111_140)
    #expect(log(in: right) == .refused)
    // The app is ahead, so that it shows the next code in a second.
    #expect(host.complaints == ["That code was used already. Wait about 1 s for the next."])
    // Between the two prompts of sudo the step may end.
    host.isSilent = true
    store.time = UnixTime(1_111_111_109)
    #expect(log(in: right) == .refused)
    #expect(host.kept != nil)
    store.time = UnixTime(1_111_111_110)
    #expect(log(in: "050472") == .refused)
  }
}
