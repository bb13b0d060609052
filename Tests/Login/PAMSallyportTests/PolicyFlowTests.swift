import Foundation
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let right = "050471"
private let wrong = "050472"

/// A login under a policy file that `conf=` names.
@Suite struct `The login under a policy` {
  let host = ScriptedHost()
  let store: TestStore
  var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
  }

  func write(_ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
  }

  func answer(_ user: String = "alice", _ words: String...) -> ReturnCode {
    host.userName = .success(Array(user.utf8))
    let arguments = ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) })
    let answer = authenticate(host, arguments, store: store)
    #expect(host.isUsedUp)
    return answer
  }

  /// The budget of before, five intervals before and after: 0.478 % come back in a year.
  @Test(arguments: [
    ("sshd", "", 11_000_000), ("sudo", "", 1_000_000), ("sshd", "no_delay", 3_000_000),
    ("sudo", "no_delay", 1_000_000),
  ]) func `what was spent is forgotten at one rate in all services and by a misspelt line`(
    service: String, word: String, cost: UInt64
  ) throws {
    try write(
      "[default]\n[rule a]\nmatch_service = sudo\nguess_budget = 10 %\nadjacent_intervals = 0\n")
    store.time = UnixTime(1_111_111_111)
    for _ in 0..<20 {
      host.expect(answer: wrong)
      #expect(answer() == .refused)
    }
    #expect(try spent() == 220_000_000)
    host.serviceName = service
    store.time = UnixTime(1_111_111_111 + 864_000)
    host.expect(answer: wrong)
    #expect(word == "" ? answer() == .refused : answer("alice", word) == .refused)
    #expect(try spent() == 220_000_000 - 864_000 * 4_780_000_000 / 31_557_600 + cost)
  }

  private func spent() throws -> UInt64 {
    let user = try #require(UserName("alice".utf8))
    let record = try #require(try store.store.load(Account(name: user, uid: 1000)))
    return record.state.other.spent.units
  }

  @Test func `where it is disabled nothing is read or asked`() throws {
    try write("[default]\nstate = disabled\n")
    #expect(answer() == .ignore)
    #expect(answer("alice ") == .ignore)
    #expect(store.calls == [.account])
    let line = "not asked: state = disabled, or not enrolled: user="
    #expect(host.log.map(\.line) == ["\(line)alice", "\(line)alice%20"])
    #expect(host.log.allSatisfy { $0.level == .info })
  }

  @Test func `disabling by name does not pass a name that nobody can have`() throws {
    try write("[rule a]\nmatch_user = alice\nstate = disabled\n")
    #expect(answer() == .ignore)
    host.expect(answer: right)
    #expect(answer("alice ") == .refused)
  }

  @Test func `the intervals are those of the file`() throws {
    try write("[default]\nadjacent_intervals = 0\n")
    store.time = UnixTime(1_111_111_111 + 30)
    host.expect(answer: right)
    #expect(answer() == .refused)
    try write("[default]\nadjacent_intervals = 1\n")
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  @Test(arguments: [("factor_totp", right), ("factor_backup_code", "7KMF-2X9Q-D4TW-0HZA")])
  func `a factor that is off is asked for and not accepted and kept`(_ key: String, _ code: String)
    throws
  {
    try write("[default]\n\(key) = off\n")
    host.expect(answer: code)
    #expect(answer() == .refused)
    #expect(host.log.last?.line.contains("reason=wrong-code") == true)
    try write("[default]\n\(key) = on\n")
    host.expect(answer: code)
    #expect(answer() == .success)
  }

  @Test(arguments: ["refuse", "required", "offer", "remind", "voluntary"])
  func `a name that nobody can have is refused at every level`(level: String) throws {
    try write("[default]\nenrollment = \(level)\n")
    for word in ["debug", "enroll", "nullok"] {
      host.expect(answer: right)
      #expect(answer("alice ", word) == .refused)
    }
  }

  @Test func `voluntary is the file's word, and nullok only where it has none`() throws {
    try write("[rule b]\nmatch_user = bob\nenrollment = voluntary\n")
    #expect(answer("bob") == .ignore)
    host.expect(answer: right)
    #expect(answer("nobody") == .refused)
    #expect(answer("nobody", "nullok") == .ignore)
    try write("[default]\nenrollment = refuse\n")
    host.expect(answer: right)
    #expect(answer("nobody", "nullok") == .refused)
  }

  // shows: groups
  @Test(arguments: [(Tristate.yes, ReturnCode.ignore), (.no, .refused), (.unknown, .refused)])
  func `groups are asked and in doubt the unenrolled are refused`(
    _ truth: Tristate, _ expected: ReturnCode
  )
    throws
  {
    try write("[rule b]\nmatch_group = guests\nenrollment = voluntary\n")
    store.groups["guests"] = { _ in truth }
    if expected == .refused { host.expect(answer: right) }
    #expect(answer("bob") == expected)
  }

  @Test func `a broken file is logged and the strict policy holds where there was no good one`()
    throws
  {
    try write("[default]\nenrollment = voluntary\nadjacent_interval = 1\n")
    host.expect(answer: right)
    #expect(answer("bob", "nullok") == .refused)
    #expect(host.log.first?.level == .error)
    #expect(
      host.log.first?.line == "policy: \(path):3: unknown key, found \"adjacent_interval\"; "
        + "the strict policy applies (one adjacent interval, unenrolled users refused)")
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  // shows: policy-file
  @Test func `the last good file holds while it is broken`() throws {
    try write("[default]\nenrollment = voluntary\n")
    #expect(answer("bob") == .ignore)
    for broken in ["[default]\nenrollment = volontary\n", String(repeating: "#", count: 65537)] {
      try write(broken)
      #expect(answer("bob") == .ignore)
      #expect(host.log.dropLast().last?.line.hasSuffix("; the last good file applies") == true)
    }
    try FileManager.default.removeItem(atPath: path)
    #expect(answer("bob") == .ignore)
    try write("[default]\nenrollment = refuse\n")
    host.expect(answer: right)
    #expect(answer("bob") == .refused)
    try write("bogus")
    host.expect(answer: right)
    #expect(answer("bob") == .refused)
  }

  @Test func `a word that means nothing is strict whatever the file says`() throws {
    try write("[default]\nenrollment = voluntary\nstate = disabled\n")
    host.expect(answer: right)
    #expect(answer("bob", "bogus") == .refused)
  }

  @Test func `the local services tell whose budget is spent`() throws {
    try write("[default]\nlocal_services = kiosk\n")
    (host.serviceName, host.remote) = ("kiosk", nil)
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    #expect(host.log.last?.line.hasSuffix("origin=local budget=known:19,other:20") == true)
    host.serviceName = "sudo"
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    #expect(host.log.last?.line.contains("origin=unknown budget=known:19,other:19") == true)
  }

  @Test func `a narrow policy gives back none of a wide one's guesses`() throws {
    host.remote = "198.51.100.9"
    try write("[default]\nadjacent_intervals = 5\n")
    for _ in 0..<20 {
      host.expect(answer: wrong)
      #expect(answer() == .refused)
    }
    try write("[default]\nadjacent_intervals = 0\n")
    store.time = UnixTime(store.time.seconds + 86400)
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    try write("[default]\nadjacent_intervals = 5\n")
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    host.expect(answer: wrong)
    #expect(answer() == .refused)
    #expect(host.log.last?.line.contains("reason=throttled") == true)
  }
}
