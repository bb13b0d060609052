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

/// Logins under a policy with `language`.
@Suite struct `A login in another language` {
  let host = ScriptedHost()
  let store: TestStore
  static let languages = ["de", "es", "fr", "it", "ja", "pl", "pt", "zh"]

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
  }

  private func number(_ name: String) throws -> UInt64 {
    try #require(Policy.language(Array(name.utf8)))
  }

  private func speak(_ before: String, after: String) throws {
    var policy = Policy()
    (policy.promptLanguage, policy.language) = (try number(before), try number(after))
    store.usualPolicy = policy
  }

  private func login(_ user: String) -> ReturnCode {
    host.userName = .success(Array(user.utf8))
    return authenticate(host, ModuleArguments([]), store: store)
  }

  // decisive
  // shows: language
  @Test(arguments: languages) func `asks and refuses everybody in the same words`(
    _ language: String
  ) throws {
    try speak(language, after: "en")
    let sentences = try store.sentences(in: try number(language))
    let prompt = String(decoding: sentences.prompt(.verificationCode), as: UTF8.self)
    let again = String(decoding: sentences.prompt(.notAccepted, end: 0x0a), as: UTF8.self)
    host.reachesPerson = true
    for user in ["alice", "bob", "nobody-here"] {
      host.expect(prompt, answer: "482913")
      host.expect(again + prompt, answer: "482914")
      host.expect(again + prompt, answer: "482915")
      #expect(login(user) == .refused)
      #expect(host.isUsedUp)
    }
    #expect(!prompt.contains("Verification code:"))
    host.expect(prompt, answer: right)
    #expect(login("alice") == .success)
  }

  @Test func `reads its catalog once, and none where English is set`() throws {
    try speak("fr", after: "en")
    host.reachesPerson = true
    let sentences = try store.sentences(in: try number("fr"))
    let first = String(decoding: sentences.prompt(.verificationCode), as: UTF8.self)
    let again = String(decoding: sentences.prompt(.notAccepted, end: 0x0a), as: UTF8.self) + first
    host.expect(first, answer: "482913")
    host.expect(again, answer: "482914")
    host.expect(again, answer: right)
    #expect(login("alice") == .success)
    #expect(store.read == ["fr", "fr"])
    try speak("en", after: "en")
    host.reachesPerson = false
    host.expect("Verification code: ", answer: "482913")
    #expect(login("alice") == .refused)
    #expect(store.read == ["fr", "fr"])
  }

  @Test func `asks in English where the catalog is missing, and logs why`() throws {
    try speak("xx", after: "xx")
    host.expect("Verification code: ", answer: right)
    #expect(login("alice") == .success)
    #expect(host.log.first?.line.hasPrefix("language: ") == true)
    #expect(host.log.first?.line.hasSuffix("; English is used") == true)
    #expect(host.log.count == 2)
  }

  @Test(arguments: languages) func `tells its owner in it what follows a success`(
    _ language: String
  ) throws {
    try speak("en", after: language)
    let (phases, sentences) = (ModuleArguments([]), try store.sentences(in: try number(language)))
    (host.serviceName, host.remote, host.sshInfo) = ("su", nil, nil)
    host.expect("Verification code: ", answer: TestStore.backup)
    #expect(login("alice") == .success)
    #expect(manageAccount(host, phases, store: store) == .ignore)
    let left = String(decoding: sentences.counted(0, .codeLeft, .codesLeft), as: UTF8.self)
    #expect(host.shown.contains { $0.hasPrefix(left) && $0.contains("sallyport add") })
  }
}
