import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSystem

/// Whom `require` means by a group, or by `--all`: by name, since a source of accounts other than
/// files may list nobody.
struct MeantPeople {
  /// The accounts' own names, each once.
  private(set) var found: [String] = []
  /// Those who may be meant and are not reached, by name or in words.
  private(set) var unseen: [String] = []

  private let group: String?
  private var seen: Set<[UInt8]> = []

  /// Everybody who is in this group now; nil: every person. Those with something in the store are
  /// asked about besides those that the account database lists.
  init(of group: String?, storedIn store: Store, on machine: Machine) throws(CommandError) {
    self.group = group
    let listed = try storing { () throws(StoreTrouble) in try AccountBook.all() }
    if let group { try takeMembers(of: group) }
    for one in listed where !seen.contains(one.account.name.bytes) {
      take(one.account)
    }
    let stored = try storing { () throws(StoreTrouble) in try store.storedPeople() }
    for name in stored where !seen.contains(name.bytes) { take(name) }
    if AccountBook.mayLackPeople(listed, on: machine) {
      let whose = group.map { "members of \(printable($0.utf8, limit: 64))" }
      unseen.append("\(whose ?? "people") \(AccountBook.unlisted)")
    }
  }

  private mutating func takeMembers(of group: String) throws(CommandError) {
    let members = try storing { () throws(StoreTrouble) in try AccountBook.members(of: group) }
    guard let members else { throw .nobodyInGroup(group) }
    for member in members {
      if let name = UserName(member), let account = find(name), account.uid != nil {
        add(account.name.bytes)
      } else {
        miss(member)
      }
    }
  }

  /// nil: it cannot be seen whether there is such an account.
  private func find(_ name: UserName) -> Account? {
    do throws(StoreTrouble) { return try Accounts.find(name) } catch { return nil }
  }

  /// Somebody with something in the store.
  private mutating func take(_ name: UserName) {
    guard let account = find(name) else { return miss(name.bytes) }
    // What is stored under another spelling of an account's own name counts in no login.
    if account.uid != nil, account.name == name { take(account) }
  }

  private mutating func take(_ account: Account) {
    guard let group else {
      guard let uid = account.uid, uid >= HomeAccount.firstPerson else { return }
      if HomeAccount.people.contains(uid) { return add(account.name.bytes) }
      if !HomeAccount.isReserved(uid) { miss(account.name.bytes, ": uid \(uid)") }
      return
    }
    switch Accounts.isMember(account, of: Array(group.utf8)) {
    case .yes: add(account.name.bytes)
    case .unknown: miss(account.name.bytes)
    case .no: break
    }
  }

  /// A name that is not UTF-8 cannot be typed, and is not looked up by the subject.
  private mutating func add(_ name: [UInt8]) {
    let text = String(decoding: name, as: UTF8.self)
    guard Array(text.utf8) == name else { return miss(name) }
    if seen.insert(name).inserted { found.append(text) }
  }

  private mutating func miss(_ name: [UInt8], _ why: String = "") {
    if seen.insert(name).inserted { unseen.append(printable(name, limit: 255) + why) }
  }
}
