import CService
import Glibc
import OneTimePassword
import SallyportLogin
package import SallyportSupport
import SallyportSystem

extension Database {
  /// Starts the thread that takes part in changes of the fleet's key. `file`: what was revoked is
  /// sealed there.
  package func keepKeys(_ file: RevocationFile?) throws(ServiceError) {
    let keeper = KeyKeeper(self, file)
    try startThread { keeper.keep() }
  }
}

/// Takes the next key from the database, says that it is on the disk, seals again what is sealed
/// with the one before, and removes that one at the end. It goes by what the database says, so that
/// a verifier that is killed goes on where it was.
final class KeyKeeper: Sendable {
  /// Between two turns, in milliseconds.
  private static let interval: Int32 = 1000
  /// Between two rows, in milliseconds: logins come first.
  private static let pause: Int32 = 5

  private struct Progress: Sendable {
    var nextPass: UInt64 = 0
    /// Since when the key of before is needed no more.
    var ended: UInt64?
    var complaint = ""
    var isTold = false
  }

  private let database: Database
  private let file: RevocationFile?
  /// In nanoseconds: between two passes at least; and for how long what was loaded under the key of
  /// before may still be saved.
  private let (patience, grace): (UInt64, UInt64)
  private let progress = Locked(Progress())

  init(
    _ database: Database, _ file: RevocationFile?, patience: UInt64 = 10_000_000_000,
    grace: UInt64 = 10_000_000_000
  ) {
    (self.database, self.file, self.patience, self.grace) = (database, file, patience, grace)
  }

  /// A function and no closure: the optimizer makes one that never returns into another.
  @inline(never) func keep() {
    var isOver = false
    while !isOver {
      _ = poll(nil, 0, Self.interval)
      if !database.isAway { turn() }
      isOver = database.losses < 0
    }
  }

  func turn() {
    do throws(DatabaseFault) {
      let standing = try database.keyStanding()
      try database.takeAnnounced(
        standing.announced, present: standing.present, oldest: standing.oldest)
      try database.tellKeys()
      let isOver = standing.present == standing.oldest
      let isLeft = isOver && database.key.isSealedByNext
      if !isLeft { progress.withLock { $0.ended = nil } }
      if !isOver || isLeft { try work(isLeft) }
      progress.withLock { $0.complaint = "" }
    } catch {
      complain(error)
    }
  }

  /// `isLeft`: the key of before is here, and needed no more.
  private func work(_ isLeft: Bool) throws(DatabaseFault) {
    let now = sys_monotonic()
    let (isDue, mayEnd) = progress.withLock { progress in
      if isLeft, progress.ended == nil { (progress.ended, progress.nextPass) = (now, 0) }
      let since = progress.ended.map { now - $0 >= grace } ?? false
      return (now >= progress.nextPass || isLeft && since, since)
    }
    guard isDue else { return }
    let left = try database.reseal(.seal) { () throws(DatabaseFault) in
      _ = poll(nil, 0, Self.pause)
      if database.isAway { throw .away }
    }
    let end = sys_monotonic()
    progress.withLock { $0.nextPass = end + max(patience, 10 * (end - now)) }
    // Another verifier may have saved meanwhile what it had loaded before.
    if isLeft, mayEnd, left.isEmpty { try drop() }
  }

  private func drop() throws(DatabaseFault) {
    do throws(PrivateFile.Fault) {
      try file?.sealAgain()
      try database.key.endFirst()
    } catch {
      throw .unusable("the fleet's former key is not removed here: \(error.text)")
    }
    try database.tellKeys()
    database.note(.notice, "key: the fleet's former key is removed here")
  }

  /// The same words once.
  private func complain(_ fault: DatabaseFault) {
    switch fault {
    case .away, .aside, .moved: return
    case .unreachable, .refused, .broken, .silent, .warned, .unusable, .outOfMemory: break
    }
    let isNews = progress.withLock { progress in
      defer { progress.complaint = fault.text }
      return progress.complaint != fault.text
    }
    if isNews { database.alert("the fleet's key: \(fault.text)") }
  }
}
