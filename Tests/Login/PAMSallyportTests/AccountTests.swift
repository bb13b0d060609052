import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let right = "050471"
private let wrong = "050472"
private let question = "Set it up now? [y/n, Enter = later]: "
private let demand = "Set it up now? [y/n]: "
private let first = "Code shown by the app: "
private let last = "Press Enter when you have them: "

/// What is asked before our line.
private enum Before: CaseIterable, Sendable { case password, key, nothing }

/// Logins of bob, who is not enrolled, and of alice, who is, through auth, account and session.
@Suite struct `After the auth phase` {
  let host = ScriptedHost()
  let store: TestStore
  var path: String { store.directory.path + "/policy.conf" }
  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    host.userName = .success(Array("bob".utf8))
    host.token = "password"
  }

  func write(_ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
  }

  func level(_ level: String, _ more: String = "") throws {
    try write("[default]\nenrollment = \(level)\n\(more)\n")
  }

  func auth(_ words: String...) -> ReturnCode {
    let answer = authenticate(
      host, ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) }), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  func account(_ words: String...) -> ReturnCode { account(words) }

  func account(_ words: [String]) -> ReturnCode {
    let answer = manageAccount(
      host, ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) }), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  func isEnrolled(_ name: String) throws -> Bool {
    let account = Account(name: try #require(UserName(name.utf8)), uid: name == "bob" ? 1001 : 1000)
    return try store.store.load(account) != nil
  }

  /// The code of the newest secret that was shown, now.
  func code(_ shown: [String], period: Int64? = 30) -> String {
    guard let text = shown.last(where: { $0.contains("Key to type") }),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("Key to type") }),
      let key = line.split(separator: ":").last,
      let bytes = Secret(key.filter { $0 != " " }.utf8), let secret = try? Base32.decode(bytes),
      let generator = try? CodeGenerator(secret: secret, algorithm: .sha1, digits: .six),
      let code = try? generator.code(at: period.map { UInt64(store.time.seconds / $0) } ?? 0)
    else { return "no code" }
    return String(repeating: "0", count: max(0, 6 - "\(code)".count)) + "\(code)"
  }

  func expectEnrolling(_ ask: String) {
    host.expect(ask, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .made { code($0) })
    host.expect(last, echo: true, answer: "")
  }

  // MARK: the table

  private struct Row: Sendable {
    let level: String
    let enroll: Bool
    let before: Before
    /// Whether the decoy asks.
    let isAsked: Bool
    let auth: ReturnCode
    /// What the account phase asks bob, who then says no; nil: nothing.
    let question: String?
    let account: ReturnCode
    let session: ReturnCode

    init(
      _ level: String, _ enroll: Bool, _ before: Before, asked: Bool = false, _ auth: ReturnCode,
      _ question: String? = nil, _ account: ReturnCode = .ignore, session: ReturnCode = .ignore
    ) {
      (self.level, self.enroll, self.before) = (level, enroll, before)
      (self.isAsked, self.auth, self.question) = (asked, auth, question)
      (self.account, self.session) = (account, session)
    }
  }

  private static let rows: [Row] =
    Before.allCases.flatMap { before in
      [true, false].flatMap { enroll in
        [
          Row("refuse", enroll, before, asked: true, .refused),
          Row("voluntary", enroll, before, .ignore),
        ]
      }
    } + [
      Row("required", true, .password, .ignore, demand, .denied, session: .denied),
      Row("required", true, .key, .success, demand, .denied, session: .denied),
      Row("required", true, .nothing, asked: true, .refused),
      Row("required", false, .password, asked: true, .refused),
      Row("required", false, .key, asked: true, .refused),
      Row("required", false, .nothing, asked: true, .refused),
      Row("offer", true, .password, .ignore, question),
      Row("offer", true, .key, .success, question),
      Row("offer", true, .nothing, .ignore), Row("offer", false, .password, .ignore),
      Row("offer", false, .key, .ignore), Row("offer", false, .nothing, .ignore),
      Row("remind", true, .password, .ignore, question),
      Row("remind", true, .key, .success, question),
      Row("remind", true, .nothing, .ignore), Row("remind", false, .password, .ignore),
      Row("remind", false, .key, .ignore), Row("remind", false, .nothing, .ignore),
    ]

  private func set(_ row: Row) throws {
    try level(row.level, "remind_every = 1")
    host.token = row.before == .password ? "password" : nil
    host.sshInfo = row.before == .key ? "publickey ssh-ed25519 AAAA" : ""
    if row.isAsked { host.expect(answer: right) }
    #expect(auth(row.enroll ? "enroll" : "nodelay") == row.auth)
  }

  @Test(arguments: rows) private func `the unenrolled fare as their level says`(_ row: Row) throws {
    try set(row)
    if let question = row.question { host.expect(question, echo: true, answer: "n") }
    #expect(account() == row.account)
    #expect(try !isEnrolled("bob"))
    // Also where a stack takes the account phase's no for a yes.
    #expect(openSession(host) == (row.account == .denied ? .denied : .ignore))
  }

  // shows: only-yes
  @Test(arguments: rows)
  private func `without an account line who must enroll has no session`(_ row: Row) throws {
    try set(row)
    #expect(openSession(host) == row.session)
    #expect(!host.hasEnvironmentMark)
  }

  @Test(arguments: rows)
  private func `the enrolled are asked for a code whatever the level`(_ row: Row) throws {
    host.userName = .success(Array("alice".utf8))
    try level(row.level, "remind_every = 1")
    host.token = row.before == .password ? "password" : nil
    host.sshInfo = row.before == .key ? "publickey ssh-ed25519 AAAA" : ""
    host.expect(answer: wrong)
    #expect(auth(row.enroll ? "enroll" : "nodelay") == .refused)
    host.expect(answer: right)
    #expect(auth(row.enroll ? "enroll" : "nodelay") == .success)
    #expect(account() == .ignore)
    #expect(openSession(host) == .ignore)
  }

  // decisive
  @Test(arguments: rows) private func `who has no account is never enrolled`(_ row: Row) throws {
    host.userName = .success(Array("nobody-here".utf8))
    try level(row.level, "remind_every = 1")
    let isAsked = row.level == "refuse" || row.level == "required"
    host.token = row.before == .password ? "password" : nil
    host.sshInfo = row.before == .key ? "publickey ssh-ed25519 AAAA" : ""
    if isAsked { host.expect(answer: right) }
    #expect(auth(row.enroll ? "enroll" : "nodelay") == (isAsked ? .refused : .ignore))
    #expect(account() == .ignore)
  }

  // MARK: enrolling

  @Test(arguments: [("required", demand), ("offer", question)])
  func `enrolling in the login stores what was shown`(_ level: String, _ question: String) throws {
    try self.level(level)
    #expect(auth("enroll") == .ignore)
    expectEnrolling(question)
    #expect(account() == .success)
    #expect(openSession(host) == .ignore)
    #expect(try isEnrolled("bob"))
    let last = try #require(host.log.last)
    #expect(last.level == .notice)
    #expect(
      last.line
        == "enrollment changed in the login: action=enrolled user=bob authenticator=\"phone\""
        + " backup-codes=10 origin=192.0.2.7")
    // The confirming code counts as used; a backup code that was shown works, once.
    let shown = host.shown
    host.expect(answer: code(shown))
    #expect(auth("enroll") == .refused)
    let text = try #require(shown.last { $0.contains("Backup codes") })
    let codes = text.split(whereSeparator: \.isWhitespace).filter { $0.count == 19 }
    #expect(codes.count == 10)
    host.expect(answer: String(try #require(codes.first)))
    #expect(auth("enroll") == .success)
    store.time = UnixTime(store.time.seconds + 30)
    host.expect(answer: code(shown))
    #expect(auth("enroll") == .success)
  }

  // decisive
  @Test(arguments: ["required", "offer"])
  func `whom root blocks meanwhile is not enrolled, and not let in`(level: String) throws {
    try self.level(level)
    #expect(auth("enroll") == .ignore)
    host.expect(level == "required" ? demand : question, echo: true, answer: "y")
    let root = store.directory.path + "/store"
    host.expect(
      first, echo: true,
      reply: .made {
        try? makeBlock("bob", at: root)
        return code($0)
      })
    #expect(account() == .denied)
    #expect(openSession(host) == .denied)
    #expect(try !isEnrolled("bob"))
  }

  // shows: only-yes
  @Test(arguments: ["", "n", "N", "no", "later", "maybe", "j", "\u{ff4a}", "\u{1b}"])
  func `no other answer than yes is a yes`(_ answer: String) throws {
    for level in ["required", "offer"] {
      try self.level(level)
      #expect(auth("enroll") == .ignore)
      let ask = level == "required" ? demand : question
      let isClear = ["", "n", "N", "no"].contains(answer)
      for _ in 0..<(isClear ? 1 : 3) { host.expect(ask, echo: true, answer: answer) }
      #expect(account() == (level == "required" ? .denied : .ignore))
      #expect(!host.shown.contains { $0.contains("otpauth") })
      let told = host.shown.count { $0 == "Type y for yes or n for no." }
      #expect(told == (isClear ? 0 : level == "required" ? 2 : 4))
    }
  }

  @Test func `five wrong codes end it`() throws {
    for level in ["required", "offer"] {
      try self.level(level)
      #expect(auth("enroll") == .ignore)
      host.expect(level == "required" ? demand : question, echo: true, answer: "\u{ff39}es")
      for answer in [wrong, wrong, "7KMF-2X9Q-D4TW-0HZA", "12345678", "x"] {
        host.expect(first, echo: true, answer: answer)
      }
      #expect(account() == (level == "required" ? .denied : .ignore))
      #expect(try !isEnrolled("bob"))
    }
  }

  /// A lost connection, at each prompt.
  // shows: only-yes
  @Test(arguments: [0, 1, 2], ["required", "offer"])
  func `a conversation that ends is no yes`(_ prompt: Int, _ level: String) throws {
    try self.level(level)
    #expect(auth("enroll") == .ignore)
    let ask = level == "required" ? demand : question
    if prompt == 0 {
      host.expect(ask, echo: true, reply: .failure(.conversation))
    } else {
      host.expect(ask, echo: true, answer: "y")
      if prompt == 1 {
        host.expect(first, echo: true, reply: .failure(.conversation))
      } else {
        host.expect(first, echo: true, reply: .made { code($0) })
        host.expect(last, echo: true, reply: .failure(.conversation))
      }
    }
    let answer = account()
    // At the last prompt the code was right, and the enrollment is stored.
    #expect(try isEnrolled("bob") == (prompt == 2))
    #expect(answer == (prompt == 2 ? .success : level == "required" ? .denied : .ignore))
  }

  // decisive; shows: only-yes
  @Test(arguments: [TestStore.Call.create, .rehearse, .note, .load, .now, .account])
  func `trouble is never a yes under required`(_ call: TestStore.Call) throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    store.failing = call
    let isLate = call == .create || call == .rehearse
    if isLate { host.expect(demand, echo: true, answer: "y") }
    if call == .create { host.expect(first, echo: true, reply: .made { code($0) }) }
    let answer = account()
    #expect(answer == (isLate ? .denied : .unavailable))
    #expect(host.log.contains { $0.level == .alert })
    store.failing = nil
    #expect(try !isEnrolled("bob"))
  }

  // MARK: marks

  // shows: mark-names-user
  @Test func `a mark acts for its user only`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    host.userName = .success(Array("alice".utf8))
    #expect(account() == .denied)
    #expect(host.log.last?.line.contains("reason=another-user") == true)
    #expect(openSession(host) == .denied)
    try level("offer")
    host.userName = .success(Array("bob".utf8))
    #expect(auth("enroll") == .ignore)
    host.userName = .success(Array("alice".utf8))
    #expect(account() == .denied)
    host.userName = .success(Array("bob".utf8))
    #expect(auth("enroll") == .ignore)
    host.userName = .success(Array("nobody-here".utf8))
    #expect(account() == .ignore)
  }

  // shows: mark-names-user
  @Test func `the next auth phase takes the mark away`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    #expect(host.hasEnvironmentMark)
    host.userName = .success(Array("alice".utf8))
    host.expect(answer: wrong)
    #expect(auth("enroll") == .refused)
    #expect(host.kept == nil && !host.hasEnvironmentMark)
    #expect(account() == .ignore)
  }

  @Test func `who must enroll is not let in by an account line whose policy is disabled`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    try write("[default]\nstate = disabled\n")
    #expect(account() == .denied)
    #expect(openSession(host) == .denied)
    // Without a mark there is nothing to end.
    host.kept = nil
    #expect(account("demand") == .ignore)
  }

  @Test func `where the mark cannot be kept nobody is let through`() throws {
    try level("required")
    host.markFails = .memory
    #expect(auth("enroll") == .memory)
  }

  // MARK: levels of one user, dates, reminders

  @Test func `reminding counts logins`() throws {
    try level("remind", "remind_every = 3")
    for login in 1...6 {
      #expect(auth("enroll") == .ignore)
      if login % 3 == 0 { host.expect(question, echo: true, answer: "") }
      #expect(account() == .ignore)
    }
  }

  @Test func `a login that cannot be counted goes on`() throws {
    try level("remind", "remind_every = 1")
    #expect(auth("enroll") == .ignore)
    store.failing = .count
    #expect(account() == .ignore)
  }

  @Test func `required from a date is an offer before it`() throws {  // the store: 18 March 2005
    try level("required", "required_from = 2005-03-19")
    #expect(auth() == .ignore)
    try level("required", "required_from = 2005-03-18")
    host.expect(answer: right)
    #expect(auth() == .refused)
    // Its first second, and the one before.
    store.time = UnixTime(1_111_104_000)
    host.expect(answer: right)
    #expect(auth() == .refused)
    store.time = UnixTime(1_111_103_999)
    #expect(auth() == .ignore)
  }

  @Test func `what is kept of the user stands above the level and below a refusing rule`() throws {
    let bob = try store.account(named: #require(UserName("bob".utf8)))
    try store.setLevel(.exempt(until: nil), of: bob)
    for level in ["refuse", "required", "offer"] {
      try self.level(level)
      #expect(auth("enroll") == .ignore && host.kept == nil)
    }
    try write("[rule r]\nmatch_user = bob\nenrollment = refuse\n")
    host.expect(answer: right)
    #expect(auth("enroll") == .refused)
    try store.setLevel(.required(from: nil), of: bob)
    try level("voluntary")
    host.expect(answer: right)
    #expect(auth() == .refused)
    let tomorrow = UnixTime(store.time.seconds + 86_400)
    try store.setLevel(.required(from: tomorrow), of: bob)
    #expect(auth() == .ignore)
    store.time = tomorrow
    host.expect(answer: right)
    #expect(auth() == .refused)
  }
}
