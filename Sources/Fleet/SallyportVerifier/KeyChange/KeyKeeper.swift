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
    var disbelieved: [[UInt8]: ResealPass.Disbelieved] = [:]
    /// Whose rows could not be sealed again in the last pass, for another reason.
    var late: Set<[UInt8]> = []
  }

  private let database: Database
  private let file: RevocationFile?
  /// In nanoseconds: between two passes at least; and for how long what was loaded under the key of
  /// before may still be saved.
  private let (patience, grace): (UInt64, UInt64)
  /// How many times as long as a pass took it rests at least; once at the end of a change.
  private let rest: UInt64
  private let progress = Locked(Progress())

  init(
    _ database: Database, _ file: RevocationFile?, patience: UInt64 = 10_000_000_000,
    grace: UInt64 = 10_000_000_000, rest: UInt64 = 10
  ) {
    (self.database, self.file) = (database, file)
    (self.patience, self.grace, self.rest) = (patience, grace, rest)
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
      let isOver = standing.present == standing.oldest
      let isLeft = isOver && database.key.former != nil
      // There is room for two keys: the one of before goes first.
      if !isLeft {
        progress.withLock { $0.ended = nil }
        try database.takeAnnounced(
          standing.announced, present: standing.present, oldest: standing.oldest)
      }
      try database.tellKeys()
      if !isOver || isLeft { try work(isLeft) }
      progress.withLock { $0.complaint = "" }
    } catch {
      complain(error)
    }
  }

  /// `isLeft`: the key of before is here, and needed no more.
  private func work(_ isLeft: Bool) throws(DatabaseFault) {
    let now = sys_monotonic()
    let (isDue, mayEnd, known) = progress.withLock { progress in
      if isLeft, progress.ended == nil { (progress.ended, progress.nextPass) = (now, 0) }
      let since = progress.ended.map { now - $0 >= grace } ?? false
      return (now >= progress.nextPass, since, progress.disbelieved)
    }
    guard isDue else { return }
    var pass = ResealPass(.seal, disbelieved: known)
    try database.reseal(&pass) { () throws(DatabaseFault) in
      _ = poll(nil, 0, Self.pause)
      if database.isAway { throw .away }
    }
    let end = sys_monotonic()
    let resting = (isLeft ? min(rest, 1) : rest) * (end - now)
    progress.withLock { $0.nextPass = end + max(patience, resting) }
    tell(of: pass, besides: known, isLeft)
    // Another verifier may have saved meanwhile what it had loaded before. What nobody can believe
    // needs no key: root has said so, or there was none when the change came to its end.
    if isLeft, mayEnd, pass.left.count == 0 { try drop() }
  }

  /// Once of each.
  private func tell(
    of pass: ResealPass, besides known: [[UInt8]: ResealPass.Disbelieved], _ isLeft: Bool
  ) {
    for (name, row) in pass.disbelieved where known[name] != row {
      let what =
        row.isOld
        ? "this verifier has seen newer ones: to keep these, restart it"
        : isLeft
          ? "fail verification: nothing opens them once that key is removed"
          : "fail verification: sallyport-verifier key status says what to do"
      database.alert(
        "the fleet's key: the rows of \(String(decoding: name, as: UTF8.self)) are sealed with the "
          + "former key, and \(what)")
    }
    let former = progress.withLock { progress in
      defer { (progress.disbelieved, progress.late) = (pass.disbelieved, Set(pass.late.keys)) }
      return progress.late
    }
    for (name, reason) in pass.late where !former.contains(name) {
      database.note(
        .warning,
        "the fleet's key: \(String(decoding: name, as: UTF8.self)) cannot be sealed again now: "
          + "\(reason); this verifier tries again")
    }
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
