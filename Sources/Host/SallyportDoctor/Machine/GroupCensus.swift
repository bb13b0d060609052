import Glibc
import SallyportAdministration
import SallyportCore
import SallyportSupport
package import SallyportSystem

/// Problems of the groups that policy rules name, by the account database of this machine.
package final class GroupCensus {
  /// How many accounts are asked about at most, since each question may read the whole database.
  private static let most = 1000

  private var known: [String: RuleName.Flaw?] = [:]
  private let machine: Machine
  private let store: Store?
  /// The accounts that the database lists; empty if it cannot list them.
  private lazy var listed: [HomeAccount] = (try? AccountBook.all()) ?? []
  /// Those with something in the store, whom the database may not list.
  private lazy var stored: [Account] = ((try? store?.storedPeople()) ?? []).compactMap { name in
    (try? Accounts.find(name)).flatMap { $0.uid == nil ? nil : $0 }
  }
  /// Whether there may be accounts that are neither.
  private lazy var mayLackPeople = AccountBook.mayLackPeople(listed, on: machine)
  /// Of groups that are not in this machine's files: why nothing shows who is not in them; nil if
  /// they do not come from SSSD, or it tells.
  private lazy var silence: String? = silenceOfSSSD()
  private lazy var ownGroups = Set(AccountFacts(of: machine, listing: .none).groups.map(\.name))

  /// `store`: whose people are asked about besides those that the database lists.
  package init(of machine: Machine = Machine(), _ store: Store? = nil) {
    (self.machine, self.store) = (machine, store)
  }

  /// Returns nil if the group exists and has a member, and what is said of others is sure.
  func flaw(of name: String) -> RuleName.Flaw? {
    if let flaw = known[name] { return flaw }
    let found = lookedUpFlaw(of: name)
    let unsure = found.map { $0.doubt == nil } == true ? nil : unsureness(of: name)
    let flaw = unsure.map { RuleName.Flaw(text: $0) } ?? found
    known[name] = .some(flaw)
    return flaw
  }

  /// Asks no name service.
  func unsureness(of name: String) -> String? {
    guard let silence, !ownGroups.contains(name) else { return nil }
    return "SSSD does not say who is outside of group \(printable(name.utf8)), so a rule on it "
      + "tightens for all accounts of SSSD: \(silence)"
  }

  private func silenceOfSSSD() -> String? {
    let isAsked = ["group", "initgroups"].contains {
      NameSources(of: $0, on: machine).sources?.contains("sss") == true
    }
    guard isAsked, !SSSDSettings.tellsOfGroups(on: machine) else { return nil }
    return "[nss] of sssd.conf has no \"user_attributes = +\(SSSDSettings.attribute)\""
  }

  private func lookedUpFlaw(of name: String) -> RuleName.Flaw? {
    machine.leaveSilentSources()
    errno = 0
    // SAFETY: the entry is valid until the next lookup of a group, which comes after its last use.
    guard let group = unsafe getgrnam(name) else {
      return RuleName(kind: .group, word: name, errno: errno).flaw(on: machine)
    }
    let number = unsafe group.pointee.gr_gid
    if unsafe listsAnAccount(group) || listed.contains(where: { $0.account.group == number }) {
      return nil
    }
    let shown = printable(name.utf8)
    var isSure = ownGroups.contains(name) || !mayLackPeople
    // A directory service may list no members, but confirm the membership of an account.
    for account in (stored + listed.map(\.account)).prefix(GroupCensus.most) {
      switch Accounts.isMember(account, of: Array(name.utf8)) {
      case .yes: return nil
      case .unknown: isSure = false
      case .no: break
      }
    }
    return isSure
      ? RuleName.Flaw(text: "no account is found in group \(shown)")
      : RuleName.Flaw(
        text: "the members of group \(shown) are not known: no account that is found here is in "
          + "it, and a source in nsswitch.conf may list nobody", doubt: .mayBeAway)
  }

  @unsafe private func listsAnAccount(_ group: UnsafeMutablePointer<group>) -> Bool {
    // SAFETY: a list of C strings that ends with NULL.
    guard var member = unsafe group.pointee.gr_mem else { return false }
    while let name = unsafe member.pointee {
      if unsafe getpwnam(name) != nil { return true }
      unsafe member += 1
    }
    return false
  }
}
