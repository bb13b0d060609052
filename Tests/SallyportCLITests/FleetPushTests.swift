import Foundation
import Glibc
import OneTimePassword
import SallyportCore
import SallyportDoctor
import SallyportLine
import SallyportSystem
import Synchronization
import TestSupport
import Testing

@testable import SallyportCLI

/// A fleet in memory that does with enrollments what a verifier does.
private final class Fleet: FleetLine {
  struct Book: Sendable {
    var people: [String: (moving: MoveRequest.Moving, version: UInt64)] = [:]
    /// Who was there, with which id and version.
    var removed: [String: (id: UInt64, version: UInt64)] = [:]
    /// For the next question of this kind, once: what comes instead of it, or of its answer.
    var fault: (verb: String, isDone: Bool, what: Result<LineAnswer, LineFault>)?
    var asked: [String] = []
    /// Before a question is answered.
    var before: (@Sendable () -> Void)?
  }

  let book = Mutex(Book())

  func ask(_ kind: LineKind, _ body: Secret, within milliseconds: UInt64) throws(LineFault)
    -> LineAnswer
  {
    guard kind == .management, let request = MoveRequest.decode(body) else { return .notServed }
    book.withLock { $0.before }?()
    let result = book.withLock { book -> Result<LineAnswer, LineFault> in
      let verb = request.verb
      book.asked.append(verb)
      if let fault = book.fault, fault.verb == verb {
        book.fault = nil
        if fault.isDone { _ = book.answer(request) }
        return fault.what
      }
      return .success(LineAnswer(to: .management, book.answer(request).encoded() ?? []))
    }
    return try result.get()
  }

  var asked: [String] { book.withLock { $0.asked } }
  func has(_ name: String) -> MoveRequest.Moving? { book.withLock { $0.people[name]?.moving } }
}

extension MoveRequest {
  fileprivate var verb: String {
    switch self {
    case .look: "look"
    case .put: "put"
    case .merge: "merge"
    }
  }
}

extension Fleet.Book {
  private func standing(_ name: String) -> FleetStanding {
    if let one = people[name] {
      return FleetStanding(.enrolled(one.moving.enrollment.id), version: one.version)
    }
    if let one = removed[name] { return FleetStanding(.removed(one.id), version: one.version) }
    return FleetStanding(.nobody, version: 0)
  }

  fileprivate mutating func answer(_ request: MoveRequest) -> MoveAnswer {
    let name = request.name.text
    let standing = standing(name)
    switch request {
    case .look: return .standing(standing)
    case .put(let moving, let version):
      if standing.person == .enrolled(moving.enrollment.id) { return .done }
      guard standing.version == version, people[name] == nil else { return .standing(standing) }
      people[name] = (moving, version + 1)
      return .done
    case .merge: return people[name] == nil ? .standing(standing) : .done
    }
  }
}

/// A host that enrolls, with root as the way in that needs no fleet.
private final class Host {
  let bench = Bench()
  let fleet = Fleet()
  var etc: String { bench.directory + ".security" }

