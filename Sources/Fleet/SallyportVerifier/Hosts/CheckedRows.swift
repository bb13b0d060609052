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

  /// Before the table is read again: what has left by then is forgotten.
  mutating func begin() {
    (last, now) = (now, [:])
    now.reserveCapacity(last.count)
  }

  /// Whether the seal is right, and whether that was not known.
  mutating func check(_ row: Row, _ seal: [UInt8], under key: FleetKey) -> (Bool, isNews: Bool) {
    let old = last[row.primaryKey].flatMap { $0.row == row && $0.seal == seal ? $0 : nil }
    // What is not right may be so by a key that this verifier has since.
    let isRight = old?.isRight == true || row.isRight(seal, under: key)
    now[row.primaryKey] = Checked(row: row, seal: seal, isRight: isRight)
    return (isRight, isNews: old?.isRight != isRight)
  }
}
