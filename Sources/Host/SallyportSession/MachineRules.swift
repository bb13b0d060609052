internal import CSession
import Glibc
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// The rules of this machine about who becomes root.
enum MachineRules {
  private static var files: RuleFiles { RuleFiles(text: text, names: names) }

  static func power(of account: Account) -> RootPower {
    let names = RootNames(of: files)
    return RootPower(of: account, by: names) { group in
      // sudo does not tell capitals apart in the names of groups.
      let all = ([group] + spellings(of: group)).map {
        isMember(account, of: $0, areGroupsLocal: names.areGroupsLocal)
      }
      return all.contains(.yes) ? .yes : all.contains(.unknown) ? .unknown : .no
    }
  }

  /// Groups of this machine that differ from this one in capitals alone.
  private static func spellings(of group: String) -> [String] {
    guard case .seen(let text) = text("/etc/group") else { return [] }
    return text.split(whereSeparator: \.isNewline)
      .compactMap { $0.split(separator: ":").first.map(String.init) }
      .filter { $0 != group && $0.lowercased() == group.lowercased() }
  }

  /// Whether the account is in the group. Unlike for a login, of which the directory knows the
  /// account, no is certain of an account of this machine in a group of a directory, too.
  static func isMember(_ account: Account, of group: [UInt8]) -> Tristate {
    isMember(account, of: group, areGroupsLocal: files.areGroupsLocal)
  }

  private static func isMember(_ account: Account, of group: [UInt8], areGroupsLocal: Bool)
    -> Tristate
  {
    let found = Accounts.isMember(account, of: group)
    if found != .no || areGroupsLocal { return found }
    // SAFETY: both are C strings that live for the call.
    return unsafe session_is_outside(account.name.bytes + [0], group + [0]) ? .no : .unknown
  }

  /// A group that is not there has no members, where it is certain that it is not there.
  private static func isMember(_ account: Account, of group: String, areGroupsLocal: Bool)
    -> Tristate
  {
    let found = isMember(account, of: Array(group.utf8), areGroupsLocal: areGroupsLocal)
    if found != .unknown { return found }
    // SAFETY: both are C strings that live for the call.
    let isAbsent = unsafe session_lacks_group(
      account.name.bytes + [0], Array(group.utf8) + [0], areGroupsLocal)
    return isAbsent ? .no : .unknown
  }

  /// In bytes. A longer file is not understood.
  private static let longest = 1 << 20

  private static func text(_ path: String) -> RuleFiles.Text {
    do throws(SystemError) {
      let file = try OpenFile(path, O_RDONLY | O_NONBLOCK)
      let facts = try file.facts()
      guard facts.st_mode & S_IFMT == S_IFREG, facts.st_size <= longest else {
        return .unseen("\(path): cannot be a file of rules")
      }
      let bytes = try file.bytes(longest + 1)
      guard bytes.count <= longest, let text = String(validating: bytes, as: UTF8.self) else {
        return .unseen("\(path): cannot be a file of rules")
      }
      return .seen(text)
    } catch {
      return isAbsent(error.number) ? .absent : .unseen("\(path): \(errnoText(error.number))")
    }
  }

  private static func isAbsent(_ number: Int32) -> Bool { number == ENOENT || number == ENOTDIR }

  private static func names(_ directory: String) -> [String]? {
    // SAFETY: the C string lives for the call; the stream is closed once, and each entry is used
    // before the next is read.
    guard let stream = unsafe opendir(directory) else { return isAbsent(errno) ? [] : nil }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else { return errno == 0 ? names.sorted() : nil }
      let name = unsafe session_name(entry)
      guard let name = unsafe String(validatingCString: name) else { return nil }
      if name != ".", name != ".." { names.append(name) }
    }
  }
}
