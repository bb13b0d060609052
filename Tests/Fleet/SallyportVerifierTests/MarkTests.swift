import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A host that shows how far the database was` {
  private let own: OwnDatabase
  private let directory: TemporaryDirectory

  init() throws {
    own = try OwnDatabase()
    directory = try TemporaryDirectory()
  }

  private func start(_ name: String) throws -> Verifier {
    try Verifier(
      name, in: own, incarnation: IncarnationFile(at: directory.path + "/incarnation." + name),
      memory: directory.path + "/" + name)
  }

  private static let web1 = Array("web1".utf8)

  /// What a host is given that has shown this.
  private func mark(_ verifier: Verifier, after shown: [UInt8] = []) throws -> [UInt8] {
    try verifier.database.mark(after: shown, on: Self.web1)
  }

  private func read(_ mark: [UInt8]) throws -> Mark {
    try #require(Mark.read(try secret(mark)))
  }

  private func sealed(_ mark: Mark) throws -> [UInt8] {
    let frame = try #require(try mark.sealed(under: fleetKey()).frame)
    return frame.bytes(in: 0..<frame.count)
  }

  /// Where it is refused, the verifier has a look, and is there again.
  private func settle(_ verifier: Verifier) throws -> UInt64? {
    #expect(soon { !verifier.database.isAway })
    return try verifier.distrust()
  }

  /// Nobody else can tell: each verifier has the record that fits the database. It is told once,
  /// though each host shows its mark, and to each verifier.
  // shows: db-restore
  @Test func `finds that the database and all verifiers were put back together`() throws {
    let files = ["one", "two"].map { directory.path + "/" + $0 }
    let (one, two) = (try start("one"), try start("two"))
    let name = try one.enroll(.hotp)
    #expect(try one.type(code(0), as: name).isIn)
    for verifier in [one, two] { try verifier.beat() }
    try one.copyTables()
    let records = try files.map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
    for verifier in [one, two, one, two] { try verifier.beat() }
    #expect(try one.type(code(1), as: name).isIn)
    let (first, second) = (try mark(one), try mark(two))
    try one.putBack(Verifier.copied)
    for (file, record) in zip(files, records) { try record.write(to: URL(fileURLWithPath: file)) }
    let again = [try start("one"), try start("two")]
    #expect(try again[0].distrust() == 0, "nothing else shows it")
    for verifier in again { try verifier.database.watch() }
    // It is asked of the verifier that has not made it.
    #expect(throws: DatabaseFault.self) { try mark(again[1], after: first) }
    #expect(try settle(again[1]) == 1)
    #expect(again[1].complaints.contains { $0.contains("web1 has a mark of a later state") })
    for verifier in again {
      #expect(soon { (try? read(mark(verifier)).distrust) ?? 0 > 0 })
      for shown in [first, second] { #expect(try !mark(verifier, after: shown).isEmpty) }
      for counter in 1...9 {
        #expect((try? verifier.type(code(UInt64(counter)), as: name).isIn) != true)
      }
    }
    #expect(try again[0].distrust() == 1)
  }

  @Test func `is given one of which nothing follows while nothing is lost`() throws {
    let (one, two) = (try start("one"), try start("two"))
    for _ in 0..<3 {
      for verifier in [one, two] { try verifier.beat() }
      // The other one has read its number before that beat.
      for shown in [try mark(one), try mark(two)] {
        for verifier in [one, two] { #expect(try !mark(verifier, after: shown).isEmpty) }
      }
    }
    let last = try mark(two)
    #expect(try read(last).verifier == Array("two".utf8))
    // One that is gone for good, as `--prune` leaves it.
    _ = try one.ask("DELETE FROM worker WHERE verifier = 'two'")
    try one.beat()
    #expect(try !mark(start("one"), after: last).isEmpty)
    #expect(try one.distrust() == 0)
  }

  // decisive
  // shows: host-mark
  @Test func `causes nothing by a mark that is old, of another database, or made up`() throws {
    let one = try start("one")
    try one.database.watch()
    let genuine = try mark(one)
    var ahead = try read(genuine)
    ahead.n += 1000
    try one.database.distrust()
    #expect(soon { (try? read(mark(one)).distrust) ?? 0 > ahead.distrust })
    let now = try read(mark(one)).distrust
    #expect(try !mark(one, after: sealed(ahead)).isEmpty, "of before the loss")
    ahead.distrust = now
    ahead.incarnation[0] ^= 1
    #expect(try !mark(one, after: sealed(ahead)).isEmpty, "of another database")
    ahead.incarnation[0] ^= 1
    // Of a key that nothing needs any more.
    let other = FleetKey(id: 2, try secret([UInt8](repeating: 7, count: FleetKey.length)))
    let former = try #require(try ahead.sealed(under: other).frame)
    #expect(try !mark(one, after: former.bytes(in: 0..<former.count)).isEmpty)
    #expect(one.complaints.allSatisfy { !$0.contains("shows a mark") })
    // Made up: the right bytes without the key, and each byte of a right one changed but the key's.
    let right = try sealed(ahead)
    let seal = right.count - FleetKey.sealLength
    for place in right.indices where !(seal..<seal + 4).contains(place) {
      var changed = right
      changed[place] ^= 0x10
      #expect(try !mark(one, after: changed).isEmpty)
    }
    for shown in [[1], [UInt8](repeating: 1, count: 255), [0] + right, right + [0]] {
      #expect(try !mark(one, after: shown).isEmpty)
    }
    #expect(one.complaints.contains { $0.contains("web1 shows a mark that no verifier has made") })
    #expect(try one.distrust() == 1 && !one.database.isAway)
    // And this is one of which something follows.
    #expect(throws: DatabaseFault.self) { try mark(one, after: right) }
    #expect(try settle(one) == 2)
  }

  /// Another one has raised it, and this one has not found the same loss yet.
  @Test func `is given the number of distrust that was known with the mark`() throws {
    let one = try start("one")
    try one.database.distrust()
    one.database.books.withLock { $0.highest = 77 << 20 }
    #expect(try read(mark(one)).distrust == 0)
  }

  @Test func `finds a number of distrust that went back`() throws {
    let one = try start("one")
    try one.database.watch()
    var later = try read(mark(one))
    (later.distrust, later.n) = (1 << 50, 0)
    #expect(throws: DatabaseFault.self) { try mark(one, after: sealed(later)) }
    #expect(soon { !one.database.isAway })
    #expect(try one.ask("SELECT distrust FROM fleet").number(0, 0) ?? 0 > later.distrust)
  }

  @Test func `pings, with its mark or without one`() throws {
    let one = try start("one")
    let handler = PingHandler(one.database)
    let host = HostIdentity(
      try #require(Pin([UInt8](repeating: 5, count: 32))), host: Self.web1)
    func pong(_ body: Secret?) throws -> [UInt8] {
      let answer = handler.answer(try #require(body), from: host, arrived: 0)
      #expect(answer.answers(.ping))
      return answer.body
    }
    #expect(try pong(Secret(count: 0)) == [], "of the former version")
    let next = try #require(Ping.next(in: try pong(Ping.question(showing: []))))
    #expect(try Ping.next(in: pong(Ping.question(showing: next))) == next)
    one.database.lose("a test")
    #expect(try Ping.isRefusal(pong(Ping.question(showing: []))))
    #expect(try pong(Secret(count: 0)) == [])
  }
}
