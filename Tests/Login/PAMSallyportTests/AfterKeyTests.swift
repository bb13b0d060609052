import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

private let right = "050471"

/// `after-key`: a line that may stand alone, since a code alone opens nothing.
@Suite struct `After a key` {
  private let host = ScriptedHost()
  private let store: TestStore

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
  }

  private func answer(_ words: String...) -> ReturnCode {
    let words = ["after-key"] + words
    let answer = authenticate(host, ModuleArguments(words.map { Array($0.utf8) }), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  @Test(arguments: [
    "publickey ssh-ed25519 AAAA\n", "hostbased ssh-ed25519 AAAA\n", "gssapi-with-mic alice@X\n",
  ])
  func `the code is asked for`(info: String) {
    host.sshInfo = info
    host.expect(answer: right)
    #expect(answer() == .success)
    host.expect(answer: right)
    #expect(answer() == .refused)
  }

  // shows: after-key
  @Test(arguments: [
    nil, "", "password\n", "keyboard-interactive\n", "none\n", "publicke", "\npublickey",
    "PUBLICKEY x",
  ])
  func `nobody else is asked or let in`(info: String?) {
    host.sshInfo = info
    for words in [[], ["nullok"], ["enroll"]] {
      for user in ["alice", "bob", "nobody-here"] {
        host.userName = .success(Array(user.utf8))
        let arguments = ModuleArguments((["after-key"] + words).map { Array($0.utf8) })
        #expect(authenticate(host, arguments, store: store) == .denied)
        #expect(host.log.last?.line == "denied: reason=no-key user=\(user)")
        #expect(host.log.last?.level == .info)
      }
    }
    #expect(host.isUsedUp)
  }

  // shows: after-key
  @Test(arguments: ["sudo", "login", "cockpit", "other"])
  func `in another program its environment says nothing`(service: String) {
    (host.serviceName, host.sshInfo) = (service, "publickey ssh-ed25519 AAAA\n")
    #expect(answer() == .denied)
    #expect(answer("nullok") == .denied)
  }

  /// `[success=done perm_denied=ignore default=die]`, the password, and this line again.
  @Test func `a line behind the password asks those without a key`() {
    #expect(answer("enroll") == .denied)
    host.token = "any"
    host.expect(answer: right)
    let line = ModuleArguments([Array("enroll".utf8)])
    #expect(authenticate(host, line, store: store) == .success)
  }

  // shows: after-key
  @Test func `a wrong code after a key is refused by another value than no key`() {
    host.sshInfo = "publickey ssh-ed25519 AAAA\n"
    host.expect(answer: "000000")
    #expect(answer() == .refused)
  }

  @Test func `who needs no code passes by the key, and by a password only if that is right`() {
    (host.sshInfo, host.userName) = ("publickey ssh-ed25519 AAAA\n", .success(Array("bob".utf8)))
    #expect(answer("nullok") == .success)
    host.token = "any"
    #expect(answer("nullok") == .ignore)
  }
}
