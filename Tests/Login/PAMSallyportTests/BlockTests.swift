import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let right = "050471"
private let wrong = "050472"

/// Logins of alice, who is enrolled, and of bob, who is not, once root has blocked them.
@Suite struct `A login of somebody who is blocked` {
  private let host = ScriptedHost()
  private let store: TestStore
  private var root: String { store.directory.path + "/store" }
  private var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    try policy("remember = 1 d\nenrollment = voluntary")
    host.sshInfo = "publickey ssh-ed25519 AAAA"
  }

  private func policy(_ text: String) throws {
    try Data("[default]\n\(text)\n".utf8).write(to: URL(fileURLWithPath: path))
  }

  private func block(until: String = "none") throws {
    for name in ["alice", "bob"] { try makeBlock(name, until: until, at: root) }
  }

  private func auth(_ words: String...) -> ReturnCode {
    let answer = authenticate(
      host, ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) }), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  private func account(_ words: String...) -> ReturnCode {
    let answer = manageAccount(
      host, ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) }), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  private func state() throws -> LoginState {
    let alice = try store.account(named: #require(UserName("alice".utf8)))
    return try #require(try store.load(alice)).state
  }

  // decisive
  // shows: block
  @Test func `is refused like a wrong code, whatever is typed, and changes nothing`() throws {
    try block()
    let before = try state()
    for typed in [right, wrong, "7KMF-2X9Q-D4TW-0HZA", ""] {
      host.expect(answer: typed)
      #expect(auth("enroll", "nullok") == .refused)
      #expect(host.log.last?.line == "refused: reason=blocked user=alice origin=192.0.2.7")
      #expect(host.log.last?.level == .notice)
    }
    #expect(try state() == before)
  }

  @Test(arguments: ["voluntary", "offer", "remind", "required", "refuse"])
  func `is refused without an enrollment at each level, exempt or not`(level: String) throws {
    try policy("enrollment = \(level)")
    try block()
    host.userName = .success(Array("bob".utf8))
    host.token = "password"
    let bob = try store.account(named: #require(UserName("bob".utf8)))
    for note in [nil, UserNote.Level.exempt(until: nil)] {
      if let note { try store.setLevel(note, of: bob) }
      host.expect(answer: right)
      #expect(auth("enroll", "nullok") == .refused)
      #expect(account() == .denied)
    }
  }

  @Test func `gets nothing from a remembered place`() throws {
    host.expect(answer: right)
    #expect(auth() == .success && account() == .ignore)
    store.time = UnixTime(store.time.seconds + 60)
    #expect(auth() == .success && account() == .ignore)
    try block()
    host.expect(answer: right)
    #expect(auth() == .refused)
    #expect(account() == .denied)
  }

  /// After a key alone, a ticket or NOPASSWD.
  @Test(arguments: [[], ["demand"], ["enroll"]])
  func `ends in the account phase where nobody was asked`(words: [String]) throws {
    for state in ["enabled", "disabled"] {
      try policy("state = \(state)\nenrollment = voluntary")
      try block()
      for name in ["alice", "bob"] {
        host.userName = .success(Array(name.utf8))
        let answer = manageAccount(
          host, ModuleArguments((["conf=" + path] + words).map { Array($0.utf8) }), store: store)
        #expect(answer == .denied)
        #expect(host.log.last?.line == "denied: reason=blocked user=\(name)")
        // Also where the stack goes on all the same.
        #expect(openSession(host) == .denied)
      }
    }
  }

  @Test func `ends in the account phase where it was blocked after the code`() throws {
    host.expect(answer: right)
    #expect(auth() == .success)
    try block()
    #expect(account() == .denied && openSession(host) == .denied)
  }

  // decisive: `block` has returned by then
  @Test func `is refused by the code of a prompt that stood before`() throws {
    let root = root
    let typed: ([String]) -> String = { _ in
      try? makeBlock("alice", at: root)
      return right
    }
    host.expect(reply: .made(typed))
    #expect(auth() == .refused)
    #expect(host.log.last?.line == "refused: reason=blocked user=alice origin=192.0.2.7")
    try FileManager.default.removeItem(atPath: root + "/blocked")
    host.expect(answer: right)
    #expect(auth() == .success)
  }

  @Test func `enrolls nobody who was blocked while the secret was shown`() throws {
    try policy("enrollment = required")
    host.userName = .success(Array("bob".utf8))
    host.token = "password"
    #expect(auth("enroll") == .ignore)
    try block()
    #expect(account() == .denied)
  }

  /// A code was accepted for it before the block came; root's own command goes on.
  // decisive
  @Test func `ends in no change that gives him something to log in with`() throws {
    let alice = try store.account(named: #require(UserName("alice".utf8)))
    let context = LoginContext(policy: Policy(), origin: .local(own: true), service: nil)
    let pixel = Authenticator(
      id: 8, name: try #require(Label("pixel".utf8)), parameters: .standard,
      secret: try secret("98765432109876543210"), initialLastAccepted: nil, created: store.time)
    let changes: [EnrollmentChange] = [
      .add([pixel], backupCodes: nil),
      .renew(try #require(try BackupCodeSet.fresh(count: 4).set)),
      .replace([pixel], backupCodes: nil, claim: 1),
    ]
    let pending = try #require(
      try RecordAuthority(store: store).enrolled(alice, in: context))
    try block()
    for change in changes {
      #expect(
        try RecordAuthority(store: store).amend(change, of: alice.name, pending, in: context)
          == .changed)
    }
    #expect(
      try RecordAuthority(store: store, isRoots: true)
        .amend(changes[0], of: alice.name, pending, in: context) == .done)
  }

  /// Nobody else could mend the store.
  @Test func `is refused by a store that cannot be read, unless he is root`() throws {
    try FileManager.default.createDirectory(
      atPath: root + "/blocked", withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o777])
    #expect(account() == .unavailable)
    try host.setMark(nil)
    host.userName = .success(Array("root".utf8))
    #expect(account() == .ignore)
  }

  @Test func `is refused where his name is none, and somebody is blocked`() throws {
    host.userName = .success(Array("alice ".utf8))
    #expect(account() == .ignore)
    try block()
    #expect(account() == .denied)
  }

  @Test func `goes on once it is lifted or over`() throws {
    try block(until: "\(store.time.seconds)")
    host.expect(answer: right)
    #expect(auth() == .success && account() == .ignore)
    try block(until: "\(store.time.seconds + 1)")
    host.expect(answer: right)
    #expect(auth() == .refused && account() == .denied)
    try FileManager.default.removeItem(atPath: root + "/blocked")
    // Of another login.
    try host.setMark(nil)
    #expect(account() == .ignore)
  }

  // decisive
  @Test(arguments: [TestStore.Call.mayBlock, .isBlocked, .account])
  func `is refused where it cannot be read who is blocked`(call: TestStore.Call) throws {
    try makeBlock("somebody", at: root)
    store.failing = call
    #expect(account() == .unavailable)
    #expect(host.log.last?.level == .alert)
    #expect(openSession(host) == .denied)
    if call != .mayBlock { #expect(auth() == .unavailable) }
  }

  /// Nothing may fail there that did not before.
  @Test func `costs nobody a look at his account where nobody is blocked`() {
    store.failing = .account
    #expect(account() == .ignore)
    #expect(store.calls == [.mayBlock])
  }
}
