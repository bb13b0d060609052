import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let pass = "P7KM-F2X9-QD4T-W0HZ-A"
private let demand = "Set it up now? [y/n]: "
private let first = "Code shown by the app: "
private let last = "Press Enter when you have them: "

/// Logins of alice with a pass that must end in enrolling.
@Suite struct `An enrolling pass at a login` {
  private let host = ScriptedHost()
  private let store: TestStore
  private var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    try write("[default]\nremember = 1 d")
    host.token = "password"
    let record = try loaded()
    let code = try secret("P7KMF2X9QD4TW0HZA".utf8)
    let given = Pass(
      id: 7, digest: try Pass.digest(code, of: record.enrollment.id), created: store.time,
      expires: UnixTime(store.time.seconds + 7200), uses: Pass.claims, enrolls: true)
    try change(.give(given))
  }

  // MARK: steps

  private func write(_ policy: String) throws {
    try Data((policy + "\n").utf8).write(to: URL(fileURLWithPath: path))
  }

  private func loaded() throws -> Record {
    let account = try store.account(named: try #require(UserName("alice".utf8)))
    return try #require(try store.store.load(account))
  }

  private func change(_ change: EnrollmentChange) throws {
    let record = try loaded()
    let changed = try change.applied(to: record.enrollment, record.state)
    let done = try store.store.rewrite(record, changed) { change.applied(to: $0, of: changed) }
    guard case .committed = done else { throw StoreTrouble.outOfMemory }
  }

  private func words(_ more: [String]) -> ModuleArguments {
    ModuleArguments((["conf=" + path, "nodelay"] + more).map { Array($0.utf8) })
  }

  private func logIn(
    typing typed: String = pass, _ more: [String] = ["enroll"], as other: ScriptedHost? = nil
  ) -> ReturnCode {
    let host = other ?? host
    host.expect(answer: typed)
    let answer = authenticate(host, words(more), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  private func account(_ other: ScriptedHost? = nil) -> ReturnCode {
    let answer = manageAccount(other ?? host, words([]), store: store)
    #expect((other ?? host).isUsedUp)
    return answer
  }

  private func expectEnrolling(_ other: ScriptedHost? = nil) {
    let host = other ?? host
    host.expect(demand, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .made { code($0) })
    host.expect(last, echo: true, answer: "")
  }

  private func another() -> ScriptedHost {
    let other = ScriptedHost()
    other.token = "password"
    return other
  }

  /// What the app shows that was just set up.
  private func code(_ shown: [String], after steps: Int64 = 0) -> String {
    guard let text = shown.last(where: { $0.contains("Key to type") }),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("Key to type") }),
      let key = line.split(separator: ":").last,
      let bytes = Secret(key.filter { $0 != " " }.utf8), let secret = try? Base32.decode(bytes)
    else { return "no code" }
    return code(of: secret, after: steps)
  }

  private func code(of secret: Secret, after steps: Int64) -> String {
    guard
      let generator = try? CodeGenerator(secret: secret, algorithm: .sha1, digits: .six),
      let code = try? generator.code(at: UInt64(store.time.seconds / 30 + steps))
    else { return "no code" }
    return String(repeating: "0", count: max(0, 6 - "\(code)".count)) + "\(code)"
  }

  private func oldCode(after steps: Int64 = 0) throws -> String {
    code(of: try secret(TestStore.secret), after: steps)
  }

  private func files() throws -> [String] {
    let path = store.directory.path + "/store/users/alice"
    return try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }

  private func claims() throws -> UInt8 { try loaded().state.passes.first?.used ?? 0 }

  // MARK: the whole way

  @Test func `ends in another phone in the place of all before`() throws {
    #expect(logIn(typing: try oldCode()) == .success)
    #expect(try loaded().state.origins.count == 1)
    #expect(logIn() == .success)
    #expect(host.log.last?.line == "pass accepted: user=alice enrolls=yes left=2 origin=192.0.2.7")
    #expect(host.hasEnvironmentMark)
    expectEnrolling()
    #expect(account() == .success)
    #expect(!host.hasEnvironmentMark && host.kept == nil)
    #expect(
      host.log.contains {
        $0.line.hasPrefix("enrollment changed in the login: action=replaced-by-pass user=alice")
      })
    let (enrollment, state) = (try loaded().enrollment, try loaded().state)
    #expect(enrollment.passes.isEmpty && enrollment.authenticators.count == 1)
    #expect(enrollment.backupCodes?.digests.count == 10)
    #expect(state.origins.isEmpty && state.remembered.isEmpty)
    #expect(enrollment.suspended.map(\.since) == [store.time])
    #expect(try files().count == 4)
    // The one before, its backup code, the pass and the code of the enrolling.
    for typed in [try oldCode(after: 1), TestStore.backup, pass, code(host.shown)] {
      #expect(logIn(typing: typed) == .refused, "\(typed)")
    }
    #expect(logIn(typing: code(host.shown, after: 1)) == .success)
  }

  @Test func `keeps what it replaces whole`() throws {
    #expect(logIn(typing: try oldCode()) == .success)
    #expect(logIn(typing: TestStore.backup) == .success)
    #expect(logIn() == .success)
    let before = try loaded()
    expectEnrolling()
    #expect(account() == .success)
    let id = try #require(try loaded().enrollment.suspended.first)
    let path = store.directory.path + "/store/users/alice/"
    func content(_ ending: StaticString) throws -> [UInt8] {
      Array(try Data(contentsOf: URL(fileURLWithPath: path + id.file(ending).text)))
    }
    let kept = try Enrollment.read(try secret(try content("")))
    #expect(kept.authenticators.map { $0.secret.bytes(in: 0..<20) } == [TestStore.secret])
    #expect(kept.backupCodes == before.enrollment.backupCodes)
    let state = try StateRecord.read(try content(".state")).state
    #expect(state == before.state && state.backupCodes?.used == 1)
  }

  // MARK: where it is refused

  @Test func `is refused where the login cannot end in enrolling`() throws {
    #expect(logIn(typing: pass, []) == .refused)
    host.token = nil
    #expect(logIn() == .refused)
    host.token = "password"
    #expect(host.probes == 0)
    try write("[rule r]\nmatch_service = sshd\nenrollment = refuse")
    #expect(logIn() == .refused)
    try write("[default]\nfactor_pass = off")
    #expect(logIn() == .refused)
    try write("[default]\nfactor_totp = mandatory")
    #expect(logIn() == .refused)
    #expect(try claims() == 0)
  }

  @Test func `asks the account stack before it is claimed`() throws {
    host.accountStack = .no(7)
    #expect(logIn() == .refused)
    #expect(host.log.contains { $0.line == "denied: reason=account-stack user=alice code=7" })
    host.accountStack = .yesWithoutUs
    #expect(logIn() == .refused)
    #expect(host.log.contains { $0.line.hasPrefix("denied: must enroll, and was not asked to:") })
    #expect(host.log.last?.line.hasPrefix("refused: reason=must-enroll") == true)
    #expect(try claims() == 0 && host.probes == 2)
    // Of a wrong one nothing is asked.
    #expect(logIn(typing: "P7KM-F2X9-QD4T-W0HZ-B") == .refused)
    #expect(host.probes == 2)
  }

  @Test func `lets nobody in who does not enroll`() throws {
    #expect(logIn() == .success)
    host.expect(demand, echo: true, answer: "n")
    #expect(account() == .denied)
    #expect(host.log.last?.line == "denied: reason=must-enroll user=alice")
    #expect(openSession(host) == .denied)
    #expect(logIn() == .success)
    host.expect(demand, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .failure(.conversation))
    #expect(account() == .denied)
    #expect(openSession(host) == .denied)
    // No account phase at all, here and in another process.
    #expect(logIn() == .success)
    #expect(openSession(host) == .denied)
    host.kept = nil
    host.hasEnvironmentMark = true
    #expect(openSession(host) == .denied)
    // What was there is still there.
    #expect(logIn(typing: try oldCode()) == .success)
  }

  // MARK: claims

  @Test func `is claimed three times at most`() throws {
    for left in [2, 1, 0] {
      #expect(logIn() == .success)
      #expect(host.log.last?.line.contains("left=\(left) ") == true)
      #expect(try claims() == UInt8(3 - left))
    }
    // The third is still good to enroll.
    let third = host.kept
    #expect(logIn() == .refused)
    host.kept = third
    expectEnrolling()
    #expect(account() == .success)
  }

  // decisive
  @Test func `belongs to the login that claimed it last`() throws {
    let other = another()
    #expect(logIn() == .success)
    #expect(logIn(typing: pass, ["enroll"], as: other) == .success)
    host.expect(demand, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .made { code($0) })
    #expect(account() == .denied)
    #expect(host.log.last?.line == "denied: reason=enrolled-meanwhile user=alice")
    #expect(try files().count == 2)
    expectEnrolling(other)
    #expect(account(other) == .success)
    // Nor does it begin again.
    #expect(logIn() == .refused)
    #expect(try loaded().enrollment.suspended.count == 1)
  }

  @Test func `is no more good once it has ended or was taken back`() throws {
    #expect(logIn() == .success)
    store.time = UnixTime(store.time.seconds + 7200)
    host.expect(demand, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .made { code($0) })
    #expect(account() == .denied)
    store.time = UnixTime(store.time.seconds - 7200)
    #expect(logIn() == .success)
    try change(.revoke)
    host.expect(demand, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .made { code($0) })
    #expect(account() == .denied)
    #expect(logIn() == .refused)
  }

  // decisive
  @Test func `replaces nothing of somebody who is blocked at the last moment`() throws {
    #expect(logIn() == .success)
    store.meanwhile = { try makeBlock("alice", at: store.directory.path + "/store") }
    host.expect(demand, echo: true, answer: "y")
    host.expect(first, echo: true, reply: .made { code($0) })
    #expect(account() == .denied)
    #expect(try loaded().enrollment.suspended.isEmpty && files().count == 2)
  }

  // decisive
  @Test func `what cannot be stored lets nobody in`() throws {
    store.failing = .transact
    #expect(logIn() == .unavailable)
    store.failing = nil
    #expect(logIn() == .success)
    for call in [TestStore.Call.suspend, .rehearse, .load, .account] {
      let mark = host.kept
      if call != .account && call != .load { host.expect(demand, echo: true, answer: "y") }
      if call == .suspend { host.expect(first, echo: true, reply: .made { code($0) }) }
      store.failing = call
      #expect(account() != .success)
      store.failing = nil
      #expect(openSession(host) == .denied)
      host.kept = mark
    }
    #expect(try loaded().enrollment.suspended.isEmpty)
  }

  @Test func `a second one suspends what the first enrolled`() throws {
    #expect(logIn() == .success)
    expectEnrolling()
    #expect(account() == .success)
    let record = try loaded()
    let code = try secret("P7KMF2X9QD4TW0HZA".utf8)
    store.time = UnixTime(store.time.seconds + 86_400)
    try change(
      .give(
        Pass(
          id: 8, digest: try Pass.digest(code, of: record.enrollment.id), created: store.time,
          expires: UnixTime(store.time.seconds + 7200), uses: Pass.claims, enrolls: true)))
    #expect(logIn() == .success)
    expectEnrolling()
    #expect(account() == .success)
    #expect(try loaded().enrollment.suspended.count == 2 && files().count == 6)
  }
}
