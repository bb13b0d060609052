import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

// What this verifier has seen of somebody, beside what the database has.
extension FleetStore {
  /// nil: of a decoy, which many use at a time.
  func mark(of key: [UInt8]) throws(StoreTrouble) -> NameMark? {
    if Self.isDecoy(key) { return nil }
    return try rethrow(
      { () throws(CryptoError) in try database.rollbackGuard.mark(of: key) },
      as: StoreTrouble.crypto)
  }

  func check(_ row: inout Row, _ columns: Columns, _ key: [UInt8]) throws(RowFault) {
    guard let enrollment = row.document.enrollment else { return }
    guard same(enrollment.user.bytes, key) else { throw .otherUser }
    if row.isDistrusted {
      row.state?.distrust(of: enrollment, before: columns.distrust.time, losses: row.losses)
    }
    guard row.isBehind, let before = columns.seenBefore else { return }
    // That loss was found, and has ended the codes of before it.
    if !columns.isSeenBeforeLoss {
      database.meters.noteRollback()
      database.suspect(columns.user.map { ($0, columns.distrust.number) })
      alert("the state is older than one that was saved; all codes up to now count as used")
      do throws(StoreTrouble) {
        row.state?.distrust(of: enrollment, before: try now(), losses: 1)
      } catch {
        throw .unreadable
      }
    }
    if var state = row.state, before.serial == row.seen.serial {
      before.use(in: &state, of: enrollment)
      row.state = state
    }
  }
}

extension Database {
  /// A person's rows cannot be believed: of what else is that a sign? What was seen under an
  /// earlier distrust is one of her alone.
  func note(_ fault: RowFault, of columns: Columns) {
    switch fault {
    case .future(let number):
      lose("a state was saved under a later row of the fleet", lost: number)
    case .crypto, .sealed(.crypto), .exhausted: break
    case _ where columns.isSeenBeforeLoss: break
    case .gone, .behind, .twin: suspect(columns.user.map { ($0, columns.distrust.number) })
    case .noState, .sealed, .unreadable, .otherUser, .otherEnrollment: suspect(nil)
    }
  }
}
