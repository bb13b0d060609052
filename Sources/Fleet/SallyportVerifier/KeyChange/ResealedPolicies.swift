extension Database {
  /// As the other tables.
  func resealPolicies(_ what: Resealing, _ present: [UInt8], _ left: inout KeyLeft)
    throws(DatabaseFault)
  {
    let line = try DatabaseConnection(words, worker: 1)
    var (found, next): ([FoundPolicy], UInt64) = ([], 0)
    repeat {
      found = try policies(from: next, by: line)
      for one in found
      where !one.seal.starts(with: present) && one.row.isRight(one.seal, under: key) {
        let isDone = what == .seal ? try put(one.row, insteadOf: one.seal, by: line) : false
        if !isDone { left.count += 1 }
      }
      next = (found.last?.row.serial ?? 0) + 1
    } while !found.isEmpty
  }
}
