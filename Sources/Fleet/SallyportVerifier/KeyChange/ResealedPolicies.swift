extension Database {
  /// As the other tables.
  func resealPolicies(_ pass: inout ResealPass) throws(DatabaseFault) {
    let line = try DatabaseConnection(words, worker: 1)
    var (found, next): ([FoundPolicy], UInt64) = ([], 0)
    repeat {
      found = try policies(from: next, by: line)
      for one in found where pass.isFormer(one.seal) && one.row.isRight(one.seal, under: key) {
        try pass.seal(Array("policy \(one.row.serial)".utf8)) { () throws(DatabaseFault) in
          try put(one.row, insteadOf: one.seal, by: line)
        }
      }
      next = (found.last?.row.serial ?? 0) + 1
    } while !found.isEmpty && next < UInt64(Int64.max)
  }
}
