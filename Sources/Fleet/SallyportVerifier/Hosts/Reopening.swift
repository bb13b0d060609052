import CPostgres
package import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportSystem

extension Statement {
  /// $1 name, $2 its seal, $3 the mark. Nothing where the row was changed meanwhile.
  fileprivate static let reopen = """
    UPDATE host SET reopened = $3 WHERE name = $1 AND seal = $2 RETURNING name
    """
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
  /// What became of a host that was to be opened.
  package enum Reopened: Sendable {
    case done, noHost
    /// Its row was made or changed by somebody without the key.
    case forged
  }

  /// The wrong codes that this host has brought until now do not count any more. Throws where the
  /// database's clock is not this machine's: `clock`, in milliseconds since 1970; nil for the
  /// system's.
  package func reopen(_ host: FleetHostName, clock: Int64? = nil) throws(DatabaseFault)
    -> Reopened
  {
    for _ in 0..<8 {
      let rows = try line.ask(Statement.named, [.text(host.bytes)])
      if rows.count == 0 { return .noHost }
      guard let found = HostRow(rows, 0), let seal = rows.bytes(0, 4),
        found.isRight(seal, under: key)
      else { return .forged }
      // Events have the database's time; this second too.
      let until = try line.time(by: clock ?? pg_time()) / 1000 + 1
      let mark = try Database.sealing { () throws(CryptoError) in
        try Reopening.mark(until, under: key, of: found)
      }
      let values: [Value] = [.text(host.bytes), .bytes(seal), .bytes(mark)]
      if try line.ask(Statement.reopen, values).count == 1 { return .done }
    }
    throw .unusable("others keep changing this host")
  }
}
