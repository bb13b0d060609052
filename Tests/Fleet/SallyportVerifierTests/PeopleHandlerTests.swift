import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What a host is told of all people of the fleet` {
  private let verifier: Verifier
  private static let now = UnixTime(1_772_530_000)

  init() throws {
    verifier = try Verifier("people", in: try OwnDatabase(), now: { Self.now })
  }

  private func answer(_ request: PeopleRequest, enrolls: Bool = true) throws -> VerifierAnswer {
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: Array("web1".utf8), enrolls: enrolls)
    let frame = try #require(request.encoded())
    return ManagementHandler(verifier.database).answer(frame, from: asker, arrived: 0)
  }

  /// A page after the other.
  private func pages(of count: Int) throws -> [[PeopleAnswer.Entry]] {
    var (found, after): ([[PeopleAnswer.Entry]], [UInt8]) = ([], [])
    while true {
      let request = PeopleRequest(after: after, count: count)
      let answer = PeopleAnswer.decode(try answer(request).body, to: request)
      guard case .told(let entries, let isLast)? = answer else {
        Issue.record("\(String(describing: answer))")
        return found
      }
      found.append(entries)
      guard !isLast, let last = entries.last else { return found }
      after = last.name
    }
  }

  private func account(_ name: String) throws -> Account {
    Account(name: try #require(UserName(Array(name.utf8))), uid: nil)
  }

  private func enroll(_ name: String, _ change: (inout LoginState) -> Void = { _ in }) throws {
    let own = try fleetEnrollment([try authenticator(parameters())], name)
    var state = LoginState(initialFor: own)
    change(&state)
    try verifier.store(for: name).create(own, state)
  }

  private func enrolled(
    lastUse: UnixTime? = nil, openPasses: Int = 0, lock: PeopleAnswer.Lock = .none
  ) throws -> PeopleAnswer.Place {
    .enrolled(
      PeopleAnswer.Enrolled(
        [try label("phone")], backupCodesLeft: 0, since: UnixTime(1_700_000_000), lastUse: lastUse,
        openPasses: openPasses, lock: lock))
  }

  @Test func `is nothing of a fleet without people, whose decoys are nobody`() throws {
    #expect(try pages(of: 3) == [[]])
  }

  /// What sorts before and behind the decoys, and a row that somebody wrote.
  @Test func `is each of them once, in the order of names, however long a page is`() throws {
    let names = ["!", "#a", "0", "alice", "bob", "zo\u{eb}"]
    for name in names { try enroll(name) }
    let stranger: [UInt8] = [0x2d, 0xff, 0]
    for table in [
      "enrollment (name, body) VALUES ($1, 'x')",
      "state (name, version, body) VALUES ($1, 1, 'x')",
    ] {
      _ = try verifier.ask("INSERT INTO " + table, [.bytes(stranger)])
    }
    let all = (names.map { Array($0.utf8) } + [stranger])
      .sorted { $0.lexicographicallyPrecedes($1) }
    for count in 1...8 {
      let pages = try pages(of: count)
      #expect(pages.flatMap { $0 }.map(\.name) == all)
      #expect(pages.count == (all.count + count - 1) / count)
    }
    let strange = try pages(of: 60).flatMap { $0 }.filter { $0.name == stranger }
    #expect(strange == [.init(stranger, .unreadable)])
  }

  @Test func `is where each is enrolled, the level, a block, passes, and the last use`() throws {
    for name in ["alice", "ended", "locked", "taken", "used"] {
      try enroll(name) { state in
        if name == "used" {
          state.authenticators[0].lastUse = Use(
            time: UnixTime(1_772_000_000), origin: .unknown, service: nil)
        }
        let most = GuessProbability.budgets.upperBound
        if name == "locked" { state.other = Bucket(spent: most, since: Self.now) }
      }
    }
    #expect(try verifier.store(for: "ended").end(try account("ended"), id: 0xe0e0))
    let row = try #require(try verifier.store().row(of: Array("taken".utf8), reload: true))
    let burial = MoveRequest.Tombstone(id: 0xe0e0, version: row.seen.digest, token: 9)
    let taken = verifier.store(for: "taken")
    #expect(try taken.bury(try account("taken").name, burial, by: Array("web2".utf8)) == nil)
    let end = UnixTime(2_000_000_000)
    #expect(try verifier.store(for: "gone").block(try account("gone"), until: end))
    try verifier.store(for: "new").setLevel(.required(from: end), of: try account("new"))
    try verifier.store(for: "alice").setLevel(.exempt(until: end), of: try account("alice"))
    _ = try verifier.store(for: "counted").countLogin(of: try account("counted"))
    let found = try pages(of: 60).flatMap { $0 }
    let host = try #require(FleetHostName(Array("web2".utf8)))
    let locked = try #require(found.first { $0.name == Array("locked".utf8) })
    guard case .enrolled(let own) = locked.place, case .until(let time) = own.lock else {
      Issue.record("\(locked)")
      return
    }
    #expect(time > Self.now)
    #expect(
      found.filter { $0 != locked } == [
        .init(Array("alice".utf8), try enrolled(), level: .exempt(until: end)),
        .init(Array("counted".utf8), .notEnrolled), .init(Array("ended".utf8), .notEnrolled),
        .init(
          Array("gone".utf8), .notEnrolled, block: FleetBlock(since: Self.now, until: end)),
        .init(Array("new".utf8), .notEnrolled, level: .required(from: end)),
        .init(Array("taken".utf8), .taken(by: host)),
        .init(Array("used".utf8), try enrolled(lastUse: UnixTime(1_772_000_000))),
      ])
  }

  // decisive
  @Test func `is of the others where one's rows were changed`() throws {
    for name in ["alice", "bob", "carol"] { try enroll(name) }
    _ = try verifier.ask(
      "UPDATE enrollment SET body = set_byte(body, 40, get_byte(body, 40) # 1) WHERE name = 'bob'")
    let found = try pages(of: 2).flatMap { $0 }
    #expect(found.map(\.place) == [try enrolled(), .unreadable, try enrolled()])
    #expect(verifier.complaints.contains { $0.contains("modified or rolled back") })
  }

  // decisive
  @Test func `is the same where the host may not enroll, with people or without`() throws {
    let before = try answer(PeopleRequest(after: []), enrolls: false)
    try enroll("alice")
    #expect(try answer(PeopleRequest(after: []), enrolls: false) == before)
    #expect(before.body == MoveAnswer.notAllowed.encoded())
  }

  @Test func `is nothing while the database is away`() throws {
    verifier.database.lose("a test")
    #expect(try answer(PeopleRequest(after: [])) == .databaseAway)
  }
}
