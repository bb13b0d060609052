import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI

/// daemon lost phone and codes, got a pass, and a login with it has enrolled another phone.
@Suite struct `What a pass enrolled, and root takes back` {
  private let bench = Bench()
  private let former: Enrolled
  private let new: Enrolled
  private var store: Store { Store(root: bench.directory, owner: .effectiveUser) }

  private struct Told: Decodable {
    struct One: Decodable { let name: String }
    struct Codes: Decodable { let left: Int }
    struct Kept: Decodable { let id: String }
    let authenticators: [One]
    let backupCodes: Codes
    let passes, suspended: [Kept?]
  }

  init() throws {
    former = try bench.enroll("daemon")
    // What the login enrolls.
    new = try bench.enroll("bin", "--name", "pixel")
    try #require(bench.run("pass", "daemon", "--enroll").status == 0)
    try claim()
    try replace()
  }

  private func record(_ user: String = "daemon") throws -> Record {
    let name = try #require(UserName(Array(user.utf8)))
    return try #require(try store.load(try Accounts.find(name)))
  }

  private func claim() throws {
    let done: Transaction<Void> = try store.transact(try record()) {
      (enrollment, state) throws(StoreTrouble) -> (Void, LoginState) in
      var state = state
      state.reconcile(with: enrollment)
      state.passes[0] = PassState(id: enrollment.passes[0].id, used: 1, claim: 77)
      return ((), state)
    }
    guard case .committed = done else { throw StoreTrouble.outOfMemory }
  }

  /// As a login does that claimed it.
  private func replace() throws {
    let (old, made) = (try record(), try record("bin").enrollment)
    var next = try EnrollmentChange.replace(
      made.authenticators, backupCodes: made.backupCodes, claim: 77
    ).applied(to: old.enrollment, old.state)
    next.suspended.append(Suspension(id: 9, since: bench.now))
    guard case .committed = try store.suspend(old, for: next, claim: 77, at: bench.now) else {
      throw StoreTrouble.outOfMemory
    }
  }

  private func told() throws -> Told {
    try bench.run("status", "daemon", "--json").json(Told.self)
  }

  private func verify(_ code: String) -> Int32 {
    bench.run("verify", "--user", "daemon", on: FakeTerminal([.types(code)])).status
  }

  // decisive
  @Test func `Ends, with what was given since, and all of before is good again`() throws {
    #expect(try told().authenticators.map(\.name) == ["pixel"])
    #expect(verify(former.backupCodes[0]) == 1)
    #expect(verify(try new.code(at: bench.now)) == 0)
    #expect(bench.run("pass", "daemon").status == 0)
    bench.now = UnixTime(bench.now.seconds + 3600)
    let done = bench.runAsRoot(
      ["restore", "daemon"], on: FakeTerminal([.types("y")]), store: bench.directory)
    #expect(done.status == 0, "\(done.aside)")
    #expect(done.answer.contains("Comes back, as it was until"), "\(done.answer)")
    #expect(done.answer.contains("\"pixel\", 10 backup codes"), "\(done.answer)")
    let end = "daemon has what was enrolled before: \"phone\", 10 backup codes."
    #expect(done.answer.contains(end))
    let now = try told()
    #expect(now.authenticators.map(\.name) == ["phone"] && now.backupCodes.left == 10)
    #expect(now.passes.isEmpty && now.suspended.isEmpty)
    for code in [try new.code(at: bench.now, steps: 1), new.backupCodes[0]] {
      #expect(verify(code) == 1)
    }
    // One of before this moment may have been read from the lost phone.
    #expect(verify(try former.code(at: bench.now)) == 1)
    #expect(verify(try former.code(at: bench.now, steps: 1)) == 0)
    #expect(verify(former.backupCodes[0]) == 0)
    let lines = bench.logged.filter { $0.contains("act=restore") }
    #expect(
      lines
        == ["6", "5"].enumerated().map { index, priority in
          "\(priority) act=restore by=root for=daemon since=2026-03-03T09:26:40Z via=command "
            + "stage=\(["will", "done"][index])"
        })
    #expect(bench.run("restore", "daemon", "--yes").status == 1)
  }

  @Test func `Stays where root answers no, or names another one`() throws {
    let no = bench.run("restore", "daemon", on: FakeTerminal([.types("n")]))
    #expect(no.status != 0)
    let other = bench.run("restore", "daemon", "--yes", "--from", "0000000000000008")
    #expect(other.status == 1 && other.aside.contains("restore --from 0000000000000009"))
    #expect(try told().authenticators.map(\.name) == ["pixel"])
    #expect(bench.logged.allSatisfy { !$0.contains("act=restore") })
  }

  @Test func `Ends for good after seven days`() throws {
    bench.now = UnixTime(bench.now.seconds + 7 * 86_400)
    let done = bench.run("restore", "daemon", "--yes")
    #expect(done.status == 1 && done.aside.contains("nothing can be restored"))
    #expect(try told().authenticators.map(\.name) == ["pixel"])
  }
}
