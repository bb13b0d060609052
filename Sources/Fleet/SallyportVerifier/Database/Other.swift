/// What another verifier says of itself.
struct Other {
  let name: [UInt8]
  let posted: [UInt8]?
  /// Its clock, and the database's at that time, in milliseconds; no clock: it has stopped, and has
  /// said so.
  let clock: Int64?
  let time: Int64
  let isAlive: Bool
  /// Of its row, which each time that it says something raises.
  let n: UInt64
  /// Of its row in `state`, which each beat raises; nil: it is of a version that has none.
  var mark: UInt64?

  init(_ rows: Rows, _ row: Int) {
    name = rows.bytes(row, 0) ?? []
    posted = rows.bytes(row, 1)
    clock = rows.number(row, 2).map { Int64(clamping: $0) }
    time = Int64(clamping: rows.number(row, 3) ?? 0)
    isAlive = rows.bytes(row, 4) == [1]
    n = rows.number(row, 5) ?? 0
    mark = rows.number(row, 6)
  }

  func isBehind(_ before: Other) -> Bool {
    n < before.n || mark ?? UInt64.max < before.mark ?? 0
  }

  /// Whether it has said since then that it is there; nil: it has said nothing at all.
  func hasBeaten(since before: Other) -> Bool? {
    if (n, mark) == (before.n, before.mark) { return nil }
    return n > before.n && (mark == nil || mark ?? 0 > before.mark ?? 0)
  }
}
