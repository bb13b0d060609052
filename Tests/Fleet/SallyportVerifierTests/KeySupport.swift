import FleetProtocol
import FleetTransport
import OneTimePassword
import Testing

@testable import SallyportVerifier

/// Two verifiers of a fleet that changes its key.
struct ChangingFleet {
  let own: OwnDatabase
  let (one, two): (Verifier, Verifier)
  let keepers: [KeyKeeper]

  init() throws {
    own = try OwnDatabase()
    (one, two) = (try Verifier("one", in: own), try Verifier("two", in: own))
    keepers = [one, two].map { KeyKeeper($0.database, nil, patience: 0, grace: 0, rest: 0) }
    // They say so no more by themselves.
    _ = try one.ask("UPDATE worker SET now = now() + interval '1 hour' WHERE worker = 0")
  }

  func turn() { for keeper in keepers { keeper.turn() } }

  func change() throws {
    // Made, and taken by each; then it seals.
    #expect(try one.database.beginKey(patience: 0) == .lacking(["one", "two"]))
    turn()
    #expect(try one.database.beginKey(patience: 0) == .done)
  }

  /// All rows are sealed again, and the former key counts no more.
  func finish() throws {
    turn()
    #expect(try one.database.endKey(one.database.keyStanding()))
  }

  /// The ids of the keys with which rows of each kind are sealed.
  func ids(_ table: String, _ column: String = "seal", _ place: Int = 1) throws -> [String] {
    let rows = try one.ask(
      """
      SELECT DISTINCT encode(substr(\(column), \(place), 4), 'hex') FROM \(table)
      WHERE octet_length(\(column)) > 0 ORDER BY 1
      """)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  /// One of each table, with rights.
  func addRows(_ pin: Pin) throws {
    let key = try fleetKey()
    let host = HostRow(name: Array("web1".utf8), key: pin.bytes, joined: 5)
    let invite = InviteRow(
      digest: [UInt8](repeating: 8, count: 32), host: Array("web2".utf8), until: 90_000)
    let revoked = RevokedRow(
      subject: [UInt8](repeating: 7, count: 32), host: Array("web3".utf8), at: 4)
    let rights = SealedRights(rights: HostRights([.takes]), changed: 6)
    _ = try one.ask(
      "INSERT INTO host (name, key, enrolls, joined, seal, rights) "
        + "VALUES ($1, $2, false, 5, $3, $4)",
      [
        .text(host.name), .bytes(pin.bytes), .bytes(try host.seal(under: key)),
        .bytes(try rights.sealed(under: key, of: .host(host))),
      ])
    _ = try one.ask(
      "INSERT INTO invite (digest, host, enrolls, until, seal, rights) "
        + "VALUES ($1, $2, false, 90000, $3, $4)",
      [
        .bytes(invite.digest), .text(invite.host), .bytes(try invite.seal(under: key)),
        .bytes(try rights.sealed(under: key, of: .invite(invite))),
      ])
    _ = try one.ask(
      "INSERT INTO revoked (subject, host, at, seal) VALUES ($1, $2, 4, $3)",
      [.bytes(revoked.subject), .text(revoked.host), .bytes(try revoked.seal(under: key))])
    try Presences(database: one.database).noteEphemeral(pin.bytes)
    let random = [UInt8](repeating: 3, count: 16)
    _ = try one.ask(
      "UPDATE fleet SET incarnation = $1",
      [.bytes(random + (try key.bind("incarnation", [random])))])
  }
}
