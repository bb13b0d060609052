import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Synchronization
import TestSupport
import Testing

@testable import FleetCommand
@testable import SallyportCLI

private struct Answer: Decodable {
  let user: String
  let taken: Bool
}

extension MovingFleet {
  /// As a code that is accepted by a verifier leaves daemon.
  fileprivate func use(step: UInt64) {
    book.withLock { book in
      guard let one = book.people["daemon"] else { return }
      var state = one.moving.state
      state.authenticators[0].lastAccepted = step
      book.people["daemon"] = (
        MoveRequest.Moving(one.moving.enrollment, state), one.version + 1
      )
    }
  }
}

@Suite struct `Taking back from the fleet` {
  /// daemon is in the fleet, and the policy keeps people here.
  private func host(enrolls: Bool = true) throws -> MovingHost {
    let host = try MovingHost(enrolls: enrolls)
    guard enrolls else { return host }
    _ = try host.bench.enroll("daemon")
    try host.use("daemon", step: 59_000_000)
    #expect(host.push("--user", "daemon").status == 0)
    host.fleet.book.withLock { $0.asked = [] }
    try host.bench.policy("[default]\nverification = local\n")
    return host
  }

  /// By the files, or by the fleet, or by nobody: never by both.
  private func isSomewhere(_ host: MovingHost) throws -> Bool {
    let (isHere, isThere) = (try host.isJudgedHere("daemon"), host.fleet.has("daemon") != nil)
    #expect(!(isHere && isThere))
    return isHere || isThere
  }

