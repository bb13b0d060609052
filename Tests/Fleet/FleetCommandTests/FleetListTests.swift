import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import FleetCommand
@testable import SallyportCLI

/// Verifiers with these people, which answer up to a page.
private final class PeopleLine: FleetVerifiers {
  let people: [PeopleAnswer.Entry]
  let pages: Int
  let other: VerifierAnswer?
  let asked = Locked(0)

  init(_ people: [PeopleAnswer.Entry], pages: Int = .max, other: VerifierAnswer? = nil) {
    self.people = people.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    (self.pages, self.other) = (pages, other)
  }

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let frame = made(milliseconds), kind == .management,
      let request = PeopleRequest.decode(frame)
    else { return .notServed }
    let page = asked.withLock { asked in
      defer { asked += 1 }
      return asked
    }
    if page >= pages { throw .away }
    if let other { return other }
    let rest = people.filter { request.after.lexicographicallyPrecedes($0.name) }
    let told = PeopleAnswer.told(
      Array(rest.prefix(request.count)), isLast: rest.count <= request.count)
    return VerifierAnswer(to: .management, told.encoded() ?? [])
  }
}

@Suite struct `A list of the people of the fleet` {
  private let bench = Bench()
  private let own = FileManager.default.temporaryDirectory
    .appendingPathComponent("sallyport-\(UUID().uuidString)")

