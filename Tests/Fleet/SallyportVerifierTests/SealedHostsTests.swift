import FleetProtocol
import Foundation
import OneTimePassword
import SallyportCore
import SallyportSystem
import TestSupport
import Testing

@testable import FleetTransport
@testable import SallyportVerifier

private func key(_ byte: UInt8 = 7, id: UInt32 = 0x0102_0304) throws -> FleetKey {
  FleetKey(id: id, try secret([UInt8](repeating: byte, count: FleetKey.length)))
}

private func pin(_ byte: UInt8 = 9) throws -> Pin {
  try #require(Pin([UInt8](repeating: byte, count: 32)))
}

private let web1 = Array("web1".utf8)

@Suite struct `The keys of a host` {
  /// The bytes of a frame of the kind 8.
  private func keys(
    _ fleet: FleetKey? = nil, of host: Pin? = nil, name: [UInt8] = web1,
    joined: Int64 = 1_700_000_000
  ) throws -> [UInt8] {
    let keys = try (fleet ?? key()).present.frameKeys(
      of: host ?? pin(), name: name, joined: joined)
    let bytes = try #require(keys.encoded())
    return bytes.bytes(in: 0..<bytes.count)
  }

  /// With Python's hmac and hashlib, as docs/fleet-format.md has it.
  @Test func `are what another program computes`() throws {
    let wanted =
      "0113ad0c5ed8865174c3538f03d842e5497db6b13aa7af43698a2d3a8b58f166bdc88063466ae98a"
      + "64a879d33345c720b63bd8ad31806da149069011069aaa26a38d93695d925fe8d084bc4845a71499"
      + "757c55bdfae1e2bfdea2f2d4879b2da1f54a3d2c8957a574eed98751f1e200c719b4e52053cfd03c"
      + "77fc65d0bb3a4e2317ef2ccc624c1fdce150d3955e4071f24811089703252a67693de45a42145fca"
      + "b72376b1737021f330"
    #expect(try hexadecimal(keys()) == Array(wanted.utf8))
  }

  @Test func `are others for each value and key, and begin with their name`() throws {
    let all = [
      try keys(), try keys(key(8)), try keys(of: pin(8)), try keys(name: Array("web2".utf8)),
      try keys(joined: 1_700_000_001),
    ]
    for part in [1..<9, 9..<41, 41..<73, 73..<105, 105..<137] {
      #expect(Set(all.map { Array($0[part]) }).count == all.count)
    }
    // Four halves, none of them twice.
    let halves = [9..<41, 41..<73, 73..<105, 105..<137].map { Array(all[0][$0]) }
    #expect(Set(halves).count == 4)
    // What proves a revocation is the host's, whenever it joined.
    #expect(all[0].suffix(32) == all[4].suffix(32))
    #expect(Set(all.prefix(3).map { Array($0.suffix(32)) }).count == 3)
  }
}

/// A verifier over its database that answers a host over TLS.
private final class Line {
  let own: OwnDatabase
  let verifier: Verifier
  let identity: Identity
  let revocations: Revocations
  let seals: SealedHosts
  let file: TemporaryDirectory
  private let (pinned, server): (Identity, FleetServer)

  init(joined: Int64 = 5) throws {
    own = try OwnDatabase()
    verifier = try Verifier("seals", in: own)
    (identity, pinned) = (
      try Identity(pem: Identity.newKey()), try Identity(pem: Identity.newKey())
    )
    file = try TemporaryDirectory()
    let row = HostRow(name: web1, key: identity.pin.bytes, joined: joined)
    _ = try verifier.ask(
      """
      INSERT INTO host (name, key, enrolls, joined, seal)
      VALUES ('web1', $1, false, $2::bigint, $3)
      """,
      [
        .bytes(identity.pin.bytes), .number(UInt64(joined)),
        .bytes(try row.seal(under: verifier.database.key)),
      ])
    revocations = try Revocations(at: file.path + "/revoked", key: fleetKey(), patience: 0)
    let hosts = Hosts(verifier.database, revocations)
    seals = SealedHosts(verifier.database, hosts, revocations)
    let router = FrameRouter(
      hosts,
      [
        .status: StatusHandler(
          verifier.database, verifier: try label("seals"), started: UnixTime(0)),
        .keys: KeysHandler(seals),
      ])
    server = try FleetServer(
      on: VerifierAddress(bytes: [127, 0, 0, 1], port: 0), identity: pinned, seals: seals,
      standing: { router.standing(of: $0) },
      handler: { router.read($0, $1, $2, arrived: $3) })
  }

  deinit { server.stop(within: 0) }

  /// A host with that seal; nil: of the former version, or somebody with its TLS key alone.
  func host(_ seal: HostSeal?) -> VerifierPool {
    VerifierPool(
      FleetFile(
        host: "web1", enrolls: false, verifiers: [server.address], pins: [pinned.pin]), identity,
      seal: seal)
  }

