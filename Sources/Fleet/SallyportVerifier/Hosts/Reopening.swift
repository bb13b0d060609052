package import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportSystem

extension Statement {
  /// $1 name, $2 its seal, $3 the mark. Nothing where the row was changed meanwhile.
  fileprivate static let reopen = """
    UPDATE host SET reopened = $3 WHERE name = $1 AND seal = $2 RETURNING name
    """

  fileprivate static let time = "SELECT extract(epoch FROM clock_timestamp())::bigint"
}

/// Up to when the wrong codes of a host do not count, as the column `reopened` has it: sealed with
/// the row that it belongs to. An older one that is put back counts more of them.
enum Reopening {
  /// In seconds since 1970; 0: nothing was said, or by somebody without the key.
  static func read(_ column: [UInt8]?, under key: FleetKey, of host: HostRow) -> Int64 {
    guard let column, column.count > 8 else { return 0 }
    let time = Int64(bitPattern: number(column[..<8]))
    return key.isRight(Array(column[8...]), "reopened", fields(time, host)) ? time : 0
  }

  static func mark(_ until: Int64, under key: FleetKey, of host: HostRow) throws(CryptoError)
    -> [UInt8]
  {
    number(UInt64(bitPattern: until)) + (try key.bind("reopened", fields(until, host)))
  }

  private static func fields(_ until: Int64, _ host: HostRow) -> [[UInt8]] {
    [
      host.name, host.key ?? [], number(UInt64(bitPattern: host.joined)),
      number(UInt64(bitPattern: until)),
    ]
  }
}

extension HostTable {
  /// How far the database's clock is believed, in seconds.
  private static let slack: Int64 = 60

  /// The wrong codes that this host has brought until now do not count any more. Whether there is
  /// such a host, whose row nobody without the key has made or changed.
  package func reopen(_ host: FleetHostName) throws(DatabaseFault) -> Bool {
    for _ in 0..<8 {
      let rows = try line.ask(Statement.named, [.text(host.bytes)])
      guard rows.count == 1, let found = HostRow(rows, 0), let seal = rows.bytes(0, 4),
        found.isRight(seal, under: key)
      else { return false }
      guard let now = try? Clock.now(), let time = try line.ask(Statement.time).number(0, 0) else {
        throw .unusable("no clock")
      }
      // Events have the database's time; this second too.
      let until = min(Int64(clamping: time), now.seconds + Self.slack) + 1
      let mark = try Database.sealing { () throws(CryptoError) in
        try Reopening.mark(until, under: key, of: found)
      }
      let values: [Value] = [.text(host.bytes), .bytes(seal), .bytes(mark)]
      if try line.ask(Statement.reopen, values).count == 1 { return true }
    }
    throw .unusable("others keep changing this host")
  }
}
