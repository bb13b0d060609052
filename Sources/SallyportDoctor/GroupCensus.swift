import Glibc
import SallyportCore
import SallyportSystem
import SallyportText

/// What is wrong with the groups that rules name, by the account database of this machine.
final class GroupCensus {
  /// The accounts that the database lists; none where it cannot be listed.
  private lazy var accounts: [Account] = listedAccounts()

  /// Of how many accounts all groups are asked for: each may read the whole database again.
  private static let most = 1000

  private var known: [String: String?] = [:]

  /// Nil where the group is there and somebody is in it.
  func flaw(of name: String) -> String? {
    if let flaw = known[name] { return flaw }
    let flaw = lookedUpFlaw(of: name)
    known[name] = .some(flaw)
    return flaw
  }

  private func lookedUpFlaw(of name: String) -> String? {
    errno = 0
    // SAFETY: the entry holds until the next look-up of a group, which comes after its last use.
    guard let group = unsafe getgrnam(name) else {
      let problem = errno
      let name = printable(name.utf8)
      return problem == 0 || problem == ENOENT
        ? "there is no group \(name)"
        : "group \(name) cannot be looked up: \(errnoText(problem))"
    }
    let number = unsafe group.pointee.gr_gid
    if unsafe listsAnAccount(group) || accounts.contains(where: { $0.group == number }) {
      return nil
    }
    let bytes = Array(name.utf8)
    // A directory may list no members, and still say of an account that it is one.
    if accounts.prefix(GroupCensus.most).contains(where: {
      Accounts.isMember($0, of: bytes) == .yes
    }) {
      return nil
    }
    return "no account is found in group \(printable(name.utf8))"
  }

  @unsafe private func listsAnAccount(_ group: UnsafeMutablePointer<group>) -> Bool {
    // SAFETY: a list of C strings with NULL at its end.
    guard var member = unsafe group.pointee.gr_mem else { return false }
    while let name = unsafe member.pointee {
      if unsafe getpwnam(name) != nil { return true }
      unsafe member += 1
    }
    return false
  }
}

private func listedAccounts() -> [Account] {
  do throws(StoreTrouble) {
    return try AccountBook.all().map {
      Account(name: $0.account.name, uid: $0.user, group: $0.group)
    }
  } catch {
    return []
  }
}
