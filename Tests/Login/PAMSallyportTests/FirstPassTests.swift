import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

private let right = "050471"
private let both = "Password & verification code: "

/// `use_first_pass`, `try_first_pass` and `forward_pass`, alone and together.
@Suite struct `One field` {
  struct Case: Sendable {
    var words: [String]
    var token: String?
    /// nil: nothing may be asked.
    var prompt: String?
    var typed = ""
    var answer: ReturnCode
    var tokenAfter: String?
  }

  static let cases: [Case] = [
    Case(
      words: [], token: right, prompt: "Verification code: ", typed: right, answer: .refused,
      tokenAfter: right),
    Case(
      words: ["forward_pass"], token: "x" + right, prompt: both, typed: "x" + right,
      answer: .success, tokenAfter: "x"),
    Case(
      words: ["try_first_pass"], token: "hunter2", prompt: "Verification code: ",
      typed: "hunter2", answer: .refused, tokenAfter: "hunter2"),
    Case(words: ["use_first_pass"], token: right, answer: .success, tokenAfter: right),
    Case(words: ["use_first_pass"], token: "hunter2", answer: .refused, tokenAfter: "hunter2"),
    Case(words: ["use_first_pass"], token: nil, answer: .refused, tokenAfter: nil),
    Case(words: ["try_first_pass"], token: right, answer: .success, tokenAfter: right),
    Case(
      words: ["try_first_pass"], token: "hunter2", prompt: "Verification code: ", typed: right,
      answer: .success, tokenAfter: "hunter2"),
    Case(
      words: ["try_first_pass"], token: nil, prompt: "Verification code: ", typed: right,
      answer: .success, tokenAfter: nil),
    Case(
      words: ["forward_pass"], token: nil, prompt: both, typed: "hunter2" + right,
      answer: .success, tokenAfter: "hunter2"),
    Case(
      words: ["forward_pass"], token: nil, prompt: both, typed: "hunter2050472",
      answer: .refused, tokenAfter: "hunter2"),
    Case(
      words: ["forward_pass"], token: nil, prompt: both, typed: "hunter two",
      answer: .refused, tokenAfter: "hunter two"),
    Case(
      words: ["forward_pass"], token: nil, prompt: both, typed: "hunter2 7KMF-2X9Q-D4TW-0HZA",
      answer: .success, tokenAfter: "hunter2 "),
    Case(
      words: ["forward_pass"], token: nil, prompt: both, typed: right, answer: .success,
      tokenAfter: ""),
    Case(
      words: ["use_first_pass", "forward_pass"], token: "hunter2" + right, answer: .success,
      tokenAfter: "hunter2"),
    Case(
      words: ["use_first_pass", "forward_pass"], token: "hunter2", answer: .refused,
      tokenAfter: "hunter2"),
    Case(
      words: ["try_first_pass", "forward_pass"], token: "hunter2" + right, answer: .success,
      tokenAfter: "hunter2"),
    Case(
      words: ["try_first_pass", "forward_pass"], token: "hunter2", prompt: both,
      typed: "hunter3" + right, answer: .success, tokenAfter: "hunter3"),
  ]

  @Test(arguments: cases) func `is read as the words say`(_ the: Case) throws {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    host.token = the.token
    if let prompt = the.prompt { host.expect(prompt, answer: the.typed) }
    let words = ModuleArguments(the.words.map { Array($0.utf8) })
    #expect(authenticate(host, words, store: store) == the.answer)
    #expect(host.isUsedUp)
    #expect(host.token == the.tokenAfter)
  }

  @Test func `the password is handed on before anything is spent`() throws {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    host.tokenFails = .memory
    host.expect(both, answer: "hunter2" + right)
    let words = ModuleArguments([Array("forward_pass".utf8)])
    #expect(authenticate(host, words, store: store) == .memory)
    (host.tokenFails, host.token) = (nil, nil)
    host.expect(both, answer: "hunter2" + right)
    #expect(authenticate(host, words, store: store) == .success)
  }

  // MARK: what a first pass costs

  private func code(at time: UnixTime) throws -> String {
    let secret = try #require(Secret(TestStore.secret))
    let generator = try CodeGenerator(secret: secret, algorithm: .sha1, digits: .six)
    let code = String(try generator.code(at: UInt64(time.seconds) / 30))
    return String(repeating: "0", count: 6 - code.count) + code
  }

  private func spent(_ store: TestStore) throws -> Bucket {
    let alice = try #require(UserName("alice".utf8))
    let record = try store.store.load(Account(name: alice, uid: 1000))
    return try #require(record).state.other
  }

  private func state(_ store: TestStore) throws -> LoginState {
    let alice = try #require(UserName("alice".utf8))
    return try #require(try store.store.load(Account(name: alice, uid: 1000))).state
  }

  private static let words = ModuleArguments([Array("try_first_pass".utf8)])

