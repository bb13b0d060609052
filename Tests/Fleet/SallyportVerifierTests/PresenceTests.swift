import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportVerifier

/// A start of a service, by its number, and the number that it says.
private func start(_ random: UInt8, _ number: UInt64) -> HostStart {
  HostStart(random: [UInt8](repeating: random, count: HostStart.randomLength), number: number)
}

@Suite struct `What a host says of its starts` {
  /// Who says what, seconds after the one before, and what comes of it.
  private typealias Said = (HostStart, after: Int64, HostStartReply)

  private func replies(_ said: [Said]) -> [HostStartReply] {
    var row = PresenceRow(subject: [UInt8](repeating: 7, count: 32))
    var now: Int64 = 1_800_000_000_000
    return said.map { one in
      now += one.after * 1000
      return row.take(one.0, at: now)
    }
  }

  private func check(_ said: [Said]) { #expect(replies(said) == said.map(\.2)) }

  @Test func `is fine of restarts, reboots and codes that were used meanwhile`() {
    check([
      (start(1, 1), 0, .fine), (start(1, 1), 600, .fine), (start(2, 2), 5, .fine),
      (start(2, 9), 86_400, .fine), (start(3, 10), 1, .fine), (start(3, 10), 0, .fine),
    ])
  }

  @Test func `is no alarm where a question was late, or two connections began at once`() {
    check([
      (start(1, 5), 0, .fine), (start(1, 6), 1, .fine), (start(1, 5), 0, .again),
      (start(1, 6), 4, .fine),
      // Of a line that was half open when the power went, long after.
      (start(2, 7), 9, .fine), (start(1, 6), 300, .again), (start(2, 7), 4, .fine),
      (start(2, 8), 600, .fine),
      // Twice, in one moment.
      (start(1, 6), 5, .again), (start(1, 6), 0, .again), (start(2, 8), 5, .fine),
    ])
  }

  // decisive
  // shows: host-put-back
  @Test func `is found where its disk was put back, at a start and while it ran`() {
    check([
      (start(1, 5), 0, .fine), (start(1, 8), 60, .fine), (start(2, 6), 60, .again),
      (start(2, 6), 4, .rests), (start(2, 7), 4, .rests), (start(3, 99), 60, .rests),
    ])
    check([
      (start(1, 5), 0, .fine), (start(1, 8), 60, .fine), (start(1, 5), 60, .again),
      (start(1, 6), 4, .rests),
    ])
    // Exactly as far as before.
    check([(start(1, 5), 0, .fine), (start(2, 5), 60, .again), (start(2, 5), 4, .rests)])
  }

  // decisive
  // shows: host-put-back
  @Test func `is found where there are two of it, whichever is ahead`() {
    check([
      (start(1, 5), 0, .fine), (start(2, 6), 60, .fine), (start(1, 5), 60, .again),
      (start(1, 5), 4, .rests),
    ])
    check([
      (start(1, 5), 0, .fine), (start(2, 6), 60, .fine), (start(1, 90), 60, .again),
      (start(1, 90), 4, .rests), (start(2, 6), 4, .rests),
    ])
  }

  @Test func `goes up by no more than a machine can do`() {
    check([
      (start(1, 1 << 40), 0, .again), (start(2, 5), 1, .fine), (start(2, .max), 5, .again),
      (start(2, 6), 5, .fine),
    ])
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A host that was put back` {
  // decisive
  // shows: host-put-back
  @Test func `has neither rights nor a reserve until root accepts it, and its people log in`()
    throws
  {
    let own = try OwnDatabase()
    let verifier = try Verifier("presence", in: own)
    let (database, fleetKey) = (verifier.database, try fleetKey())
    let table = try HostTable(own.words + " user=sallyport_verifier", key: fleetKey)
    let pin = try #require(Pin([UInt8](repeating: 5, count: 32)))
    let row = HostRow(name: Array("web1".utf8), key: pin.bytes, enrolls: true, joined: 1)
    _ = try verifier.ask(
      "INSERT INTO host (name, key, enrolls, joined, seal) VALUES ('web1', $1, true, 1, $2)",
      [.bytes(pin.bytes), .bytes(try row.seal(under: fleetKey))])
    func host() throws -> HostIdentity {
      guard case .host(let found) = Hosts(database).lookup(pin) else {
        throw DatabaseFault.away
      }
      return found
    }
    let presences = Presences(database: database)
    func say(_ one: HostStart) throws -> HostStartReply {
      try presences.take(one, from: try host())
    }
    #expect(try say(start(1, 5)) == .fine)
    #expect(try host() == HostIdentity(pin, host: row.name, rights: HostRights(former: true)))
    #expect(try say(start(2, 4)) == .again)
    #expect(soon { (try? say(start(2, 4))) == .rests })
    let resting = HostIdentity(pin, host: row.name, holdsReserve: false, rests: true)
    #expect(try host() == resting)
    #expect(try table.hosts().map(\.right) == ["rests: put back"])
    #expect(verifier.complaints.count { $0.contains("web1 was put back") } == 1)
    // A row that somebody without the key has changed.
    _ = try verifier.ask("UPDATE presence SET kind = 0")
    #expect(try say(start(3, 99)) == .rests)
    #expect(try host() == resting && table.hosts().map(\.right) == ["rests: put back"])
    let name = try #require(FleetHostName(row.name))
    for change in ["kind = 0", "kind = 77"] {
      _ = try verifier.ask("UPDATE presence SET \(change)")
      #expect(try host() == resting)
      #expect(try table.accept(name) == .done)
      #expect(try table.accept(name) == .needless)
      #expect(try !host().rights.isEmpty && host().holdsReserve)
      #expect(try say(start(3, 6)) == .fine)
    }
    #expect(try table.accept(name, isEphemeral: true) == .done)
    let all = HostRights(former: true)
    #expect(try host() == HostIdentity(pin, host: row.name, rights: all, holdsReserve: false))
    #expect(try say(start(4, 1)) == .fine)
    // What it said goes with it.
    _ = try table.revoke(name, reserveFor: 604_800)
    #expect(try verifier.ask("SELECT count(*) FROM presence").number(0, 0) == 0)
    #expect(try table.accept(name) == .noHost)
  }

  @Test func `is not looked for where it keeps nothing`() throws {
    let own = try OwnDatabase()
    let verifier = try Verifier("ephemeral", in: own)
    let table = try HostTable(own.words + " user=sallyport_verifier", key: try fleetKey())
    let name = try #require(FleetHostName(Array("pod1".utf8)))
    let pin = try #require(Pin([UInt8](repeating: 6, count: 32)))
    let invitation = try table.invite(
      name, isEphemeral: true, pin: pin.bytes,
      verifiers: [Array("192.0.2.1:7353".utf8)])
    let request = JoinRequest(.join, try JoinToken.read(invitation.token).secret, names: [])
    let handler = JoinHandler(verifier.database, pins: [pin])
    guard case .welcome = handler.answer(key: pin.bytes, request),
      case .host(let host) = Hosts(verifier.database).lookup(pin)
    else {
      Issue.record("it joined")
      return
    }
    #expect(!host.holdsReserve)
    let presences = Presences(database: verifier.database)
    for one in [start(1, 1), start(2, 1), start(1, 1)] {
      #expect(try presences.take(one, from: host) == .fine)
    }
    #expect(try table.hosts().map(\.right) == ["asks, ephemeral"])
    let rows = try verifier.ask("SELECT count(*) FROM presence")
    #expect(rows.number(0, 0) == 1, "that of its invitation is gone")
  }
}
