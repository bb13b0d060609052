import OneTimePassword
import SallyportSupport

extension Statement {
  /// For one statement over many rows, in milliseconds.
  static let overAllRows = "SELECT set_config('statement_timeout', '600000', false)"

  /// Whether anything is sealed with the key of this id.
  static func sealing(_ id: String) -> String {
    """
    (EXISTS (SELECT FROM enrollment WHERE substr(body, 2, 4) = \(id))
      OR EXISTS (SELECT FROM state WHERE substr(body, 2, 4) = \(id))
      OR EXISTS (SELECT FROM host WHERE substr(seal, 1, 4) = \(id))
      OR EXISTS (SELECT FROM invite WHERE substr(seal, 1, 4) = \(id))
      OR EXISTS (SELECT FROM revoked WHERE substr(seal, 1, 4) = \(id))
      OR EXISTS (SELECT FROM presence WHERE substr(seal, 1, 4) = \(id))
      OR EXISTS (SELECT FROM policy WHERE substr(seal, 1, 4) = \(id)))
    """
  }

  /// $1 the id of a key.
  fileprivate static let sealsRows = """
    SELECT one FROM fleet WHERE \(sealing("$1::bytea"))
    """
}

extension FleetKey {
  /// The key that was announced so, sealed with the one of this id; nil: it cannot be opened.
  func announced(_ sealed: [UInt8]?, by id: UInt32?) -> (key: SealingKey, whole: Secret)? {
    guard let sealed, let id, Self.id(of: Array(sealed.dropFirst())) == id,
      let whole = try? open(sealed, .key, of: []), let new = try? Self.key(in: whole)
    else { return nil }
    return (new, whole)
  }
}

extension Database {
  /// The key that was announced is on the disk when this returns, where it is needed. `present` and
  /// `oldest`: as the row of the fleet has them.
  func takeAnnounced(_ sealed: [UInt8]?, present: UInt32?, oldest: UInt32?) throws(DatabaseFault) {
    guard let found = key.announced(sealed, by: oldest), key.key(found.key.id) == nil else {
      return
    }
    // While it changes, the one that seals, and no other one.
    if present != oldest, present != found.key.id { return }
    if present == oldest, try isSealingNext(besides: found.key.id) {
      throw .unusable(
        "rows are sealed with another next key, which is here: sallyport-verifier key next, here")
    }
    do throws(PrivateFile.Fault) {
      // This verifier was not there when the change before came to its end.
      if key.isFirstOver { try key.endFirst() }
      try key.take(next: found.whole)
    } catch {
      throw .unusable("the fleet's next key is not kept here: \(error.text)")
    }
  }

  /// Whether rows are sealed with the next key that this verifier has, though the row of the fleet
  /// says otherwise, as where that alone was put back. `id`: another one.
  func isSealingNext(besides id: UInt32?) throws(DatabaseFault) -> Bool {
    guard let next = key.next, next.id != id, !key.isFirstOver else { return false }
    let line = try DatabaseConnection(words, worker: 0)
    _ = try line.ask(Statement.overAllRows)
    let rows = try line.ask(
      Statement.sealsRows, [.bytes(FleetKey.bytes(of: next.id))], 600_000)
    return rows.count == 1
  }
}