  // decisive
  @Test func `a password that looks like a code never locks its owner out`() throws {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    host.token = "482913"
    for _ in 0..<50 {
      store.time = UnixTime(store.time.seconds + 330)
      host.expect(answer: try code(at: store.time))
      #expect(authenticate(host, Self.words, store: store) == .success)
      #expect(host.isUsedUp)
    }
    #expect(try spent(store).spent == .none)
    let wrong = host.log.filter { $0.line.contains("reason=wrong-code") }
    #expect(wrong.count == 50)
  }

  // shows: first-pass
  @Test func `a thousand first passes that end at the prompt are verified twenty times`() throws {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    host.token = "482913"
    for _ in 0..<1000 {
      host.expect(reply: .failure(.conversation))
      #expect(authenticate(host, Self.words, store: store) == .conversation)
    }
    let verified = host.log.filter { $0.line.contains("reason=wrong-code") }
    let throttled = host.log.filter { $0.line.contains("reason=throttled") }
    #expect((verified.count, throttled.count) == (20, 980))
  }

  /// Nor does another call of the same host that is accepted.
  @Test(arguments: [("482914", UInt64(22)), ("hello", 11), ("", 11)])
  func `what is refused at the prompt gives nothing back`(_ typed: String, _ millionths: UInt64)
    throws
  {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    host.token = "482913"
    host.expect(answer: typed)
    #expect(authenticate(host, Self.words, store: store) == .refused)
    #expect(try spent(store).spent.units == millionths * 1_000_000)
    host.token = nil
    host.expect(answer: right)
    #expect(authenticate(host, Self.words, store: store) == .success)
    #expect(try spent(store).spent.units == millionths * 1_000_000)
  }

  /// With the code at its end, too; the one that was not charged is checked.
  // decisive
  @Test(arguments: [
    (["try_first_pass"], "482913", UInt64(11)),
    (["try_first_pass", "forward_pass"], "hunter482913", 11),
    (["try_first_pass", "forward_pass"], "other482913", 22),
    (["try_first_pass", "forward_pass"], "hunter482914", 22),
  ]) func `the same response at the prompt once more is charged once`(
    words: [String], typed: String, millionths: UInt64
  ) throws {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    host.token = words.count > 1 ? "hunter482913" : "482913"
    host.expect(words.count > 1 ? both : "Verification code: ", answer: typed)
    let arguments = ModuleArguments(words.map { Array($0.utf8) })
    #expect(authenticate(host, arguments, store: store) == .refused)
    #expect(try spent(store).spent.units == millionths * 1_000_000)
    let isOnceMore = millionths == 11
    #expect(host.log.last?.line.contains("reason=malformed") == isOnceMore)
  }

  /// The 20th wrong code is the first pass: then a day passes until the next.
  @Test func `the prompt says the wait of after the first pass`() throws {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    (host.remote, host.serviceName, host.uid) = (nil, "su", 1000)
    for _ in 0..<19 {
      host.expect(answer: "482914")
      #expect(authenticate(host, ModuleArguments([]), store: store) == .refused)
    }
    host.token = "482913"
    host.expect("Too many wrong codes. Next try in 21 h, or a backup code: ", answer: "482915")
    #expect(authenticate(host, Self.words, store: store) == .refused)
    #expect(host.isUsedUp)
    #expect(try state(store).known.spent.units == 220_000_000)
  }

  /// Else another login gave back as a slip what this one's prompt gives back.
  @Test(arguments: [("try_first_pass", false), ("use_first_pass", true)])
  func `a first pass is a slip only where no prompt follows`(_ word: String, _ isSlip: Bool) throws
  {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    (host.remote, host.serviceName, host.uid) = (nil, "login", 1000)
    host.token = "050472"
    if !isSlip { host.expect(reply: .failure(.conversation)) }
    let words = ModuleArguments([Array(word.utf8)])
    #expect(authenticate(host, words, store: store) == (isSlip ? .refused : .conversation))
    #expect(host.isUsedUp)
    let after = try state(store)
    #expect(after.known.spent.units == 11_000_000)
    #expect((after.slip != nil) == isSlip)
  }

  // decisive
  @Test(arguments: [["try_first_pass"], ["try_first_pass", "forward_pass"]])
  func `a field that every prompt is answered with is charged once`(_ words: [String]) throws {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    host.token = "482913"
    host.expect(words.count == 1 ? "Verification code: " : both, answer: "482913")
    let arguments = ModuleArguments(words.map { Array($0.utf8) })
    #expect(authenticate(host, arguments, store: store) == .refused)
    #expect(try spent(store).spent.units == 11_000_000)
  }

  @Test func `a first pass is charged before the prompt`() throws {
    let store = try TestStore()
    try store.enrollAlice()
    let host = ScriptedHost()
    host.token = "482913"
    var before: Bucket?
    host.expect(
      reply: .made { _ in
        before = try? self.spent(store)
        return right
      })
    #expect(authenticate(host, Self.words, store: store) == .success)
    #expect(before?.spent.units == 11_000_000)
    #expect(try spent(store).spent == .none)
  }
}
