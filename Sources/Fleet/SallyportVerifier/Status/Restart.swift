import CService
import Glibc
import SallyportLogin
import SallyportSupport
import SallyportSystem

// What a verifier that is started makes of the database that it finds.
extension Database {
  /// How many of its marks a verifier may not have written down when it was killed.
  private static var unwritten: UInt64 { 3 }
  /// By how much the last signs of life of verifiers differ that were stopped at the same time, in
  /// milliseconds.
  private static var slack: Int64 { 4000 }

  /// Whether nothing went back since this verifier was stopped, as far as can be said. Where
  /// something has, or nobody can say, it is written down that no code up to now counts.
  func remembers(_ own: OwnRows, by connection: DatabaseConnection) throws(DatabaseFault) -> Bool {
    guard let memory else { return true }
    let (number, mark) = (books.withLock { $0.highest }, own.numbers[Books.witness] ?? 0)
    if let record = memory.record {
      books.withLock { $0.highest = max($0.highest, record.distrust) }
      if mark < record.mark || number < record.distrust {
        alert("rows of the database went back while this verifier was stopped")
        try distrust(by: connection, unlessAbove: record.distrust)
        return false
      }
      // Else this machine was put back, or copied.
      let isOwn = mark - record.mark <= Self.unwritten
      if isOwn, try others(by: connection).allSatisfy({ $0.time <= own.time + Self.slack }) {
        return true
      }
    } else if mark == 0 {
      // A new one, or one of the former version until now.
      return true
    }
    if try isVouched(by: connection) { return true }
    alert("no verifier is there that can say that the database did not go back")
    try distrust(by: connection, unlessAbove: number)
    return false
  }

  /// Whether another one answers hosts: it says that it lives while this one looks. It has seen the
  /// database without a gap, or been told the same way.
  private func isVouched(by connection: DatabaseConnection) throws(DatabaseFault) -> Bool {
    let first = try others(by: connection)
    note(.notice, "waiting for a verifier that was there until later than this one")
    let end = sys_monotonic() + patienceAtStart * 1_000_000
    repeat {
      _ = poll(nil, 0, 200)
      let isThere = try others(by: connection).contains { other in
        other.posted == connection.server
          && !first.contains { $0.name == other.name && $0.time >= other.time }
      }
      if isThere { return true }
    } while sys_monotonic() < end
    return false
  }
}
