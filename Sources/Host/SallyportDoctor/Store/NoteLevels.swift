import SallyportAdministration
import SallyportCore
import SallyportSystem

/// The levels that root has set for users. Whose there are is read once.
struct NoteLevels {
  private let store: Store
  /// nil if they cannot be listed: then each is looked for.
  private let names: Set<String>?
  private let uids: Set<UInt32>

  init(of store: Store) {
    self.store = store
    do throws(StoreTrouble) {
      (names, uids) = (
        Set(try store.notedNames().map(\.directory)), Set(try store.requiredUIDs())
      )
    } catch {
      (names, uids) = (nil, [])
    }
  }

  /// As a login reads it.
  func level(of account: Account) throws(StoreTrouble) -> UserNote.Level? {
    let isNoted = names?.contains(try store.storedName(of: account.name).directory) ?? true
    // Whose a file with another name is, is not known.
    let isRequired = uids.contains(UserNote.noUID) || account.uid.map(uids.contains) ?? true
    return isNoted || isRequired ? try store.level(of: account) : nil
  }
}