  init(enrolls: Bool = true, roots: String = "root") throws {
    try FileManager.default.createDirectory(atPath: etc, withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: bench.root + "/etc", withIntermediateDirectories: true)
    let file = FleetFile(
      host: "web1", enrolls: enrolls, verifiers: [try #require(VerifierAddress("192.0.2.1:7353"))],
      pins: [try #require(Pin([UInt8](repeating: 7, count: 32)))])
    try write(etc + "/" + FleetFile.name, file.written(), 0o644)
    let key = try Identity.newKey()
    try write(
      etc + "/" + FleetFile.keyName,
      String(decoding: key.bytes(in: 0..<key.count), as: UTF8.self), 0o600)
    try write(
      bench.root + "/etc/passwd",
      "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/bash\n", 0o644)
    try write(bench.root + "/etc/shadow", "root:$y$j9T$x:19000::::::\n", 0o644)
    try policy()
    if !roots.isEmpty { _ = try bench.enroll(roots) }
  }

  deinit { try? FileManager.default.removeItem(atPath: etc) }

  func policy(_ rules: String = "") throws {
    try bench.policy("[default]\nverification = fleet\n" + rules)
  }

  private func write(_ path: String, _ text: String, _ mode: Int) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
  }

  func push(_ arguments: String...) -> Bench.Outcome {
    var place = FleetPlace(directory: etc, tellService: { _ in nil })
    place.line = { [fleet] _, _ in fleet }
    bench.fleet = place
    bench.machine = Machine(root: bench.root) { _ in .absent }
    return bench.run(arguments: ["fleet", "push"] + arguments)
  }

  var store: Store { Store(root: bench.directory, owner: .effectiveUser) }

  private func account(_ name: String) throws -> Account {
    try Accounts.find(try #require(UserName(Array(name.utf8))))
  }

  /// nil: he has no files here.
  func mark(_ name: String) throws -> String? {
    try store.moving(try account(name)) { user in user.mark.map { "\($0)" } ?? "none" }
  }

  /// Whether a login by the files would be judged.
  func isJudgedHere(_ name: String) throws -> Bool {
    ((try? store.load(try account(name))) ?? nil) != nil
  }

  /// As a login that is accepted leaves it.
  func use(_ name: String, step: UInt64) throws {
    let record = try #require(try store.load(try account(name)))
    _ = try store.transact(record, asKnown: true) { (_, state) throws(StoreTrouble) in
      var state = state
      state.authenticators[0].lastAccepted = step
      state.backupCodes?.used = 5
      state.other = Bucket(spent: GuessProbability(units: 9), since: UnixTime(77))
      return (true, state)
    }
  }
}

private struct Answer: Decodable {
  struct Left: Decodable {
    let user, reason: String
  }
  let moved: [String]
  let kept, notMoved: [Left]
}

@Suite struct `Pushing to the fleet` {
  @Test func `moves an enrollment with all that was used of it, and wipes the files`() throws {
    let host = try Host()
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

  /// At each moment in which it is asked, nobody judges him by the files.
  @Test func `marks the files before anything is sent`() throws {
    let host = try Host()
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

  @Test(arguments: [true, false])
  func `leaves it to the next push where no answer came`(_ isDone: Bool) throws {
    let host = try Host()
    _ = try host.bench.enroll("daemon")
    host.fleet.book.withLock { $0.fault = ("put", isDone, .failure(.unknown)) }
    let first = host.push("--user", "daemon")
    #expect(first.status == 75 && first.aside.contains("whether it is in the fleet is not known"))
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
      let host = try Host()
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
    (Result<LineAnswer, LineFault>.failure(.away), 75, "no verifier can be reached"),
    (.failure(.revoked), 1, "it was revoked"), (.failure(.unpinned), 1, "another key"),
    (.success(.databaseAway), 75, "database does not answer"),
    (.success(.notServed), 1, "upgrade it"),
  ])
  func `gives him back where nothing was sent or done`(
    _ what: Result<LineAnswer, LineFault>, status: Int32, text: String
  ) throws {
    for verb in ["look", "put"] {
      let host = try Host()
      _ = try host.bench.enroll("daemon")
      host.fleet.book.withLock { $0.fault = (verb, false, what) }
      let done = host.push("--user", "daemon")
      #expect(done.status == status && done.aside.contains(text), "\(done.aside)")
      #expect(try host.isJudgedHere("daemon"))
      #expect(host.fleet.has("daemon") == nil)
    }
  }

  @Test func `brings nobody back who was in the fleet and is not any more`() throws {
    let host = try Host()
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
    let (first, host) = (try Host(), try Host())
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

  @Test func `moves nobody whom the policy keeps here, in any login`() throws {
    let host = try Host()
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
    let host = try Host()
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

  @Test func `never moves the last who could become root without the fleet`() throws {
    let host = try Host()
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

  @Test func `stops all at the first fault that is everybody's`() throws {
    let host = try Host()
    for name in ["daemon", "bin"] { _ = try host.bench.enroll(name) }
    host.fleet.book.withLock { $0.fault = ("look", false, .failure(.away)) }
    let done = host.push("--all")
    #expect(done.status == 75 && done.aside.contains("no verifier can be reached"))
    #expect(host.fleet.asked == ["look"])
    #expect(host.push("--all").status == 0)
  }

  @Test func `is for a host that enrolls, and for somebody who is here`() throws {
    let other = try Host(enrolls: false)
    _ = try other.bench.enroll("daemon")
    let refused = other.push("--user", "daemon")
    #expect(refused.status == 1 && refused.aside.contains("enrolls = no"))
    #expect(other.fleet.asked == [])
    let host = try Host()
    #expect(host.push("--user", "daemon").status == 1)
    #expect(host.push("--user", "nobody-of-that-name").status == 67)
    #expect(host.push().status == 64)
    #expect(host.push("--user", "daemon", "--all").status == 64)
    #expect(Bench().run("fleet", "push", "--all").status == 66)
  }
}
