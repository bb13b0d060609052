import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let pass = "P7KM-F2X9-QD4T-W0HZ-A"

/// Logins of alice with a pass.
@Suite struct `A pass at a login` {
  private let host = ScriptedHost()
  private let store: TestStore
  private var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    try write("[default]\nremember = 1 d\nminimum_factors = 2\nenrollment = required")
    host.sshInfo = "publickey ssh-ed25519 AAAA"
    let account = try store.account(named: try #require(UserName("alice".utf8)))
    let record = try #require(try store.load(account))
    let code = try secret("P7KMF2X9QD4TW0HZA".utf8)
    let given = Pass(
      id: 7, digest: try Pass.digest(code, of: record.enrollment.id), created: store.time,
      expires: UnixTime(store.time.seconds + 7200), uses: 1)
    let change = EnrollmentChange.give(given)
    let changed = try change.applied(to: record.enrollment, record.state)
    let done = try store.rewrite(record, changed) { change.applied(to: $0, of: changed) }
    guard case .committed = done else { throw StoreTrouble.outOfMemory }
  }

  private func write(_ policy: String) throws {
    try Data((policy + "\n").utf8).write(to: URL(fileURLWithPath: path))
  }

  private func logIn(typing typed: String) -> ReturnCode {
    host.expect(answer: typed)
    let words = ["conf=" + path, "enroll", "nodelay"].map { Array($0.utf8) }
    let answer = authenticate(host, ModuleArguments(words), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  private func account() -> ReturnCode {
    manageAccount(
      host, ModuleArguments([Array(("conf=" + path).utf8), Array("enroll".utf8)]), store: store)
  }

  @Test func `is a login, and nothing beyond it`() throws {
    #expect(logIn(typing: pass) == .success)
    #expect(host.log.last?.line == "pass accepted: user=alice left=0 origin=192.0.2.7")
    // Neither does it ask for the second factor that is missing, nor is the place remembered.
    #expect(account() == .ignore)
    #expect(host.isUsedUp)
    let user = try store.account(named: try #require(UserName("alice".utf8)))
    let state = try #require(try store.load(user)).state
    #expect(state.origins.isEmpty && state.remembered.isEmpty)
    #expect(logIn(typing: pass) == .refused)
  }

  @Test func `is refused where the policy says so`() throws {
    try write("[default]\nfactor_pass = off")
    #expect(logIn(typing: pass) == .refused)
    try write("[default]\nfactor_totp = mandatory")
    #expect(logIn(typing: pass) == .refused)
    try write("[default]\n")
    #expect(logIn(typing: pass) == .success)
  }

  @Test func `proves no change`() throws {
    let user = try store.account(named: try #require(UserName("alice".utf8)))
    let context = LoginContext(policy: Policy(), origin: .local(own: true), service: nil)
    let authority = RecordAuthority(store: store)
    let pending = try #require(try authority.enrolled(user, in: context))
    let typed = try secret(pass.utf8)
    let refused = try authority.attempt(
      typed, knownAs: nil, by: pending.forChange, as: .last(givingBack: nil))
    guard case .refused(.response(.wrongCode(nil), _)) = refused else {
      Issue.record("\(refused)")
      return
    }
    #expect(
      try authority.attempt(typed, knownAs: nil, by: pending, as: .last(givingBack: nil))
        == .accepted(.pass(left: 0)))
  }
}
