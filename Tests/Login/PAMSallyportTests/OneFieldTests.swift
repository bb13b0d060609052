import Foundation
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let right = "050471"
private let both = "Password & verification code: "

/// `forward_pass` before a password module that takes what is handed on: level, who, and what is
/// typed.
@Suite struct `One field for password and code` {
  enum Who: CaseIterable, Sendable { case enrolled, unenrolled, exempt, noAccount }

  enum Typed: CaseIterable, Sendable {
    case password, code, usedCode, digits, backupCode, nothing

    var text: String {
      switch self {
      case .password: "correct horse "
      case .code: "correct horse " + right
      case .usedCode: "correct horse 050471"
      case .digits: "horse 2026 482913"
      case .backupCode: "correct horse 7KMF-2X9Q-D4TW-0HZA"
      case .nothing: ""
      }
    }

    /// Where a code is looked for.
    var password: String {
      switch self {
      case .password, .code, .usedCode, .backupCode: "correct horse "
      case .digits: "horse 2026 "
      case .nothing: ""
      }
    }

    var isGood: Bool {
      switch self {
      case .code, .backupCode: true
      case .password, .usedCode, .digits, .nothing: false
      }
    }
  }

  private let host = ScriptedHost()
  private let store: TestStore
  private var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
  }

  private func play(_ policy: String, _ who: Who, _ words: [String], typed: String) throws
    -> ReturnCode
  {
    try Data("[default]\n\(policy)\n".utf8).write(to: URL(fileURLWithPath: path))
    let name = who == .enrolled ? "alice" : who == .noAccount ? "nobody-here" : "bob"
    if who == .exempt {
      let bob = try store.account(named: #require(UserName("bob".utf8)))
      try store.setLevel(.exempt(until: nil), of: bob)
    }
    host.userName = .success(Array(name.utf8))
    host.expect(both, answer: typed)
    let all = (["conf=" + path, "forward_pass"] + words).map { Array($0.utf8) }
    let answer = authenticate(host, ModuleArguments(all), store: store)
    #expect(host.isUsedUp, "the one prompt was not shown")
    return answer
  }

  static let policies = [
    "enrollment = refuse", "enrollment = required", "enrollment = offer", "enrollment = remind",
    "enrollment = voluntary", "state = disabled",
  ]

  private func wantsCode(_ policy: String, _ who: Who) -> Bool {
    if policy == "state = disabled" { return false }
    let isStrict = policy == "enrollment = refuse" || policy == "enrollment = required"
    switch who {
    case .enrolled: return true
    case .exempt: return false
    case .unenrolled, .noAccount: return isStrict
    }
  }

  // decisive
  // shows: one-field-whole
  @Test(arguments: policies, Who.allCases)
  func `is asked for once, and verified only where a code is wanted`(_ policy: String, _ who: Who)
    throws
  {
    for typed in Typed.allCases {
      if who == .enrolled, typed == .usedCode {
        host.userName = .success(Array("alice".utf8))
        store.time = UnixTime(1_111_111_111)
        host.expect(answer: right)
        _ = authenticate(host, ModuleArguments([]), store: store)
      }
      if typed != .usedCode { try startAfresh() }
      let calls = store.calls.count
      let answer = try play(policy, who, [], typed: typed.text)
      if wantsCode(policy, who) {
        #expect(answer == (who == .enrolled && typed.isGood ? .success : .refused), "\(typed)")
        #expect(host.token == typed.password, "\(typed)")
      } else {
        #expect(answer == .ignore, "\(typed)")
        #expect(host.token == typed.text, "\(typed)")
        #expect(!store.calls[calls...].contains(.transact), "\(typed) was verified")
      }
    }
  }

  /// Codes and backup codes are good again.
  private func startAfresh() throws {
    let alice = Account(name: try #require(UserName("alice".utf8)), uid: 1000)
    let record = try #require(try store.store.load(alice))
    _ = try store.store.transact(record) { (enrollment, _) throws(StoreTrouble) in
      ((), LoginState(initialFor: enrollment))
    }
  }

  /// An earlier module has asked: nobody is asked twice, and what was typed stays whole.
  @Test(arguments: ["use_first_pass", "try_first_pass"])
  func `that an earlier module asked for goes on as it is`(_ word: String) throws {
    try Data("[default]\nenrollment = voluntary\n".utf8).write(to: URL(fileURLWithPath: path))
    host.userName = .success(Array("bob".utf8))
    host.token = "horse 2026 482913"
    let words = ["conf=" + path, "forward_pass", word].map { Array($0.utf8) }
    #expect(authenticate(host, ModuleArguments(words), store: store) == .ignore)
    #expect(host.token == "horse 2026 482913")
    host.token = nil
    if word == "try_first_pass" { host.expect(both, answer: "late") }
    #expect(authenticate(host, ModuleArguments(words), store: store) == .ignore)
    #expect(host.isUsedUp && host.token == (word == "try_first_pass" ? "late" : nil))
  }

  @Test(arguments: [(PAMFailure.conversation, ReturnCode.conversation), (.memory, .memory)])
  func `that cannot be had or handed on is no yes`(_ failure: PAMFailure, _ expected: ReturnCode) {
    host.userName = .success(Array("bob".utf8))
    let words = ModuleArguments(["nullok", "forward_pass"].map { Array($0.utf8) })
    host.expect(both, reply: .failure(failure))
    #expect(authenticate(host, words, store: store) == expected)
    host.tokenFails = failure
    host.expect(both, answer: "hunter2")
    #expect(authenticate(host, words, store: store) == expected)
  }

  @Test func `is asked for with the line's own prompt and echo`() throws {
    host.userName = .success(Array("bob".utf8))
    host.expect("Both: ", echo: true, answer: "hunter2")
    let words = ["nullok", "forward_pass", "prompt=Both: ", "echo"].map { Array($0.utf8) }
    #expect(authenticate(host, ModuleArguments(words), store: store) == .ignore)
    #expect(host.token == "hunter2")
  }
}
