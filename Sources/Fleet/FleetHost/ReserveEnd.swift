import FleetProtocol
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

// What becomes of the reserve of a host that is none of the fleet any more. A code that was used
// here and has not gone up is good again elsewhere: root is told whose it is.
extension ReserveSync {
  /// The host was revoked.
  func end() throws(StoreTrouble) { try reserve.end(tell) }

  /// The host has left.
  func dismantle() {
    do throws(StoreTrouble) {
      reserve.pendingNames.forEach(tell)
      try reserve.store.dismantle()
      log(.notice, LogLine("this host has left the fleet: the reserve is wiped"))
    } catch {
      complain(error)
    }
  }

  private func tell(_ name: StoredName) {
    let holder = name.user ?? (try? reserve.entry(stored: name))?.name
    var line = LogLine(
      "ALERT: a backup code was used here that the fleet does not know to be used:")
    line.add(user: holder?.bytes ?? Array(name.directory.utf8))
    line.add(": make new ones (sallyport backup-codes, on another host)")
    log(.alert, line)
  }
}
