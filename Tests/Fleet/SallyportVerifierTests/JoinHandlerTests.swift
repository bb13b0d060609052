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
struct `Joining by a token` {
  private let verifier: Verifier
  private let handler: JoinHandler
  private let table: HostTable
  private let pin = [UInt8](repeating: 9, count: 32)
  private let host: FleetHostName
  /// A key for each number, that no other test has.
  private let salt: [UInt8]

  init() throws {
    verifier = try Verifier("join")
    handler = JoinHandler(verifier.database, pins: [try #require(Pin(pin))])
    table = try HostTable(
      (testDatabase ?? "") + " user=sallyport_verifier", key: try fleetKey())
    var random = SystemRandomNumberGenerator()
    salt = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
    host = try #require(FleetHostName(Array("web-".utf8) + hexadecimal(salt)))
  }

  private func key(_ number: UInt8) -> [UInt8] {
    salt + [UInt8](repeating: number, count: 16)
  }

  private func invite(enrolls: Bool = false) throws -> Secret {
    let invitation = try table.invite(
      host, rights: HostRights(enrolls ? [.enrolls, .changes] : []),
      pin: pin, verifiers: [Array("192.0.2.1:7353".utf8)])
    return try JoinToken.read(invitation.token).secret
  }

  private func ask(
    _ purpose: JoinRequest.Purpose, _ secret: Secret, _ number: UInt8, names: [UserName] = []
  ) throws -> JoinAnswer? {
    let frame = try #require(JoinRequest(purpose, secret, names: names).encoded())
    let answer = handler.answer(key: key(number), try #require(JoinRequest.decode(frame)))
    return JoinAnswer.decode(try #require(answer.encoded()))
  }

  private func isWelcome(_ answer: JoinAnswer?, enrolls: Bool = false) -> Bool {
    guard case .welcome(let welcome) = answer else { return false }
    return welcome.host == host && welcome.enrolls == enrolls && welcome.pins == [pin]
  }

  private var row: HostTable.Row? {
    get throws { try table.hosts().first { $0.name == host.text } }
  }

  // decisive
  @Test func `looks as often as it likes, and joins once`() throws {
    let secret = try invite(enrolls: true)
    for number: UInt8 in [1, 1, 2] {
      #expect(isWelcome(try ask(.look, secret, number), enrolls: true))
    }
    #expect(try row == nil)
    #expect(isWelcome(try ask(.join, secret, 1), enrolls: true))
    #expect(try row?.right == "enrolls, changes")
    #expect(try ask(.join, secret, 2) == .refused(.usedToken))
    #expect(try ask(.look, secret, 2) == .refused(.usedToken))
  }

  @Test func `goes on with the same key where the answer was lost`() throws {
    let secret = try invite()
    #expect(isWelcome(try ask(.join, secret, 1)))
    let joined = try row?.joined
    #expect(isWelcome(try ask(.look, secret, 1)))
    #expect(isWelcome(try ask(.join, secret, 1)))
    #expect(try row?.joined == joined)
  }

  @Test func `is refused with a token that nobody gave, or that is too old`() throws {
    let unknown = try TestSupport.secret([UInt8](repeating: 3, count: 16))
    #expect(try ask(.join, unknown, 1) == .refused(.unknownToken))
    let secret = try invite()
    // Not so old that the next invitation, of another test, deletes it.
    let old = InviteRow(
      digest: try SHA256.digest(secret), host: host.bytes, enrolls: false,
      until: Int64(Date().timeIntervalSince1970) - 60)
    _ = try verifier.ask(
      "UPDATE invite SET until = $2::bigint, seal = $3 WHERE digest = $1",
      [.bytes(old.digest), .number(UInt64(old.until)), .bytes(try old.seal(under: fleetKey()))])
    #expect(try ask(.join, secret, 1) == .refused(.expiredToken))
    #expect(try row == nil)
  }

  @Test func `lets one of many win that join by one token at once`() async throws {
    let secret = try invite()
    let answers = try await withThrowingTaskGroup(of: JoinAnswer?.self) { group in
      for number: UInt8 in 1...16 { group.addTask { try ask(.join, secret, number) } }
      return try await group.reduce(into: [JoinAnswer?]()) { $0.append($1) }
    }
    #expect(answers.count { isWelcome($0) } == 1)
    #expect(answers.count { $0 == .refused(.usedToken) } == 15)
  }

  @Test func `replaces the key of a host that is invited again, and voids the token before`() throws
  {
    let first = try invite()
    let second = try invite(enrolls: true)
    #expect(try ask(.join, first, 1) == .refused(.unknownToken))
    #expect(isWelcome(try ask(.join, second, 1), enrolls: true))
    let again = try table.invite(host, pin: pin, verifiers: [Array("1".utf8)])
    #expect(again.replaces)
    #expect(isWelcome(try ask(.join, try JoinToken.read(again.token).secret, 2)))
    let keys = try verifier.ask("SELECT key FROM host WHERE name = $1", [.text(host.bytes)])
    #expect(keys.bytes(0, 0) == key(2))
    #expect(Hosts(verifier.database).lookup(try #require(Pin(key(1)))) == .revoked)
  }

  @Test func `is refused with a key that another host has`() throws {
    #expect(isWelcome(try ask(.join, try invite(), 1)))
    let other = try #require(FleetHostName(host.bytes + Array("-2".utf8)))
    let invitation = try table.invite(
      other, pin: pin, verifiers: [Array("1".utf8)])
    let secret = try JoinToken.read(invitation.token).secret
    #expect(try ask(.look, secret, 1) == .refused(.otherHost))
    #expect(try ask(.join, secret, 1) == .refused(.otherHost))
    #expect(try ask(.join, secret, 2) != .refused(.usedToken), "it is not used up by that")
  }

  @Test func `does not bring a host back that was revoked`() throws {
    let secret = try invite()
    #expect(isWelcome(try ask(.join, secret, 1)))
    let revoked = try table.revoke(host, reserveFor: 604_800)
    #expect(revoked.isProven && revoked.seen != nil && revoked.reserveUntil != nil)
    #expect(try row == nil)
    #expect(try ask(.join, secret, 1) == .refused(.unknownToken))
    #expect(try !table.revoke(host, reserveFor: 604_800).wasThere)
    // With a new invitation it needs a new key.
    let again = try invite()
    for purpose in [JoinRequest.Purpose.look, .join] {
      #expect(try ask(purpose, again, 1) == .refused(.otherHost))
    }
    #expect(isWelcome(try ask(.join, again, 2)))
  }

  @Test func `says which of the names are in the fleet`() throws {
    let name = try verifier.enroll()
    let known = try #require(UserName(Array(name.utf8)))
    let strange = try #require(UserName(Array("o'\u{e4},\" \\".utf8)))
    let answer = try ask(.look, try invite(), 1, names: [strange, known])
    guard case .welcome(let welcome) = answer else {
      Issue.record("\(answer as Any)")
      return
    }
    #expect(welcome.known == [known])
  }

  @Test func `gives no answer to what is no request`() throws {
    let router = FrameRouter(Hosts(verifier.database), join: handler, [:])
    let read = router.read(
      try #require(Pin(key(1))), .join, try TestSupport.secret("hello"), arrived: 0)
    #expect(read.answer() == VerifierAnswer(to: .join, [UInt8]()))
  }

  @Test func `takes no invitation, and no use of one, that was changed without the key`() throws {
    let secret = try invite()
    let digest = try SHA256.digest(secret)
    for change in ["enrolls = true", "until = until + 1", "key = '\\x00'"] {
      _ = try verifier.ask("UPDATE invite SET \(change) WHERE digest = $1", [.bytes(digest)])
      #expect(try ask(.join, secret, 1) == .refused(.unknownToken), "\(change)")
    }
    #expect(try row == nil)
    #expect(verifier.complaints.contains { $0.contains("invitation") })
  }

  @Test func `is of a host that the verifiers know at once`() throws {
    let router = FrameRouter(Hosts(verifier.database), join: handler, [:])
    let pin = try #require(Pin(key(1)))
    let nothing = try #require(Secret(count: 0))
    #expect(router.read(pin, .ping, nothing, arrived: 0).answer() == .databaseAway)
    #expect(router.standing(of: pin) == .unknown)
    let frame = try #require(JoinRequest(.join, try invite(), names: []).encoded())
    #expect(router.read(pin, .join, frame, arrived: 0).answer().answers(.join))
    #expect(router.read(pin, .ping, nothing, arrived: 0).answer().answers(.ping))
    #expect(router.standing(of: pin) == .member)
    #expect(router.read(pin, .question, nothing, arrived: 0).answer() == .notServed)
  }

  @Test func `leaves a frame of a stranger unread`() throws {
    let reading = CountingHandler()
    let router = FrameRouter(Hosts(verifier.database), join: handler, [.reserve: reading])
    let pin = try #require(Pin(key(1)))
    let body = try #require(Secret([1, 2, 3]))
    #expect(router.read(pin, .reserve, body, arrived: 0).answer() == .databaseAway)
    #expect(reading.count.withLock { $0 } == 0)
    let frame = try #require(JoinRequest(.join, try invite(), names: []).encoded())
    #expect(router.read(pin, .join, frame, arrived: 0).answer().answers(.join))
    #expect(router.read(pin, .reserve, body, arrived: 0).answer().answers(.reserve))
    #expect(reading.count.withLock { $0 } == 1)
  }

  @Test func `ends nobody's membership while the table of hosts cannot be read`() throws {
    let other = try Verifier("join-away")
    let router = FrameRouter(Hosts(other.database), [:])
    other.database.lose("it is taken away")
    let pin = try #require(Pin(key(1)))
    #expect(router.standing(of: pin) == .member)
    let nothing = try #require(Secret(count: 0))
    #expect(router.read(pin, .question, nothing, arrived: 0).answer() == .databaseAway)
  }

  // decisive
  @Test func `keeps no secret of a token`() throws {
    let secret = try invite()
    let rows = try verifier.ask(
      "SELECT count(*) FROM invite WHERE position($1::bytea IN digest) > 0 OR digest = $1",
      [.bytes(bytes(secret))])
    #expect(rows.number(0, 0) == 0)
  }
}

/// Counts what it reads.
private final class CountingHandler: FrameHandler {
  let count = Locked(0)

  func read(_ body: Secret) -> Bool? {
    count.withLock { $0 += 1 }
    return true
  }

  func answer(_ question: Bool?, from asker: HostIdentity, arrived: UInt64) -> VerifierAnswer {
    VerifierAnswer(to: .reserve, [])
  }
}
