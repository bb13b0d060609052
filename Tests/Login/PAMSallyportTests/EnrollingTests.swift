import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

private let demand = "Set it up now? [y/n]: "
private let first = "Code shown by the app: "
private let last = "Press Enter when you have them: "

// Enrolling in a login that is not alone, or whose store cannot be written.
extension `After the auth phase` {
  // shows: enroll-race
  @Test func `whom somebody else enrolled meanwhile logs in again`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    // Two sessions that are due at once: the other one is first.
    let other = ScriptedHost()
    (other.userName, other.token) = (host.userName, "password")
    other.kept = host.kept
    host.expect(demand, echo: true, answer: "y")
    host.expect(
      first, echo: true,
      reply: .made { shown in
        other.expect(demand, echo: true, answer: "y")
        other.expect(first, echo: true, reply: .made { code($0) })
        other.expect(last, echo: true, answer: "")
        let words = [Array("conf=\(path)".utf8)]
        #expect(manageAccount(other, ModuleArguments(words), store: store) == .success)
        return code(shown)
      })
    #expect(account() == .denied)
    #expect(host.log.last?.line.contains("reason=enrolled-meanwhile") == true)
    #expect(host.shown.contains { $0.contains("otpauth://") })
    let text = "bob was enrolled by somebody else meanwhile"
    #expect(host.shown.last == "\(text); the QR code above is void. Log in again.")
    // Before the first question likewise.
    host.kept = Mark(user: Array("bob".utf8), .due(.required))
    #expect(account() == .denied)
    #expect(host.shown.last == "\(text). Log in again.")
  }

  /// sshd ends a login after two minutes, if nobody has set another LoginGraceTime.
  @Test func `the first text says to install the app first`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    host.expect(demand, echo: true, answer: "n")
    #expect(account() == .denied)
    let told = ". Time is short: first install\nan authenticator app, such as Aegis, FreeOTP or "
    #expect(host.shown.first?.contains(told) == true, "\(host.shown)")
  }

  /// A login that ended before the first code left an entry in the app.
  @Test func `each try has an entry of its own name, and says which others to delete`() throws {
    try level("required", "factor_totp = mandatory\nfactor_hotp = mandatory")
    var endings: Set<Substring> = []
    for _ in 0..<3 {
      let before = host.shown.count
      #expect(auth("enroll") == .ignore)
      host.expect(demand, echo: true, answer: "y")
      host.expect(first, echo: true, reply: .made { code($0) })
      host.expect(first, echo: true, reply: .failure(.conversation))
      #expect(account() == .denied)
      let texts = host.shown[before...].filter { $0.contains("otpauth://") }
      let told = texts.map { text in
        text.firstRange(of: "delete it. This one ends in ").map {
          text[$0.upperBound...].prefix(5)
        }
      }
      // The entry of the first one must stay: it is no earlier try's.
      let ending = try #require(told.first ?? nil)
      #expect(told.count == 2 && told[1] == nil)
      #expect(texts[0].contains(":bob\(ending)?secret="), "\(texts)")
      endings.insert(ending)
    }
    #expect(endings.count == 3)
  }

  // decisive
  // shows: full-disk
  @Test func `no secret is shown where it could not be stored`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    store.failing = .rehearse
    host.expect(demand, echo: true, answer: "y")
    #expect(account() == .denied)
    #expect(host.shown.last == "Not set up: internal error; see the system log.")
    #expect(!host.shown.contains { $0.contains("otpauth://") || $0.contains("\u{2580}") })
    // Where a service verifies codes, its own log names the path.
    let named = isThroughService ? "/root: the service failed, see its log" : "/nowhere"
    #expect(host.log.contains { $0.level == .alert && $0.line.contains(named) })
  }

  @Test func `what was begun is kept until it has ended, whatever becomes of the login`() throws {
    try level("required")
    let bob = try store.account(named: #require(UserName("bob".utf8)))
    let begun = { [store] in try store.store.enrollingBegun(by: bob) }
    for answer in ["n", ""] {
      #expect(auth("enroll") == .ignore)
      host.expect(demand, echo: true, answer: answer)
      #expect(account() == .denied)
      #expect(try begun() == nil)
    }
    // The connection is lost at the first code, and later the host dies there.
    #expect(auth("enroll") == .ignore)
    host.expect(demand, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .failure(.conversation))
    #expect(account() == .denied)
    #expect(try begun() == store.time)
    #expect(try store.store.loginsCounted(of: bob) == 0)
  }

  @Test func `where it cannot be kept that one was begun, it ends all the same`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    store.failing = .noteEnrolling
    host.expect(demand, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .made { code($0) })
    host.expect(last, echo: true, answer: "")
    #expect(account() == .success)
    #expect(try isEnrolled("bob"))
  }

  @Test func `the log has a line before the question`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    host.expect(
      demand, echo: true,
      reply: .made { [host] _ in
        let line = "not asked: the account phase asks to enroll: user=bob enrollment=required"
        #expect(host.log.last?.line == line)
        return "n"
      })
    #expect(account() == .denied)
  }
}
