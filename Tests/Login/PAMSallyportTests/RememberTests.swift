import Foundation
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let right = "050471"

/// Logins of alice under `remember`, from an address that gave a code before.
@Suite struct `A remembered place` {
  private let host = ScriptedHost()
  private let store: TestStore
  private var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    try Data("[default]\nremember = 1 d\n".utf8).write(to: URL(fileURLWithPath: path))
    host.sshInfo = "publickey ssh-ed25519 AAAA"
  }

  private func auth(_ words: String...) -> ReturnCode {
    let arguments = ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) })
    let answer = authenticate(host, arguments, store: store)
    #expect(host.isUsedUp)
    return answer
  }

  private func account() -> ReturnCode {
    manageAccount(host, ModuleArguments([Array(("conf=" + path).utf8)]), store: store)
  }

  /// A login with a code; afterwards the code is used up, and the clock a minute on.
  private func logIn() {
    host.expect(answer: right)
    #expect(auth() == .success)
    #expect(account() == .ignore)
    store.time = UnixTime(store.time.seconds + 60)
  }

  @Test func `does after a key, whose yes is ours to give`() {
    logIn()
    #expect(auth() == .success)
    #expect(account() == .ignore)
    #expect(
      host.log.last?.line == "not asked: this origin is remembered: user=alice origin=192.0.2.7")
  }

  // shows: remembered-place
  @Test func `after a password leaves the yes to the module that asked for it`() {
    logIn()
    (host.token, host.sshInfo) = ("any", "")
    #expect(auth() == .ignore)
    #expect(account() == .ignore)
    (host.serviceName, host.sshInfo) = ("cockpit", nil)
    host.token = nil
    host.expect(answer: right)
    #expect(auth() == .refused)
  }

  // shows: remembered-place
  @Test(arguments: ["", nil, "password", "keyboard-interactive"] as [String?])
  func `is asked where nothing came before`(_ info: String?) {
    logIn()
    host.sshInfo = info
    host.expect(answer: right)
    #expect(auth() == .refused)
  }

  /// There the field holds the code as well, and a stack in which nobody else says yes is shut.
  @Test(arguments: [["use_first_pass"], ["forward_pass"], ["use_first_pass", "forward_pass"]])
  func `has no effect where one field holds the code`(_ words: [String]) {
    logIn()
    host.token = "hunter2" + right
    if words == ["forward_pass"] {
      host.expect("Password & verification code: ", answer: "hunter2" + right)
    }
    let arguments = ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) })
    #expect(authenticate(host, arguments, store: store) == .refused)
    #expect(host.isUsedUp)
    #expect(host.log.last?.line.contains("not asked") == false)
  }

  @Test func `is the address in full`() {
    host.remote = "2001:db8::7"
    logIn()
    #expect(auth() == .success)
    #expect(account() == .ignore)
    host.remote = "2001:db8::8"
    host.expect(answer: right)
    #expect(auth() == .refused)
  }

  // decisive
  @Test(arguments: ["fe80::1%eth0", "fe80::1", "169.254.7.7", "127.0.0.1", "::1"])
  func `is never this machine nor on a link`(_ address: String) {
    host.remote = address
    logIn()
    host.expect(answer: right)
    #expect(auth() == .refused)
  }

  // decisive
  @Test(arguments: [true, false])
  func `is never an address of our own, then or now`(_ wasOurs: Bool) {
    let ours: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7]
    store.ownAddresses = wasOurs ? [ours] : []
    logIn()
    store.ownAddresses = wasOurs ? [] : [ours]
    host.expect(answer: right)
    #expect(auth() == .refused)
  }
}
