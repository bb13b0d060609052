import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

/// RFC 6238 appendix B: at 1111111111 s.
private let right = "050471"
private let wrong = ["482913", "482914", "482915", "482916", "482917", "482918"]
private let first = "Verification code: "
private let again =
  "Not accepted. A code works once: wait for the next one, or use a backup code.\n" + first

/// Logins through sshd's keyboard-interactive.
@Suite struct `A refusal over ssh` {
  let host = ScriptedHost()
  let store: TestStore

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    host.reachesPerson = true
  }

  private func answer(_ words: String...) -> ReturnCode { answer(words) }

  private func answer(_ words: [String]) -> ReturnCode {
    let arguments = ModuleArguments(words.map { Array($0.utf8) })
    let answer = authenticate(host, arguments, store: store)
    #expect(host.isUsedUp)
    return answer
  }

  private func policy(_ text: String) throws -> String {
    let path = store.directory.path + "/policy.conf"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return "conf=" + path
  }

  private func spent() throws -> UInt64 {
    let alice = try #require(UserName("alice".utf8))
    let record = try #require(try store.store.load(Account(name: alice, uid: 1000)))
    return record.state.other.spent.units
  }

  @Test(arguments: [0, 1, 2]) func `is told at the next prompt, and the right code lets in`(
    _ refused: Int
  ) {
    for index in 0..<refused { host.expect(index == 0 ? first : again, answer: wrong[index]) }
    host.expect(refused == 0 ? first : again, answer: right)
    #expect(answer() == .success)
    #expect(host.log.count == refused + 1)
    #expect(host.delay == 2_000_000)
  }

  @Test(arguments: [("", 3), ("tries = 1", 1), ("tries = 2", 2), ("tries = 5", 5)])
  func `ends after as many tries as the policy has`(_ line: String, _ tries: Int) throws {
    let conf = try policy("[default]\n\(line)\n")
    for index in 0..<tries { host.expect(index == 0 ? first : again, answer: wrong[index]) }
    #expect(answer(conf) == .refused)
    #expect(try spent() == UInt64(tries) * 11_000_000)
  }

  @Test(arguments: [("sudo", true), ("cockpit", true), ("sshd", false), ("sshd-git", true)])
  func `is followed by no second prompt where it would not reach the person`(
    _ service: String, _ reaches: Bool
  ) {
    (host.serviceName, host.reachesPerson) = (service, reaches)
    host.expect(answer: wrong[0])
    #expect(answer() == .refused)
  }

  @Test func `is followed by a second prompt in an sshd by another name`() throws {
    let conf = try policy("[default]\nsshd_services = sshd-git\n")
    host.serviceName = "sshd-git"
    host.expect(answer: wrong[0])
    host.expect(again, answer: right)
    #expect(answer(conf) == .success)
  }

  /// Wrong, used, throttled, malformed, password, not enrolled, no account, no name.
  @Test(arguments: ["alice", "bob", "nobody-here", "../alice"], [wrong, [right, right, right]])
  func `looks alike for everybody`(_ user: String, _ typed: [String]) throws {
    host.expect(answer: right)
    #expect(answer() == .success)
    host.userName = .success(Array(user.utf8))
    for code in [typed, ["letters", "", ""], ["12", "\u{8}\n\r\u{7f}INC", "7KMF-2X9Q-D4TW-0HZ1"]] {
      host.expect(answer: code[0])
      host.expect(again, answer: code[1])
      if !code[1].isEmpty { host.expect(again, answer: code[2]) }
      #expect(answer() == .refused)
      #expect(host.kept == nil && host.complaints == [] && host.shown == [])
    }
  }

  @Test func `looks alike when throttled, and a backup code works at the second prompt`() throws {
    for _ in 0..<7 {
      for index in 0..<3 { host.expect(index == 0 ? first : again, answer: wrong[index]) }
      #expect(answer() == .refused)
    }
    #expect(host.log.last?.line.contains("reason=throttled") == true)
    #expect(try spent() == 20 * 11_000_000)
    host.expect(answer: right)
    host.expect(again, answer: TestStore.backup)
    #expect(answer() == .success)
  }

  @Test func `is not charged for the same answer again, and has its own time each`() throws {
    host.expect(answer: wrong[0])
    host.expect(again, answer: wrong[0])
    host.expect(again, answer: wrong[0])
    #expect(answer() == .refused)
    #expect(try spent() == 11_000_000)
    #expect(host.log.map(\.line).filter { $0.contains("reason=malformed") }.count == 2)
    host.expect(answer: wrong[0])
    host.expect(
      again,
      reply: .made { [store] _ in
        store.time = UnixTime(store.time.seconds + 3600)
        return right
      })
    host.expect(again, answer: wrong[1])
    #expect(answer() == .refused)
    #expect(host.log.suffix(2).allSatisfy { $0.line.contains("reason=wrong-code") })
  }

  @Test func `is not charged for the password at any prompt`() throws {
    host.token = wrong[0]
    for (prompt, typed) in [(first, wrong[0]), (again, wrong[1]), (again, wrong[0])] {
      host.expect(prompt, answer: typed)
    }
    #expect(answer() == .refused)
    #expect(try spent() == 11_000_000)
  }

  @Test func `ends at an empty answer, which is no login of its own`() throws {
    host.expect(answer: wrong[0])
    host.expect(again, answer: "")
    #expect(answer() == .refused)
    #expect(host.log.count == 1)
    host.expect(answer: "")
    #expect(answer() == .refused)
  }

  /// fail2ban's filter takes the lines without it.
  @Test func `says in the log which one of its transaction it is, malformed ones aside`() {
    host.expect(answer: "letters")
    host.expect(again, answer: wrong[0])
    host.expect(again, answer: wrong[1])
    #expect(answer() == .refused)
    let head = "refused: reason="
    #expect(
      host.log.map { String($0.line.dropFirst(head.count).prefix(27)) } == [
        "malformed user=alice origin", "wrong-code user=alice origi", "wrong-code try=2 user=alice",
      ])
  }

  @Test func `keeps the refusal where somebody is unenrolled meanwhile and need not be asked`()
    throws
  {
    let path = store.directory.path
    host.expect(
      reply: .made { _ in
        TestStore.unenrollAlice(path)
        return wrong[0]
      })
    #expect(answer("nullok") == .refused)
    #expect(host.kept == nil)
    #expect(host.log.count == 2)
    #expect(host.log.last?.line == "not asked again: unenrolled meanwhile: user=alice")
  }

  @Test(arguments: ["alice", "bob", "nobody-here"])
  func `is told a fixed time after the answer, whatever it was, but with nodelay`(_ user: String) {
    host.userName = .success(Array(user.utf8))
    for (words, waits) in [([], 2), (["nodelay"], 0)] {
      let before = Clock.monotonicMilliseconds()
      for index in 0..<3 { host.expect(index == 0 ? first : again, answer: wrong[index]) }
      #expect(answer(words) == .refused)
      let times = host.waits.suffix(waits)
      #expect(times.count == waits)
      for time in times {
        #expect(time >= before + 2000 && time <= Clock.monotonicMilliseconds() + 2000)
      }
    }
    #expect(host.waits.count == 2)
  }

  // decisive
  @Test(.enabled(if: !isThroughService, "a service's trouble is in its own log"))
  func `ends in trouble, never in a success`() {
    host.expect(
      reply: .made { [store] _ in
        store.failing = .load
        return wrong[0]
      })
    #expect(answer() == .refused)
    #expect(host.log.last?.level == .alert)
  }

  @Test func `hands on the password of the last try where one field holds both`() throws {
    let both = "Password & verification code: "
    let text = again.replacingOccurrences(of: first, with: both)
    host.expect(both, answer: "one" + wrong[0])
    host.expect(text, answer: "one" + wrong[0])
    host.expect(text, answer: "three" + wrong[0])
    #expect(answer("forward_pass") == .refused)
    #expect(host.token == "three")
    #expect(try spent() == 2 * 11_000_000)
    host.expect(both, answer: "one" + wrong[0])
    host.expect(text, answer: "two" + right)
    #expect(answer("forward_pass") == .success)
    #expect(host.token == "two")
  }

  @Test func `gives a first pass back at the first prompt alone`() throws {
    host.token = wrong[0]
    host.expect(answer: wrong[1])
    host.expect(again, answer: right)
    #expect(answer("try_first_pass") == .success)
    #expect(try spent() == 2 * 11_000_000)
  }
}