  func isAnswered(_ host: VerifierPool) throws -> Bool {
    try host.ask(.status, try secret(""), within: 20_000).answers(.status)
  }

  /// What is written to the tables; nil: what all verifiers understand.
  func setVersion(_ number: UInt64) throws {
    let row = FleetRow(needs: number, writes: number)
    _ = try verifier.ask(
      "UPDATE fleet SET needs = $1::bigint, writes = $1::bigint, seal = $2",
      [.number(number), .bytes(try row.seal(under: verifier.database.key))])
    // It is read with the next login.
    _ = try verifier.type("000000", as: "nobody")
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A host that seals what it asks` {
  // decisive; shows: sealed
  @Test func `is answered without, until it has sealed something after the migration`() throws {
    let line = try Line()
    try line.setVersion(Schema.former)
    let plain = line.host(nil)
    #expect(try line.isAnswered(plain))
    let keys = try #require(plain.fetchKeys(within: 20_000))
    #expect(keys.name == line.seals.keys(of: line.identity.pin).first?.name)
    let seal = HostSeal(line.identity.pin, keys)
    let sealed = line.host(seal)
    #expect(try line.isAnswered(sealed))
    line.seals.writeDown()
    #expect(line.seals.isOnlySealed(line.identity.pin) == false)
    #expect(try line.isAnswered(plain) && line.isAnswered(sealed) && !seal.isOnly)
    try line.setVersion(Schema.number)
    #expect(try line.isAnswered(sealed))
    line.seals.writeDown()
    #expect(line.seals.isOnlySealed(line.identity.pin) == true)
    #expect(try line.isAnswered(sealed) && seal.isOnly)
    // The TLS key alone gets nothing answered, neither keys.
    for kind in FrameKind.allCases where kind != .join {
      #expect(try plain.ask(kind, try secret(""), within: 20_000) == .databaseAway)
    }
    #expect(plain.fetchKeys(within: 20_000) == nil)
    #expect(line.verifier.complaints.count { $0.contains("web1 asks without the seal") } == 1)
    #expect(sealed.fetchKeys(within: 20_000)?.name == keys.name)
    #expect(line.verifier.notices.count { $0.contains("web1 seals what it asks") } == 1)
  }

  // decisive; shows: sealed
  @Test func `stays so where the database forgets it, until it joins again`() throws {
    let line = try Line()
    let pin = line.identity.pin
    let keys = try #require(line.host(nil).fetchKeys(within: 20_000))
    let sealed = line.host(HostSeal(pin, keys))
    #expect(try line.isAnswered(sealed))
    line.seals.writeDown()
    _ = try line.verifier.ask("DELETE FROM revoked")
    #expect(line.seals.isOnlySealed(pin) == true)
    // A verifier that is started.
    let again = try Revocations(at: line.file.path + "/revoked", key: fleetKey(), patience: 0)
    let hosts = Hosts(line.verifier.database, again)
    _ = hosts.lookup(pin)
    #expect(SealedHosts(line.verifier.database, hosts, again).isOnlySealed(pin) == true)
    // By another invitation with the same key.
    let row = HostRow(name: web1, key: pin.bytes, joined: 6)
    _ = try line.verifier.ask(
      "UPDATE host SET joined = 6, seal = $1",
      [.bytes(try row.seal(under: line.verifier.database.key))])
    let later = Hosts(line.verifier.database, again)
    _ = later.lookup(pin)
    let seals = SealedHosts(line.verifier.database, later, again)
    #expect(seals.isOnlySealed(pin) == false)
    #expect(seals.keys(of: pin).first?.name != keys.name)
    // Where the hosts were read before, nothing is given or written down by what they were then.
    line.seals.noteSealed(pin, former: false)
    _ = try line.verifier.ask("DELETE FROM revoked")
    #expect(try SealedHosts(line.verifier.database, hosts, again).newKeys(of: pin) == nil)
    #expect(try seals.newKeys(of: pin)?.name == seals.keys(of: pin).first?.name)
  }

  // decisive; shows: sealed
  @Test func `is answered without, too, where it keeps nothing`() throws {
    let line = try Line()
    let (pin, plain) = (line.identity.pin, line.host(nil))
    let keys = try #require(plain.fetchKeys(within: 20_000))
    #expect(try line.isAnswered(line.host(HostSeal(pin, keys))))
    line.seals.writeDown()
    #expect(try plain.ask(.status, try secret(""), within: 20_000) == .databaseAway)
    // Its disk is as before it joined.
    let table = try HostTable(line.own.words + " user=sallyport_verifier", key: try fleetKey())
    #expect(try table.accept(try #require(FleetHostName(web1)), isEphemeral: true) == .done)
    #expect(soon { (try? line.isAnswered(plain)) == true })
    #expect(plain.fetchKeys(within: 20_000)?.name == keys.name)
    let seal = HostSeal(pin, keys)
    #expect(try line.isAnswered(line.host(seal)) && !seal.isOnly)
  }

  // decisive; shows: sealed
  @Test func `is not answered without while nothing is known of it`() throws {
    let line = try Line()
    let (pin, database) = (line.identity.pin, line.verifier.database)
    let unread = Hosts(database, line.revocations)
    let seals = SealedHosts(database, unread, line.revocations)
    let answers = try #require(SealedAnswers(seals, of: pin, now: 0))
    #expect(answers.opened(FrameKind.keys.rawValue, try secret(""), now: 0) == nil)
    #expect(line.verifier.complaints == [])
    _ = unread.lookup(pin)
    #expect(answers.opened(FrameKind.keys.rawValue, try secret(""), now: 0) != nil)
  }

  // decisive
  @Test func `is not by what was read of it before it joined again`() throws {
    let line = try Line()
    let pin = line.identity.pin
    #expect(try line.isAnswered(line.host(nil)))
    line.seals.noteSealed(pin, former: false)
    let row = HostRow(name: web1, key: pin.bytes, joined: 6)
    _ = try line.verifier.ask(
      "UPDATE host SET joined = 6, seal = $1",
      [.bytes(try row.seal(under: line.verifier.database.key))])
    line.seals.writeDown()
    #expect(line.revocations.end(of: SealedHosts.name(of: web1)) == nil)
  }

  @Test func `joins again later than it was sealed, whatever the clock says`() throws {
    let line = try Line()
    let (database, host) = (line.verifier.database, try #require(FleetHostName(web1)))
    let late = try Clock.now().seconds + 1000
    try line.revocations.add(names: [(SealedHosts.name(of: web1), late)], to: database)
    let table = try HostTable(
      line.own.words + " user=sallyport_verifier", key: try fleetKey())
    let pin = [UInt8](repeating: 9, count: 32)
    let invitation = try table.invite(host, pin: pin, verifiers: [bytes(of: "192.0.2.1:7353")])
    let token = try JoinToken.read(invitation.token).secret
    let handler = JoinHandler(database, line.revocations, pins: [try #require(Pin(pin))])
    let answer = handler.answer(
      key: line.identity.pin.bytes, JoinRequest(.join, token, names: []))
    guard case .welcome = answer else {
      Issue.record("\(answer)")
      return
    }
    #expect(try line.verifier.ask("SELECT joined FROM host").number(0, 0) == UInt64(late + 1))
  }

  @Test func `takes the next keys while the fleet's key changes, which waits for it`() throws {
    let line = try Line()
    let (pin, database) = (line.identity.pin, line.verifier.database)
    let keeper = KeyKeeper(database, nil, patience: 0, grace: 0)
    let keys = try #require(line.host(nil).fetchKeys(within: 20_000))
    let host = line.host(HostSeal(pin, keys))
    #expect(try line.isAnswered(host))
    #expect(try database.beginKey(patience: 0) == .lacking(["seals"]))
    keeper.turn()
    #expect(try database.beginKey(patience: 0) == .done)
    #expect(line.seals.keys(of: pin).map(\.name).last == keys.name)
    #expect(line.seals.keys(of: pin).count == 2 && line.seals.proofs(for: pin).count == 2)
    _ = try line.verifier.ask("UPDATE host SET formerly = NULL, asked = NULL")
    // By the keys of before, on the connection that it has.
    #expect(try line.isAnswered(host))
    line.seals.writeDown()
    let noted = "SELECT count(*) FROM host WHERE formerly > now() - interval '1 minute'"
    #expect(try line.verifier.ask(noted).number(0, 0) == 1)
    let next = try #require(host.fetchKeys(within: 20_000))
    #expect(next.name == line.seals.keys(of: pin).first?.name && next.name != keys.name)
    _ = try line.verifier.ask("UPDATE host SET formerly = NULL")
    line.seals.writeDown()
    _ = try line.verifier.ask("UPDATE host SET formerly = NULL")
    #expect(try line.isAnswered(line.host(HostSeal(pin, next, isOnly: true))))
    line.seals.writeDown()
    #expect(try line.verifier.ask(noted).number(0, 0) == 0)
  }

  @Test func `is answered by a seal where the hosts cannot be read`() throws {
    let line = try Line()
    let keys = try #require(line.host(nil).fetchKeys(within: 20_000))
    let host = line.host(HostSeal(line.identity.pin, keys, isOnly: true))
    #expect(try line.isAnswered(host))
    _ = try line.verifier.ask("ALTER TABLE host RENAME TO gone")
    let body = try secret("")
    #expect(
      soon {
        (try? host.ask(.status, body, within: 20_000)) == .databaseAway
      })
  }
}