  init() throws {
    try FileManager.default.createDirectory(
      at: own, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try becomeHost(in: own.path, enrolls: true)
    try bench.policy("[default]\nverification = fleet\n")
    bench.place.directory = own.path
  }

  private func list(_ words: [String] = [], by line: PeopleLine) -> Bench.Outcome {
    bench.place.asking = { _, _, _ in line }
    return bench.runAsRoot(
      ["list", "--fleet"] + words, on: FakeTerminal([]), store: own.path + "/files")
  }

  private struct Listed: Decodable {
    struct Person: Decodable { let user, place: String }
    let users: [Person]
    let unreadable: Int
    let complete: Bool
  }

  private func some() throws -> [PeopleAnswer.Entry] {
    let host = try #require(FleetHostName(Array("web2".utf8)))
    func own(
      used: Int64? = nil, passes: Int = 0, lock: PeopleAnswer.Lock = .none, codes: Int = 10
    ) throws -> PeopleAnswer.Place {
      let name = try #require(Label(Array("phone".utf8)))
      return .enrolled(
        PeopleAnswer.Enrolled(
          [name], backupCodesLeft: codes, since: UnixTime(1_700_000_000),
          lastUse: used.map { UnixTime(bench.now.seconds - $0) }, openPasses: passes, lock: lock))
    }
    let block = FleetBlock(
      since: UnixTime(1_772_000_000), until: nil, helper: UserName(Array("carol".utf8)))
    let over = FleetBlock(since: UnixTime(1_700_000_000), until: UnixTime(1_700_000_001))
    return [
      .init(Array("alice".utf8), try own(used: 60, passes: 1), block: block),
      .init(Array("bob".utf8), try own(codes: 0), level: .exempt(until: UnixTime(1_700_000_000))),
      .init(Array("dan".utf8), try own(used: 60, lock: .until(UnixTime(1_772_600_000)))),
      .init(Array("eve".utf8), .notEnrolled, level: .exempt(until: nil), block: over),
      .init(Array("fay".utf8), .taken(by: host)),
      .init(Array("gus".utf8), .notEnrolled, level: .required(from: nil)),
      .init(Array("hal".utf8), .notEnrolled, block: block),
    ]
  }

  // decisive
  @Test(
    arguments: [
      ([], ["alice", "bob", "dan", "fay"]), (["--blocked"], ["alice", "hal"]),
      (["--exempt"], ["eve"]), (["--locked"], ["dan"]), (["--passes"], ["alice"]),
      (["--idle", "90d"], ["bob"]), (["--blocked", "--passes"], ["alice"]),
      (["--never-enrolled", "--blocked"], ["hal"]), (["--never-enrolled", "--exempt"], ["eve"]),
    ] as [([String], [String])])
  func `has those who meet all conditions`(_ words: [String], _ names: [String]) throws {
    let done = list(words + ["--json"], by: PeopleLine(try some()))
    #expect(done.status == 0, "\(done.aside)")
    let told = try done.json(Listed.self)
    #expect(told.users.map(\.user) == names && told.complete)
    let text = list(words, by: PeopleLine(try some())).answer
    let lines = text.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
    #expect(lines.filter { names.contains($0) } == names, "\(text)")
  }

  @Test func `tells of each what the fleet has`() throws {
    let shown = list(by: PeopleLine(try some())).answer
    for line in [
      "USER    AUTHENTICATORS   BACKUP CODES   LAST CODE\n", "\nfay     by the files of web2\n",
      "\nbob     phone            0              never\n",
      "\n3 enrolled, 1 by the files of a host\n",
    ] { #expect(shown.contains(line), "\(shown)") }
    let blocked = list(["--blocked"], by: PeopleLine(try some())).answer
    #expect(blocked.contains("alice   blocked in the fleet, since"), "\(blocked)")
    #expect(blocked.contains("by the helper carol: nothing is accepted"), "\(blocked)")
    #expect(blocked.hasSuffix("2 persons, 1 by the files of a host\n"), "\(blocked)")
    let json = list(["--locked", "--json"], by: PeopleLine(try some())).answer
    #expect(json.contains("\"until\" : \"2026-03-04T04:53:20Z\""), "\(json)")
  }

  /// The accounts of people here are this machine's own, and the fleet has none of them.
  @Test func `has accounts here of which the fleet has nothing, where that is asked`() throws {
    let done = list(["--never-enrolled", "--json"], by: PeopleLine(try some()))
    #expect([0, 75].contains(done.status))
    let told = try done.json(Listed.self)
    #expect(told.users.filter { $0.place == "not-enrolled" }.map(\.user) == ["eve", "gus", "hal"])
    #expect(!told.users.contains { ["root", "daemon", "alice"].contains($0.user) })
  }

  // decisive
  @Test func `names whose rows cannot be read, and ends otherwise than well`() throws {
    let bad: [PeopleAnswer.Entry] = [.init([0x1b, 0x5b], .unreadable), .init([0x62], .unreadable)]
    let line = PeopleLine(try some() + bad)
    for words in [[], ["--passes"], ["--blocked"]] {
      let done = list(words, by: line)
      #expect(done.status == 74 && done.aside.contains("of 2 users cannot be read"))
      #expect(done.answer.contains("\nb       cannot be read\n"), "\(done.answer)")
      #expect(done.answer.contains("2 cannot be read\n") && !done.answer.contains("\u{1b}"))
    }
    #expect(try list(["--json"], by: line).json(Listed.self).unreadable == 2)
  }

  private func many(_ count: Int) -> [PeopleAnswer.Entry] {
    (0..<count).map { number in
      let name = "user\(number + 1000)" + (number == 70 ? "-with-a-long-name" : "")
      return .init(Array(name.utf8), .notEnrolled, level: .exempt(until: nil))
    }
  }

  // decisive
  @Test func `has the pages that came, and says that it is not all`() throws {
    let line = PeopleLine(many(150), pages: 2)
    let done = list(["--exempt"], by: line)
    #expect(done.status == 75 && done.aside.contains("no verifier can be reached"))
    #expect(done.aside.contains("hint: sallyport fleet status"))
    #expect(done.answer.contains("\nuser1119") && !done.answer.contains("user1120"))
    #expect(done.answer.hasSuffix("120 persons, and perhaps more: the list is incomplete\n"))
    let told = list(["--exempt", "--json"], by: PeopleLine(many(150), pages: 2))
    #expect(told.status == 75)
    #expect(try !told.json(Listed.self).complete)
    #expect(try told.json(Listed.self).users.count == 120)
    let whole = PeopleLine(many(150))
    let all = list(["--exempt"], by: whole)
    #expect(all.status == 0 && all.answer.hasSuffix("\n150 persons\n"))
    #expect(whole.asked.withLock { $0 } == 3)
  }

  private static let cannot: [(VerifierAnswer, Int32, String)] = [
    (VerifierAnswer(to: .management, []), 1, "upgrade them all"), (.notServed, 1, "upgrade"),
    (.databaseAway, 75, "the verifier's database does not answer"),
    (
      VerifierAnswer(to: .management, MoveAnswer.trouble.encoded() ?? []), 74,
      "the verifier cannot read what the fleet has"
    ),
    (
      VerifierAnswer(to: .management, MoveAnswer.notAllowed.encoded() ?? []), 77,
      "may not see the people of the fleet: it does not have the right changes"
    ),
    (
      VerifierAnswer(
        to: .management, PeopleAnswer.told([], isLast: false).encoded() ?? []), 74,
      "unrecognized answer from the verifier"
    ),
  ]

  @Test(arguments: cannot)
  func `is none where the answer is none`(_ answer: VerifierAnswer, _ status: Int32, _ why: String)
    throws
  {
    let done = list(by: PeopleLine([], other: answer))
    #expect(done.status == status && done.aside.contains(why), "\(done.status) \(done.aside)")
    #expect(done.answer.isEmpty)
  }

  @Test func `is kept from a host that may not enroll, and takes no store`() throws {
    #expect(list(["--store", own.path + "/files"], by: PeopleLine([])).status == 64)
    let run = { bench.runAsRoot($0, on: FakeTerminal([]), store: own.path + "/files") }
    #expect(run(["exempt", "root"]).status == 0)
    let files = run(["list"])
    #expect(files.aside.contains("hint: sallyport list --fleet"), "\(files.aside)")
    try becomeHost(in: own.path, enrolls: false)
    let line = PeopleLine(try some())
    #expect(list(by: line).status == 77)
    #expect(line.asked.withLock { $0 } == 0)
  }
}
