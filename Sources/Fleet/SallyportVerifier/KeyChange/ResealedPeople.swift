import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

extension FleetStore {
  /// Somebody's rows, or a decoy's, are saved as they are, sealed with the present key: the version
  /// goes up as with every save, the serial of the document stays. false: they are left.
  func reseal(_ key: [UInt8], _ what: Resealing) throws(DatabaseFault) -> Bool {
    do throws(StoreTrouble) {
      return try database.alone(for: try hash(of: key), until: deadline) {
        () throws(StoreTrouble) -> Bool in
        for _ in 0..<Self.attempts {
          guard let row = try row(of: key, reload: true) else { return true }
          if what == .count { return false }
          if try saveBoth(row.document, row.state, of: key, over: row.mark, isSame: true) {
            return true
          }
        }
        return false
      }
    } catch {
      if wasUnanswered { throw .away }
      // The rows cannot be believed, of which the store has told: no key helps there.
      return what == .count
    }
  }
}
