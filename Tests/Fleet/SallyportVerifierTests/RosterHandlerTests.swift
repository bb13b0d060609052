import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What a host is told of many people at once` {
  private let verifier: Verifier

  init() throws { verifier = try Verifier("roster") }

  private func user(_ name: String) throws -> UserName {
    try #require(UserName(Array(name.utf8)))
  }

  private func body(_ names: [String], enrolls: Bool = true) throws -> [UInt8] {
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: Array("web1".utf8), enrolls: enrolls)
    let frame = try #require(RosterRequest(try names.map(user)).encoded())
    let answer = ManagementHandler(verifier.database).answer(frame, from: asker, arrived: 0)
    #expect(answer.answers(.management))
    return answer.body
  }

  private func entries(_ names: [String]) throws -> [RosterAnswer.Entry] {
    let request = RosterRequest(try names.map(user))
    let answer = RosterAnswer.decode(try body(names), to: request)
    guard case .told(let entries)? = answer else {
      Issue.record("\(String(describing: answer))")
      return []
    }
    return entries
  }

  private func set(_ level: UserNote.Level, of name: String) throws {
    try verifier.store(for: name).setLevel(level, of: Account(name: try user(name), uid: nil))
  }

  /// Bytes that a text of an array would end at, too.
  private static let odd = ["\"}{,\\", "jürgen", "a b", "NULL"]

  @Test func `is each one's place, factors and level, in their order`() throws {
    let names = try [verifier.enroll(), verifier.enroll(.hotp)]
    let (ended, taken, nobody) = (try verifier.enroll(), try verifier.enroll(), UUID().uuidString)
    let store = verifier.store(for: ended)
    #expect(try store.end(Account(name: try user(ended), uid: nil), id: 0xe0e0))
    let row = try #require(try verifier.store().row(of: Array(taken.utf8), reload: true))
    let burial = MoveRequest.Tombstone(id: 0xe0e0, version: row.seen.digest, token: 9)
    #expect(try store.bury(try user(taken), burial, by: Array("web2".utf8)) == nil)
    try set(.required(from: UnixTime(258)), of: names[1])
    try set(.exempt(until: nil), of: nobody)
    let (totp, hotp) = (factors(.totp), factors(.hotp))
    let host = try #require(FleetHostName(Array("web2".utf8)))
    let found = try entries([names[1], ended, nobody, names[0], taken, "nobody", names[0]])
    #expect(
      found == [
        .init(.enrolled(hotp), .required(from: UnixTime(258))), .init(.notEnrolled, nil),
        .init(.notEnrolled, .exempt(until: nil)), .init(.enrolled(totp), nil),
        .init(.taken(by: host), nil),
        .init(.notEnrolled, nil), .init(.enrolled(totp), nil),
      ])
    #expect(verifier.complaints.isEmpty)
  }

  private func factors(_ kind: FactorKind) -> Factors {
    var factors = Factors()
    factors.insert(kind)
    return factors
  }

  @Test func `is found under any name that there may be`() throws {
    for name in Self.odd where try entries([name]) == [.init(.notEnrolled, nil)] {
      try set(.exempt(until: nil), of: name)
    }
    #expect(try entries(Self.odd).map(\.level) == Self.odd.map { _ in .exempt(until: nil) })
  }

  @Test func `is of 200 as of one`() throws {
    let own = try verifier.enroll()
    let names = (0..<RosterRequest.most - 1).map { "none-\($0)" } + [own]
    let found = try entries(names)
    #expect(found.count == RosterRequest.most)
    #expect(found.dropLast().allSatisfy { $0 == .init(.notEnrolled, nil) })
    #expect(found.last == .init(.enrolled(factors(.totp)), nil))
  }

  // decisive
  @Test func `is of the others where one's rows were changed or are gone`() throws {
    let (changed, gone, whole) = (
      try verifier.enroll(), try verifier.enroll(), try verifier.enroll()
    )
    _ = try entries([changed, gone, whole])
    _ = try verifier.ask(
      "UPDATE enrollment SET body = set_byte(body, 40, get_byte(body, 40) # 1) WHERE name = $1",
      [.bytes(Array(changed.utf8))])
    _ = try verifier.ask("DELETE FROM state WHERE name = $1", [.bytes(Array(gone.utf8))])
    _ = try verifier.ask("DELETE FROM enrollment WHERE name = $1", [.bytes(Array(gone.utf8))])
    #expect(
      try entries([changed, gone, whole]) == [
        .init(.unreadable, nil), .init(.unreadable, nil),
        .init(.enrolled(factors(.totp)), nil),
      ])
    #expect(verifier.complaints.contains { $0.contains("modified or rolled back") })
  }

  // decisive
  // shows: secrets-out
  @Test func `is the same of all where the host may not enroll`() throws {
    let own = try verifier.enroll()
    try set(.exempt(until: nil), of: "none")
    let told = try [[own], ["nobody"], ["none"], [own, "nobody"]].map {
      try body($0, enrolls: false)
    }
    #expect(Set(told) == [MoveAnswer.notAllowed.encoded()])
  }

  @Test func `is nothing while the database is away`() throws {
    verifier.database.lose("a test")
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: Array("web1".utf8), enrolls: true)
    let frame = try #require(RosterRequest([try user("alice")]).encoded())
    let handler = ManagementHandler(verifier.database)
    #expect(handler.answer(frame, from: asker, arrived: 0) == .databaseAway)
    // It is about nobody: no question about one person waits for it.
    let request = try #require(handler.read(frame))
    #expect(handler.line(of: request) == nil)
  }
}
