/// The rows of a table as they were read last, and whether their seals are right: a row that has
/// not changed since costs no HMAC, and one that somebody without the key has made or changed is
/// told of once.
struct CheckedRows<Row: SealedRow>: Sendable {
  private struct Checked: Sendable {
    let row: Row
    let seal: [UInt8]
    let isRight: Bool
  }

  private var last: [[UInt8]: Checked] = [:]
  private var now: [[UInt8]: Checked] = [:]

  /// Before the table is read again: what is gone by then is forgotten.
  mutating func begin() { (last, now) = (now, [:]) }

  /// Whether the seal is right, and whether that was not known.
  mutating func check(_ row: Row, _ seal: [UInt8], under key: FleetKey) -> (Bool, isNews: Bool) {
    if let old = last[row.primaryKey], old.row == row, old.seal == seal {
      now[row.primaryKey] = old
      return (old.isRight, isNews: false)
    }
    let isRight = row.isRight(seal, under: key)
    now[row.primaryKey] = Checked(row: row, seal: seal, isRight: isRight)
    return (isRight, isNews: true)
  }
}
