import CService
import Glibc
import SallyportLogin
import SallyportSupport
import SallyportSystem

// What a verifier that is started, or finds a loss, makes of the database that it finds.
extension Database {
  /// How many of its marks a verifier may not have written down when it was killed.
  private static var unwritten: UInt64 { 3 }
  /// By how much the last signs of life of verifiers differ that were stopped at the same time, in
  /// milliseconds, and how often one may say within it that it is there, beside that it stops.
  private static var slack: (time: Int64, times: UInt64) { (4000, 2) }

  /// Whether nothing went back since this verifier was stopped, as far as can be said. Where
  /// something has, or nobody can say, it is written down that no code up to now counts.
  func remembers(_ own: OwnRows, by connection: DatabaseConnection) throws(DatabaseFault) -> Bool {
    let (number, mark) = (books.withLock { $0.highest }, own.numbers[Books.witness] ?? 0)
    if let record = memory?.record {
      books.withLock { $0.highest = max($0.highest, record.distrust) }
      let wentBack = mark < record.mark || number < record.distrust
      if wentBack {
        alert("rows of the database went back while this verifier was stopped")
        // Where the number is higher, another loss may have raised it, before the restore.
        if try distrust(by: connection, unlessAbove: record.distrust) { return false }
      }
      // Else this machine was put back, or copied.
      let isOwn = mark < record.mark || mark - record.mark <= Self.unwritten
      let others = try others(by: connection)
      // Of rows that went back their own times are all that there is.
      let isLast =
        if let known = record.others, !wentBack {
          others.allSatisfy { other in
            let last = known[other.name] ?? 0
            let farewell: UInt64 = other.clock == nil ? 1 : 0
            return other.n <= last || other.n - last <= Self.slack.times + farewell
          }
        } else {
          others.allSatisfy { $0.time <= own.time + Self.slack.time }
        }
      if isOwn, isLast { return true }
    } else if mark == 0 || memory == nil {
      // A new one, or one of the former version until now: of another server that knows nothing.
      if own.posted == nil || own.posted == connection.server { return true }
      try distrust(by: connection)
      return false
    }
    return try isVouched(by: connection, within: patienceAtStart)
  }

  /// By how much the number of another verifier's row may be above the one that this verifier read
  /// last, while both find one loss.
  private static var meanwhile: UInt64 { 4 }

  /// Saves are gone that were acknowledged to this verifier, which runs, under this number of
  /// distrust or a lower one: no code up to now counts. Where the number is higher already, another
  /// verifier has found that, or an earlier loss.
  func answerLoss(under lost: UInt64, by connection: DatabaseConnection) throws(DatabaseFault) {
    if try distrust(by: connection, unlessAbove: lost) { return }
    let known = books.withLock { $0.others }
    let isSame = try others(by: connection).allSatisfy { other in
      let last = known[other.name] ?? 0
      return other.n >= last && other.n - last <= Self.meanwhile
    }
    if isSame { return }
    _ = try isVouched(by: connection, within: Self.patienceForWord)
  }

  /// Beats of another one that vouch for the database, and how long they may take where this
  /// verifier runs, in milliseconds.
  private static var enough: Int { 2 }
  private static var patienceForWord: UInt64 { 7000 }

  /// Whether another one answers hosts: it beats twice while this one looks. The second time shows
  /// that it found whole what it raised the first time: it has seen the database without a gap, or
  /// been told the same way. Where none does, it is written down that no code up to now counts.
  /// `patience`: milliseconds.
  private func isVouched(by connection: DatabaseConnection, within patience: UInt64)
    throws(DatabaseFault) -> Bool
  {
    let number = books.withLock { $0.highest }
    var last = Dictionary(try others(by: connection).map { ($0.name, $0) }) { $1 }
    var beats: [[UInt8]: Int] = [:]
    note(.notice, "waiting for a verifier that ran longer than this one")
    let end = sys_monotonic() + patience * 1_000_000
    repeat {
      _ = poll(nil, 0, 200)
      for other in try others(by: connection) {
        let before = last.updateValue(other, forKey: other.name)
        guard let isBeat = before.flatMap(other.hasBeaten) else { continue }
        beats[other.name] = isBeat ? (beats[other.name] ?? 0) + 1 : 0
        let isOpen = other.posted == connection.server && other.clock != nil
        if isOpen, beats[other.name] ?? 0 >= Self.enough { return true }
      }
    } while sys_monotonic() < end
    alert("no verifier that runs can say that the database did not go back")
    try distrust(by: connection, unlessAbove: number)
    return false
  }
}
