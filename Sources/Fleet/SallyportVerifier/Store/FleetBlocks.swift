import FleetProtocol
import OneTimePassword
package import SallyportCore
import SallyportLogin
package import SallyportSystem

// Who is blocked on all hosts. A save expects the version that was loaded, and a block is a new
// one: what was decided before it is not saved.
extension FleetStore {
  /// By the name alone, with what the question has loaded: as it was saved last, where a save came
  /// too late.
  package func isBlocked(_ account: Account, at now: TimeSource) throws(StoreTrouble) -> Bool {
    guard let block = try rowBesideDecoy(of: account.name.bytes)?.document.block else {
      return false
    }
    return !block.block(of: account.name).isOver(at: try now())
  }

  /// Whether this blocks now.
  func isHeld(_ block: FleetBlock?, of name: UserName) throws(StoreTrouble) -> Bool {
    guard let block else { return false }
    return !block.block(of: name).isOver(at: try now())
  }

  /// Whether what older verifiers do not read may be saved. Asks the database: what `migrate
  /// --finish` has written comes with any row.
  func mayWriteNew(of name: UserName) throws(StoreTrouble) -> Bool {
    _ = try row(of: name.bytes, reload: true)
    return database.writesNew
  }

  /// Also of somebody who is not enrolled.
  func block(_ account: Account, until: UnixTime?) throws(StoreTrouble) -> Bool {
    let block = FleetBlock(since: try now(), until: until)
    return try set(block, of: account)
  }

  /// False where nothing blocked him.
  func unblock(_ account: Account) throws(StoreTrouble) -> Bool { try set(nil, of: account) }

  private func set(_ block: FleetBlock?, of account: Account) throws(StoreTrouble) -> Bool {
    var isDone = false
    try change(account.name) { (old, state) throws(StoreTrouble) in
      // By the files of a host, which do not say it.
      if block != nil, case .taken = old.place {
        isDone = false
        return nil
      }
      isDone = block != nil || old.block != nil
      if !isDone { return nil }
      var new = old
      new.block = block
      return (new, state)
    }
    return isDone
  }
}
