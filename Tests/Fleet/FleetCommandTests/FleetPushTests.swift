import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSystem
import Synchronization
import TestSupport
import Testing

@testable import FleetCommand
@testable import SallyportCLI

private struct Answer: Decodable {
  struct Left: Decodable {
    let user, reason: String
  }
  let moved: [String]
  let kept, notMoved: [Left]
}

@Suite struct `Pushing to the fleet` {
  @Test func `moves an enrollment with all that was used of it, and wipes the files`() throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    try host.use("daemon", step: 59_000_000)
    let done = host.push("--user", "daemon")
    #expect(done.status == 0, "\(done.aside)")
    #expect(done.answer.contains("daemon is in the fleet: a code is good once on all its hosts."))
    #expect(host.fleet.asked == ["look", "put"])
    let moved = try #require(host.fleet.has("daemon"))
    #expect(moved.enrollment.uid == nil && moved.enrollment.authenticators.count == 1)
    #expect(moved.state.authenticators[0].lastAccepted == 59_000_000)
    #expect(moved.state.backupCodes?.used == 5)
    #expect(moved.state.other == Bucket(spent: GuessProbability(units: 9), since: UnixTime(77)))
    #expect(try host.mark("daemon") == nil)
    #expect(try host.bench.content().keys.allSatisfy { !$0.contains("daemon") })
    #expect(host.push("--user", "daemon").aside.contains("not enrolled here"))
  }

  /// At each moment in which it is asked, no login uses his files.
  @Test func `marks the files before anything is sent`() throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    let path = host.bench.directory + "/users/daemon/enrollment"
    let texts = Mutex<[String]>([])
    host.fleet.book.withLock {
      $0.before = {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        texts.withLock { $0.append(String(text.split(separator: "\n").dropFirst().first ?? "")) }
      }
    }
    #expect(host.push("--user", "daemon").status == 0)
    #expect(texts.withLock { $0 } == ["version = 1", "fleet = push 0000000000000000"])
  }

  // MARK: stopped, or not answered

  // shows: fleet-move
  @Test(arguments: [true, false])
  func `leaves it to the next push where no answer came`(_ isDone: Bool) throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    host.fleet.book.withLock { $0.fault = ("put", isDone, .failure(.unknown)) }
    let first = host.push("--user", "daemon")
    #expect(first.status == 75 && first.aside.contains("whether the fleet has the enrollment"))
    #expect(try !host.isJudgedHere("daemon"))
    #expect(try host.mark("daemon") == "push(version: 0)")
    // Nor does a verifier that cannot be reached give him back: it may be there.
    host.fleet.book.withLock { $0.fault = ("put", false, .failure(.away)) }
    #expect(host.push("--user", "daemon").status == 75)
    #expect(try host.mark("daemon") != "none")
    #expect(host.push("--user", "daemon").status == 0)
    #expect(host.fleet.has("daemon") != nil)
    #expect(try host.mark("daemon") == nil)
  }

  @Test func `goes on where it was stopped after each step`() throws {
    for isPut in [false, true] {
      let host = try MovingHost()
      _ = try host.bench.enroll("daemon")
      let name = try #require(UserName(Array("daemon".utf8)))
      let account = try Accounts.find(name)
      let fleet = host.fleet
      let done = try host.store.moving(account) { user -> Bool in
        guard (try? user.write(.push(version: 0))) != nil else { return false }
        let own = user.enrollment
        let bare = Enrollment(
          id: own.id, user: own.user, uid: nil, created: own.created,
          authenticators: own.authenticators, backupCodes: own.backupCodes)
        if isPut {
          fleet.book.withLock { $0.people["daemon"] = (MoveRequest.Moving(bare, user.state), 1) }
        }
        return true
      }
      #expect(done == true)
      #expect(try !host.isJudgedHere("daemon"))
      #expect(host.push("--all").status == 0)
      #expect(host.fleet.has("daemon") != nil)
      #expect(try host.mark("daemon") == nil)
    }
  }

  @Test(arguments: [
    (Result<VerifierAnswer, TransportFault>.failure(.away), 75, "no verifier can be reached"),
    (.failure(.revoked), 1, "host was revoked"), (.failure(.unpinned), 1, "unexpected key"),
    (.success(.databaseAway), 75, "database does not answer"),
    (.success(.notServed), 1, "upgrade them"),
  ])
  func `gives him back where nothing was sent or done`(
    _ what: Result<VerifierAnswer, TransportFault>, status: Int32, text: String
  ) throws {
    for verb in ["look", "put"] {
      let host = try MovingHost()
      _ = try host.bench.enroll("daemon")
      host.fleet.book.withLock { $0.fault = (verb, false, what) }
      let done = host.push("--user", "daemon")
      #expect(done.status == status && done.aside.contains(text), "\(done.aside)")
      #expect(try host.isJudgedHere("daemon"))
      #expect(host.fleet.has("daemon") == nil)
    }
  }

  @Test func `brings nobody back who was in the fleet and is not any more`() throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    host.fleet.book.withLock { $0.fault = ("put", true, .failure(.unknown)) }
    #expect(host.push("--user", "daemon").status == 75)
    host.fleet.book.withLock { book in
      let id = book.people["daemon"]?.moving.enrollment.id ?? 0
      book.people = [:]
      book.removed["daemon"] = (id, 9)
    }
    let done = host.push("--user", "daemon")
    #expect(done.status == 1 && done.aside.contains("was in the fleet, and is not any more"))
    #expect(host.fleet.has("daemon") == nil)
    #expect(try !host.isJudgedHere("daemon"))
  }

  // MARK: one name, one person

  @Test func `refuses a name that the fleet has otherwise, and keeps that where it is told to`()
    throws
  {
    let (first, host) = (try MovingHost(), try MovingHost())
    _ = try first.bench.enroll("daemon")
    #expect(first.push("--user", "daemon").status == 0)
    let there = first.fleet.book.withLock { $0.people }
    host.fleet.book.withLock { $0.people = there }
    _ = try host.bench.enroll("daemon")
    let done = host.push("--user", "daemon")
    #expect(done.status == 1)
    #expect(done.aside.contains("the fleet has this name, enrolled with other secrets"))
    #expect(done.aside.contains("--keep-fleet"))
    #expect(try host.isJudgedHere("daemon"))
    // Once it is under way with the fleet's, the next push goes on with it.
    host.fleet.book.withLock { $0.fault = ("merge", false, .failure(.unknown)) }
    #expect(host.push("--user", "daemon", "--keep-fleet").status == 75)
    #expect(try host.mark("daemon") == "merge")
    #expect(host.push("--user", "daemon").status == 0)
    #expect(try host.mark("daemon") == nil)
    #expect(host.fleet.asked.last == "merge")
  }

  // MARK: who stays

  @Test func `moves nobody who is blocked here, and would be good elsewhere`() throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    try makeBlock("daemon", at: host.bench.directory)
    let done = host.push("--user", "daemon")
    #expect(done.status == 1 && done.aside.contains("is blocked on this machine"), "\(done.aside)")
    #expect(host.fleet.has("daemon") == nil)
    #expect(try host.isJudgedHere("daemon"))
  }

  /// Until it has ended, no login uses his files.
  @Test func `goes on with somebody who is blocked while he is on the way`() throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    host.fleet.book.withLock { $0.fault = ("put", false, .failure(.unknown)) }
    #expect(host.push("--user", "daemon").status == 75)
    try makeBlock("daemon", at: host.bench.directory)
    #expect(host.push("--user", "daemon").status == 0)
    #expect(host.fleet.has("daemon") != nil)
  }

  /// A verifier of before reads no passes.
  @Test(arguments: [true, false])
  func `takes along a pass that is open, and none that has ended`(_ isOpen: Bool) throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    let store = Store(root: host.bench.directory, owner: .effectiveUser)
    let daemon = Account(name: try #require(UserName("daemon".utf8)), uid: 1)
    let record = try #require(try store.load(daemon))
    let start = isOpen ? try Clock.now() : UnixTime(1000)
    let (_, pass) = try Pass.fresh(of: record.enrollment.id, from: start, for: 7200, uses: 1)
    let change = EnrollmentChange.give(pass)
    let changed = try change.applied(to: record.enrollment, record.state)
    _ = try store.rewrite(record, changed) { change.applied(to: $0, of: changed) }
    let done = host.push("--user", "daemon")
    #expect(done.status == 0, "\(done.aside)")
    let moved = try #require(host.fleet.has("daemon"))
    #expect(moved.enrollment.passes.count == (isOpen ? 1 : 0))
    #expect(moved.state.passes.count == moved.enrollment.passes.count)
  }

  @Test func `moves nobody whom the policy keeps here, in any login`() throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    for rule in [
      "match_user = daemon", "match_service = sudo", "match_service = sshd",
      "match_service = cockpit, gdm-password", "match_origin = 192.0.2.0/24",
      "match_user = bin\nverification = local\n\n[rule there]\nmatch_group = daemon",
    ] {
      try host.policy("[rule here]\n\(rule)\nverification = local\n")
      let done = host.push("--user", "daemon")
      #expect(done.status == 78 && done.aside.contains("verification = local"), "\(done.aside)")
    }
    #expect(host.fleet.asked == [])
    #expect(try host.isJudgedHere("daemon"))
  }

  @Test func `moves all, but for those who stay`() throws {
    let host = try MovingHost()
    for name in ["daemon", "bin", "sys"] { _ = try host.bench.enroll(name) }
    _ = try host.bench.enroll("nobody-of-that-name")
    try host.policy("[rule here]\nmatch_user = bin\nverification = local\n")
    let done = host.push("--all", "--json")
    #expect(done.status == 1 && done.aside.contains("1 of 5 users were not moved"), "\(done.aside)")
    let answer = try done.json(Answer.self)
    #expect(answer.moved == ["daemon", "sys"])
    #expect(answer.kept.map(\.user) == ["bin", "root"])
    #expect(answer.notMoved.map(\.user) == ["nobody-of-that-name"])
    #expect(try host.isJudgedHere("root") && host.isJudgedHere("bin"))
  }

  // decisive
  @Test func `never moves the last who could become root without the fleet`() throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    // A rule that names root sends root to the fleet too.
    try host.policy("[rule root]\nmatch_user = root\nverification = fleet\n")
    let one = host.push("--user", "root")
    #expect(one.status == 1 && one.aside.contains("nobody else could become root here"))
    let all = host.push("--all")
    #expect(all.status == 0, "\(all.aside)")
    #expect(all.answer.contains("1 moved to the fleet, 1 stay here."))
    #expect(try host.isJudgedHere("root"))
    #expect(host.fleet.has("root") == nil && host.fleet.has("daemon") != nil)
  }

  // decisive
  @Test func `knows the last way in also by a name that is shown otherwise`() throws {
    let host = try MovingHost(roots: "jürgen")
    for (file, line) in [
      ("passwd", "jürgen:x:0:0::/:/bin/bash\n"), ("shadow", "jürgen:$y$j:1::::::\n"),
    ] {
      try Data(line.utf8).write(to: URL(fileURLWithPath: "\(host.bench.root)/etc/\(file)"))
    }
    let people = HostAccounts(
      store: host.store, conf: nil, context: host.bench.context(FakeTerminal()))
    let ways = try WaysIn(people, Machine(root: host.bench.root) { _ in .absent })
    #expect(ways.isLast(try host.account("jürgen").name))
    #expect(ways.isLast(try host.account("root").name) == false)
  }

  @Test func `stops all at the first fault that is everybody's`() throws {
    let host = try MovingHost()
    for name in ["daemon", "bin"] { _ = try host.bench.enroll(name) }
    host.fleet.book.withLock { $0.fault = ("look", false, .failure(.away)) }
    let done = host.push("--all")
    #expect(done.status == 75 && done.aside.contains("no verifier can be reached"))
    #expect(host.fleet.asked == ["look"])
    #expect(host.push("--all").status == 0)
  }

  @Test func `stops all where the right is used up, and goes on with more of it`() throws {
    let host = try MovingHost()
    for name in ["daemon", "bin"] { _ = try host.bench.enroll(name) }
    var rights = HostRights()
    rights[.changes].daily = 20
    let told = RightsAnswer.told(
      rights, used: [.init(), .init(daily: 20), .init()], isClosed: false)
    host.fleet.book.withLock {
      $0.rights = told
      $0.fault = (
        "put", false,
        .success(VerifierAnswer(to: .management, MoveAnswer.notAllowed.encoded() ?? []))
      )
    }
    let done = host.push("--all")
    #expect(done.status == 1 && host.fleet.asked == ["look", "put"])
    #expect(done.aside.contains("has used up its right changes (20 a day) in the fleet"))
    #expect(done.aside.contains("sallyport-verifier hosts allow web1 changes --for 1h"))
    #expect(done.aside.contains("sallyport fleet push --all"))
    #expect(done.aside.contains("  # goes on"))
    #expect(host.push("--all").status == 0)
  }

  @Test func `is for a host that enrolls, and for somebody who is here`() throws {
    let other = try MovingHost(enrolls: false)
    _ = try other.bench.enroll("daemon")
    let refused = other.push("--user", "daemon")
    #expect(refused.status == 1)
    #expect(refused.aside.contains("does not have the right changes in the fleet"))
    #expect(other.fleet.asked == [])
    let host = try MovingHost()
    #expect(host.push("--user", "daemon").status == 1)
    #expect(host.push("--user", "nobody-of-that-name").status == 67)
    #expect(host.push().status == 64)
    #expect(host.push("--user", "daemon", "--all").status == 64)
    #expect(Bench(.nowhere).run("fleet", "push", "--all").status == 66)
  }
}
