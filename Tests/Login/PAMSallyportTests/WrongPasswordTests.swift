import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

private let right = "050471"

/// `wrong-password`: a line that libpam reaches after a wrong password alone.
@Suite struct `After a wrong password` {
  private let host = ScriptedHost()
  private let store: TestStore

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
  }

  private func answer(_ words: String...) -> ReturnCode {
    let answer = authenticate(host, ModuleArguments(words.map { Array($0.utf8) }), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  @Test func `the line and the next one refuse without a prompt, and the one after that asks`() {
    #expect(answer("wrong-password") == .refused)
    #expect(answer() == .refused)
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  // shows: gate
  @Test(arguments: ["alice", "bob", "nobody-here"])
  func `nobody is let through, whatever the policy asks of him`(user: String) {
    host.userName = .success(Array(user.utf8))
    for words in [[], ["nullok"], ["enroll"], ["forward_pass"]] {
      #expect(answer("wrong-password") == .refused)
      let arguments = ModuleArguments(words.map { Array($0.utf8) })
      #expect(authenticate(host, arguments, store: store) == .refused)
      #expect(host.kept == nil && host.isUsedUp)
    }
  }

  @Test func `no phase takes what it leaves for a login`() {
    #expect(answer("wrong-password") == .refused)
    #expect(openSession(host) == .ignore)
    let account = manageAccount(host, ModuleArguments([]), store: store)
    #expect(account == .ignore)
  }

  @Test func `only the same user is refused by a mark that no line has taken`() {
    #expect(answer("wrong-password") == .refused)
    host.userName = .success(Array("bob".utf8))
    #expect(answer("nullok") == .ignore)
    host.userName = .success(Array("alice".utf8))
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  @Test func `the account phase takes the mark away`() {
    #expect(answer("wrong-password") == .refused)
    #expect(manageAccount(host, ModuleArguments([]), store: store) == .ignore)
    #expect(host.kept == nil)
    host.expect(answer: right)
    #expect(answer() == .success)
  }

  // decisive
  @Test func `the next of its tries is not the next line's affair once that has refused`() {
    for _ in 0..<2 {
      #expect(answer("wrong-password") == .refused)
      #expect(answer() == .refused)
    }
    host.expect(answer: right)
    #expect(answer() == .success)
  }
}
