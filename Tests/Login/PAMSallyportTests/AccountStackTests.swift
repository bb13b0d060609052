import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

private let right = "050471"

/// Who is asked to enroll, and who is denied: the account stack's word, and names that change.
extension `After the auth phase` {
  // MARK: the account stack's word

  // shows: enroll-allowed
  @Test(arguments: ["required", "offer", "remind"], [Int32(4), 5, 6, 7, 10, 13, 28])
  func `whom the account stack refuses is not asked to enroll`(_ level: String, _ code: Int32)
    throws
  {
    try self.level(level, "remind_every = 1")
    #expect(auth("enroll") == .ignore)
    host.accountStack = .no(code)
    #expect(account() == (level == "required" ? .denied : .ignore))
    let last = try #require(host.log.last)
    let beginning = level == "required" ? "denied:" : "not asked to enroll:"
    #expect(last.line == "\(beginning) reason=account-stack user=bob code=\(code)")
    #expect(last.level == (level == "required" ? .notice : .info))
    #expect(host.probes == 1 && host.shown.isEmpty)
    #expect(openSession(host) == (level == "required" ? .denied : .ignore))
    #expect(try !isEnrolled("bob"))
  }

  @Test(arguments: ["required", "offer"]) func `whom it refuses adds nothing to an enrollment`(
    _ level: String
  ) throws {
    try self.level(level, "factor_hotp = mandatory\nremember = 1 h")
    host.userName = .success(Array("alice".utf8))
    host.expect(answer: right)
    #expect(auth("enroll") == .success)
    host.accountStack = .no(13)
    #expect(account() == (level == "required" ? .denied : .ignore))
    #expect(host.probes == 1)
    let user = try #require(UserName("alice".utf8))
    let record = try #require(try store.store.load(Account(name: user, uid: 1000)))
    #expect(record.enrollment.authenticators.count == 1)
  }

  @Test func `the account stack is asked only before somebody is asked to enroll`() throws {
    try level("remind", "remind_every = 2")
    #expect(auth("enroll") == .ignore)
    #expect(account() == .ignore)
    host.userName = .success(Array("alice".utf8))
    host.expect(answer: right)
    #expect(auth("enroll") == .success)
    #expect(account() == .ignore)
    #expect(host.probes == 0)
  }

  /// What comes of our own line in the stack that it asks.
  @Test(arguments: [[], ["demand"]]) func `in that question our own line has nothing to say`(
    _ words: [String]
  ) throws {
    try level("required")
    host.isProbe = true
    for name in ["alice", "bob", "nobody-here", "alice "] {
      host.userName = .success(Array(name.utf8))
      #expect(account(words) == .ignore)
    }
    #expect(host.kept == nil && host.log.isEmpty && host.probes == 0)
  }

  // MARK: another user

  /// A stack that changes PAM_USER after our yes: whom it names then was not asked.
  // shows: mark-names-user
  @Test(arguments: [
    ("refuse", ReturnCode.denied), ("required", .denied), ("offer", .ignore), ("remind", .ignore),
    ("voluntary", .ignore),
  ]) func `another user after our yes fares by his own level`(
    _ level: String, _ expected: ReturnCode
  ) throws {
    for name in ["bob", "nobody-here"] {
      try self.level(level)
      host.kept = Mark(user: Array("alice".utf8), .accepted(.backupCode(left: 3), mayEnroll: true))
      host.userName = .success(Array(name.utf8))
      #expect(account() == expected)
      #expect(openSession(host) == (expected == .denied ? .denied : .ignore))
    }
    // Nothing is asked of one for whom the policy is disabled.
    try write("[rule r]\nmatch_user = bob\nstate = disabled\n")
    host.kept = Mark(user: Array("alice".utf8), .remembered)
    host.userName = .success(Array("bob".utf8))
    #expect(account() == .ignore)
  }

  // shows: mark-names-user
  @Test(arguments: ["bob", "alice ", ""])
  func `who must enroll and becomes another user is denied whatever the other's level`(
    _ name: String
  ) throws {
    try level("required")
    host.userName = .success(Array("carol".utf8))
    store.accounts[Array("carol".utf8)] = 1002
    #expect(auth("enroll") == .ignore)
    try level("voluntary")
    host.userName = .success(Array(name.utf8))
    #expect(account() == .denied)
    #expect(openSession(host) == .denied)
  }

  @Test(arguments: ["alice ", "", "a/b", "\u{7f}"])
  func `a name that nobody can have is denied by demand and after another's yes`(_ name: String)
    throws
  {
    try level("voluntary")
    host.userName = .success(Array(name.utf8))
    #expect(account("demand") == .denied)
    for words in [["demand"], []] {
      host.kept = Mark(user: Array("alice".utf8), .remembered)
      #expect(account(words) == .denied)
    }
  }

  @Test func `an application that fails in the account phase is denied`() throws {
    try level("offer")
    #expect(auth("enroll") == .ignore)
    for failure in [PAMFailure.conversation, .memory] {
      host.kept = Mark(user: Array("bob".utf8), .due(.offer))
      host.userName = .failure(failure)
      #expect(account() == .denied)
      host.userName = .success(Array("bob".utf8))
      host.kept = Mark(user: Array("bob".utf8), .due(.offer))
      host.markFails = failure
      #expect(account() == .denied)
      host.markFails = nil
    }
  }

  // MARK: what is enrolled

  /// As RFC 4226 recommends, section 4, R6.
  // decisive
  @Test func `a secret that is made in the login has 160 bits`() throws {
    try level("offer")
    #expect(auth("enroll") == .ignore)
    expectEnrolling("Set it up now? [y/n, Enter = later]: ")
    #expect(account() == .success)
    let user = try #require(UserName("bob".utf8))
    let record = try #require(try store.store.load(Account(name: user, uid: 1001)))
    #expect(record.enrollment.authenticators.map { $0.secret.count * 8 } == [160])
  }

  // MARK: the line

  @Test(arguments: ["use_first_pass", "try_first_pass", "forward_pass"])
  func `first pass words beside enroll are an error`(_ word: String) throws {
    try level("required")
    if word != "use_first_pass" {
      host.expect(
        word == "forward_pass" ? "Password & verification code: " : "Verification code: ",
        answer: right)
    }
    #expect(auth("enroll", word) == .refused)
    #expect(host.log.first?.line.contains("\"enroll\"") == true)
  }

  /// A line after the one that let her through to enroll.
  // decisive
  @Test func `who must enroll is not let off by an auth line whose policy is disabled`() throws {
    try host.setMark(Mark(user: Array("bob".utf8), .due(.required)))
    host.userName = .success(Array("bob".utf8))
    try write("[default]\nstate = disabled\n")
    #expect(
      authenticate(host, ModuleArguments([Array(("conf=" + path).utf8)]), store: store) == .ignore)
    guard case .due(.required)? = host.mark()?.result else {
      Issue.record("\(String(describing: host.mark()))")
      return
    }
  }
}
