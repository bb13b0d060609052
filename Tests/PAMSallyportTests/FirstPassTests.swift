import PAMSallyport
import SallyportCore
import SallyportSystem
import Testing

private let right = "050471"
private let both = "Password & verification code: "

/// `use_first_pass`, `try_first_pass` and `forward_pass`, alone and together.
@Suite struct OneField {
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
      words: [], token: right, prompt: "Verification code: ", typed: right, answer: .success,
      tokenAfter: right),
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

  @Test(arguments: cases)
  func isReadAsTheWordsSay(_ the: Case) throws {
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

  @Test func thePasswordIsHandedOnBeforeAnythingIsSpent() throws {
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
}
