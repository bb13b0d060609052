import Glibc
import SallyportCore
import SallyportSupport
import SallyportSystem

/// Problems of the groups that policy rules name, by the account database of this machine.
final class GroupCensus {
  /// The accounts that the database lists; empty if it cannot list them.
  private lazy var accounts: [Account] = ((try? AccountBook.all()) ?? []).map(\.account)

  /// How many accounts are asked about at most, since each question may read the whole database.
  private static let most = 1000

  private var known: [String: String?] = [:]
  private let machine: Machine
  /// Of groups that are not in this machine's files: why nothing shows who is not in them; nil if
  /// they do not come from SSSD, or it tells.
  private lazy var silence: String? = silenceOfSSSD()
  private lazy var ownGroups = Set(AccountFacts(of: machine, listing: .none).groups.map(\.name))

  init(of machine: Machine = Machine()) { self.machine = machine }

  /// Returns nil if the group exists and has a member, and what is said of others is sure.
  func flaw(of name: String) -> String? {
    if let flaw = known[name] { return flaw }
    let flaw = lookedUpFlaw(of: name) ?? unsureness(of: name)
    known[name] = .some(flaw)
    return flaw
  }

  /// Asks no name service.
  func unsureness(of name: String) -> String? {
    guard let silence, !ownGroups.contains(name) else { return nil }
    return "who is not in group \(printable(name.utf8)) is never known, so that a rule on it "
      + "tightens for all accounts of SSSD: \(silence)"
  }

  private func silenceOfSSSD() -> String? {
    let isAsked = ["group", "initgroups"].contains {
      NameSources(of: $0, on: machine).sources?.contains("sss") == true
    }
    guard isAsked, !SSSDSettings.tellsOfGroups(on: machine) else { return nil }
    return "[nss] of sssd.conf has no \"user_attributes = +\(SSSDSettings.attribute)\""
  }

  private func lookedUpFlaw(of name: String) -> String? {
    errno = 0
    // SAFETY: the entry is valid until the next lookup of a group, which comes after its last use.
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
    // A directory service may list no members, but confirm the membership of an account.
    if accounts.prefix(GroupCensus.most).contains(where: {
      Accounts.isMember($0, of: bytes) == .yes
    }) {
      return nil
    }
    return "no account is found in group \(printable(name.utf8))"
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
