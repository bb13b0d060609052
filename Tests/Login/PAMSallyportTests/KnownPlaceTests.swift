import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

/// Who waits for the user's lock ahead of strangers.
@Suite struct `A place in the queue` {
  private let host = ScriptedHost()
  private let store: TestStore

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
  }

  private func log(in answer: String, from remote: String?, as uid: UInt32 = 0) {
    host.remote = remote
    host.serviceName = remote == nil ? "login" : "sshd"
    host.uid = uid
    host.expect(answer: answer)
    _ = authenticate(host, ModuleArguments([]), store: store)
    #expect(host.isUsedUp)
  }

  // shows: owner-waits
  @Test func `is ahead for an address from which a login was accepted`() {
    log(in: "050472", from: "192.0.2.7")
    log(in: "050471", from: "192.0.2.7")
    log(in: "050472", from: "192.0.2.7")
    log(in: "050472", from: "198.51.100.9")
    log(in: "letters", from: "192.0.2.7")
    #expect(store.waitedAsKnown == [false, false, true, false, true])
  }

  /// After a tunnel to this machine everybody comes from there; also one that is stored already.
  @Test(arguments: ["127.0.0.1", "127.9.9.9", "::1", "fe80::1", "192.0.2.7", "2001:db8::7"])
  func `is not ahead for an address of this machine`(_ own: String) throws {
    log(in: "050471", from: own)
    store.ownAddresses = [
      try #require(Addresses.numeric(Array("192.0.2.7".utf8))).bytes,
      try #require(Addresses.numeric(Array("2001:db8::7".utf8))).bytes,
    ]
    log(in: "050472", from: own)
    #expect(store.waitedAsKnown == [false, false])
    let name = try #require(UserName(Array("alice".utf8)))
    let state = try #require(try store.store.load(Account(name: name, uid: 1000))).state
    #expect(state.known == .full && state.other != .full)
  }

  // shows: owner-waits
  @Test func `is ahead for the user at this machine and for no other user`() {
    for uid in [UInt32(1000), 0, 1001] { log(in: "050472", from: nil, as: uid) }
    #expect(store.waitedAsKnown == [true, true, false])
  }

  // shows: same-for-all
  @Test func `is the same for one who is not enrolled`() {
    host.userName = .success(Array("bob".utf8))
    log(in: "050472", from: "192.0.2.7")
    for uid in [UInt32(1001), 0, 1000] { log(in: "050472", from: nil, as: uid) }
    #expect(store.waitedAsKnown == [false, true, true, false])
  }
}