  @Test func `moves an enrollment with all that was used of it, and leaves a tombstone`() throws {
    let host = try host()
    let before = try #require(host.fleet.has("daemon"))
    let done = host.take("--user", "daemon", "--json")
    #expect(done.status == 0, "\(done.aside)")
    let answer = try done.json(Answer.self)
    #expect(answer.user == "daemon" && answer.taken)
    #expect(host.fleet.asked == ["fetch", "bury"])
    #expect(host.fleet.has("daemon") == nil)
    #expect(host.fleet.book.withLock { $0.removed["daemon"]?.id } == before.enrollment.id)
    let taken = try #require(try host.record("daemon"))
    #expect(taken.enrollment.id == before.enrollment.id)
    #expect(taken.enrollment.uid == (try host.account("daemon")).uid)
    let (own, other) = (before.enrollment.written(), taken.enrollment.written())
    let text = String(decoding: bytes(try #require(other)), as: UTF8.self)
    #expect(
      text.replacing(#/uid = \d+/#, with: "uid = none")
        == String(decoding: bytes(try #require(own)), as: UTF8.self))
    #expect(taken.state == before.state)
    #expect(taken.state.authenticators[0].lastAccepted == 59_000_000)
    #expect(try host.mark("daemon") == "none")
    let again = host.take("--user", "daemon")
    #expect(again.status == 73 && again.aside.contains("enrolled here already"))
  }

  @Test func `takes the store for this machine's, as other verbs do`() throws {
    let host = try host()
    let mark = host.bench.directory + "/machine"
    try FileManager.default.removeItem(atPath: mark)
    #expect(host.take("--user", "daemon").status == 0)
    #expect(FileManager.default.fileExists(atPath: mark))
  }

  /// At each moment in which it is asked, no login uses his files.
  // shows: fleet-move
  @Test func `copies under a mark before anything is ended`() throws {
    let host = try host()
    let path = host.bench.directory + "/users/daemon/enrollment"
    let texts = Mutex<[String]>([])
    host.fleet.book.withLock {
      $0.before = {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        texts.withLock { $0.append(String(text.split(separator: "\n").dropFirst().first ?? "")) }
      }
    }
    #expect(host.take("--user", "daemon").status == 0)
    let lines = texts.withLock { $0 }
    #expect(lines.count == 2 && lines.first == "")
    #expect(lines.last?.hasPrefix("fleet = take 0000000000000001 ") == true)
    let token = try #require(host.fleet.book.withLock { $0.tokens["daemon"] })
    #expect(lines.last?.hasSuffix(String(decoding: hexadecimal(token), as: UTF8.self)) == true)
  }

  // shows: fleet-move
  @Test func `copies again a user who was let in after the copy`() throws {
    let host = try host()
    let fleet = host.fleet
    let count = Mutex(0)
    fleet.book.withLock {
      $0.before = {
        // Before the first tombstone.
        let isNow = count.withLock { count in
          count += 1
          return count == 2
        }
        if isNow { fleet.use(step: 59_000_007) }
      }
    }
    #expect(host.take("--user", "daemon").status == 0)
    #expect(host.fleet.asked == ["fetch", "bury", "fetch", "bury"])
    #expect(try host.record("daemon")?.state.authenticators[0].lastAccepted == 59_000_007)
    #expect(host.fleet.has("daemon") == nil)
  }

  // MARK: stopped, or not answered

  @Test(arguments: [true, false])
  func `leaves it to the next take where no answer came`(_ isDone: Bool) throws {
    let host = try host()
    host.fleet.book.withLock { $0.fault = ("bury", isDone, .failure(.unknown)) }
    let first = host.take("--user", "daemon")
    #expect(first.status == 75 && first.aside.contains("whether the fleet has the enrollment"))
    #expect(try host.mark("daemon")?.hasPrefix("take(version: 1, token: ") == true)
    #expect(try isSomewhere(host) == !isDone)
    // Nor does a verifier that cannot be reached remove the copy: it may be the only one.
    host.fleet.book.withLock { $0.fault = ("bury", false, .failure(.away)) }
    #expect(host.take("--user", "daemon").status == 75)
    #expect(try host.mark("daemon") != nil)
    #expect(host.push("--user", "daemon").aside.contains("verification = local"))
    #expect(host.take("--user", "daemon").status == 0)
    #expect(host.fleet.has("daemon") == nil)
    #expect(try host.isJudgedHere("daemon"))
    #expect(host.fleet.asked.filter { $0 == "fetch" }.count == 1)
  }

  @Test func `throws away a copy that is older than what the fleet has accepted since`() throws {
    let host = try host()
    host.fleet.book.withLock { $0.fault = ("bury", false, .failure(.unknown)) }
    #expect(host.take("--user", "daemon").status == 75)
    host.fleet.use(step: 59_000_009)
    #expect(host.take("--user", "daemon").status == 0)
    #expect(try host.record("daemon")?.state.authenticators[0].lastAccepted == 59_000_009)
  }

  @Test(arguments: [
    (Result<VerifierAnswer, TransportFault>.failure(.away), 75, "no verifier can be reached"),
    (.failure(.revoked), 1, "host was revoked"), (.failure(.unpinned), 1, "unexpected key"),
    (.success(.databaseAway), 75, "database does not answer"),
    (.success(.notServed), 1, "upgrade them"),
  ])
  func `leaves it to the fleet, and to the next take, where nothing was sent or done`(
    _ what: Result<VerifierAnswer, TransportFault>, status: Int32, text: String
  ) throws {
    for verb in ["fetch", "bury"] {
      let host = try host()
      host.fleet.book.withLock { $0.fault = (verb, false, what) }
      let done = host.take("--user", "daemon")
      #expect(done.status == status && done.aside.contains(text), "\(done.aside)")
      // Another take may have sent the same: the copy stays.
      #expect(try (host.mark("daemon") == nil) == (verb == "fetch"))
      #expect(try host.fleet.has("daemon") != nil && !host.isJudgedHere("daemon"))
      #expect(host.take("--user", "daemon").status == 0)
    }
  }

  @Test func `keeps the only copy where it cannot be written when the fleet has ended his`() throws
  {
    let host = try host()
    let (files, own) = (FileManager.default, host.bench.directory + "/users/daemon/")
    let kept = host.bench.directory + "/kept"
    let count = Mutex(0)
    host.fleet.book.withLock {
      $0.before = {
        // A directory is in its place from the question to bury on.
        let isNow = count.withLock { count in
          count += 1
          return count == 2
        }
        guard isNow else { return }
        let files = FileManager.default
        try? files.moveItem(atPath: own + "enrollment", toPath: kept)
        try? files.createDirectory(atPath: own + "enrollment", withIntermediateDirectories: false)
      }
    }
    #expect(host.take("--user", "daemon").status != 0)
    #expect(host.fleet.has("daemon") == nil && count.withLock { $0 } == 2)
    try files.removeItem(atPath: own + "enrollment")
    try files.moveItem(atPath: kept, toPath: own + "enrollment")
    #expect(try !host.isJudgedHere("daemon"))
    #expect(host.take("--user", "daemon").status == 0)
    #expect(try host.isJudgedHere("daemon"))
  }

  @Test func `is let in by nobody's copy where the fleet has changed him by then`() throws {
    for isEnrolled in [true, false] {
      let host = try host()
      host.fleet.book.withLock { $0.fault = ("bury", true, .failure(.unknown)) }
      #expect(host.take("--user", "daemon").status == 75)
      let other = try MovingHost()
      _ = try other.bench.enroll("daemon")
      #expect(other.push("--user", "daemon").status == 0)
      let people = isEnrolled ? other.fleet.book.withLock { $0.people } : [:]
      host.fleet.book.withLock { ($0.people, $0.tokens) = (people, [:]) }
      let done = host.take("--user", "daemon")
      #expect(done.status == 1 && done.aside.contains("unenroll --force daemon"), "\(done.aside)")
      #expect(try !host.isJudgedHere("daemon"))
    }
  }

  // MARK: the right

  /// What the verifiers say of `takes`; nil: nothing.
  private func told(
    _ allowance: HostRights.Allowance, used: HostRights.Use = HostRights.Use()
  ) -> RightsAnswer {
    var rights = HostRights()
    rights[.takes] = allowance
    return .told(rights, used: [HostRights.Use(), HostRights.Use(), used], isClosed: false)
  }

  private func refuse(_ verb: String, _ host: MovingHost) {
    let refusal = VerifierAnswer(to: .management, MoveAnswer.notAllowed.encoded() ?? [])
    host.fleet.book.withLock { $0.fault = (verb, false, .success(refusal)) }
  }

  @Test func `asks the verifiers where more was given than a day has`() throws {
    let host = try host()
    let more = HostRights.Allowance(daily: 10, more: 40, until: UnixTime(1))
    host.fleet.book.withLock { $0.rights = told(more, used: .init(daily: 10, more: 40)) }
    // By then there is more again: what is left, the verifiers know alone.
    #expect(host.take("--user", "daemon").status == 0)
  }

  @Test func `ends what was begun although the right is used up or taken`() throws {
    for allowance in [HostRights.Allowance(), HostRights.Allowance(daily: 1)] {
      let host = try host()
      host.fleet.book.withLock { $0.fault = ("bury", true, .failure(.unknown)) }
      #expect(host.take("--user", "daemon").status == 75)
      host.fleet.book.withLock { $0.rights = told(allowance, used: .init(daily: 1)) }
      #expect(host.take("--user", "daemon").status == 0)
      #expect(try host.isJudgedHere("daemon"))
    }
  }

  @Test func `names the right where it is used up, and the command that gives more`() throws {
    for verb in ["fetch", "bury"] {
      let host = try host()
      host.fleet.book.withLock { $0.rights = told(.init(daily: 10), used: .init(daily: 10)) }
      refuse(verb, host)
      let done = host.take("--user", "daemon")
      #expect(done.status == 1, "\(done.aside)")
      #expect(done.aside.contains("has used up its right takes (10 a day) in the fleet"))
      #expect(done.aside.contains("sallyport-verifier hosts allow web1 takes --for 1h"))
      #expect(!done.aside.contains("pass"))
    }
  }

  @Test func `says that the right is for others`() throws {
    let host = try host()
    let more = HostRights.Allowance(more: 40, until: UnixTime(1_900_000_000))
    host.fleet.book.withLock { $0.rights = told(more, used: .init(others: 12)) }
    refuse("fetch", host)
    let done = host.take("--user", "daemon")
    #expect(done.status == 1, "\(done.aside)")
    #expect(done.aside.contains("has its right takes for 12 other users alone in the fleet"))
  }

  // MARK: who is not taken

  @Test func `names the other hosts where he was let in, and takes him where it is told to`() throws
  {
    let host = try host()
    let others = try ["web2", "db.example"].map { try #require(FleetHostName(Array($0.utf8))) }
    host.fleet.book.withLock { $0.used["daemon"] = others }
    let done = host.take("--user", "daemon")
    #expect(done.status == 1 && done.aside.contains("logged in within 30 days on web2, db.example"))
    #expect(done.aside.contains("--force"))
    #expect(try host.mark("daemon") == nil)
    #expect(host.take("--user", "daemon", "--force").status == 0)
  }

  @Test func `takes nobody while used backup codes may count as unused`() throws {
    let host = try host()
    host.fleet.book.withLock { $0.isHeld = true }
    let done = host.take("--user", "daemon")
    #expect(done.status == 75 && done.aside.contains("no backup code for a quarter of an hour"))
    #expect(try host.mark("daemon") == nil)
  }

  @Test func `takes nobody whom the policy leaves to the fleet`() throws {
    for policy in [
      "[default]\nverification = fleet\n",
      "[rule there]\nmatch_service = sudo\nverification = fleet\n", "nonsense\n",
    ] {
      let host = try host()
      try host.bench.policy(policy)
      let done = host.take("--user", "daemon")
      #expect(done.status == 78 && done.aside.contains("verification = local"), "\(done.aside)")
      #expect(host.fleet.asked == [])
    }
  }

  @Test func `uses up what this host has accepted while it was cut off`() throws {
    let host = try host()
    let kept = try #require(host.fleet.has("daemon"))
    let reserve = Store(root: host.bench.directory + ".reserve", owner: .effectiveUser)
    defer { try? FileManager.default.removeItem(atPath: host.bench.directory + ".reserve") }
    try reserve.prepare()
    let codes = try #require(kept.enrollment.backupCodes)
    let entry = Enrollment(
      id: kept.enrollment.id, user: kept.enrollment.user, uid: nil,
      created: kept.enrollment.created, authenticators: kept.enrollment.authenticators,
      backupCodes: codes)
    var state = kept.state
    state.backupCodes?.used = 0b1010
    try reserve.create(entry, state)
    #expect(host.take("--user", "daemon").status == 0)
    #expect(try host.record("daemon")?.state.backupCodes?.used == 0b1111)
  }

  @Test func `is for a host that enrolls, and for somebody who is there`() throws {
    let other = try host(enrolls: false)
    let refused = other.take("--user", "daemon")
    #expect(refused.status == 1)
    #expect(refused.aside.contains("does not have the right takes in the fleet"))
    #expect(other.fleet.asked == [])
    let host = try host()
    let nobody = host.take("--user", "bin")
    #expect(nobody.status == 1 && nobody.aside.contains("not enrolled in the fleet"))
    #expect(host.take("--user", "nobody-of-that-name").status == 67)
    #expect(host.take().status == 64)
    #expect(Bench(.nowhere).run("fleet", "take", "--user", "daemon").status == 66)
  }

  /// No login would ever use them.
  @Test func `leaves no fleet, and joins none, while files are on their way`() throws {
    let host = try host()
    _ = try host.bench.enroll("bin")
    host.fleet.book.withLock { $0.fault = ("put", false, .failure(.unknown)) }
    try host.policy()
    #expect(host.push("--user", "bin").status == 75)
    try host.bench.policy("[default]\nverification = local\n")
    host.fleet.book.withLock { $0.fault = ("bury", true, .failure(.unknown)) }
    #expect(host.take("--user", "daemon").status == 75)
    let done = host.run("leave")
    #expect(done.status == 1, "\(done.aside)")
    #expect(done.aside.contains("refused here until it is: bin, daemon"))
    #expect(done.aside.contains("sallyport fleet push --user bin"))
    #expect(done.aside.contains("sallyport fleet take --user daemon"))
    #expect(host.run("leave", ["--force"]).status == 0)
    let joined = host.run("join", ["--without-break-glass"])
    #expect(
      joined.status == 1 && joined.aside.contains("is not finished: bin, daemon"), "\(joined.aside)"
    )
    #expect(joined.aside.contains("--same-fleet") && joined.aside.contains("unenroll NAME --force"))
    let words = ["--without-break-glass", "--same-fleet"]
    let same = host.run("join", words, typing: [.types("nonsense")])
    #expect(same.aside.contains("not a token"), "\(same.aside)")
  }

  @Test func `goes on with what is under way in its own direction alone`() throws {
    let host = try host()
    host.fleet.book.withLock { $0.fault = ("bury", true, .failure(.unknown)) }
    #expect(host.take("--user", "daemon").status == 75)
    try host.policy()
    let pushed = host.push("--user", "daemon")
    #expect(pushed.status == 1 && pushed.aside.contains("sallyport fleet take goes on"))
    #expect(try !host.isJudgedHere("daemon") && host.fleet.has("daemon") == nil)
    let other = try MovingHost()
    _ = try other.bench.enroll("daemon")
    other.fleet.book.withLock { $0.fault = ("put", false, .failure(.unknown)) }
    #expect(other.push("--user", "daemon").status == 75)
    try other.bench.policy("[default]\nverification = local\n")
    let taken = other.take("--user", "daemon")
    #expect(taken.status == 1 && taken.aside.contains("sallyport fleet push goes on"))
    #expect(try other.mark("daemon") == "push(version: 0)")
  }
}
