import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

/// RFC 6238 appendix B: at 1111111111 s the eight digits are 14050471; the six are their tail.
private let right = "050471"
private let wrong = "050472"

@Suite struct `The login` {
  let host = ScriptedHost()
  let store: TestStore

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
  }

  func answer(_ words: String...) -> ReturnCode {
    let arguments = ModuleArguments(words.map { Array($0.utf8) })
    let answer = authenticate(host, arguments, store: store)
    #expect(host.isUsedUp)
    return answer
  }

  @Test func `a right code is accepted and saved`() throws {
    host.expect(answer: right)
    #expect(answer() == .success)
    #expect(
      host.log.map(\.line) == [
        "code accepted: user=alice authenticator=\"phone\" origin=192.0.2.7"
      ])
    host.expect(answer: right)
    #expect(answer() == .refused)
    #expect(host.log.last?.line == "refused: reason=replayed user=alice origin=192.0.2.7")
  }

  @Test func `a wrong code is refused and the log tells the budget`() {
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    let line = "refused: reason=wrong-code user=alice origin=192.0.2.7 budget=known:20,other:19"
    #expect(host.log.map(\.line) == [line])
    #expect(host.log.map(\.level) == [.notice])
  }

  @Test(arguments: [
    ("2001:db8::7%eth0", "2001:db8::7%25eth0"), ("::ffff:192.0.2.7", "::ffff:192.0.2.7"),
  ]) func `the log has an address as PAM has it`(address: String, logged: String) {
    host.remote = address
    host.expect(answer: right)
    #expect(answer() == .success)
    #expect(host.log.last?.line.hasSuffix(" origin=\(logged)") == true)
  }

  @Test(arguments: [
    ("sudo", 0, "local"), ("sudo", 1000, "local"), ("sudo", 1001, "local(another user)"),
    ("polkit-1", 0, "local(another user)"), ("polkit-1", 1000, "local"),
  ]) func `a local login is the user's own where he or root started it, but for polkit's helper`(
    service: String, uid: UInt32, origin: String
  ) {
    (host.serviceName, host.remote, host.uid) = (service, nil, uid)
    host.expect(answer: right)
    #expect(answer() == .success)
    let line = "code accepted: user=alice authenticator=\"phone\" origin=\(origin)"
    #expect(host.log.last?.line == line)
  }

  // decisive
  @Test func `a backup code is accepted once`() {
    host.expect(answer: "7kmf-2x9q-d4tw-ohza")
    #expect(answer() == .success)
    #expect(host.log.last?.line == "backup code accepted: user=alice left=0 origin=192.0.2.7")
    host.expect(answer: "7KMF-2X9Q-D4TW-0HZA")
    #expect(answer() == .refused)
  }

  // shows: same-for-all
  @Test(arguments: ["bob", "nobody-here", "../alice", "", "-x", ".hidden", "a\nb"])
  func `a user who is not enrolled is asked and refused alike`(_ name: String) {
    host.userName = .success(Array(name.utf8))
    host.expect(answer: right)
    #expect(answer() == .refused)
    host.expect(answer: "7KMF-2X9Q-D4TW-0HZA")
    #expect(answer() == .refused)
    #expect(host.log.allSatisfy { $0.level == .notice && !$0.line.contains("\n") })
  }

  @Test(arguments: ["bob", "nobody-here"]) func `under nullok the unenrolled are not asked`(
    _ name: String
  ) {
    host.userName = .success(Array(name.utf8))
    #expect(answer("nullok") == .ignore)
    let line = "not asked: state = disabled, or not enrolled: user=\(name)"
    #expect(host.log.map(\.line) == [line])
  }

  /// A name service may take "alice " for alice: passed on without a code, it would be her login.
  // shows: hidden-name
  @Test(arguments: ["alice ", " alice", "../alice", "-x", ".alice", "a/b", ""])
  func `under nullok a name that nobody can have is refused`(_ name: String) {
    host.userName = .success(Array(name.utf8))
    host.expect(answer: right)
    #expect(answer("nullok") == .refused)
  }

  /// A clock read before it would be as old as the wait: a user who stops his su there would bring
  /// back an old time, which earns the buckets credit and makes known origins forgotten.
  // shows: clock-under-lock
  @Test(.enabled(if: !isThroughService, "a service reads it for the prompt as well"))
  func `the clock is read under the lock`() throws {
    host.expect(answer: right)
    #expect(answer() == .success)
    let lock = try #require(store.calls.firstIndex(of: .transact))
    let clock = try #require(store.calls.firstIndex(of: .now))
    #expect(lock < clock)
  }

  @Test func `under nullok a broken decoy locks nobody out`() {
    host.userName = .success(Array("bob".utf8))
    store.failing = .loadDecoy
    #expect(answer("nullok") == .ignore)
  }

  @Test func `under nullok the enrolled are asked`() {
    host.expect(answer: wrong)
    #expect(answer("nullok") == .refused)
  }

  /// The strict policy's budget is the smaller one: what was spent above it stays spent.
  @Test func `a guess through a line with another policy gives none back`() {
    for _ in 0..<20 {
      host.expect(answer: wrong)
      #expect(answer() == .refused)
    }
    store.time = UnixTime(store.time.seconds + 6 * 3600)
    host.expect(answer: wrong)
    #expect(answer("bogus") == .refused)
    #expect(host.log.last?.line.contains("reason=wrong-code") == true)
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    #expect(host.log.last?.line.contains("reason=throttled") == true)
  }

  @Test func `the user himself is told how long codes are not verified`() {
    (host.remote, host.serviceName, host.uid) = (nil, "sudo", 1000)
    for _ in 0..<20 {
      host.expect(answer: wrong)
      #expect(answer() == .refused)
    }
    host.expect("Too many wrong codes. Next try in 21 h, or a backup code: ", answer: right)
    #expect(answer("prompt=Code:") == .refused)
    host.expect(
      "Too many wrong codes. Next try in 21 h, or a backup code: ", answer: "7kmf-2x9q-d4tw-ohza")
    #expect(answer() == .success)
    // Strangers are not.
    host.uid = 1001
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  // shows: unknown-word, no-trap
  @Test func `an unknown word is logged and the strict policy holds`() {
    host.userName = .success(Array("bob".utf8))
    host.expect(answer: right)
    #expect(answer("nullok", "nullokk") == .refused)
    #expect(host.log.first?.level == .error)
    #expect(host.log.first?.line.contains("\"nullokk\"") == true)
  }

  @Test func `the strict policy accepts one adjacent interval`() {
    store.time = UnixTime(1_111_111_111 + 60)
    host.expect(answer: right)
    #expect(answer("bogus") == .refused)
    store.time = UnixTime(1_111_111_111 + 30)
    host.expect(answer: right)
    #expect(answer("bogus") == .success)
  }

  // decisive
  // shows: unforeseen
  @Test(
    .enabled(if: !isThroughService, "a service's trouble is in its own log"),
    arguments: [TestStore.Call.account, .now, .load, .transact])
  func `any trouble with the store is never a success`(_ call: TestStore.Call) {
    store.failing = call
    if call == .now || call == .transact { host.expect(answer: right) }
    #expect(answer("nullok") == .unavailable)
    #expect(host.log.last?.level == .alert)
    #expect(
      host.log.last?.line == "error: user=alice origin=192.0.2.7: /nowhere: test: "
        + "No space left on device (ENOSPC)")
  }

  // shows: no-alert
  @Test(
    .enabled(if: !isThroughService, "a service's trouble is in its own log"),
    arguments: [
      ("evil.example", "sudo", "unknown(evil.example)"), (nil, "sudo", "local"),
      (nil, "kiosk", "unknown"), ("a\nb origin=::1", "sshd", "unknown(a%0Ab%20origin%3D::1)"),
    ] as [(String?, String, String)]) func `trouble tells whose it is and from where`(
      _ remote: String?, _ service: String, _ origin: String
    )
  {
    (host.remote, host.serviceName, host.uid) = (remote, service, 1000)
    host.userName = .success(Array("eve origin=::1\n".utf8))
    store.failing = .loadDecoy
    #expect(answer() == .unavailable)
    let head = "error: user=eve%20origin%3D::1%0A origin=\(origin): /nowhere: test: "
    #expect(host.log.last?.line.hasPrefix(head) == true, "\(host.log)")
    // Of a user and a place that are known, as in the other lines.
    (host.userName, store.failing) = (.success(Array("alice".utf8)), .transact)
    host.expect(answer: right)
    #expect(answer() == .unavailable)
    #expect(
      host.log.last?.line.hasPrefix("error: user=alice origin=\(origin): /nowhere: test: ") == true)
  }

  /// Who called is known where the account and the policy are.
  @Test func `trouble of another user's su names the other`() {
    (host.remote, host.serviceName, host.uid, store.failing) = (nil, "su", 1001, .transact)
    host.expect(answer: right)
    #expect(answer() == .unavailable)
    let head = "error: user=alice origin=local(another user): "
    #expect(host.log.last?.line.hasPrefix(head) == true)
  }

  /// A crowd holds the lock, or su's caller has set its limits.
  // shows: no-alert
  @Test(
    arguments: [
      (StoreTrouble.busy(path: "/s"), LogLevel.warning), (.outOfMemory, .warning),
      (.crypto(.outOfMemory), .warning), (.system("openat", path: "/s", errno: 24), .warning),
      (.system("openat", path: "/s", errno: 23), .warning),
      (.system("openat", path: "/s", errno: 12), .warning),
      (.system("pwrite", path: "/s", errno: 27), .warning),
      (.system("pwrite", path: "/s", errno: 28), .alert), (.crypto(.failed), .alert),
      (.unsettled(path: "/s"), .alert), (.noStore(path: "/s"), .alert),
      (.unsafe(path: "/s", .mode(0o644)), .alert), (.service(path: "/s", .busy), .warning),
      (.service(path: "/s", .silent), .warning), (.service(path: "/s", .garbage), .alert),
      (.service(path: "/s", .notASocket), .alert), (.service(path: "/s", .notRoot(7)), .alert),
      (.service(path: "/s", .trouble(mayBeTheCallers: true)), .warning),
      (.service(path: "/s", .trouble(mayBeTheCallers: false)), .alert),
    ] as [(StoreTrouble, LogLevel)]) func `what a stranger can bring about is no alert`(
      _ trouble: StoreTrouble, _ level: LogLevel
    )
  {
    (store.failing, store.trouble) = (.load, trouble)
    #expect(answer() == .unavailable)
    #expect(host.log.last?.level == level)
  }

  /// The decoy is worked on like an enrollment: its own codes are right ones, and no way in.
  @Test func `a right code of the decoy is refused as not enrolled`() throws {
    let record = try store.store.loadDecoy(for: Array("bob".utf8))
    let decoy = try #require(record.enrollment.authenticators.first)
    let generator = try CodeGenerator(
      secret: decoy.secret, algorithm: decoy.parameters.algorithm, digits: decoy.parameters.digits)
    let number = try generator.code(at: UInt64(store.time.seconds / 30))
    let decision = try decide(
      on: .code(number, decoy.parameters.digits), enrollment: record.enrollment,
      state: record.state, from: .unknown, through: nil, at: store.time, under: Policy())
    guard case .accept = decision.verdict else {
      Issue.record("it is no right code")
      return
    }
    let typed = String(number)
    let width = Int(decoy.parameters.digits.rawValue)
    host.userName = .success(Array("bob".utf8))
    host.expect(answer: String(repeating: "0", count: width - typed.count) + typed)
    #expect(answer() == .refused)
    let line = "refused: reason=not-enrolled user=bob origin=192.0.2.7"
    #expect(host.log.last?.line == line)
    #expect(host.kept == nil)
  }

  // shows: unforeseen
  @Test(arguments: [TestStore.Call.account, .now, .load, .loadDecoy, .transact])
  func `any trouble with the decoy is neither a success nor ignored`(_ call: TestStore.Call) {
    host.userName = .success(Array("bob".utf8))
    store.failing = call
    if call == .transact { host.expect(answer: right) }
    #expect(answer() == .unavailable)
  }

  @Test func `an enrollment that changes meanwhile is read again`() {
    store.changes = 2
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  @Test func `who is unenrolled at the prompt is refused with a right code too`() throws {
    let path = store.directory.path
    host.expect(
      reply: .made { _ in
        TestStore.unenrollAlice(path)
        return right
      })
    #expect(answer() == .refused)
    #expect(host.log.last?.line == "refused: reason=not-enrolled user=alice origin=192.0.2.7")
    #expect(host.kept == nil)
  }

  @Test func `an enrollment that keeps changing is trouble`() {
    store.changes = 3
    host.expect(answer: right)
    #expect(answer() == .unavailable)
  }

  @Test(arguments: [(PAMFailure.conversation, ReturnCode.conversation), (.memory, .memory)])
  func `a broken conversation is told as such`(_ failure: PAMFailure, _ expected: ReturnCode) {
    host.expect(reply: .failure(failure))
    #expect(answer() == expected)
    host.userName = .failure(failure)
    #expect(answer() == expected)
  }

  @Test func `a failure is delayed unless the line says otherwise`() {
    host.expect(answer: wrong)
    _ = answer("nodelay")
    #expect(host.delay == nil)
    host.expect(answer: wrong)
    _ = answer()
    #expect(host.delay == 2_000_000)
  }

  @Test func `the prompt and its echo are the line's`() {
    host.expect("Your code: ", echo: true, answer: right)
    #expect(answer("prompt=Your code: ", "echo") == .success)
  }

  /// sshd's method `password` does so, and says nothing of itself (SSH_AUTH_INFO_0) until OpenSSH
  /// 9.8; some clients do so in keyboard-interactive.
  // shows: password-typed
  @Test(arguments: [("sshd", nil), ("sshd", ""), ("sshd", "publickey k"), ("vsftpd", nil)])
  func `a password of digits that answers every prompt costs nothing, whatever the method`(
    _ service: String, _ info: String?
  ) {
    (host.serviceName, host.sshInfo, host.token) = (service, info, wrong)
    for _ in 0..<25 {
      host.expect(answer: wrong)
      #expect(answer() == .refused)
      #expect(host.log.last?.line.contains("reason=malformed") == true)
      #expect(host.log.last?.line.contains("PasswordAuthentication") == true)
      #expect(host.log.last?.level == .info)
    }
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  @Test func `a password that happens to be the code of now is no code, and uses none up`() {
    host.token = right
    host.expect(answer: right)
    #expect(answer() == .refused)
    host.token = "hunter2"
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  /// sshd answers for those it forbids, in the length of what was typed.
  @Test(arguments: [("alice", 6), ("alice", 7), ("bob", 6), ("bob", 7), ("nobody-here", 6)])
  func `sshd's dummy answers are refused alike, as long as the password or not`(
    _ user: String, _ length: Int
  ) {
    host.userName = .success(Array(user.utf8))
    let dummy = "\u{8}\n\r\u{7f}INCORRECT"
    host.token = String(dummy.prefix(6))
    host.expect(answer: String(dummy.prefix(length)))
    #expect(answer() == .refused)
    #expect(host.log.last?.line.contains("budget") == false)
  }

  @Test(arguments: [
    ("sudo", nil, UInt32(1000), "known:19,other:20"), ("sudo", nil, 0, "known:19,other:20"),
    ("su", nil, 1001, "known:20,other:19"), ("sshd", nil, 0, "known:20,other:19"),
    ("sudo", "evil.example", 1000, "known:20,other:19"),
  ]) func `the origin tells which budget is spent`(
    _ service: String, _ remote: String?, _ caller: UInt32, _ budget: String
  ) {
    (host.serviceName, host.remote, host.uid) = (service, remote, caller)
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    #expect(host.log.last?.line.hasSuffix(budget) == true)
  }

  // shows: forged-line
  @Test func `what users control is escaped in the log`() {
    host.userName = .success(Array("eve\nAccepted password for root origin=::1".utf8))
    host.remote = "a\nb) origin=::1"
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    #expect(
      host.log.last?.line == "refused: reason=unknown-user "
        + "user=eve%0AAccepted%20password%20for%20root%20origin%3D::1 "
        + "origin=unknown(a%0Ab)%20origin%3D::1)")
  }
}
