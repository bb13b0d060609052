import CService
import FleetProtocol
import FleetTransport
import Foundation
import Glibc
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A host that was revoked` {
  private let verifier: Verifier
  private let handler: JoinHandler
  private let table: HostTable
  private let host: FleetHostName
  private let ownWords: String

  init() throws {
    let own = try OwnDatabase()
    ownWords = own.words
    verifier = try Verifier("revoking", in: own)
    handler = JoinHandler(verifier.database, pins: [try #require(Pin(key(9)))])
    table = try HostTable(own.words + " user=sallyport_verifier", key: try fleetKey())
    host = try #require(FleetHostName(Array("web1".utf8)))
  }

  private func invite() throws -> Secret {
    let invitation = try table.invite(
      host, pin: key(9), verifiers: [Array("192.0.2.1:7353".utf8)])
    return try JoinToken.read(invitation.token).secret
  }

  /// Whether it is a host now.
  private func join(_ number: UInt8, by token: Secret? = nil) throws -> Bool {
    let answer = handler.answer(
      key: key(number), JoinRequest(.join, try token ?? invite(), names: []))
    if case .welcome = answer { return true }
    return false
  }

  private var hosts: [String] { get throws { try table.hosts().map(\.name) } }

  // decisive
  // shows: revoked
  @Test func `brings no revoked host back by a row or an invitation that is put back`() throws {
    let file = try TemporaryDirectory()
    let path = file.path + "/revoked"
    func restarted(remembering: Bool = true) throws -> Hosts {
      let revocations =
        try remembering
        ? Revocations(at: path, key: fleetKey(), patience: 0) : Revocations(key: fleetKey())
      try revocations.begin(by: verifier.database)
      return Hosts(verifier.database, revocations)
    }
    let pin = try #require(Pin(key(1)))
    #expect(try join(1))
    let open = try invite()
    let (rows, tokens) = (try saved("host", "name"), try saved("invite", "host"))
    let running = try restarted()
    guard case .host = running.lookup(pin) else {
      Issue.record("it joined")
      return
    }
    _ = try table.revoke(host, reserveFor: 604_800)
    // As it was before: by a restore, or by somebody who writes to the database.
    func restore(all: Bool) throws {
      if all { _ = try verifier.ask("DELETE FROM revoked WHERE host = $1", [.text(host.bytes)]) }
      for row in rows { try putBack("host", row) }
      for row in tokens { try putBack("invite", row) }
    }
    try restore(all: false)
    #expect(soon { running.lookup(pin) == .revoked })
    #expect(soon { (try? hosts.isEmpty) == true })
    // Verifiers that were restarted: one has a file, and the other one only what that writes back.
    for remembering in [true, false] {
      try restore(all: remembering)
      let again = try restarted(remembering: remembering)
      #expect(again.lookup(pin) == .revoked)
      let nothing = try #require(Secret(count: 0))
      let router = FrameRouter(again, [:])
      #expect(router.standing(of: pin) == .revoked)
      #expect(router.read(pin, .ping, nothing, arrived: 0).answer() == .databaseAway)
      let count = try verifier.ask(
        "SELECT count(*) FROM revoked WHERE host = $1", [.text(host.bytes)])
      #expect(count.number(0, 0) == 2)
      #expect(try !join(2, by: open))
    }
    #expect(verifier.complaints.contains { $0.contains("the database has lost what was revoked") })
    #expect(verifier.complaints.contains { $0.contains("its row was there again") })
  }

  /// The rows of this test's host.
  private func saved(_ table: String, _ column: String) throws -> [String] {
    let rows = try verifier.ask(
      "SELECT one::text FROM \(table) AS one WHERE \(column) = $1", [.text(host.bytes)])
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  private func putBack(_ table: String, _ row: String) throws {
    _ = try verifier.ask(
      "INSERT INTO \(table) SELECT ($1::\(table)).* ON CONFLICT DO NOTHING",
      [.text(Array(row.utf8))])
  }

  @Test func `keeps what was revoked in a file that is whole, or says so`() throws {
    let file = try TemporaryDirectory()
    let path = file.path + "/revoked"
    // Somebody else, alive.
    let columns = "worker, n, server, posted, clock, now, version"
    _ = try verifier.ask("INSERT INTO worker SELECT 'other', \(columns) FROM worker")
    #expect(try join(1))
    _ = try table.revoke(host, reserveFor: 604_800)
    // Others are alive, and may know more.
    let start = sys_monotonic()
    try Revocations(at: path, key: fleetKey(), patience: 100).begin(by: verifier.database)
    #expect(sys_monotonic() - start > 99_000_000)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.contains { $0.contains(" \(host.text) ") })
    #expect(try Revocations(at: path, key: fleetKey()).has(key(1)))
    let one = try #require(lines.last)
    for damaged in [
      "", String(text.dropLast()), text + one.dropLast(2) + "00\n", text + "\(one) \n", "x" + text,
    ] {
      try damaged.write(toFile: path, atomically: false, encoding: .utf8)
      try Revocations(at: path, key: fleetKey(), patience: 0).begin(by: verifier.database)
      #expect(try String(contentsOfFile: path + ".damaged", encoding: .utf8) == damaged)
      #expect(try Revocations(at: path, key: fleetKey()).has(key(1)))
    }
    // By a key that is not here any more.
    let other = FleetKey(id: 2, try TestSupport.secret([UInt8](repeating: 9, count: 32)))
    #expect(try Revocations(at: path, key: other).has(key(1)))
    // Nobody knows then what it says.
    let key = try fleetKey()
    for (mode, fault) in [(0o644, PrivateFile.Fault.unsafe), (0o600, nil)]
      as [(mode_t, PrivateFile.Fault?)]
    {
      // SAFETY: the C string lives for the call.
      #expect(unsafe chmod(path, mode) == 0)
      var found: PrivateFile.Fault?
      do throws(PrivateFile.Fault) {
        _ = try Revocations(at: path, key: key)
      } catch {
        found = error
      }
      #expect(found == fault)
    }
  }

  // decisive
  // shows: revoked
  @Test func `stays out where the database hid it from who revoked it`() throws {
    let hosts = Hosts(verifier.database)
    for (number, hidden): (UInt8, String) in [
      (1, "UPDATE host SET key = '\\x0505' WHERE name = $1"),
      (2, "DELETE FROM host WHERE name = $1"),
    ] {
      #expect(try join(number))
      let pin = try #require(Pin(key(number)))
      #expect(soon { if case .host = hosts.lookup(pin) { true } else { false } })
      let open = try invite()
      let (rows, tokens) = (try saved("host", "name"), try saved("invite", "host"))
      _ = try verifier.ask(hidden, [.text(host.bytes)])
      _ = try verifier.ask("DELETE FROM invite WHERE host = $1", [.text(host.bytes)])
      let revoked = try table.revoke(host, reserveFor: 604_800)
      #expect(!revoked.isProven && revoked.wasThere == (number == 1))
      for row in rows { try putBack("host", row) }
      for row in tokens { try putBack("invite", row) }
      #expect(soon { hosts.lookup(pin) == .stranger && (try? self.hosts.isEmpty) == true })
      #expect(try !join(number, by: open))
    }
    // What was sealed with a length of its own would be taken for damage by each verifier.
    let lengths = try verifier.ask("SELECT count(*) FROM revoked WHERE length(subject) <> 32")
    #expect(lengths.number(0, 0) == 0)
    // Later it may join again, also within that second.
    #expect(try join(3))
    #expect(soon { if case .host = hosts.lookup(Pin(key(3))!) { true } else { false } })
  }

  // decisive
  // shows: revoked
  @Test func `takes no other host with it, where its row has the key of that one`() throws {
    let hosts = Hosts(verifier.database)
    let other = HostRow(name: Array("web2".utf8), key: key(7), enrolls: true, joined: 1)
    func putBackOther() throws {
      _ = try verifier.ask(
        "INSERT INTO host VALUES ('web2', $1, true, 1, $2)",
        [.bytes(key(7)), .bytes(try other.seal(under: fleetKey()))])
    }
    for isRevoked in [true, false] {
      #expect(try join(isRevoked ? 1 : 2))
      _ = try verifier.ask("DELETE FROM host WHERE name = 'web2'")
      _ = try verifier.ask(
        "UPDATE host SET key = $2 WHERE name = $1", [.text(host.bytes), .bytes(key(7))])
      if isRevoked {
        _ = try table.revoke(host, reserveFor: 604_800)
      } else {
        #expect(try join(3))
      }
      try putBackOther()
      #expect(soon { if case .host = hosts.lookup(Pin(key(7))!) { true } else { false } })
    }
    #expect(verifier.complaints.contains { $0.contains("its row was made or changed by somebody") })
  }

  // decisive
  @Test func `is in the file of the verifier where it was revoked before the database shows it`()
    throws
  {
    let file = try TemporaryDirectory()
    let path = file.path + "/revoked"
    let revocations = try Revocations(at: path, key: fleetKey(), patience: 0)
    try revocations.begin(by: verifier.database)
    let table = try HostTable(
      ownWords + " user=sallyport_verifier", key: try fleetKey(),
      file: RevocationFile(path, key: try fleetKey()))
    for number: UInt8 in [1, 2] {
      #expect(try join(number))
      #expect(try table.revoke(host, reserveFor: 604_800).unfiled == nil)
      _ = try verifier.ask("DELETE FROM revoked")
      #expect(try Revocations(at: path, key: fleetKey()).has(key(number)))
      try revocations.settle(by: verifier.database)
      #expect(revocations.has(key(number)))
      let rows = try verifier.ask("SELECT count(*) FROM revoked")
      #expect(rows.number(0, 0) == UInt64(number) + 1)
    }
  }

  @Test func `is complained of once, where somebody without the key puts a row there`() throws {
    #expect(try join(1))
    _ = try verifier.ask("UPDATE host SET enrolls = true")
    let hosts = Hosts(verifier.database)
    try hosts.keep()
    func told() -> Int { verifier.complaints.count { $0.contains("its row was made or changed") } }
    #expect(soon { told() == 1 })
    _ = try verifier.ask("UPDATE host SET seen = now()")
    #expect(!soon(within: 35) { told() > 1 })
  }

  // shows: revoked
  @Test func `refuses no host by a revocation that was made without the key`() throws {
    #expect(try join(1))
    let pin = try #require(Pin(key(1)))
    let row = RevokedRow(subject: pin.bytes, host: host.bytes, at: 5)
    let other = FleetKey(id: 1, try TestSupport.secret([UInt8](repeating: 9, count: 32)))
    _ = try verifier.ask(Statement.addRevoked, try row.values(under: other) + [.bytes([])])
    guard case .host = Hosts(verifier.database).lookup(pin) else {
      Issue.record("it is a host")
      return
    }
    #expect(verifier.complaints.contains { $0.contains("made or changed by somebody without") })
    _ = try verifier.ask("DELETE FROM revoked WHERE subject = $1", [.bytes(pin.bytes)])
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A database that is not the fleet's` {
  private let verifier: Verifier

  init() throws { verifier = try Verifier("elsewhere", in: try OwnDatabase()) }

  @Test(arguments: [
    ("UPDATE fleet SET canary = '\\x00'", "the key here is not this fleet's key"),
    ("ALTER TABLE fleet RENAME TO another", "does not exist"), ("DELETE FROM fleet", "is missing"),
  ])
  func `is named by a verifier that finds it, once, and no host is answered`(
    _ change: String, _ found: String
  ) throws {
    try verifier.database.watch()
    _ = try verifier.ask(change)
    verifier.database.lose("it may be another one")
    func told() -> [String] {
      verifier.complaints.filter { $0.contains("is not this fleet's: ") }
    }
    #expect(soon { told().count == 1 })
    #expect(told().first?.contains("the database own_") == true)
    #expect(told().first?.contains(found) == true)
    // It looks five times a second.
    #expect(!soon(within: 20) { told().count > 1 || !verifier.database.isAway })
    let (pin, nothing) = (try #require(Pin(key(1))), try #require(Secret(count: 0)))
    let router = FrameRouter(Hosts(verifier.database), [:])
    #expect(router.read(pin, .ping, nothing, arrived: 0).answer() == .databaseAway)
  }

  @Test func `is named, where it knows no host`() throws {
    let router = FrameRouter(Hosts(verifier.database), [:])
    for number: UInt8 in 1...3 {
      #expect(router.standing(of: try #require(Pin(key(number)))) == .unknown)
    }
    #expect(verifier.warnings.count { $0.contains("has no host, and one asks") } == 1)
    #expect(verifier.warnings.contains { $0.contains("the database own_") })
  }
}

private func key(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 32) }
