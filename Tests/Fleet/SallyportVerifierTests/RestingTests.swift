import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportVerifier

private func start(_ random: UInt8, _ number: UInt64) -> HostStart {
  HostStart(random: [UInt8](repeating: random, count: HostStart.randomLength), number: number)
}

@Suite struct `A host that says its start no more` {
  private let second: UInt64 = 1_000_000_000
  private var silence: UInt64 { 1200 * second }

  /// A row that was stamped then.
  private func row(_ noted: Int64) -> PresenceRow {
    var row = PresenceRow(subject: [UInt8](repeating: 5, count: 32))
    _ = row.take(start(1, 5), at: noted)
    return row
  }

  @Test func `is stamped once in five minutes`() {
    var row = PresenceRow(subject: [UInt8](repeating: 5, count: 32))
    let first: Int64 = 1_800_000_000_000
    for (after, noted) in [(0, 0), (299, 0), (300, 300), (599, 300), (1200, 1200), (900, 900)] {
      #expect(row.take(start(1, 5), at: first + Int64(after) * 1000) == .fine)
      #expect(row.noted == first + Int64(noted) * 1000)
    }
  }

  // decisive
  @Test func `is found where it asks all the time, and not where it was away`() throws {
    let pin = try #require(Pin([UInt8](repeating: 5, count: 32)))
    var hosts = SilentHosts()
    func take(_ row: PresenceRow, _ asks: Bool, _ at: UInt64) -> Bool {
      hosts.take([row], asks ? [pin] : [], at: at * second, silence: silence) == [pin]
    }
    // It asks each four seconds, and says its start each ten minutes.
    for time in stride(from: UInt64(0), to: 9000, by: 4) {
      #expect(!take(row(Int64(time / 600) * 600_000 + 1000), true, time))
    }
    // It is away for an hour, and asks before it says its start.
    for time in stride(from: UInt64(9000), to: 12_600, by: 4) {
      #expect(!take(row(8_401_000), false, time))
    }
    for time in stride(from: UInt64(12_600), to: 13_800, by: 4) {
      #expect(!take(row(8_401_000), true, time), "\(time)")
    }
    #expect(take(row(8_401_000), true, 13_804))
    #expect(!take(row(13_805_000), true, 13_808))
    var other = row(8_401_000)
    (other.kind, other.random) = (.ephemeral, other.random)
    #expect(!take(other, true, 13_812))
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A host that rests` {
  private let own: OwnDatabase
  private let verifier: Verifier
  private let file: TemporaryDirectory
  private let pin: Pin
  private let row: HostRow

  init() throws {
    own = try OwnDatabase()
    verifier = try Verifier("resting", in: own)
    file = try TemporaryDirectory()
    pin = try #require(Pin([UInt8](repeating: 5, count: 32)))
    row = HostRow(name: Array("web1".utf8), key: pin.bytes, enrolls: true, joined: 1)
    _ = try verifier.ask(
      "INSERT INTO host (name, key, enrolls, joined, seal) VALUES ('web1', $1, true, 1, $2)",
      [.bytes(pin.bytes), .bytes(try row.seal(under: try fleetKey()))])
  }

  private func revocations(_ name: String = "revoked") throws -> Revocations {
    try Revocations(at: file.path + "/" + name, key: fleetKey(), patience: 0)
  }

  private func host(_ revocations: Revocations) throws -> HostIdentity {
    guard case .host(let found) = Hosts(verifier.database, revocations).lookup(pin) else {
      throw DatabaseFault.away
    }
    return found
  }

  private var resting: HostIdentity {
    HostIdentity(pin, host: row.name, holdsReserve: false, rests: true)
  }

  // decisive
  // shows: host-put-back
  @Test func `rests also where the database forgets it, until root accepts it`() throws {
    let known = try revocations()
    let presences = Presences(database: verifier.database, revocations: known)
    func say(_ one: HostStart) throws -> HostStartReply {
      try presences.take(one, from: try host(known))
    }
    #expect(try say(start(1, 5)) == .fine)
    _ = try verifier.ask("CREATE TABLE before AS SELECT * FROM presence")
    #expect(try say(start(2, 4)) == .again)
    #expect(soon { (try? say(start(2, 4))) == .rests })
    let table = try HostTable(
      own.words + " user=sallyport_verifier", key: fleetKey(),
      file: RevocationFile(file.path + "/revoked", key: fleetKey()))
    let changes = [
      "DELETE FROM presence", "INSERT INTO presence SELECT * FROM before",
      "DELETE FROM presence; DELETE FROM revoked",
    ]
    for change in changes {
      for one in change.split(separator: ";") { _ = try verifier.ask(String(one)) }
      #expect(try say(start(3, 99)) == .rests)
      #expect(try host(known) == resting)
      // A verifier that is started.
      #expect(try host(revocations()) == resting)
      #expect(try table.hosts().map(\.right) == ["rests: put back"])
      // One that has no file yet learns it of what is written back.
      _ = try host(known)
      #expect(try host(revocations("none")) == resting)
      _ = try? FileManager.default.removeItem(atPath: file.path + "/none")
    }
    let name = try #require(FleetHostName(row.name))
    #expect(try table.accept(name) == .done)
    #expect(try table.accept(name) == .needless)
    #expect(try say(start(3, 9)) == .fine)
    #expect(try host(known) == HostIdentity(pin, host: row.name, rights: HostRights(former: true)))
    // What root has accepted is not forgotten, either.
    _ = try verifier.ask("DELETE FROM revoked WHERE host LIKE '%/accepted/%'")
    #expect(try !host(revocations()).rights.isEmpty)
    // Found again.
    #expect(try say(start(4, 2)) == .again)
    #expect(soon { (try? say(start(4, 2))) == .rests })
    _ = try verifier.ask("DELETE FROM presence")
    #expect(try host(revocations()) == resting)
    #expect(try table.accept(name) == .done)
    #expect(try !host(known).rights.isEmpty)
  }

  // decisive
  // shows: host-put-back
  @Test func `has no rights where it goes on asking and says its start no more`() throws {
    let known = try revocations()
    let presences = Presences(database: verifier.database, revocations: known)
    let hosts = Hosts(verifier.database, known, silence: 3000)
    func found() -> HostIdentity? {
      if case .host(let found) = hosts.lookup(pin) { found } else { nil }
    }
    // One of the former version, which says nothing.
    #expect(found()?.rights == HostRights(former: true))
    #expect(try presences.take(start(1, 5), from: try host(known)) == .fine)
    let silent = HostIdentity(pin, host: row.name, holdsReserve: false, rests: true, isSilent: true)
    #expect(soon(within: 3000) { found() == silent })
    #expect(
      verifier.complaints.count { $0.contains("web1 no longer says which start") } == 1)
    _ = try verifier.ask("DELETE FROM presence")
    #expect(try presences.take(start(1, 6), from: silent) == .fine)
    #expect(soon { found()?.rights == HostRights(former: true) })
  }
}
