package import FleetTransport
import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
package import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 the key of a host that has sealed a question by keys of the fleet's key of before: as
  /// where it shows a receipt by that.
  fileprivate static let formerKeys = "UPDATE host SET formerly = now() WHERE key = $1"

  /// $1 the key of a host.
  fileprivate static let hasJoined = "SELECT joined FROM host WHERE key = $1"
}

/// The hosts that seal what they ask.
///
/// That a host is answered nothing else any more is kept with what was revoked, in the database and
/// in each verifier's file, once it has sealed a question after `migrate --finish`: so it has keys,
/// and a database that is restored makes nothing good again that was not sealed. A host that keeps
/// nothing has no keys after its next start, and is answered without.
package final class SealedHosts: HostSeals {
  private struct Made: Sendable {
    let joined: Int64
    /// Of the fleet's keys.
    let ids: [UInt32]
    let keys: [SealKeys]
  }

  private struct State: Sendable {
    var made: [Pin: Made] = [:]
    /// Who has sealed a question since it was written down, and who by former keys.
    var (sealed, former): (Set<Pin>, Set<Pin>) = ([], [])
    /// Of which it was said that it asks without.
    var unsealed: Set<Pin> = []
  }

  /// Made keys that are remembered at most, and milliseconds between two looks.
  private static let (mostMade, interval): (Int, Int32) = (20_000, 1000)
  /// How many are written down at a time: what reads the hosts waits meanwhile.
  private static let mostAtOnce = 200

  private let database: Database
  private let hosts: Hosts
  private let revocations: Revocations
  private let state = Locked(State())

  package init(_ database: Database, _ hosts: Hosts, _ revocations: Revocations) {
    (self.database, self.hosts, self.revocations) = (database, hosts, revocations)
  }

  /// Starts a thread that writes down who has sealed what.
  package func keep() throws(ServiceError) { try startThread { [self] in tend() } }

  /// A function and no closure: the optimizer makes one that never returns into another.
  @inline(never) private func tend() {
    var isOver = false
    while !isOver {
      _ = poll(nil, 0, Self.interval)
      if !database.isAway { writeDown() }
      isOver = database.losses < 0
    }
  }

  // MARK: keys

  package func keys(of host: Pin) -> [SealKeys] {
    guard let row = hosts.row(of: host) else { return [] }
    let keys = database.key.sealingKeys
    let ids = keys.map(\.id)
    let made = state.withLock { $0.made[host] }
    if let made, made.joined == row.joined, made.ids == ids { return made.keys }
    let new = keys.compactMap { key in
      try? key.frameKeys(of: host, name: row.name, joined: row.joined)
    }
    guard new.count == keys.count else { return [] }
    state.withLock { state in
      if state.made.count >= Self.mostMade { state.made = [:] }
      state.made[host] = Made(joined: row.joined, ids: ids, keys: new)
    }
    return new
  }

  /// The present ones, for the host itself; nil: it has joined again since the hosts were read, and
  /// asks a little later.
  func newKeys(of host: Pin) throws(DatabaseFault) -> SealKeys? {
    guard let row = hosts.row(of: host), try isPresent(row, host) else { return nil }
    return keys(of: host).first
  }

  private func isPresent(_ row: HostRow, _ host: Pin) throws(DatabaseFault) -> Bool {
    let joined = try database.ask(Statement.hasJoined, [.bytes(host.bytes)]).0.number(0, 0)
    return joined.map { Int64(clamping: $0) } == row.joined
  }

  package func proofs(for host: Pin) -> [[UInt8]] {
    database.key.sealingKeys.compactMap { try? $0.proof(for: host) }
  }

  // MARK: what hosts do

  /// Under which it is written down, up to when a host that joined is answered only what it has
  /// sealed. No host has such a name.
  static func name(of host: [UInt8]) -> [UInt8] { host + bytes(of: "/sealed") }

  package func isOnlySealed(_ host: Pin) -> Bool? {
    guard let row = hosts.row(of: host) else { return nil }
    return isOnlySealed(row) && !hosts.isEphemeral(host)
  }

  private func isOnlySealed(_ row: HostRow) -> Bool {
    revocations.end(of: Self.name(of: row.name)).map { row.joined <= $0 } ?? false
  }

  package func noteSealed(_ host: Pin, former: Bool) {
    state.withLock { state in
      state.sealed.insert(host)
      state.unsealed.remove(host)
      if former { state.former.insert(host) }
    }
  }

  package func noteUnsealed(_ host: Pin) {
    guard state.withLock({ $0.unsealed.insert(host).inserted }) else { return }
    let name = hosts.row(of: host).map { String(decoding: $0.name, as: UTF8.self) } ?? ""
    database.alert(
      "host \(name) asks without the seal that it had, and is not answered: was its "
        + "fleet.seal removed, or the host put back to before? if it is yours: "
        + "sallyport-verifier revoke \(name), then invite it again")
  }

  /// Away from logins. What cannot be written now is with the next question.
  func writeDown() {
    let (sealed, former) = state.withLock { state in
      defer { (state.sealed, state.former) = ([], []) }
      return (state.sealed, state.former)
    }
    do throws(DatabaseFault) {
      for host in former { _ = try database.ask(Statement.formerKeys, [.bytes(host.bytes)]) }
      guard database.writesSealed else { return }
      var new: [HostRow] = []
      for host in sealed where new.count < Self.mostAtOnce {
        guard let row = hosts.row(of: host), !isOnlySealed(row), !hosts.isEphemeral(host),
          try isPresent(row, host)
        else { continue }
        new.append(row)
      }
      if new.isEmpty { return }
      try revocations.add(names: new.map { (Self.name(of: $0.name), $0.joined) }, to: database)
      for row in new {
        database.note(
          .notice,
          "host \(String(decoding: row.name, as: UTF8.self)) seals what it asks: nothing else of "
            + "it is answered from now on")
      }
    } catch {
      database.note(.error, "database error: seals of hosts: \(error.text)")
    }
  }
}
