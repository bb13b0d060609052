package import FleetProtocol
import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

extension Statement {
  /// $1 host: who was let in there, as far back as events are kept.
  fileprivate static let letIn = """
    SELECT DISTINCT name FROM event WHERE host = $1 AND outcome = 'accepted' ORDER BY 1
    """
}

// A host that does not come back: what it has used of the backup codes that it held nobody learns.
extension Database {
  /// It holds no backup codes from now on, and rests until root accepts it; all that it may have
  /// held count as used. Gives the names of the people that had one left; nil where there is no
  /// such host, or its row was made or changed by somebody without the key. What is done is not
  /// done again.
  package func giveUp(_ host: FleetHostName) throws(DatabaseFault) -> [[UInt8]]? {
    let rows = try ask(Statement.named, [.text(host.bytes)]).0
    guard rows.count > 0, let found = HostRow(rows, 0), let subject = found.key,
      found.isRight(rows.bytes(0, 4) ?? [], under: key)
    else { return nil }
    if try noteGivenUp(subject) {
      // Until each verifier has read it, one may still give it codes.
      _ = poll(nil, 0, 5000)
    }
    let line = try DatabaseConnection(words, worker: 0)
    _ = try line.ask(Statement.overAllRows)
    let people = try line.ask(Statement.letIn, [.text(host.bytes)], 600_000)
    var concerned: [[UInt8]] = []
    for row in 0..<people.count {
      guard let name = people.bytes(row, 0).flatMap(UserName.init) else { continue }
      let event = Event(of: "sallyport-verifier", on: host.bytes, name: name.bytes)
      let store = FleetStore(self, event, uid: nil)
      do throws(StoreTrouble) {
        if try store.voidBackupCodes(of: name) { concerned.append(name.bytes) }
      } catch {
        throw .unusable(
          "the backup codes of \(String(decoding: name.bytes, as: UTF8.self)) cannot be voided: "
            + "run this again")
      }
    }
    return concerned
  }

  /// Whether that was news.
  private func noteGivenUp(_ subject: [UInt8]) throws(DatabaseFault) -> Bool {
    for _ in 0..<8 {
      let rows = try ask(Statement.presence, [.bytes(subject)]).0
      let old = PresenceRow.sealed(rows, 0, key)
      if old?.kind == .givenUp { return false }
      var row = old ?? PresenceRow(subject: subject)
      row.kind = .givenUp
      let values = try Self.sealing { () throws(CryptoError) in try row.values(under: key) }
      let saved = try ask(
        Statement.savePresence, values + [.bytes(rows.bytes(0, 7) ?? [])]
      ).0
      if saved.count == 1 { return true }
    }
    throw .unusable("the host keeps changing its row: run this again")
  }
}

extension FleetStore {
  /// Whether he had one that was not used.
  func voidBackupCodes(of name: UserName) throws(StoreTrouble) -> Bool {
    guard let record = try load(Account(name: name, uid: nil)),
      let set = record.enrollment.backupCodes, !set.digests.isEmpty
    else { return false }
    let done = try transact(record, asKnown: true) {
      (enrollment, state) throws(StoreTrouble) -> (Bool, LoginState) in
      var state = state
      state.reconcile(with: enrollment)
      let used = state.backupCodes?.used ?? 0
      state.backupCodes?.used = used | set.bitsOfCodes
      return (set.bitsOfCodes & ~used != 0, state)
    }
    switch done {
    case .committed(let hadSome): return hadSome
    case .changed: throw .busy(path: "fleet")
    }
  }
}
