import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What a host is told of logins of the fleet` {
  private let verifier: Verifier

  init() throws { verifier = try Verifier("events", in: try OwnDatabase()) }

  private func answer(_ request: EventsRequest, enrolls: Bool = true) throws -> VerifierAnswer {
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: Array("web1".utf8), enrolls: enrolls)
    let frame = try #require(request.encoded())
    return ManagementHandler(verifier.database).answer(frame, from: asker, arrived: 0)
  }

  /// All pages, and how many they were.
  private func told(
    _ names: [String] = [], _ kinds: EventsRequest.Kinds = .both, since: Int64 = 0
  ) throws -> (entries: [EventsAnswer.Entry], pages: Int) {
    let users = try names.map { try #require(UserName(Array($0.utf8))) }
    var request = EventsRequest(since: UnixTime(since), upTo: .max, kinds, of: users)
    var (found, pages): ([EventsAnswer.Entry], Int) = ([], 0)
    while true {
      let answer = EventsAnswer.decode(try answer(request).body, to: request)
      guard case .told(let entries, let next)? = answer else {
        Issue.record("\(String(describing: answer))")
        return (found, pages)
      }
      (found, pages) = (found + entries, pages + 1)
      guard let next else { return (found, pages) }
      request.upTo = next
    }
  }

  /// One for each second before the last, of these people in turn, each third one wrong.
  private func write(_ count: Int, of people: Int) throws {
    _ = try verifier.ask(
      """
      INSERT INTO event (at, host, name, service, address, outcome)
      SELECT timestamptz 'epoch' + (1000000 - i) * interval '1 second', 'web' || i % 7,
        ('user' || i % \(people))::bytea, 'sshd', '192.0.2.7',
        CASE WHEN i % 3 = 0 THEN 'wrong-code' ELSE 'accepted' END
      FROM generate_series(0, \(count - 1)) i
      """)
  }

  @Test func `is what a login came to, with its host`() throws {
    let name = try verifier.enroll()
    #expect(try verifier.type("287082", as: name).isAccepted)
    #expect(try !verifier.type("000000", as: name, at: 60).isAccepted)
    let found = try told([name]).entries
    #expect(try told([name, name]).entries == found, "once, also where a name is asked for twice")
    let outcomes = found.map { String(decoding: $0.outcome, as: UTF8.self) }
    #expect(outcomes == ["wrong-code", "accepted"])
    for one in found {
      let texts = [one.host, one.name, one.service, one.address]
      #expect(
        texts.map { String(decoding: $0, as: UTF8.self) } == ["web1", name, "sshd", "unknown"])
      #expect(abs(Double(one.at) / 1_000_000 - Date().timeIntervalSince1970) < 60)
    }
    #expect(try told([name], .accepted).entries == [found[1]])
    #expect(try told([name], .refused).entries == [found[0]])
    #expect(try told(["nobody", name]).entries == found)
    #expect(try told(["nobody"]).entries.isEmpty)
  }

  // decisive
  @Test func `is what a host changed, by the save of the change`() throws {
    let name = try verifier.enroll()
    let user = try #require(UserName(Array(name.utf8)))
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: Array("web2".utf8), enrolls: true)
    for verb in [
      .block(until: nil), .tell, .unblock, .unblock, .unlock(id: 0xe0e0), .unlock(id: 1),
      .level(.exempt(until: nil)), .forget(id: 0xe0e0), .end(id: 0xe0e0),
    ] as [PersonRequest.Verb] {
      let frame = try #require(PersonRequest(verb, of: user).encoded())
      _ = ManagementHandler(verifier.database).answer(frame, from: asker, arrived: 0)
    }
    let found = try told([name], .acts).entries
    #expect(
      found.reversed().map { String(decoding: $0.outcome, as: UTF8.self) } == [
        "act-block", "act-unblock", "act-unlock", "act-exempt", "act-forget", "act-unenroll",
      ])
    #expect(found.allSatisfy { $0.host == Array("web2".utf8) && $0.name == Array(name.utf8) })
    #expect(try told([name]).entries.isEmpty)
    #expect(try told([], .acts).entries == found)
  }

  // decisive
  @Test func `is each event once, the newest first, on as many pages as it takes`() throws {
    try write(2600, of: 13)
    let all = try told()
    #expect(all.entries.count == 2600 && (52...60).contains(all.pages))
    #expect(all.entries.map(\.at) == all.entries.map(\.at).sorted(by: >))
    #expect(Set(all.entries.map(\.at)).count == 2600)
    let own = try told(["user5"])
    #expect(own.entries == all.entries.filter { $0.name == Array("user5".utf8) })
    #expect(own.entries.count == 200)
    let late = try told(["user5"], since: 1_000_000 - 99)
    #expect(late.entries == own.entries.filter { $0.at >= 999_901_000_000 })
    #expect(late.entries.count == 8)
  }

  /// A page looks at 20,000 rows and has what it found, with where to go on; no others' rows count
  /// for one person.
  @Test func `looks at a bounded number of rows for a page`() throws {
    try write(45_000, of: 45_000)
    let found = try told(["user44999"])
    #expect(found.entries.count == 1 && found.pages == 1)
    #expect(try told([], .acts).pages == 3)
    _ = try verifier.ask("UPDATE event SET name = 'user1'")
    #expect(try told(["user1"], .acts).pages == 3)
  }

  // decisive
  @Test func `is whole where many are of one moment`() throws {
    _ = try verifier.ask(
      """
      INSERT INTO event (at, host, name, service, address, outcome)
      SELECT timestamptz 'epoch' + (1 + i / 30) * interval '1 second', 'web1', 'alice', 'sshd',
        'local', 'accepted' FROM generate_series(0, 299) i
      """)
    #expect(try told(["alice"]).entries.count == 300)
  }

  // decisive
  @Test func `is the same of all where the host may not enroll`() throws {
    let request = EventsRequest(since: UnixTime(0), upTo: .max, .both, of: [])
    let before = try answer(request, enrolls: false).body
    try write(3, of: 1)
    #expect(try answer(request, enrolls: false).body == before)
    #expect(before == MoveAnswer.notAllowed.encoded())
    verifier.database.lose("a test")
    #expect(try answer(request) == .databaseAway)
  }
}
